// Which points may stand on one curve.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "run/point.h"

namespace joulediff::frontier {

// Indices of points of the same work, boundary and load, as the grammar of measurements has it, in
// the order of their first. What a curve runs over (energy, quality, batch, concurrency, precision)
// keeps nobody apart, but another unit, metric or percentile always does.
//
// A fact that is not known contradicts nothing, so that a point may fit to several that do not fit
// to one another. It belongs to none of them then: points are together only if they fit to the same
// others, whatever the order.
std::vector<std::vector<std::size_t>> groups(std::span<const run::Point> points,
                                             std::span<const std::string> despite = {});

}  // namespace joulediff::frontier
