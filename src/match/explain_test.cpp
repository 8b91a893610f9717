#include "match/explain.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "match/test_eager.h"

namespace joulediff::match {
namespace {

using testing::Eager;
using ::testing::ElementsAre;
using testing::Options;
using testing::Tensor;

// x, its sine, and what only A makes of it.
run::Run program(bool is_a) {
  Eager e{Options{}};
  const Tensor x = e.input("x", {6, 10});
  const Tensor y = e.unary("sin", x, [](float v) { return std::sin(v); });
  if (is_a) {
    e.constant({6, 10}, [](std::size_t i) { return static_cast<float>(i); });
    e.sum(y);
    e.cat({y, y}, 0);
    e.unary("cos", x, [](float v) { return std::cos(v); });
    e.unary("almost", y, [](float v) { return v * 1.000008F; });
  }
  return e.take();
}

TEST(Explain, SaysWhyEachValueIsAlone) {
  const run::Run a = program(true), b = program(false);
  const Match m = match(a, b);
  Region all;
  for (std::size_t i = 0; i < a.operators.size(); ++i) all.a.emplace_back(i);
  for (std::size_t i = 0; i < b.operators.size(); ++i) all.b.emplace_back(i);
  const Explanation found = explain(a, b, m, all);
  std::vector<WhyAlone> why;
  for (const Alone& one : found.a) why.push_back(one.why);
  EXPECT_THAT(why, ElementsAre(WhyAlone::constant, WhyAlone::indistinct, WhyAlone::unlike,
                               WhyAlone::far, WhyAlone::nearer));
  EXPECT_THAT(found.b, ::testing::IsEmpty());
  const Alone& far = found.a[3];
  EXPECT_EQ(a.operators[far.op.index()].name, "aten.cos");
  EXPECT_GT(far.distance, m.tolerance);
  const Alone& nearer = found.a[4];
  EXPECT_NEAR(nearer.distance, 8e-6, 1e-6);
  EXPECT_EQ(nearer.nearest, b.operators[0].outputs[0]);
}

}  // namespace
}  // namespace joulediff::match
