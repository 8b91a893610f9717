// What a task asks of the model's quality, and what the accuracy run reached.
//
// Of inference the targets and the words of accuracy.txt are those of the submission checker
// (mlcommons/inference, tools/submission/submission_checker/constants.py, "accuracy-target" and
// ACC_PATTERN, rounds v3.1 to v5.1): a share of what the reference implementation reaches. Of Tiny
// they are in MLPerfTiny_Rules.adoc. A task that is not here, among them those with limits on both
// sides (stable-diffusion-xl) or in other units (sww), has an unknown target.
#include <array>
#include <cmath>
#include <cstdlib>

#include "rules/mlperf_rules.h"

namespace joulediff::rules {
namespace {

struct Goal {
  std::string_view task;    // without the level: "bert" of "bert-99.9"
  std::string_view metric;  // all of them are better when higher
  std::string_view mark;    // accuracy.txt: what the value stands behind
  double reference;
};

constexpr std::array kInference{
    Goal{"resnet", "accuracy", "accuracy=", 76.46},
    Goal{"resnet50", "accuracy", "accuracy=", 76.46},
    Goal{"retinanet", "mAP", "mAP=", 37.55},
    Goal{"rnnt", "accuracy", ", accuracy=", 100 - 7.452},  // 100 % less the word error rate
    Goal{"whisper", "accuracy", ", accuracy=", 100 - 2.0671},
    Goal{"bert", "F1", "\"f1\": ", 90.874},
    Goal{"dlrm-v2", "AUC", "AUC=", 80.31},
    Goal{"3d-unet", "Dice", "Accuracy: mean = ", 0.86170},
    Goal{"rgat", "accuracy", "accuracy=", 0.7286},
    Goal{"gptj", "ROUGE-1", "'rouge1': ", 42.9865},
    Goal{"gptj", "ROUGE-2", "'rouge2': ", 20.1235},
    Goal{"gptj", "ROUGE-L", "'rougeL': ", 29.9881},
    Goal{"llama2-70b", "ROUGE-1", "'rouge1': ", 44.4312},
    Goal{"llama2-70b", "ROUGE-2", "'rouge2': ", 22.0352},
    Goal{"llama2-70b", "ROUGE-L", "'rougeL': ", 28.6162},
    Goal{"mixtral-8x7b", "ROUGE-1", "'rouge1': ", 45.5989},
    Goal{"mixtral-8x7b", "ROUGE-2", "'rouge2': ", 23.3526},
    Goal{"mixtral-8x7b", "ROUGE-L", "'rougeL': ", 30.4608},
    Goal{"llama3.1-8b", "ROUGE-1", "'rouge1': ", 38.7792},
    Goal{"llama3.1-8b", "ROUGE-2", "'rouge2': ", 15.9075},
    Goal{"llama3.1-8b", "ROUGE-L", "'rougeL': ", 24.4957},
    Goal{"llama3.1-405b", "ROUGE-L", "'rougeL': ", 21.6666},
};

constexpr std::array kTiny{Goal{"kws", "Top-1", "Top-1", 90}, Goal{"vww", "Top-1", "Top-1", 80},
                           Goal{"ic", "Top-1", "Top-1", 85}, Goal{"ad", "AUC", "AUC", 0.85}};

// "bert" and 0.999 of "bert-99.9"; tasks of one level are at 99 %.
std::pair<std::string, double> level_of(const std::string& benchmark) {
  if (benchmark.ends_with("-99.9")) return {benchmark.substr(0, benchmark.size() - 5), 0.999};
  if (benchmark.ends_with("-99")) return {benchmark.substr(0, benchmark.size() - 3), 0.99};
  return {benchmark, 0.99};
}

// The number behind the mark, at the mark's last place: programs log before they conclude.
run::Fact number_behind(const std::string& text, std::string_view mark) {
  std::size_t at = text.rfind(mark);
  if (at == std::string::npos) return {};
  at += mark.size();
  if (at < text.size() && text[at] == '\'') ++at;
  char* end = nullptr;
  const double value = std::strtod(text.c_str() + at, &end);
  if (end == text.c_str() + at || !std::isfinite(value)) return {};
  return value;
}

// Of several metrics the one that is furthest below its target, or least above.
void take(Reached& reached, const Goal& goal, double target, const run::Fact& value) {
  reached.target_known = true;
  if (!value || *value < 0) {
    reached.lacking = goal.metric;
    return;
  }
  if (reached.value && *value / target >= *reached.value / *reached.target) return;
  reached.metric = goal.metric;
  reached.value = value;
  reached.target = target;
}

Reached inference(const run::Submission& s) {
  Reached reached;
  const auto [task, share] = level_of(s.benchmark);
  for (const Goal& goal : kInference)
    if (goal.task == task)
      take(reached, goal, goal.reference * share,
           s.inference->accuracy ? number_behind(*s.inference->accuracy, goal.mark) : run::Fact());
  return reached;
}

Reached tiny(const run::Submission& s) {
  Reached reached;
  const std::string& model = s.tiny->model.empty() ? s.benchmark : s.tiny->model;
  for (const Goal& goal : kTiny) {
    if (!model.starts_with(goal.task)) continue;
    const auto found = s.tiny->qualities.find(std::string(goal.mark));
    take(reached, goal, goal.reference,
         found == s.tiny->qualities.end() ? run::Fact() : run::Fact(found->second));
  }
  return reached;
}

}  // namespace

Reached quality_of(const run::Submission& submission) {
  if (submission.inference) return inference(submission);
  if (submission.tiny) return tiny(submission);
  return {};
}

MlperfCheck quality(const run::Submission& submission) {
  const Reached reached = quality_of(submission);
  MlperfCheck check = submission.tiny ? passed("mlperf.tiny_quality")
                                      : passed("mlperf.quality", Checked::unchecked);
  const std::string file = submission.tiny ? "accuracy/results.txt" : "accuracy/accuracy.txt";
  if (reached.value && *reached.value < *reached.target) {
    if (submission.tiny) check.official = Checked::failed;
    check.ours = Checked::failed;
    check.message = fmt::format("{} is {:.6g}, {:.6g} is the least", reached.metric, *reached.value,
                                *reached.target);
    check.remedy = "submit a model that reaches it";
  } else if (!reached.target_known || !reached.lacking.empty()) {
    check.official = check.ours = Checked::unchecked;
    check.message =
        reached.target_known
            ? fmt::format("{} states no {}", file, reached.lacking)
            : fmt::format("what quality {} asks for is not known here",
                          submission.benchmark.empty() ? "the task" : submission.benchmark);
    check.remedy =
        reached.target_known ? "file the accuracy run" : "hold it against the rules of its round";
  }
  return check;
}

}  // namespace joulediff::rules
