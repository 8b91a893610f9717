#include "match/agree.h"

#include <algorithm>
#include <cmath>

namespace joulediff::match {
namespace {

constexpr double kShare = 0.999;

}  // namespace

bool agree(const SideView& a, const SideView& b, const Pair& pair, double limit) {
  if (pair.distance == 0) return true;
  if (pair.geometry_a == kNone) return pair.distance <= limit;
  const Geometry& ga = a.classes.classes[pair.a].geometries[pair.geometry_a];
  const Geometry& gb = b.classes.classes[pair.b].geometries[pair.geometry_b];
  const double rms = std::max(a.run.tensors[ga.tensor.index()].fingerprint.rms,
                              b.run.tensors[gb.tensor.index()].fingerprint.rms);
  const std::vector<std::uint32_t> places = permuted(ga, gb, pair.axes);
  std::size_t equal = 0;
  for (std::size_t i = 0; i < places.size(); ++i) {
    const double x = ga.sample[i];
    const double y = gb.sample[places[i]];
    if (std::abs(x - y) <= limit * std::max({std::abs(x), std::abs(y), rms})) ++equal;
  }
  return static_cast<double>(equal) >= kShare * static_cast<double>(places.size());
}

}  // namespace joulediff::match
