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
#include <limits>
#include <map>
#include <ranges>
#include <tuple>

namespace joulediff::match {
namespace {

using value::DTypeClass;
using value::Fingerprint;

constexpr double kMomentError = 1e-5;    // how exactly producers agree on moments, relative to rms
constexpr double kRounding = 3e-6;       // what float32 makes of equal values, at most (measured)
constexpr double kLooseMoments = 2.7;    // third moment and extremes, in tolerances
constexpr double kMomentsAlone = 0.1;    // times 1 / sqrt(count): limit where only they can tell
constexpr double kExtremesAlone = 1e-2;  // likewise for the extremes, which do not average
constexpr double kLargestNumber = 1e30;  // beyond it moments belong to a mask

using Bucket = std::tuple<std::uint64_t, std::uint64_t, std::uint64_t, std::uint64_t, DTypeClass>;

Bucket bucket_of(const Fingerprint& f) {
  return {f.count, f.nan, f.positive_infinity, f.negative_infinity, value::class_of(f.dtype)};
}

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
  double depth = 0;  // the sum of both relative depths
};

// Below what rounding makes, distances tell nothing apart, unless there is none at all.
double told(const Candidate& c) {
  return c.pair.distance == 0 ? 0 : std::max(c.pair.distance, kRounding);
}

// A moment, how far the two of an equal pair may lie apart in it, in tolerances times a scale, and
// that scale.
struct Window {
  double (*moment)(const Fingerprint&);
  double (*scale)(const Fingerprint&);
};
double rms_of(const Fingerprint& f) {
  return f.rms;
}
constexpr Window kWindows[] = {
    {rms_of, rms_of},
    {[](const Fingerprint& f) { return f.mean; }, rms_of},
    {[](const Fingerprint& f) { return f.mean_abs; }, rms_of},
    {[](const Fingerprint& f) { return f.l4; }, [](const Fingerprint& f) { return f.l4; }},
    {[](const Fingerprint& f) { return f.min; },
     [](const Fingerprint& f) { return kLooseMoments * largest(f); }},
    {[](const Fingerprint& f) { return f.max; },
     [](const Fingerprint& f) { return kLooseMoments * largest(f); }},
};

// Classes of one bucket by one moment.
class Line {
 public:
  Line(const SideView& side, std::vector<std::uint32_t> classes, const Window& window,
       double tolerance)
      : window_(window), width_((tolerance + kMomentError) * 1.5) {  // generous: compare() decides
    for (const std::uint32_t c : classes)
      points_.emplace_back(window.moment(fingerprint_of(side, c)), c);
    std::ranges::sort(points_);
  }
  // Those whose moment is near that of `f`.
  auto near(const Fingerprint& f) const {
    const double at = window_.moment(f), half = width_ * window_.scale(f);
    const auto moment = [](const auto& point) { return point.first; };
    return std::ranges::subrange(std::ranges::lower_bound(points_, at - half, {}, moment),
                                 std::ranges::upper_bound(points_, at + half, {}, moment));
  }

