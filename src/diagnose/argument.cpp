// Cause: the same operator, called with other arguments or on other dtypes.
#include <algorithm>

#include "diagnose/evidence.h"
#include "diagnose/place.h"

namespace joulediff::diagnose {
namespace {

std::string_view text(value::DType dtype) {
  using value::DType;
  switch (dtype) {
    case DType::other: return "an unknown dtype";
    case DType::float32: return "float32";
    case DType::float64: return "float64";
    case DType::float16: return "float16";
    case DType::bfloat16: return "bfloat16";
    case DType::int8: return "int8";
    case DType::int16: return "int16";
    case DType::int32: return "int32";
    case DType::int64: return "int64";
    case DType::uint8: return "uint8";
    case DType::boolean: return "bool";
    case DType::complex64: return "complex64";
    case DType::complex128: return "complex128";
    case DType::float8_e4m3: return "float8_e4m3";
    case DType::float8_e5m2: return "float8_e5m2";
  }
  return "an unknown dtype";
}

struct Found {
  run::OperatorId call;
  std::string key;
  std::string message;
};

// "use_tensor_cores" of {"use_tensor_cores": false} against {"use_tensor_cores": true}: the name is
// kept where one member of two flat JSON objects differs; parsing them is not worth a library here.
std::string differing_name(const std::string& x, const std::string& y) {
  const auto end = std::mismatch(x.begin(), x.end(), y.begin(), y.end()).first;
  const auto at = static_cast<std::size_t>(end - x.begin());
  const std::size_t colon = x.rfind("\":", at);
  if (colon == x.npos || colon == 0) return {};
  const std::size_t quote = x.rfind('"', colon - 1);
  return quote == x.npos ? std::string{} : x.substr(quote + 1, colon - quote - 1);
}

// The first call of the focus for which `differs` finds something.
template <class Differs>
std::optional<Found> first_difference(const Question& question, Differs differs) {
  const auto ours = question.calls(question.dear, question.focus);
  const auto theirs = question.calls(question.cheap, question.focus);
  for (std::size_t i = 0; i < std::min(ours.size(), theirs.size()); ++i) {
    std::optional<Found> found = differs(question.dear.run.operators[ours[i].index()],
                                         question.cheap.run.operators[theirs[i].index()]);
    if (!found) continue;
    found->call = ours[i];
    return found;
  }
  return std::nullopt;
}

std::optional<Answer> answer(const Question& question, const std::optional<Found>& found) {
  if (!found) return std::nullopt;
  const Places at = places(question.dear.run, found->call);
  Answer result;
  result.cause = {CauseKind::argument,
                  "argument:" + found->key,
                  found->message,
                  CauseStanding::likely,
                  at.where,
                  at.called_from};
  result.advice =
      "call " + question.focus + " as " + std::string(letter(question.cheap.side)) + " does";
  if (const std::string where = place_of(question.dear, found->call); !where.empty())
    result.advice += " (" + where + ")";
  return result;
}

}  // namespace

std::optional<Answer> other_dtype(const Question& question) {
  const std::string a(letter(question.dear.side));
  const std::string b(letter(question.cheap.side));
  const auto differs = [&](const run::Operator& x, const run::Operator& y) {
    for (std::size_t k = 0; k < std::min(x.inputs.size(), y.inputs.size()); ++k) {
      const auto of_x = question.dear.run.tensors[x.inputs[k].index()].fingerprint.dtype;
      const auto of_y = question.cheap.run.tensors[y.inputs[k].index()].fingerprint.dtype;
      if (of_x == of_y) continue;
      return std::optional(Found{{},
                                 "dtype:" + std::string(short_name(question.focus)),
                                 question.focus + " reads " + std::string(text(of_x)) + " in " + a +
                                     " and " + std::string(text(of_y)) + " in " + b});
    }
    return std::optional<Found>();
  };
  return answer(question, first_difference(question, differs));
}

std::optional<Answer> other_argument(const Question& question) {
  const std::string a(letter(question.dear.side));
  const std::string b(letter(question.cheap.side));
  const auto differs = [&](const run::Operator& x, const run::Operator& y) {
    if (x.arguments == y.arguments) return std::optional<Found>();
    std::string key = differing_name(x.arguments, y.arguments);
    if (key.empty()) key = short_name(question.focus);
    return std::optional(Found{{},
                               key,
                               question.focus + " is called with " + x.arguments + " in " + a +
                                   " and with " + y.arguments + " in " + b});
  };
  return answer(question, first_difference(question, differs));
}

}  // namespace joulediff::diagnose
