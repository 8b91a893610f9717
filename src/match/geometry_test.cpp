#include "match/geometry.h"

#include <algorithm>
#include <set>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "match/test_eager.h"

namespace joulediff::match {
namespace {

run::Tensor tensor(std::int64_t offset, std::vector<std::int64_t> shape,
                   std::vector<std::int64_t> stride) {
  run::Tensor t;
  t.offset = offset;
  t.shape = std::move(shape);
  t.stride = std::move(stride);
  t.fingerprint.dtype = value::DType::float32;
  return t;
}

std::set<std::size_t> elements(const run::Tensor& t) {
  std::set<std::size_t> found;
  testing::for_each_place({nullptr, t.shape, t.stride, t.offset},
                          [&](std::size_t place) { found.insert(place); });
  return found;
}

// A slice of a dense tensor [4, 3, 5], its axes in some order.
run::Tensor any_slice() {
  const std::vector<std::int64_t> full{4, 3, 5}, stride{15, 5, 1};
  std::vector<std::size_t> axes{0, 1, 2};
  std::swap(axes[0], axes[*rc::gen::inRange<std::size_t>(0, 3)]);
  run::Tensor t = tensor(0, {}, {});
  for (const std::size_t i : axes) {
    const auto begin = *rc::gen::inRange<std::int64_t>(0, full[i]);
    const auto end = *rc::gen::inRange<std::int64_t>(begin + 1, full[i] + 1);
    t.offset += begin * stride[i];
    t.shape.push_back(end - begin);
    t.stride.push_back(stride[i]);
  }
  return t;
}

RC_GTEST_PROP(Geometry, SlicesOfADenseTensorRelateAsTheirElementsDo, ()) {
  const run::Tensor a = any_slice(), b = any_slice();
  const std::set<std::size_t> of_a = elements(a), of_b = elements(b);
  std::set<std::size_t> common;
  std::ranges::set_intersection(of_a, of_b, std::inserter(common, common.end()));
  const Relation r = relation(element_set(a), element_set(b));
  RC_ASSERT((element_set(a) == element_set(b)) == (of_a == of_b));
  // Where joined stretches make no box of the other's grid, the answer may be `overlaps`.
  if (r == Relation::disjoint) RC_ASSERT(common.empty());
  if (r == Relation::covers) RC_ASSERT(common == of_b);
  if (const auto left = without(element_set(a), element_set(b))) {
    run::Tensor rest = tensor(left->offset / 4, {}, {});
    for (const Stretch& s : left->stretches) {
      rest.shape.push_back(s.stride == 1 ? s.length / 4 : s.length);
      rest.stride.push_back(s.stride == 1 ? 1 : s.stride / 4);
    }
    std::set<std::size_t> expected;
    std::ranges::set_difference(of_a, of_b, std::inserter(expected, expected.end()));
    RC_ASSERT(elements(rest) == expected);
  }
}

TEST(Geometry, ViewsOfAllElementsHaveOneSet) {
  const ElementSet dense = element_set(tensor(0, {4, 6}, {6, 1}));
  EXPECT_EQ(dense, element_set(tensor(0, {6, 4}, {1, 6})));
  EXPECT_EQ(dense, element_set(tensor(0, {1, 24, 1}, {7, 1, 9})));
  EXPECT_EQ(dense, element_set(tensor(0, {5, 2, 2, 6}, {0, 12, 6, 1})));
  EXPECT_NE(dense, element_set(tensor(0, {4, 5}, {6, 1})));
  run::Tensor half = tensor(0, {48}, {1});
  half.fingerprint.dtype = value::DType::float16;
  EXPECT_EQ(dense, element_set(half));
}

TEST(Geometry, ColumnsOfAFusedProjectionAreDisjoint) {
  const ElementSet q = element_set(tensor(0, {7, 8}, {24, 1}));
  const ElementSet k = element_set(tensor(8, {7, 8}, {24, 1}));
  const ElementSet all = element_set(tensor(0, {7, 24}, {24, 1}));
  EXPECT_EQ(relation(q, k), Relation::disjoint);
  EXPECT_EQ(relation(all, k), Relation::covers);
  EXPECT_EQ(relation(k, all), Relation::overlaps);
}

TEST(Geometry, ACacheWithoutItsNewestRowIsTheOlderCache) {
  const ElementSet now = element_set(tensor(0, {6, 16}, {16, 1}));
  const ElementSet row = element_set(tensor(80, {1, 16}, {16, 1}));
  EXPECT_EQ(without(now, row), element_set(tensor(0, {5, 16}, {16, 1})));
  const ElementSet middle = element_set(tensor(32, {1, 16}, {16, 1}));
  EXPECT_FALSE(without(now, middle));
}

}  // namespace
}  // namespace joulediff::match
