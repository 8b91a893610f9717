#include "rules/mlperf.h"

#include <algorithm>
#include <array>

#include "rules/mlperf_rules.h"

namespace joulediff::rules {
namespace {

// Of a submission whose measurement is one run, repeats are asked of nobody; and what a check of
// MLPerf says already, the grammar need not say again.
bool said_already(const run::Submission& s, const std::string& rule) {
  if (rule == "Q1") return true;
  return s.inference &&
         (rule == "ST1" || rule == "DI2" || rule == "SY1" || rule == "ME4" || rule == "WU2");
}

Checked worst_official(const Checks& checks) {
  Checked worst = Checked::passed;
  for (const MlperfCheck& check : checks)
    if (check.official != Checked::unchecked) worst = std::max(worst, check.official);
  return worst;
}

Checked worst_ours(const MlperfJudgement& judgement, const run::Submission& submission) {
  Checked worst = Checked::passed;
  for (const MlperfCheck& check : judgement.checks)
    if (check.ours != Checked::unchecked) worst = std::max(worst, check.ours);
  const auto take = [&worst](Severity severity) {
    if (severity == Severity::error) worst = Checked::failed;
    if (severity == Severity::warning) worst = std::max(worst, Checked::warned);
  };
  for (const Objection& objection : judgement.objections) take(objection.severity);
  for (const Diagnostic& diagnostic : submission.diagnostics) take(diagnostic.severity);
  return worst;
}

}  // namespace

std::string_view name(Checked checked) {
  switch (checked) {
    case Checked::passed: return "pass";
    case Checked::warned: return "warn";
    case Checked::failed: return "FAIL";
    case Checked::unchecked: return "-";
  }
  return "?";
}

MlperfCheck passed(std::string id, Checked official) {
  return {std::move(id), official, Checked::passed, {}, {}, {}};
}

std::string short_time(Seconds seconds) {
  return fmt::format("{:.1f} s", seconds.value);
}

double unix_seconds(Nanoseconds time) {
  return static_cast<double>(time) * 1e-9;
}

Checks inference_checks(const run::Submission& submission, const KnownSources& known) {
  const run::Inference& i = *submission.inference;
  Checks checks{client_sources(i, known), server_sources(i, known)};
  for (const auto check : {ptd_replies,     uuids,
                           session_names,   phase_clocks,
                           phase_windows,   durations,
                           reference_power, messages,
                           hashes,          uncertainty_activated,
                           meter_errors,    uncertain_readings,
                           analyzer,        debug_mode,
                           valid_result,    minimum_duration,
                           fixed_range,     peak_current,
                           log_clock,       summary_agrees})
    checks.push_back(check(i));
  checks.push_back(quality(submission));
  checks.push_back(filed(submission));
  return checks;
}

MlperfCheck filed(const run::Submission& submission) {
  MlperfCheck check = passed("mlperf.filed", Checked::unchecked);
  const run::Inference& i = *submission.inference;
  if (i.analyzer_table && i.power_settings && !submission.description.empty()) return check;
  std::string lacks;
  if (!i.analyzer_table) lacks += "analyzer_table.*, ";
  if (!i.power_settings) lacks += "power_settings.*, ";
  if (submission.description.empty()) lacks += "the system's description, ";
  check.ours = Checked::warned;
  check.message = fmt::format("not found: {}", lacks.substr(0, lacks.size() - 2));
  check.remedy = "name the whole results tree, or file them";
  return check;
}

MlperfJudgement judge(const run::Submission& submission, const KnownSources& known) {
  MlperfJudgement judgement;
  if (submission.inference) {
    judgement.score = inference_score(*submission.inference);
    judgement.checks = inference_checks(submission, known);
  }
  if (submission.training) {
    judgement.score = training_score(*submission.training);
    judgement.checks = training_checks(submission);
  }
  if (submission.tiny) {
    judgement.score = tiny_score(*submission.tiny);
    judgement.checks = tiny_checks(submission);
  }
  judgement.point = point_of(submission, judgement.score);
  judgement.objections = check(judgement.point);
  std::erase_if(judgement.objections,
                [&](const Objection& one) { return said_already(submission, one.rule); });
  judgement.official = worst_official(judgement.checks);
  judgement.ours = worst_ours(judgement, submission);
  return judgement;
}

}  // namespace joulediff::rules
