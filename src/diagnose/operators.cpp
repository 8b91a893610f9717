// Cause: other operators do the same work. The key names the operator that tells the sides apart:
// the one that dominates the dear side; where the dear side is a chain without a head (a GELU in
// pieces), the one operator that does it all on the cheap side. Where both sides call that operator
// and one of them in more pieces (three products where one does for the joined weights), the number
// of calls and the operand that was cut are the difference.
#include <algorithm>
#include <array>
#include <map>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "diagnose/evidence.h"
#include "diagnose/place.h"

namespace joulediff::diagnose {
namespace {

constexpr double kDominates = 0.6;  // share of the joules of a side's extras
constexpr std::array<std::string_view, 5> kMovers = {"aten.clone", "aten.copy_", "aten._to_copy",
                                                     "aten.contiguous", "aten.cat"};

// Copies only prepare what another operator does; they are named where nothing else is left.
std::vector<Extra> without_movers(const std::vector<Extra>& extras) {
  std::vector<Extra> rest;
  std::copy_if(extras.begin(), extras.end(), std::back_inserter(rest), [](const Extra& extra) {
    return std::find(kMovers.begin(), kMovers.end(), extra.name) == kMovers.end();
  });
  return rest.empty() ? extras : rest;
}

const Extra* dominating(const std::vector<Extra>& extras) {
  double total = 0;
  for (const Extra& extra : extras) total += extra.joules;
  const bool found =
      !extras.empty() && (extras.size() == 1 || extras.front().joules >= kDominates * total);
  return found ? &extras.front() : nullptr;
}

// A single switch of the model's configuration that differs is how the program chose.
std::string by_configuration(const Question& question) {
  const auto& dear = question.dear.run.settings;
  const auto& cheap = question.cheap.run.settings;
  std::string advice;
  for (const run::Setting& setting : cheap) {
    if (setting.key.find("config.") == std::string::npos) continue;
    const auto same_key = [&](const run::Setting& other) { return other.key == setting.key; };
    const auto other = std::find_if(dear.begin(), dear.end(), same_key);
    if (other == dear.end() || other->value == setting.value) continue;
    if (!advice.empty()) return {};  // two differ: which of them chose is not known
    const std::string name = setting.key.substr(setting.key.find("config.") + 7);
    advice = "set " + name + "=" + setting.value + " in " +
             std::string(letter(question.dear.side)) + " (it has " + other->value + ")";
  }
  return advice;
}

std::string times(std::size_t count) {
  return count == 1 ? "once" : count == 2 ? "twice" : fmt::format("{} times", count);
}

// "[768,768] 3 times": an operand of the calls; empty where one of them has no such operand.
std::string operand(const Part& part, const std::vector<run::OperatorId>& calls, std::size_t at) {
  std::map<std::vector<std::int64_t>, std::size_t> shapes;
  for (const run::OperatorId id : calls) {
    const std::vector<run::TensorId>& inputs = part.run.operators[id.index()].inputs;
    if (at >= inputs.size()) return {};
    ++shapes[part.run.tensors[inputs[at].index()].shape];
  }
  constexpr std::size_t kMost = 3;
  if (shapes.size() > kMost) return {};
  std::string text;
  for (const auto& [shape, count] : shapes)
    text += fmt::format("{}[{}]{}", text.empty() ? "" : ", ", fmt::join(shape, ","),
                        count == 1 ? "" : " " + times(count));
  return text;
}

std::uint64_t elements(const Part& part, run::OperatorId op, std::size_t at) {
  std::uint64_t count = 1;
  const run::TensorId id = part.run.operators[op.index()].inputs[at];
  for (const std::int64_t length : part.run.tensors[id.index()].shape)
    count *= static_cast<std::uint64_t>(length);
  return count;
}

// The largest operand whose shapes tell the sides apart: {"[768,768] 3 times", "[768,2304]"}.
struct Operands {
  std::string dear;
  std::string cheap;
};
Operands cut_operand(const Question& question, const std::vector<run::OperatorId>& ours,
                     const std::vector<run::OperatorId>& theirs) {
  const auto shape = [](const Part& part, run::OperatorId op, std::size_t at) {
    return part.run.tensors[part.run.operators[op.index()].inputs[at].index()].shape;
  };
  Operands found;
  std::uint64_t largest = 0;
  const std::size_t inputs =
      std::min(question.dear.run.operators[ours.front().index()].inputs.size(),
               question.cheap.run.operators[theirs.front().index()].inputs.size());
  for (std::size_t at = 0; at < inputs; ++at) {
    if (shape(question.dear, ours.front(), at) == shape(question.cheap, theirs.front(), at))
      continue;
    const std::uint64_t size = elements(question.dear, ours.front(), at);
    Operands one{operand(question.dear, ours, at), operand(question.cheap, theirs, at)};
    if (size <= largest || one.dear.empty() || one.cheap.empty()) continue;
    largest = size;
    found = std::move(one);
  }
  return found;
}

// " at attention.py:216, attention.py:218"; empty where no place is known.
std::string at_places(const Part& part, const std::vector<run::OperatorId>& calls) {
  constexpr std::size_t kMost = 4;
  std::vector<std::string> known;
  for (const run::OperatorId id : calls) {
    std::string place = place_of(part, id);
    if (!place.empty() && std::find(known.begin(), known.end(), place) == known.end())
      known.push_back(std::move(place));
  }
  const bool more = known.size() > kMost;
  if (more) known.resize(kMost);
  if (known.empty()) return {};
  return fmt::format(" at {}{}", fmt::join(known, ", "), more ? ", ..." : "");
}

std::vector<Extra> others(const std::vector<Extra>& extras, const std::string& name) {
  std::vector<Extra> rest;
  std::copy_if(extras.begin(), extras.end(), std::back_inserter(rest),
               [&](const Extra& extra) { return extra.name != name; });
  return rest;
}

struct Words {
  std::string message;
  std::string advice;
};

// Both sides call `name`, but not as often.
Words in_other_pieces(const Question& question, const std::string& name) {
  const auto ours = question.calls(question.dear, name);
  const auto theirs = question.calls(question.cheap, name);
  const std::string_view dear = letter(question.dear.side), cheap = letter(question.cheap.side);
  const Operands operands = cut_operand(question, ours, theirs);
  Words words;
  words.message = fmt::format("{} calls {} {} where {} calls it {}", dear, name, times(ours.size()),
                              cheap, times(theirs.size()));
  if (!operands.dear.empty())
    words.message += fmt::format(" ({} against {})", operands.dear, operands.cheap);
  const std::vector<Extra> also = others(question.extra_dear, name);
  const std::vector<Extra> instead = others(question.extra_cheap, name);
  if (!also.empty()) words.message += fmt::format("; {} also runs {}", dear, list(also));
  if (!instead.empty()) words.message += fmt::format("; {} also runs {}", cheap, list(instead));

  const std::string what = ours.size() == 1 ? "the call" : fmt::format("the {} calls", ours.size());
  words.advice = fmt::format(
      "{} {} of {}{} into {}", ours.size() > theirs.size() ? "join" : "split", what, name,
      at_places(question.dear, ours), theirs.size() == 1 ? "one" : std::to_string(theirs.size()));
  if (!operands.cheap.empty()) words.advice += fmt::format(" over {}", operands.cheap);
  words.advice += fmt::format(", as {} does{}", cheap, at_places(question.cheap, theirs));
  return words;
}

// What `dear` runs is not what `cheap` runs.
Words in_other_operators(const Question& question, const std::string& culprit) {
  const std::string_view dear = letter(question.dear.side), cheap = letter(question.cheap.side);
  auto calls = question.calls(question.dear, culprit);
  for (const Extra& extra : question.extra_dear)
    if (extra.name != culprit) {
      const auto more_calls = question.calls(question.dear, extra.name);
      calls.insert(calls.end(), more_calls.begin(), more_calls.end());
    }
  const std::string at = at_places(question.dear, calls);
  const std::string less = list(question.extra_dear), more = list(question.extra_cheap);
  Words words;
  if (question.extra_cheap.empty()) {
    words.message = fmt::format("{} also runs {}, which {} does without", dear, less, cheap);
    words.advice = fmt::format("do without {}{}, as {} does", less, at, cheap);
    return words;
  }
  if (!question.extra_dear.empty()) {
    words.message = fmt::format("{} runs {} where {} runs {}", dear, less, cheap, more);
    words.advice = fmt::format("replace {}{} by {}, as {} does", less, at, more, cheap);
  } else if (!culprit.empty()) {
    words.message =
        fmt::format("{}'s {} costs more than that of {} with {}", dear, culprit, cheap, more);
    words.advice = fmt::format("run {} with {}{}, as {} does", more, culprit, at, cheap);
  } else {
    words.message = fmt::format("{} does without {}, which {} runs", dear, more, cheap);
    words.advice = fmt::format("run {}{}, as {} does", more, at, cheap);
  }
  const auto theirs = question.calls(question.cheap, question.extra_cheap.front().name);
  const std::string there = theirs.empty() ? "" : place_of(question.cheap, theirs.front());
  if (!there.empty()) words.advice += " at " + there;
  return words;
}

}  // namespace

std::optional<Answer> other_operators(const Question& question) {
  if (question.extra_dear.empty() && question.extra_cheap.empty()) return std::nullopt;
  const std::vector<Extra> dear = without_movers(question.extra_dear);
  const std::vector<Extra> cheap = without_movers(question.extra_cheap);
  const Extra* head = dominating(dear);
  if (head == nullptr) head = dominating(cheap);
  if (head == nullptr) head = dear.empty() ? &cheap.front() : &dear.front();

  const std::string culprit =
      question.extra_dear.empty() ? question.focus : question.extra_dear.front().name;
  const auto calls = question.calls(question.dear, culprit);
  const auto theirs = question.calls(question.cheap, culprit);
  Answer answer;
  answer.cause.kind = CauseKind::operators;
  answer.cause.key = "operators:" + head->name;
  answer.cause.standing = question.focus.empty() ? CauseStanding::likely : CauseStanding::open;
  if (!calls.empty()) {
    const Places found = places(question.dear.run, calls.front());
    answer.cause.where = found.where;
    answer.cause.called_from = found.called_from;
  }
  const bool pieces = !calls.empty() && !theirs.empty() && calls.size() != theirs.size();
  Words words = pieces ? in_other_pieces(question, culprit) : in_other_operators(question, culprit);
  answer.cause.message = std::move(words.message);
  answer.advice = by_configuration(question);
  if (answer.advice.empty()) answer.advice = std::move(words.advice);
  return answer;
}

}  // namespace joulediff::diagnose
