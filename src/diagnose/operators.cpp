// Cause: other operators do the same work. The key names the operator that tells the sides apart:
// the one that dominates the dear side; where the dear side is a chain without a head (a GELU in
// pieces), the one operator that does it all on the cheap side.
#include <algorithm>
#include <array>

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

}  // namespace

std::optional<Answer> other_operators(const Question& question) {
  if (question.extra_dear.empty() && question.extra_cheap.empty()) return std::nullopt;
  const std::vector<Extra> dear = without_movers(question.extra_dear);
  const std::vector<Extra> cheap = without_movers(question.extra_cheap);
  const Extra* head = dominating(dear);
  if (head == nullptr) head = dominating(cheap);
  if (head == nullptr) head = dear.empty() ? &cheap.front() : &dear.front();

  const std::string name_dear(letter(question.dear.side));
  const std::string name_cheap(letter(question.cheap.side));
  const std::vector<Extra>& named = question.extra_dear;
  const std::string culprit = named.empty() ? question.focus : named.front().name;
  Answer answer;
  answer.cause.kind = CauseKind::operators;
  answer.cause.key = "operators:" + head->name;
  answer.cause.standing = question.focus.empty() ? CauseStanding::likely : CauseStanding::open;
  std::string at;
  if (const auto calls = question.calls(question.dear, culprit); !calls.empty()) {
    const Places found = places(question.dear.run, calls.front());
    answer.cause.where = found.where;
    answer.cause.called_from = found.called_from;
    at = place_of(question.dear, calls.front());
  }
  const std::string does = named.empty() ? "fewer operators" : list(named);
  const std::string instead =
      question.extra_cheap.empty() ? "fewer operators" : list(question.extra_cheap);
  answer.cause.message = name_dear + " runs " + does + " where " + name_cheap + " runs " + instead;
  answer.advice = by_configuration(question);
  if (answer.advice.empty()) {
    answer.advice = "replace " + does + (at.empty() ? "" : " at " + at) + " by " + instead +
                    ", as " + name_cheap + " does";
    if (!question.extra_cheap.empty()) {
      const auto calls = question.calls(question.cheap, question.extra_cheap.front().name);
      const std::string there = calls.empty() ? "" : place_of(question.cheap, calls.front());
      if (!there.empty()) answer.advice += " at " + there;
    }
  }
  return answer;
}

}  // namespace joulediff::diagnose
