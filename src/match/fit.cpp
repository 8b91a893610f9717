// Samples are grids whose indices depend on the axis length alone, so that a permuted tensor has a
// permuted grid: comparing two samples element by element needs only the permutation. Equal lengths
// leave more than one; all of them are tried, and the errors of a wrong one exceed the limit within
// a few elements.
#include <algorithm>
#include <numeric>

#include "match/anchors.h"

namespace joulediff::match {
namespace {

constexpr std::size_t kPermutations = 24;

void extend(const std::vector<std::int64_t>& a, const std::vector<std::int64_t>& b,
            std::vector<std::uint8_t>& partial, std::vector<std::vector<std::uint8_t>>& found) {
  if (partial.size() == a.size()) {
    found.push_back(partial);
    return;
  }
  for (std::uint8_t j = 0; j < b.size() && found.size() < kPermutations; ++j) {
    const bool used = std::ranges::find(partial, j) != partial.end();
    if (used || b[j] != a[partial.size()]) continue;
    partial.push_back(j);
    extend(a, b, partial, found);
    partial.pop_back();
  }
}

bool identity(const std::vector<std::uint8_t>& axes) {
  return std::ranges::is_sorted(axes);
}

// Sum of squared differences; stops as soon as it exceeds `limit`.
template <class Place>
double squares(const Geometry& a, const Geometry& b, double limit, Place place) {
  const bool special = !a.special.empty() || !b.special.empty();
  double sum = 0;
  for (std::size_t i = 0; i < a.sample.size() && sum <= limit; ++i) {
    const std::size_t j = place(i);
    const double d = static_cast<double>(a.sample[i]) - static_cast<double>(b.sample[j]);
    sum += d * d;
    if (!special) continue;
    const int special_a = a.special.empty() ? 0 : a.special[i];
    const int special_b = b.special.empty() ? 0 : b.special[j];
    if (special_a != special_b) return std::numeric_limits<double>::infinity();
  }
  return sum;
}

}  // namespace

std::vector<std::vector<std::uint8_t>> permutations(const std::vector<std::int64_t>& a,
                                                    const std::vector<std::int64_t>& b) {
  std::vector<std::vector<std::uint8_t>> found;
  std::vector<std::uint8_t> partial;
  if (a.size() == b.size()) extend(a, b, partial, found);
  return found;
}

std::vector<std::uint32_t> permuted(const Geometry& a, const Geometry& b,
                                    const std::vector<std::uint8_t>& axes) {
  const std::size_t dims = a.grid.size();
  std::vector<std::uint32_t> step(dims, 1);
  for (std::size_t i = 0; i < dims; ++i) {
    for (std::size_t j = axes[i] + 1u; j < dims; ++j) step[i] *= b.grid[j];
  }
  std::vector<std::uint32_t> places{0};
  places.reserve(a.sample.size());
  for (std::size_t i = 0; i < dims; ++i) {
    std::vector<std::uint32_t> next;
    next.reserve(places.size() * a.grid[i]);
    for (const std::uint32_t p : places) {
      for (std::uint32_t k = 0; k < a.grid[i]; ++k) next.push_back(p + k * step[i]);
    }
    places = std::move(next);
  }
  return places;
}

std::optional<Fit> fit(const Geometry& a, const Geometry& b, double limit) {
  if (a.sorted != b.sorted || a.sample.size() != b.sample.size()) return {};
  const double norm = std::max(a.norm, b.norm);
  double bound = limit * limit * norm * norm;
  std::optional<Fit> best;
  for (std::vector<std::uint8_t>& axes : permutations(a.shape, b.shape)) {
    double sum = 0;
    if (identity(axes)) {
      sum = squares(a, b, bound, [](std::size_t i) { return i; });
    } else {
      const std::vector<std::uint32_t> places = permuted(a, b, axes);
      sum = squares(a, b, bound, [&](std::size_t i) { return places[i]; });
    }
    if (sum > bound || (best && sum == bound)) continue;
    bound = sum;
    best = Fit{norm > 0 ? std::sqrt(sum) / norm : 0, std::move(axes)};
  }
  return best;
}

}  // namespace joulediff::match
