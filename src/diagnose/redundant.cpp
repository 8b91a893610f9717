// Cause: work that the other side shows to be unneeded: operators without a counterpart beside an
// otherwise equal sequence or with one that costs next to nothing, or the same operator over more
// elements than are used.
#include <algorithm>

#include "diagnose/evidence.h"
#include "diagnose/place.h"

namespace joulediff::diagnose {
namespace {

constexpr double kMoreElements = 1.2;
constexpr double kNegligible = 0.05;  // of the joules of the dear side's extras

std::uint64_t elements(const Part& part, const std::vector<run::OperatorId>& calls) {
  std::uint64_t total = 0;
  for (const run::OperatorId id : calls)
    for (const run::TensorId out : part.run.operators[id.index()].outputs) {
      std::uint64_t count = 1;
      for (const std::int64_t length : part.run.tensors[out.index()].shape)
        count *= static_cast<std::uint64_t>(length);
      total += count;
    }
  return total;
}

Answer make(const Question& question, const std::string& name, std::string message,
            std::string advice) {
  Answer answer;
  answer.cause.kind = CauseKind::redundant;
  answer.cause.key = "operators:" + name;
  answer.cause.standing = CauseStanding::likely;
  answer.cause.message = std::move(message);
  answer.advice = std::move(advice);
  if (const auto calls = question.calls(question.dear, name); !calls.empty()) {
    const Places found = places(question.dear.run, calls.front());
    answer.cause.where = found.where;
    answer.cause.called_from = found.called_from;
    if (const std::string at = place_of(question.dear, calls.front()); !at.empty())
      answer.advice += " (" + at + ")";
  }
  return answer;
}

}  // namespace

std::optional<Answer> redundant_operators(const Question& question) {
  if (question.extra_dear.empty()) return std::nullopt;
  double dear = 0;
  double cheap = 0;
  for (const Extra& extra : question.extra_dear) dear += extra.joules;
  for (const Extra& extra : question.extra_cheap) cheap += extra.joules;
  if (!question.extra_cheap.empty() && !(cheap <= kNegligible * dear)) return std::nullopt;
  // The same work cut into more calls is not redundant.
  const std::string& name = question.extra_dear.front().name;
  const auto theirs = question.calls(question.cheap, name);
  const auto ours = question.calls(question.dear, name);
  if (!theirs.empty() && elements(question.dear, ours) <= elements(question.cheap, theirs))
    return std::nullopt;
  const std::string side(letter(question.dear.side));
  const std::string other(letter(question.cheap.side));
  const std::string ours_also = list(question.extra_dear);
  // What costs next to nothing may still do the work: without it the result would be another.
  if (!question.extra_cheap.empty()) {
    const std::string instead = list(question.extra_cheap);
    return make(question, name,
                side + " runs " + ours_also + " where " + other + " runs " + instead,
                "replace " + ours_also + " by " + instead + ", as " + other + " does");
  }
  return make(question, name,
              side + " also runs " + ours_also + ", which " + other + " does without",
              "drop " + ours_also + " from " + side);
}

std::optional<Answer> redundant_elements(const Question& question) {
  const auto ours = question.calls(question.dear, question.focus);
  const auto theirs = question.calls(question.cheap, question.focus);
  const std::uint64_t many = elements(question.dear, ours);
  const std::uint64_t few = elements(question.cheap, theirs);
  if (few == 0 || static_cast<double>(many) < kMoreElements * static_cast<double>(few))
    return std::nullopt;
  const std::string side(letter(question.dear.side));
  const std::string counts =
      std::to_string(many) + " elements where " + std::to_string(few) + " give the same result";
  return make(question, question.focus, side + "'s " + question.focus + " computes " + counts,
              "select before " + question.focus + " what is used after it");
}

}  // namespace joulediff::diagnose
