#include "diagnose/noise.h"

#include <cmath>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "diagnose/test_pair.h"

namespace joulediff::diagnose {
namespace {

using testing::Call;
using ::testing::HasSubstr;
using testing::program;
using testing::regions;

testing::Program repeated(const std::vector<double>& wobble) {
  auto one = program({Call{"aten.mm", 10}, Call{"aten.add", 3}, Call{"aten.relu", 0.1}}, wobble);
  one.run.manifest.device = "NVIDIA H200";
  one.run.manifest.device_uuid = "GPU-1";
  one.run.manifest.facts = {{"driver", "580"}, {"wall_minus_monotonic_ns", "1796083200000000000"}};
  return one;
}

Result<Noise> measured(const testing::Program& a, const testing::Program& b) {
  const Repeated both[] = {{a.run, a.cost}, {b.run, b.cost}};
  return measure_noise(both);
}

TEST(Noise, IsTheSpreadBetweenProcesses) {
  const auto noise = measured(repeated({1, 1.02}), repeated({0.98, 1}));
  ASSERT_TRUE(noise);
  EXPECT_EQ(noise->processes, 4u);
  EXPECT_NEAR(noise->whole, std::sqrt(8e-4 / 3), 1e-6);
  EXPECT_NEAR(noise->operators.value(), noise->whole, 1e-6);
  EXPECT_EQ(noise->signatures, 2u) << "0.1 J of 100 J are no finding, whatever they do";
  EXPECT_EQ(noise->board + " " + noise->uuid + " " + noise->driver, "NVIDIA H200 GPU-1 580");
  EXPECT_EQ(noise->date, "2026-12-01");
  // Student's t of three degrees of freedom.
  EXPECT_NEAR(noise->whole_floor(2, 2), 3.182 * noise->whole, 1e-4);
  EXPECT_NEAR(noise->whole_floor(8, 8), noise->whole_floor(2, 2) / 2, 1e-9);
}

// What the floor promises: without a difference one is seen beyond it in 5 % of the cases.
TEST(Noise, HoldsWhatItPromises) {
  std::mt19937 random(3);
  std::normal_distribution<double> process(1, 0.01);
  int beyond = 0;
  constexpr int kTrials = 2000;
  for (int i = 0; i < kTrials; ++i) {
    const auto four = [&] {
      return std::vector<double>{process(random), process(random), process(random),
                                 process(random)};
    };
    const auto noise = measured(repeated(four()), repeated(four()));
    const double a = (process(random) + process(random)) / 2;
    const double b = (process(random) + process(random)) / 2;
    beyond += std::abs(b / a - 1) > noise->whole_floor(2, 2);
  }
  EXPECT_NEAR(beyond / double(kTrials), 0.05, 0.015);
}

TEST(Noise, NeedsThreeProcessesOfOneProgramOnOneBoard) {
  const auto fault = [](const Result<Noise>& noise) {
    EXPECT_FALSE(noise);
    return noise ? std::string() : noise.error().message;
  };
  EXPECT_THAT(fault(measured(repeated({1}), repeated({1}))), HasSubstr("--blocks 8"));
  const auto other = program({Call{"aten.mm", 10}}, {1, 1});
  EXPECT_THAT(fault(measured(repeated({1, 1}), other)), HasSubstr("different programs"));
  auto elsewhere = repeated({1, 1});
  elsewhere.run.manifest.device_uuid = "GPU-2";
  EXPECT_THAT(fault(measured(repeated({1, 1}), elsewhere)), HasSubstr("different boards"));
}

TEST(Noise, ComesBackFromItsText) {
  const auto noise = measured(repeated({1, 1.02}), repeated({0.98, 1}));
  const auto back = noise_from_json(to_json(*noise));
  ASSERT_TRUE(back);
  EXPECT_EQ(to_json(*back), to_json(*noise));
  EXPECT_FALSE(noise_from_json("damaged"));
  EXPECT_FALSE(noise_from_json("{}"));
}

testing::Program with_floor(testing::Program one, double whole, double operators) {
  one.run.manifest.facts[noise_fact("GPU-1")] =
      to_json(Noise{"", "GPU-1", "580", "", "", 10, whole, operators, 1});
  return one;
}

// A and B differ by 20 %; their own blocks by 0.2 %.
Comparison differing(double machine) {
  const auto a = with_floor(program({Call{"aten.mm", 10}}, {1, 1.002}), machine, machine);
  const auto b = with_floor(program({Call{"aten.bmm", 8}}, {1, 1.002}, 80), machine, machine);
  return testing::compare(a, b, regions({{1, 1}}));
}

TEST(MachineFloor, ADifferenceUnderItIsNoFinding) {
  const Comparison under = differing(0.15);
  EXPECT_EQ(under.regions.front().outcome, Outcome::undecided);
  EXPECT_NEAR(under.regions.front().noise_floor.value(), 0.15 * 2.262, 1e-3);
  EXPECT_NEAR(under.noise_floor.value(), 0.15 * 2.262, 1e-3);
  for (const Finding& finding : under.findings) EXPECT_EQ(finding.outcome, Outcome::undecided);
  const Comparison beyond = differing(0.01);
  EXPECT_EQ(beyond.regions.front().outcome, Outcome::waste);
  EXPECT_NEAR(beyond.regions.front().noise_floor.value(), 0.01 * 2.262, 1e-3);
  ASSERT_TRUE(beyond.machine);
  EXPECT_EQ(beyond.machine->processes, 10u);
}

TEST(MachineFloor, AGateDoesNotFailUnderIt) {
  auto a = program({Call{"aten.mm", 10}}, {1, 1.002});
  auto b = program({Call{"aten.bmm", 12.5}}, {1, 1.002}, 125);
  const auto gated = [&](double machine) {
    return gate(testing::compare(with_floor(a, machine, machine), with_floor(b, machine, machine),
                                 regions({{1, 1}})),
                0.05);
  };
  EXPECT_EQ(gated(0.01), Gate::failed);
  EXPECT_EQ(gated(0.15), Gate::undecided);
}

TEST(MachineFloor, DoesNotStandInForBlocks) {
  const auto a = with_floor(program({Call{"aten.mm", 10}}, {1}), 0.001, 0.001);
  const auto b = with_floor(program({Call{"aten.bmm", 5}}, {1}, 50), 0.001, 0.001);
  const Comparison c = testing::compare(a, b, regions({{1, 1}}));
  EXPECT_FALSE(c.noise_floor);
  EXPECT_EQ(c.regions.front().outcome, Outcome::undecided);
}

TEST(MachineFloor, CountsOnlyWhereBothRunsHaveOne) {
  const auto a = with_floor(program({Call{"aten.mm", 10}}, {1, 1.002}), 0.15, 0.15);
  const auto b = program({Call{"aten.bmm", 8}}, {1, 1.002}, 80);
  EXPECT_FALSE(testing::compare(a, b, regions({{1, 1}})).machine);
}

}  // namespace
}  // namespace joulediff::diagnose