 private:
  const Window& window_;
  double width_;
  std::vector<std::pair<double, std::uint32_t>> points_;
};

using ClassList = std::vector<std::uint32_t>;

// Calls `visit` with each pair of `of_a` and `of_b` that may be near, by the moment that tells most
// of them apart: normalised activations have one rms, and so have masks one extreme.
template <class Visit>
void visit_near(const SideView& a, const SideView& b, const ClassList& of_a, const ClassList& of_b,
                double tolerance, Visit visit) {
  if (of_a.empty() || of_b.empty()) return;
  std::optional<Line> best;
  std::size_t least = 0;
  for (const Window& window : kWindows) {
    Line line(b, of_b, window, tolerance);
    std::size_t count = 0;
    for (const std::uint32_t c : of_a) count += std::ranges::size(line.near(fingerprint_of(a, c)));
    if (!best || count < least) {
      least = count;
      best.emplace(std::move(line));
    }
    if (least <= of_a.size()) break;
  }
  for (const std::uint32_t ca : of_a) {
    for (const auto& [moment, cb] : best->near(fingerprint_of(a, ca))) visit(ca, cb);
  }
}

// Equal bits are as near as can be: such pairs are not compared with all others, only others with
// them.
std::vector<Candidate> candidates(const SideView& a, const SideView& b, double tolerance) {
  struct Lists {
    ClassList a, b;
  };
  std::map<Bucket, Lists> buckets;
  const auto fill = [&](const SideView& side, ClassList Lists::* member) {
    for (std::uint32_t c = 0; c < side.classes.classes.size(); ++c) {
      const Fingerprint& f = fingerprint_of(side, c);
      (buckets[bucket_of(f)].*member).push_back(c);
    }
  };
  fill(a, &Lists::a);
  fill(b, &Lists::b);

  std::vector<Candidate> found;
  const auto visit = [&](std::uint32_t ca, std::uint32_t cb) {
    Candidate candidate;
    std::optional<Pair> pair = compare(a, b, ca, cb, tolerance, candidate.common);
    if (!pair) return false;
    candidate.pair = std::move(*pair);
    candidate.depth = a.classes.classes[ca].depth + b.classes.classes[cb].depth;
    found.push_back(std::move(candidate));
    return true;
  };
  std::vector<bool> same_b(b.classes.classes.size(), false);
  for (const auto& [bucket, lists] : buckets) {
    std::map<value::Lanes, std::uint32_t> by_bits;
    for (const std::uint32_t cb : lists.b) by_bits.emplace(fingerprint_of(b, cb).own, cb);
    ClassList same_of_a, other_a, other_b;
    for (const std::uint32_t ca : lists.a) {
      const auto same = by_bits.find(fingerprint_of(a, ca).own);
      const bool is_same = same != by_bits.end() && visit(ca, same->second);
      (is_same ? same_of_a : other_a).push_back(ca);
      if (is_same) same_b[same->second] = true;
    }
    for (const std::uint32_t cb : lists.b) {
      if (!same_b[cb]) other_b.push_back(cb);
    }
    visit_near(a, b, other_a, lists.b, tolerance, visit);
    visit_near(a, b, same_of_a, other_b, tolerance, visit);
  }
  return found;
}

// Two values of one run that rounding alone tells apart are as near to a third, to within that.
bool as_near(double distance, double nearest) {
  return distance <= nearest + (nearest > kRounding ? kRounding : 0);
}

// Keeps the mutual nearest of `found` among classes that are still free. Of several that are as
// near (x, and x + y where y is lost in rounding) the earlier ones belong together.
void keep_mutual(const std::vector<Candidate>& found, bool common, std::vector<bool>& taken_a,
                 std::vector<bool>& taken_b, std::vector<Pair>& pairs) {
  constexpr double kFar = std::numeric_limits<double>::infinity();
  std::vector<double> nearest_a(taken_a.size(), kFar), nearest_b(taken_b.size(), kFar);
  const auto counts = [&](const Candidate& c) {
    return c.common == common && !taken_a[c.pair.a] && !taken_b[c.pair.b];
  };
  for (const Candidate& c : found) {
    if (!counts(c)) continue;
    nearest_a[c.pair.a] = std::min(nearest_a[c.pair.a], told(c));
    nearest_b[c.pair.b] = std::min(nearest_b[c.pair.b], told(c));
  }
  std::vector<const Candidate*> mutual;
  for (const Candidate& c : found) {
    if (counts(c) && as_near(told(c), nearest_a[c.pair.a]) && as_near(told(c), nearest_b[c.pair.b]))
      mutual.push_back(&c);
  }
  std::ranges::sort(mutual, {},
                    [](const Candidate* c) { return std::tuple(c->depth, c->pair.a, c->pair.b); });
  for (const Candidate* c : mutual) {
    if (taken_a[c->pair.a] || taken_b[c->pair.b]) continue;
    taken_a[c->pair.a] = true;
    taken_b[c->pair.b] = true;
    pairs.push_back(c->pair);
  }
}

}  // namespace

std::optional<double> distance(const SideView& a, const SideView& b, std::uint32_t of_a,
                               std::uint32_t of_b) {
  const Fingerprint &fa = fingerprint_of(a, of_a), &fb = fingerprint_of(b, of_b);
  if (bucket_of(fa) != bucket_of(fb)) return {};
  bool common = false;
  const double far = std::numeric_limits<double>::infinity();
  if (const auto pair = compare(a, b, of_a, of_b, far, common)) return pair->distance;
  if (exact(fa)) return {};
  return moment_distance(fa, fb).both();
}

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
