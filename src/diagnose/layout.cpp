// Cause: the same operator on data that lies otherwise in memory.
#include <algorithm>
#include <numeric>

#include "diagnose/evidence.h"
#include "diagnose/place.h"

namespace joulediff::diagnose {
namespace {

// The lengths in the order in which they lie in memory, outermost first: equal for a tensor and for
// its transposed view, other for a transposed copy. And whether the last axis is the densest.
struct Lie {
  std::vector<std::int64_t> shape;
  std::vector<std::size_t> order;  // axes by descending stride, without those of length 1
  bool dense = true;
};

Lie lie(const run::Tensor& tensor) {
  Lie result;
  std::vector<std::int64_t> stride;
  for (std::size_t i = 0; i < tensor.shape.size(); ++i) {
    if (tensor.shape[i] == 1) continue;
    result.shape.push_back(tensor.shape[i]);
    stride.push_back(tensor.stride[i]);
  }
  result.order.resize(stride.size());
  std::iota(result.order.begin(), result.order.end(), std::size_t{0});
  std::sort(result.order.begin(), result.order.end(), [&](std::size_t i, std::size_t j) {
    return stride[i] != stride[j] ? stride[i] > stride[j] : i < j;
  });
  std::int64_t expected = 1;
  for (auto axis = result.order.rbegin(); axis != result.order.rend(); ++axis) {
    result.dense = result.dense && stride[*axis] == expected;
    expected *= result.shape[*axis];
  }
  return result;
}

std::string text(const std::vector<std::int64_t>& numbers) {
  std::string joined = "(";
  for (std::size_t i = 0; i < numbers.size(); ++i)
    joined += (i > 0 ? ", " : "") + std::to_string(numbers[i]);
  return joined + ")";
}

struct Found {
  run::OperatorId call;
  std::string message;
};

std::optional<Found> first_difference(const Question& question) {
  const auto ours = question.calls(question.dear, question.focus);
  const auto theirs = question.calls(question.cheap, question.focus);
  for (std::size_t i = 0; i < std::min(ours.size(), theirs.size()); ++i) {
    const auto& mine = question.dear.run.operators[ours[i].index()].inputs;
    const auto& yours = question.cheap.run.operators[theirs[i].index()].inputs;
    for (std::size_t k = 0; k < std::min(mine.size(), yours.size()); ++k) {
      const run::Tensor& x = question.dear.run.tensors[mine[k].index()];
      const run::Tensor& y = question.cheap.run.tensors[yours[k].index()];
      const Lie of_x = lie(x);
      const Lie of_y = lie(y);
      auto sorted_x = of_x.shape;
      auto sorted_y = of_y.shape;
      std::sort(sorted_x.begin(), sorted_x.end());
      std::sort(sorted_y.begin(), sorted_y.end());
      if (sorted_x != sorted_y || sorted_x.empty()) continue;
      if (of_x.shape == of_y.shape && of_x.order == of_y.order && of_x.dense == of_y.dense)
        continue;
      return Found{ours[i], "input " + std::to_string(k) + " of " + question.focus + " has shape " +
                                text(x.shape) + " and strides " + text(x.stride) + " in " +
                                std::string(letter(question.dear.side)) + ", shape " +
                                text(y.shape) + " and strides " + text(y.stride) + " in " +
                                std::string(letter(question.cheap.side))};
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<Answer> other_layout(const Question& question) {
  const std::optional<Found> found = first_difference(question);
  if (!found) return std::nullopt;
  const Places at = places(question.dear.run, found->call);
  Answer answer;
  answer.cause = {CauseKind::layout, "layout:" + std::string(short_name(question.focus)),
                  found->message,    CauseStanding::likely,
                  at.where,          at.called_from};
  answer.advice = "give " + question.focus + " its input in the layout that " +
                  std::string(letter(question.cheap.side)) + " uses";
  if (const std::string where = place_of(question.dear, found->call); !where.empty())
    answer.advice += " (" + where + ")";
  return answer;
}

}  // namespace joulediff::diagnose
