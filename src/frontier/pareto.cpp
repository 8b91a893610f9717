#include "frontier/pareto.h"

#include "base/check.h"

namespace joulediff::frontier {
namespace {

using rules::Interval;

// As if lower were always better.
Interval oriented(Better better, const Interval& i) {
  return better == Better::lower ? i : Interval{-i.value, -i.high, -i.low};
}

}  // namespace

Against against(Better better, const Interval& y, const Interval& x) {
  const Interval a = oriented(better, y), b = oriented(better, x);
  if (a.high < b.low) return Against::surely_better;
  if (a.high <= b.low) return Against::surely_no_worse;
  return a.low > b.high ? Against::surely_worse : Against::maybe;
}

bool dominates(std::span<const Better> axes, const Candidate& x, const Candidate& y) {
  bool better = false;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const Against how = against(axes[i], x[i], y[i]);
    if (how == Against::maybe || how == Against::surely_worse) return false;
    better = better || how == Against::surely_better;
  }
  return better;
}

// For some values inside the intervals.
bool may_dominate(std::span<const Better> axes, const Candidate& x, const Candidate& y) {
  bool better = false;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const Interval a = oriented(axes[i], x[i]), b = oriented(axes[i], y[i]);
    if (a.low > b.high) return false;
    better = better || a.low < b.high;
  }
  return better;
}

std::vector<Placement> place(std::span<const Better> axes, std::span<const Candidate> candidates) {
  const std::size_t n = candidates.size();
  for (const Candidate& one : candidates) JD_CHECK(one.size() == axes.size());
  std::vector<Placement> placed(n);
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t j = 0; j < n && placed[i].standing == Standing::best; ++j)
      if (dominates(axes, candidates[j], candidates[i])) placed[i].standing = Standing::dominated;
  for (std::size_t i = 0; i < n; ++i) {
    const bool surely = placed[i].standing == Standing::dominated;
    for (std::size_t j = 0; j < n; ++j) {
      if (j == i || placed[j].standing == Standing::dominated) continue;
      if (surely ? dominates(axes, candidates[j], candidates[i])
                 : may_dominate(axes, candidates[j], candidates[i]))
        placed[i].by.push_back(j);
    }
    if (!surely && !placed[i].by.empty()) placed[i].standing = Standing::undecided;
  }
  return placed;
}

}  // namespace joulediff::frontier
