#include "lab/workers.h"

#include <algorithm>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include <nlohmann/json.hpp>

namespace joulediff::lab {
namespace {

using nlohmann::json;

// What a process says of itself: its fact `process`.
struct Said {
  std::optional<std::uint32_t> rank;
  std::vector<std::uint32_t> identity;  // multiprocessing's numbers of it and of those above it
  std::uint64_t started = 0;            // ticks since boot
};

template <class Number>
std::optional<Number> whole(const json& value) {
  if (!value.is_number_integer() || !std::in_range<Number>(value.get<std::int64_t>()))
    return std::nullopt;
  return value.get<Number>();
}

Said said_by(const SpoolContents& spool) {
  Said said;
  for (const SpoolFact& fact : spool.facts) {
    if (fact.topic != "process") continue;
    const json object = json::parse(fact.json, nullptr, false);
    if (!object.is_object()) continue;
    if (const auto rank = object.find("rank"); rank != object.end())
      said.rank = whole<std::uint32_t>(*rank);
    if (const auto started = object.find("started"); started != object.end())
      said.started = whole<std::uint64_t>(*started).value_or(0);
    if (const auto identity = object.find("identity");
        identity != object.end() && identity->is_array())
      for (const json& number : *identity)
        said.identity.push_back(whole<std::uint32_t>(number).value_or(0));
  }
  return said;
}

}  // namespace

std::vector<Worker> workers(const std::vector<SpoolContents>& spools) {
  std::vector<std::pair<Said, const SpoolContents*>> all;
  for (const SpoolContents& spool : spools)
    if (!spool.steps.empty()) all.emplace_back(said_by(spool), &spool);
  std::ranges::stable_sort(all, {}, [](const auto& one) {
    const auto& [said, spool] = one;
    return std::tuple(said.rank.value_or(0), said.identity, said.started, spool->pid);
  });
  std::set<std::optional<std::uint32_t>> told;
  for (const auto& [said, spool] : all) told.insert(said.rank);
  const bool numbered = told.size() == all.size() && !told.contains(std::nullopt);
  std::vector<Worker> result;
  for (const auto& [said, spool] : all)
    result.push_back({spool, numbered ? *said.rank : static_cast<std::uint32_t>(result.size()),
                      said.rank.has_value()});
  return result;
}

}  // namespace joulediff::lab
