// Cause: the same operator runs other kernels, and nothing said so far tells why.
#include <algorithm>

#include "diagnose/evidence.h"
#include "diagnose/place.h"

namespace joulediff::diagnose {
namespace {

std::string text(const run::Kernel& kernel) {
  constexpr std::size_t kLongest = 60;
  std::string name = kernel.name.substr(0, kLongest);
  if (kernel.name.size() > kLongest) name += "...";
  return name + " on a grid of " + std::to_string(kernel.grid[0]) + " x " +
         std::to_string(kernel.grid[1]) + " x " + std::to_string(kernel.grid[2]);
}

struct Found {
  run::OperatorId call;
  std::string message;
};

std::optional<Found> first_difference(const Question& question) {
  const auto ours = question.calls(question.dear, question.focus);
  const auto theirs = question.calls(question.cheap, question.focus);
  for (std::size_t i = 0; i < std::min(ours.size(), theirs.size()); ++i) {
    const auto x = kernels_of(question.dear.run, ours[i]);
    const auto y = kernels_of(question.cheap.run, theirs[i]);
    if (x.empty() || y.empty() || x == y) continue;
    const auto [mine, yours] = std::mismatch(x.begin(), x.end(), y.begin(), y.end());
    const std::string of_x = mine == x.end() ? "no further kernel" : text(*mine);
    const std::string of_y = yours == y.end() ? "no further kernel" : text(*yours);
    return Found{ours[i], question.focus + " runs " + of_x + " in " +
                              std::string(letter(question.dear.side)) + " and " + of_y + " in " +
                              std::string(letter(question.cheap.side))};
  }
  return std::nullopt;
}

}  // namespace

std::optional<Answer> other_kernel(const Question& question) {
  const std::optional<Found> found = first_difference(question);
  if (!found) return std::nullopt;
  const Places at = places(question.dear.run, found->call);
  Answer answer;
  answer.cause = {CauseKind::kernel, "kernel:" + std::string(short_name(question.focus)),
                  found->message,    CauseStanding::open,
                  at.where,          at.called_from};
  answer.advice = "find what makes the library choose another kernel for " + question.focus +
                  ": its version, its workspace or the shape that it is given";
  return answer;
}

}  // namespace joulediff::diagnose
