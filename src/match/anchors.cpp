// Across runs rounding differs, so equality is nearness: of all pairs within the tolerance those
// count that are each other's nearest. Four filters, each cheaper than the next, leave few pairs to
// compare: a bucket of equal counts and class; a window on the rms; the other moments, which no
// change of layout alters and which differ by at most a small multiple of the relative Frobenius
// distance (measured factors); and the sample, element by element. Where the two sides were never
// sampled under a common shape, equal hashes or very near moments decide. Moments of unrelated
// tensors of one distribution differ by about 1 / sqrt(count), so that they must be much nearer
// than that.
#include "match/anchors.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

namespace joulediff::match {
namespace {

using value::DTypeClass;
using value::Fingerprint;

constexpr double kMomentError = 1e-5;    // how exactly producers agree on moments, relative to rms
constexpr double kLooseMoments = 2.7;    // third moment and extremes, in tolerances
constexpr double kMomentsAlone = 0.1;    // times 1 / sqrt(count): limit where only they can tell
constexpr double kExtremesAlone = 1e-2;  // likewise for the extremes, which do not average
constexpr double kLargestNumber = 1e30;  // beyond it moments belong to a mask

using Bucket = std::tuple<std::uint64_t, std::uint64_t, std::uint64_t, std::uint64_t, DTypeClass>;

const Fingerprint& fingerprint_of(const SideView& side, std::uint32_t c) {
  return side.run.tensors[side.classes.classes[c].tensor.index()].fingerprint;
}

double largest(const Fingerprint& f) {
  return std::max(std::abs(f.min), std::abs(f.max));
}

struct MomentDistance {
  double averages = 0;
  double extremes = 0;
  double both() const { return std::max(averages, extremes); }
};

// Lower bounds of the distance of two real tensors.
MomentDistance moment_distance(const Fingerprint& a, const Fingerprint& b) {
  const double rms = std::max(a.rms, b.rms);
  const double l4 = std::max(a.l4, b.l4);
  const double extreme = std::max(largest(a), largest(b));
  MomentDistance d;
  const auto differ = [](double& distance, double x, double y, double scale) {
    if (x != y) distance = std::max(distance, std::abs(x - y) / scale);
  };
  differ(d.averages, a.rms, b.rms, rms);
  differ(d.averages, a.mean, b.mean, rms);
  differ(d.averages, a.mean_abs, b.mean_abs, rms);
  differ(d.averages, a.l4, b.l4, l4);
  differ(d.averages, a.m3, b.m3, kLooseMoments * rms * l4 * l4);
  differ(d.extremes, a.min, b.min, kLooseMoments * extreme);
  differ(d.extremes, a.max, b.max, kLooseMoments * extreme);
  return d;
}

// Whether moments that near are enough where no elements can be compared.
bool decisive(const MomentDistance& moments, const Fingerprint& a, const Fingerprint& b,
              double tolerance) {
  const double averages =
      std::min(tolerance, kMomentsAlone / std::sqrt(static_cast<double>(a.count)));
  return std::max(largest(a), largest(b)) < kLargestNumber &&
         moments.averages <= averages + kMomentError &&
         moments.extremes <= std::min(tolerance, kExtremesAlone) + kMomentError;
}

bool exact(const Fingerprint& f) {
  const DTypeClass kind = value::class_of(f.dtype);
  return kind == DTypeClass::integer || kind == DTypeClass::boolean;
}

// Nothing: not equal. `common`: whether a common geometry was compared.
std::optional<Pair> compare(const SideView& a, const SideView& b, std::uint32_t ca,
                            std::uint32_t cb, double tolerance, bool& common) {
  const Fingerprint& fa = fingerprint_of(a, ca);
  const Fingerprint& fb = fingerprint_of(b, cb);
  const bool same_bits = fa.own == fb.own;
  Pair pair{ca, cb, 0, kNone, kNone, {}};
  if (exact(fa) && !same_bits) return {};
  const MomentDistance moments = same_bits ? MomentDistance{} : moment_distance(fa, fb);
  if (moments.both() > tolerance + kMomentError) return {};

  const std::vector<Geometry>& of_a = a.classes.classes[ca].geometries;
  const std::vector<Geometry>& of_b = b.classes.classes[cb].geometries;
  double limit = tolerance;
  common = false;
  for (std::uint32_t i = 0; i < of_a.size(); ++i) {
    for (std::uint32_t j = 0; j < of_b.size(); ++j) {
      common = common || of_a[i].sorted == of_b[j].sorted;
      std::optional<Fit> f = fit(of_a[i], of_b[j], limit);
      if (!f || (pair.geometry_a != kNone && f->distance >= limit)) continue;
      limit = f->distance;
      pair.geometry_a = i;
      pair.geometry_b = j;
      pair.axes = std::move(f->axes);
    }
  }
  if (pair.geometry_a == kNone) {
    if (common) return {};
    const bool same_rounded = fa.bf16 == fb.bf16 || fa.fp16 == fb.fp16;
    const bool near = decisive(moments, fa, fb, tolerance);
    if (!same_bits && !(same_rounded && !exact(fa)) && !near) return {};
    limit = 0;
  }
  // The sample may miss where two tensors differ (one row of a cache); the moments may not.
  pair.distance = same_bits ? 0 : std::max(limit, moments.both());
  return pair;
}

struct Candidate {
  Pair pair;
  bool common = false;
  double depth = 0;  // difference of relative depths, for ties
};

bool nearer(const Candidate& x, const Candidate& y) {
  return std::tie(x.pair.distance, x.depth, x.pair.a, x.pair.b) <
         std::tie(y.pair.distance, y.depth, y.pair.a, y.pair.b);
}

std::vector<Candidate> candidates(const SideView& a, const SideView& b, double tolerance) {
  std::map<Bucket, std::pair<std::vector<std::uint32_t>, std::vector<std::uint32_t>>> buckets;
  const auto fill = [&](const SideView& side, auto member) {
    for (std::uint32_t c = 0; c < side.classes.classes.size(); ++c) {
      const Fingerprint& f = fingerprint_of(side, c);
      (buckets[{f.count, f.nan, f.positive_infinity, f.negative_infinity,
                value::class_of(f.dtype)}].*
       member)
          .push_back(c);
    }
  };
  using Lists = std::pair<std::vector<std::uint32_t>, std::vector<std::uint32_t>>;
  fill(a, &Lists::first);
  fill(b, &Lists::second);

  std::vector<Candidate> found;
  for (auto& [bucket, lists] : buckets) {
    auto& [of_a, of_b] = lists;
    const auto rms_b = [&](std::uint32_t c) { return fingerprint_of(b, c).rms; };
    std::ranges::sort(of_b, {}, rms_b);
    for (const std::uint32_t ca : of_a) {
      const double rms = fingerprint_of(a, ca).rms;
      const double width = (tolerance + kMomentError) * 1.2;  // generous: compare() decides
      auto it = std::ranges::lower_bound(of_b, rms * (1 - width), {}, rms_b);
      for (; it != of_b.end() && rms_b(*it) <= rms * (1 + width); ++it) {
        Candidate candidate;
        std::optional<Pair> pair = compare(a, b, ca, *it, tolerance, candidate.common);
        if (!pair) continue;
        candidate.pair = std::move(*pair);
        candidate.depth = std::abs(a.classes.classes[ca].depth - b.classes.classes[*it].depth);
        found.push_back(std::move(candidate));
      }
    }
  }
  return found;
}

// Keeps the mutual nearest of `found` among classes that are still free.
void keep_mutual(const std::vector<Candidate>& found, bool common, std::vector<bool>& taken_a,
                 std::vector<bool>& taken_b, std::vector<Pair>& pairs) {
  std::vector<const Candidate*> best_a(taken_a.size(), nullptr);
  std::vector<const Candidate*> best_b(taken_b.size(), nullptr);
  for (const Candidate& c : found) {
    if (c.common != common || taken_a[c.pair.a] || taken_b[c.pair.b]) continue;
    const Candidate*& of_a = best_a[c.pair.a];
    const Candidate*& of_b = best_b[c.pair.b];
    if (of_a == nullptr || nearer(c, *of_a)) of_a = &c;
    if (of_b == nullptr || nearer(c, *of_b)) of_b = &c;
  }
  for (const Candidate* c : best_a) {
    if (c == nullptr || best_b[c->pair.b] != c) continue;
    taken_a[c->pair.a] = true;
    taken_b[c->pair.b] = true;
    pairs.push_back(c->pair);
  }
}

}  // namespace

std::vector<Pair> nearest_pairs(const SideView& a, const SideView& b, double tolerance) {
  const std::vector<Candidate> found = candidates(a, b, tolerance);
  std::vector<bool> taken_a(a.classes.classes.size(), false);
  std::vector<bool> taken_b(b.classes.classes.size(), false);
  std::vector<Pair> pairs;
  keep_mutual(found, true, taken_a, taken_b, pairs);
  keep_mutual(found, false, taken_a, taken_b, pairs);
  std::ranges::sort(pairs, {}, &Pair::a);
  return pairs;
}

}  // namespace joulediff::match
