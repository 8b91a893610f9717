// Which of several candidates are worth having, when each has several qualities that cannot be
// traded against one another by a formula, and each quality is known within an interval only.
//
// One dominates another if it is surely no worse in every quality and surely better in one: if that
// holds for all values inside the intervals. Unlike "no worse as far as one can tell" this is
// transitive, so that whatever is dominated is dominated by a candidate that is not. A candidate is
//
//   best       nothing can dominate it, whatever the true values are
//   dominated  something dominates it, whatever the true values are
//   undecided  it depends on where in the intervals the true values lie
//
// Of exact values none is undecided, and this is Pareto's frontier. Measuring again more closely
// decides what was undecided, and never turns best into dominated or back. No order of candidates
// matters. A value that is not known is an interval without bounds.
#pragma once

#include <span>
#include <vector>

#include "rules/direction.h"
#include "rules/worth.h"

namespace joulediff::frontier {

using rules::Better;

enum class Standing { best, undecided, dominated };

struct Placement {
  Standing standing = Standing::best;
  // What dominates it, or may; of these only what is itself not dominated. In order of index.
  std::vector<std::size_t> by;
};

using Candidate = std::vector<rules::Interval>;  // one for each axis

// How y stands to x on one axis, or over all of them.
enum class Against { surely_better, surely_no_worse, maybe, surely_worse };
Against against(Better better, const rules::Interval& y, const rules::Interval& x);

bool dominates(std::span<const Better> axes, const Candidate& x, const Candidate& y);
bool may_dominate(std::span<const Better> axes, const Candidate& x, const Candidate& y);

// In the order of `candidates`.
std::vector<Placement> place(std::span<const Better> axes, std::span<const Candidate> candidates);

}  // namespace joulediff::frontier
