#include "match/geometry.h"

#include <algorithm>

namespace joulediff::match {
namespace {

struct Range {
  std::int64_t begin = 0;
  std::int64_t length = 1;
  std::int64_t end() const { return begin + length; }
};

// The set as a box: one range of indices for each of `strides` (falling, each divisible by the
// next, the last 1). Empty if there is no grid or it is no box of it.
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

// The grid that both sets are boxes of, if their strides divide one another; else empty.
std::vector<std::int64_t> common_strides(const ElementSet& a, const ElementSet& b) {
  std::vector<std::int64_t> strides{1};
  for (const ElementSet* set : {&a, &b}) {
    for (const Stretch& s : set->stretches) strides.push_back(s.stride);
  }
  std::ranges::sort(strides, std::greater<>());
  strides.erase(std::ranges::unique(strides).begin(), strides.end());
  for (std::size_t i = 0; i < strides.size(); ++i) {
    const bool grid = strides[i] > 0 && (i == 0 || strides[i - 1] % strides[i] == 0);
    if (!grid) return {};
  }
  return strides;
}

ElementSet joined(std::int64_t offset, const std::vector<Stretch>& falling) {
  ElementSet set{offset, {}};
  for (const Stretch& s : falling) {
    if (!set.stretches.empty() && set.stretches.back().stride == s.stride * s.length) {
      set.stretches.back() = {s.stride, set.stretches.back().length * s.length};
    } else {
      set.stretches.push_back(s);
    }
  }
  return set;
}

std::int64_t bytes(value::DType dtype) {
  using value::DType;
  switch (dtype) {
    case DType::complex128: return 16;
    case DType::float64:
    case DType::int64:
    case DType::complex64: return 8;
    case DType::float32:
    case DType::int32: return 4;
    case DType::float16:
    case DType::bfloat16:
    case DType::int16: return 2;
    default: return 1;
  }
}

std::int64_t last_element(const ElementSet& set) {
  std::int64_t last = set.offset;
  for (const Stretch& s : set.stretches) last += s.stride * (s.length - 1);
  return last;
}

}  // namespace

ElementSet element_set(const run::Tensor& tensor) {
  const std::int64_t size = bytes(tensor.fingerprint.dtype);
  std::vector<Stretch> stretches;
  for (std::size_t i = 0; i < tensor.shape.size(); ++i) {
    if (tensor.shape[i] != 1 && tensor.stride[i] != 0) {
      stretches.push_back({tensor.stride[i] * size, tensor.shape[i]});
    }
  }
  std::ranges::sort(stretches, std::greater<>());
  if (size > 1) stretches.push_back({1, size});
  return joined(tensor.offset * size, stretches);
}

Relation relation(const ElementSet& a, const ElementSet& b) {
  if (a == b) return Relation::covers;
  if (last_element(a) < b.offset || last_element(b) < a.offset) return Relation::disjoint;
  const std::vector<std::int64_t> strides = common_strides(a, b);
  const std::vector<Range> box_a = box(a, strides);
  const std::vector<Range> box_b = box(b, strides);
  if (box_a.empty() || box_b.empty()) return Relation::overlaps;
  bool covers = true;
  for (std::size_t i = 0; i < strides.size(); ++i) {
    if (box_a[i].end() <= box_b[i].begin || box_b[i].end() <= box_a[i].begin) {
      return Relation::disjoint;
    }
    covers = covers && box_a[i].begin <= box_b[i].begin && box_a[i].end() >= box_b[i].end();
  }
  return covers ? Relation::covers : Relation::overlaps;
}

std::optional<ElementSet> without(const ElementSet& a, const ElementSet& b) {
  const std::vector<std::int64_t> strides = common_strides(a, b);
  std::vector<Range> box_a = box(a, strides);
  const std::vector<Range> box_b = box(b, strides);
  if (box_a.empty() || box_b.empty()) return {};
  // What is left is a box if b reaches across a on every axis but one, and to one end of that.
  bool cut = false;
  for (std::size_t i = 0; i < strides.size(); ++i) {
    Range& from = box_a[i];
    const Range& gone = box_b[i];
    const bool begin = gone.begin <= from.begin, end = gone.end() >= from.end();
    if (begin && end) continue;
    if (cut || (!begin && !end) || gone.begin >= from.end() || from.begin >= gone.end()) return {};
    cut = true;
    const Range left = begin ? Range{gone.end(), from.end() - gone.end()}
                             : Range{from.begin, gone.begin - from.begin};
    from = left;
  }
  if (!cut) return {};
  std::int64_t offset = 0;
  std::vector<Stretch> stretches;
  for (std::size_t i = 0; i < strides.size(); ++i) {
    offset += box_a[i].begin * strides[i];
    if (box_a[i].length > 1) stretches.push_back({strides[i], box_a[i].length});
  }
  return joined(offset, stretches);
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
