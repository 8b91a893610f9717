#include "diagnose/costs.h"

#include <gtest/gtest.h>

#include "diagnose/test_pair.h"

namespace joulediff::diagnose {
namespace {

using testing::Call;
using testing::ids;
using testing::program;

// One replay stands for all calls of a signature, so their errors are one error.
TEST(Costs, ErrorsAddUpWithinASignature) {
  const auto shared = program({Call{"aten.mm", 10}, Call{"aten.mm", 10}}, {1});
  const auto apart = program({Call{"aten.mm", 10}, Call{"aten.bmm", 10}}, {1});
  const double together = cost(shared.run, shared.cost, ids(0, 2)).within;
  const double independent = cost(apart.run, apart.cost, ids(0, 2)).within;
  EXPECT_NEAR(together / independent, std::sqrt(2.0), 1e-9);
}

TEST(Costs, MeanAndSpreadOverBlocks) {
  const auto p = program({Call{"aten.mm", 10}}, {0.9, 1.1});
  const Measured m = cost(p.run, p.cost, ids(0, 1));
  EXPECT_NEAR(m.mean, 10, 1e-12);
  ASSERT_EQ(m.blocks.size(), 2u);
  // Student, one degree of freedom: 12.7 times 1.
  EXPECT_NEAR(m.energy().half_width().value, 12.706, 1e-2);
}

TEST(Costs, AnUnknownCostIsNotZero) {
  auto p = program({Call{"aten.mm", 10}, Call{"aten.add", 1}});
  for (auto& block : p.cost.blocks) block.operators[1].known = false;
  p.cost.operators[1].known = false;
  EXPECT_FALSE(cost(p.run, p.cost, ids(0, 2)).known);
  p.run.operators[1].view = true;
  EXPECT_TRUE(cost(p.run, p.cost, ids(0, 2)).known);
}

TEST(Costs, PerWorkUnitIsOfTheMeasuredTotal) {
  const auto p = program({Call{"aten.mm", 10}}, {1, 1}, 50);
  EXPECT_NEAR(per_work_unit(p.run, p.cost).mean, 5, 1e-12);
}

}  // namespace
}  // namespace joulediff::diagnose
