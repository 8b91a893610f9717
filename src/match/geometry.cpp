#include "match/geometry.h"

#include <algorithm>

namespace joulediff::match {
namespace {

struct Range {
  std::int64_t begin = 0;
  std::int64_t length = 1;
};

// The set as a box: one range of indices for each of `strides` (falling, each divisible by the
// next, the last 1). Empty if it is no box of that grid.
std::vector<Range> box(const ElementSet& set, const std::vector<std::int64_t>& strides) {
  std::vector<Range> ranges(strides.size());
  std::int64_t rest = set.offset;
  for (std::size_t i = 0; i < strides.size(); ++i) {
    ranges[i].begin = rest / strides[i];
    rest %= strides[i];
    for (const Stretch& s : set.stretches) {
      if (s.stride == strides[i]) ranges[i].length = s.length;
    }
  }
  for (std::size_t i = strides.size(); i-- > 1;) {
    const std::int64_t ratio = strides[i - 1] / strides[i];
    Range& range = ranges[i];
    if (range.begin + range.length <= ratio) continue;
    if (range.begin != 0 || range.length % ratio != 0 || ranges[i - 1].length != 1) return {};
    ranges[i - 1].length = range.length / ratio;
    range.length = ratio;
  }
  return ranges;
}

std::int64_t last_element(const ElementSet& set) {
  std::int64_t last = set.offset;
  for (const Stretch& s : set.stretches) last += s.stride * (s.length - 1);
  return last;
}

}  // namespace

ElementSet element_set(const run::Tensor& tensor) {
  ElementSet set{tensor.offset, {}};
  for (std::size_t i = 0; i < tensor.shape.size(); ++i) {
    if (tensor.shape[i] != 1 && tensor.stride[i] != 0) {
      set.stretches.push_back({tensor.stride[i], tensor.shape[i]});
    }
  }
  std::ranges::sort(set.stretches, std::greater<>());
  std::vector<Stretch> joined;
  for (const Stretch& s : set.stretches) {
    if (!joined.empty() && joined.back().stride == s.stride * s.length) {
      joined.back() = {s.stride, joined.back().length * s.length};
    } else {
      joined.push_back(s);
    }
  }
  set.stretches = std::move(joined);
  return set;
}

Relation relation(const ElementSet& a, const ElementSet& b) {
  if (a == b) return Relation::covers;
  if (last_element(a) < b.offset || last_element(b) < a.offset) return Relation::disjoint;
  std::vector<std::int64_t> strides{1};
  for (const ElementSet* set : {&a, &b}) {
    for (const Stretch& s : set->stretches) strides.push_back(s.stride);
  }
  std::ranges::sort(strides, std::greater<>());
  strides.erase(std::ranges::unique(strides).begin(), strides.end());
  for (std::size_t i = 0; i < strides.size(); ++i) {
    const bool grid = strides[i] > 0 && (i == 0 || strides[i - 1] % strides[i] == 0);
    if (!grid) return Relation::overlaps;
  }
  const std::vector<Range> box_a = box(a, strides);
  const std::vector<Range> box_b = box(b, strides);
  if (box_a.empty() || box_b.empty()) return Relation::overlaps;
  bool covers = true;
  for (std::size_t i = 0; i < strides.size(); ++i) {
    const std::int64_t end_a = box_a[i].begin + box_a[i].length;
    const std::int64_t end_b = box_b[i].begin + box_b[i].length;
    if (end_a <= box_b[i].begin || end_b <= box_a[i].begin) return Relation::disjoint;
    covers = covers && box_a[i].begin <= box_b[i].begin && end_a >= end_b;
  }
  return covers ? Relation::covers : Relation::overlaps;
}

std::vector<std::int64_t> squeezed_shape(const run::Tensor& tensor) {
  std::vector<std::int64_t> shape;
  for (std::size_t i = 0; i < tensor.shape.size(); ++i) {
    if (tensor.shape[i] != 1 && tensor.stride[i] != 0) shape.push_back(tensor.shape[i]);
  }
  if (value::class_of(tensor.fingerprint.dtype) == value::DTypeClass::complex) shape.push_back(2);
  return shape;
}

}  // namespace joulediff::match
