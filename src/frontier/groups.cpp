#include "frontier/groups.h"

#include <algorithm>
#include <map>

#include "rules/grammar_rules.h"

namespace joulediff::frontier {
namespace {

using run::Point;

Point without_what_varies(Point p) {
  p.claim.clear();
  p.energy = {};
  p.repeats = {};
  p.meter = {};
  p.sampling = {};
  p.scenario.batch = p.scenario.concurrency = {};
  p.scenario.slo_seconds = {};
  p.quality.target = {};
  if (p.quality.value) p.work.model_hash.clear();  // the quality says what other weights are worth
  return p;
}

bool fit(const Point& a, const Point& b, std::span<const std::string> despite) {
  if (rules::differ(a.work.unit, b.work.unit) ||
      rules::differ(a.quality.metric, b.quality.metric) ||
      rules::differ(a.scenario.slo_percentile, b.scenario.slo_percentile))
    return false;
  return std::ranges::none_of(rules::grammar(), [&](const rules::Rule& rule) {
    if (rule.pair == nullptr) return false;
    const auto objection = rule.pair(a, b);
    return objection && objection->severity == Severity::error &&
           std::ranges::find(despite, rule.id) == despite.end();
  });
}

}  // namespace

std::vector<std::vector<std::size_t>> groups(std::span<const Point> points,
                                             std::span<const std::string> despite) {
  std::vector<Point> plain;
  plain.reserve(points.size());
  for (const Point& p : points) plain.push_back(without_what_varies(p));
  const std::size_t n = points.size();
  std::vector<std::vector<bool>> fits(n, std::vector<bool>(n, true));
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t j = 0; j < i; ++j) fits[i][j] = fits[j][i] = fit(plain[i], plain[j], despite);
  std::map<std::vector<bool>, std::vector<std::size_t>> together;
  for (std::size_t i = 0; i < n; ++i) together[fits[i]].push_back(i);
  std::vector<std::vector<std::size_t>> result;
  result.reserve(together.size());
  for (auto& [others, members] : together) result.push_back(std::move(members));
  std::ranges::sort(result);
  return result;
}

}  // namespace joulediff::frontier
