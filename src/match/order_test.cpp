#include "match/order.h"

#include <utility>

#include <gtest/gtest.h>

#include "match/test_programs.h"
#include "match/tolerance.h"

namespace joulediff::match {
namespace {

struct Side {
  explicit Side(run::Run made)
      : run(std::move(made)), graph(make_graph(run)), classes(equal_classes(run, graph)) {}
  SideView view() const { return {run, graph, classes}; }
  run::Run run;
  Graph graph;
  Classes classes;
};

// Two pairs that were taken for each other, far apart: everything between them contradicts both.
// They go, and nothing else does, however many others there are.
void expect_that_swapped_pairs_go(std::int64_t layers) {
  testing::GptSize size;
  size.layers = layers;
  size.tokens = 4;
  size.width = 12;
  const Side a(testing::gpt(testing::Style::addmm_hnd, {}, size));
  const Side b(testing::gpt(testing::Style::separate_nhd, {}, size));
  std::vector<Pair> pairs = nearest_pairs(a.view(), b.view(), tolerance(a.run, b.run));
  const Ordered before = drop_contradictions(a.view(), b.view(), pairs);
  const std::size_t early = pairs.size() / 10, late = pairs.size() - early;
  std::swap(pairs[early].b, pairs[late].b);
  const Ordered after = drop_contradictions(a.view(), b.view(), pairs);
  EXPECT_EQ(after.pairs.size() + 2, before.pairs.size()) << layers << " layers";
  for (const Pair& pair : after.pairs) {
    EXPECT_NE(pair.a, pairs[early].a);
    EXPECT_NE(pair.a, pairs[late].a);
  }
}

TEST(Order, SwappedPairsGo) {
  expect_that_swapped_pairs_go(6);
}
// More pairs than are all compared with one another.
TEST(Order, SwappedPairsOfALargeProgramGo) {
  expect_that_swapped_pairs_go(400);
}

}  // namespace
}  // namespace joulediff::match
