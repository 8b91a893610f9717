// Cause: a switch of the framework or of a library that governs the operator is set otherwise. The
// table below says which switch can touch which operators; a switch that differs and cannot touch
// the operator at hand is never blamed.
#include <algorithm>
#include <array>
#include <set>

#include "diagnose/evidence.h"
#include "diagnose/place.h"

namespace joulediff::diagnose {
namespace {

using value::DType;

enum class Governs { products, convolutions, attention, scattered, everything };

struct Switch {
  std::string_view key;  // what the recorded key ends with
  Governs governs;
  DType dtype;              // only operators on this dtype; other: any
  std::string_view advice;  // {} stands for the value
};

// The first of the table that differs is named, so the one that people set comes first.
constexpr std::array<Switch, 20> kSwitches = {{
    {"float32_matmul_precision", Governs::products, DType::float32,
     "torch.set_float32_matmul_precision({})"},
    {"cuda.matmul.allow_tf32", Governs::products, DType::float32,
     "torch.backends.cuda.matmul.allow_tf32 = {}"},
    {"cuda.matmul.allow_fp16_reduced_precision_reduction", Governs::products, DType::float16, ""},
    {"cuda.matmul.allow_bf16_reduced_precision_reduction", Governs::products, DType::bfloat16, ""},
    {"cuda.matmul.allow_fp16_accumulation", Governs::products, DType::float16, ""},
    {"cuda.preferred_blas_library", Governs::products, DType::other, ""},
    {"cudnn.allow_tf32", Governs::convolutions, DType::float32, ""},
    {"NVIDIA_TF32_OVERRIDE", Governs::products, DType::float32, ""},
    {"NVIDIA_TF32_OVERRIDE", Governs::convolutions, DType::float32, ""},
    {"cudnn.enabled", Governs::convolutions, DType::other, ""},
    {"cudnn.benchmark", Governs::convolutions, DType::other, ""},
    {"cudnn.deterministic", Governs::convolutions, DType::other, ""},
    {"attention_backend", Governs::attention, DType::other, ""},
    {"ATTENTION_BACKEND", Governs::attention, DType::other, ""},
    {"_attn_implementation", Governs::attention, DType::other, ""},
    {"sdp_enabled", Governs::attention, DType::other, ""},
    {"deterministic_algorithms", Governs::scattered, DType::other,
     "torch.use_deterministic_algorithms({})"},
    {"mkldnn.enabled", Governs::products, DType::other, ""},
    {"num_threads", Governs::everything, DType::other, "torch.set_num_threads({})"},
    {"OMP_NUM_THREADS", Governs::everything, DType::other, ""},
}};

bool one_of(std::string_view name, std::initializer_list<std::string_view> parts) {
  return std::any_of(parts.begin(), parts.end(),
                     [&](std::string_view part) { return name.find(part) != name.npos; });
}

bool governed(Governs governs, std::string_view op) {
  switch (governs) {
    case Governs::products:
      return one_of(op, {"mm", "linear", "matmul", "dot_general", "einsum", "addmv", ".mv"});
    case Governs::convolutions: return one_of(op, {"conv", "cudnn", "rnn", "lstm", "gru"});
    case Governs::attention: return one_of(op, {"attention", "attn", "bmm", "softmax"});
    case Governs::scattered: return one_of(op, {"scatter", "index_", "put", "cumsum", "conv"});
    case Governs::everything: return true;
  }
  return false;
}

bool reads(const Part& part, const std::vector<run::OperatorId>& calls, DType dtype) {
  if (dtype == DType::other) return true;
  return std::any_of(calls.begin(), calls.end(), [&](run::OperatorId id) {
    const auto& inputs = part.run.operators[id.index()].inputs;
    return std::any_of(inputs.begin(), inputs.end(), [&](run::TensorId tensor) {
      return part.run.tensors[tensor.index()].fingerprint.dtype == dtype;
    });
  });
}

const run::Setting* find(const run::Run& run, std::string_view key) {
  const auto found = std::find_if(
      run.settings.begin(), run.settings.end(),
      [&](const run::Setting& setting) { return std::string_view(setting.key).ends_with(key); });
  return found == run.settings.end() ? nullptr : &*found;
}

std::string quoted(const std::string& value) {
  const bool literal = value == "True" || value == "False" || value == "None" ||
                       (!value.empty() && value.find_first_not_of("0123456789.") == value.npos);
  return literal ? value : "'" + value + "'";
}

std::string how(const Switch& one, const run::Setting& cheap) {
  const std::string value = quoted(cheap.value);
  if (one.advice.empty()) return cheap.key + " = " + value;
  std::string call(one.advice);
  return call.replace(call.find("{}"), 2, value);
}

}  // namespace

std::optional<Answer> other_setting(const Question& question) {
  const auto calls = question.calls(question.dear, question.focus);
  const std::optional<bool> other_kernels = kernels_differ(question, question.focus);
  for (const Switch& one : kSwitches) {
    const run::Setting* dear = find(question.dear.run, one.key);
    const run::Setting* cheap = find(question.cheap.run, one.key);
    if (dear == nullptr || cheap == nullptr || dear->value == cheap->value) continue;
    if (!governed(one.governs, question.focus) || !reads(question.dear, calls, one.dtype)) continue;
    const std::string side(letter(question.dear.side));
    const std::string other(letter(question.cheap.side));
    const bool precision = one.key == "float32_matmul_precision";
    Answer answer;
    answer.cause.kind = CauseKind::setting;
    answer.cause.key = "setting:" + (precision ? std::string(one.key) : dear->key);
    answer.cause.message = dear->key + " is " + dear->value + " in " + side + " and " +
                           cheap->value + " in " + other + "; it governs " + question.focus;
    if (other_kernels.value_or(false)) answer.cause.message += ", which runs other kernels";
    answer.cause.standing =
        other_kernels.value_or(false) ? CauseStanding::likely : CauseStanding::open;
    if (!calls.empty()) {
      const Places at = places(question.dear.run, calls.front());
      answer.cause.where = at.where;
      answer.cause.called_from = at.called_from;
    }
    answer.advice = how(one, *cheap) + " in " + side + ", as in " + other + " (" + side + " has " +
                    quoted(dear->value) + ")";
    return answer;
  }
  return std::nullopt;
}

}  // namespace joulediff::diagnose
