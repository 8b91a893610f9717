// Each way in which the reference system's matcher was seen to fail, as a program that ours gets
// right. The numbers are those of the list in docs/architecture.md.
#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "match/test_checks.h"
#include "match/test_programs.h"

namespace joulediff::match {
namespace {

using namespace testing;

const auto kExp = [](float v) { return std::exp(v); };
const auto kTanh = [](float v) { return std::tanh(v); };

// Two runs that do the same to inputs of other values have no anchors at all.
void expect_nothing_equal(const std::function<Tensor(Eager&, const Tensor&)>& program) {
  const auto run = [&](unsigned seed) {
    Options o;
    o.seed = seed;
    Eager e(o);
    program(e, e.input("x", {6, 40}));
    return e.take();
  };
  EXPECT_TRUE(checked(run(1), run(2)).anchors.empty());
  EXPECT_FALSE(checked(run(1), run(1)).anchors.empty());
}

TEST(MagnetonFailures, F01_NanTensorEqualsEveryTensorOfItsSize) {
  for (const float odd :
       {std::numeric_limits<float>::quiet_NaN(), -INFINITY, std::numeric_limits<float>::lowest()}) {
    expect_nothing_equal([odd](Eager& e, const Tensor& x) {
      std::size_t i = 0;
      return e.unary("masked", x, [&](float v) { return i++ % 7 < 2 ? odd : v; });
    });
  }
}

TEST(MagnetonFailures, F02_EqualMeanAndDeviationMatch) {
  expect_nothing_equal([](Eager& e, const Tensor& x) { return e.softmax(x); });
  expect_nothing_equal([](Eager& e, const Tensor& x) {
    const Tensor one = e.constant({40}, [](std::size_t) { return 1.0F; });
    return e.layer_norm(x, one, e.scale(one, 0))[0];
  });
  // q against k of one run: each finds its own.
  const auto qk = [](bool backwards) {
    Options o;
    o.backwards = backwards;
    Eager e(o);
    const Tensor x = e.input("x", {6, 40});
    for (const char* w : {"q", "k"}) e.matmul(x, e.parameter(w, {40, 40}), "mm");
    return e.take();
  };
  const Match m = checked(qk(false), qk(true));
  ASSERT_EQ(m.regions.size(), 2u);
  for (const Region& r : m.regions) EXPECT_EQ(r.a, r.b);
}

TEST(MagnetonFailures, F02_ZerosAndConstantsNeverAnchor) {
  const auto program = [](float k) {
    Eager e({});
    const Tensor x = e.input("x", {6, 8});
    e.unary("zero", x, [](float) { return 0.0F; });
    e.unary("step", x, [k](float v) { return v > k ? 1.0F : 0.0F; });
    e.constant({6, 8}, [](std::size_t i) { return static_cast<float>(i); });
    return e.take();
  };
  const Match m = checked(program(0), program(0.5F));
  EXPECT_EQ(m.anchors.size(), 1u);  // x
  EXPECT_TRUE(m.regions.empty());
  EXPECT_EQ(m.unmatched_a.size(), 3u);
}

TEST(MagnetonFailures, F03_MeanNearZeroWithNoiseDoesNotMatch) {
  const auto program = [](float noise) {
    Eager e({});
    e.setting("torch.float32_matmul_precision", "high");
    const Tensor x = e.input("x", {30, 40});
    std::vector<float> data = dense(x);
    double mean = 0;
    for (const float v : data) mean += v / static_cast<double>(data.size());
    std::size_t i = 0;
    e.unary("center", x, [&](float v) {
      return v - static_cast<float>(mean) + noise * (i++ % 2 ? 1.0F : -1.0F);
    });
    return e.take();
  };
  const Match m = checked(program(0), program(1e-4F));
  ASSERT_EQ(m.regions.size(), 1u);
  EXPECT_TRUE(m.regions[0].outputs_agree);
}

TEST(MagnetonFailures, F04_OperatorsWithoutOutputsMatchEachOther) {
  const auto program = [](const char* name) {
    Eager e({});
    e.record(name, {e.unary("exp", e.input("x", {6, 8}), kExp)}, {});
    return e.take();
  };
  const Match m = checked(program("print"), program("assert"));
  ASSERT_EQ(m.regions.size(), 1u);
  EXPECT_EQ(m.regions[0].a.size(), 1u);
  EXPECT_EQ(m.unmatched_a.size(), 1u);
  EXPECT_EQ(m.unmatched_b.size(), 1u);
}

TEST(MagnetonFailures, F05_ResidualBlocksCannotBeSplit) {
  const Match m = checked(gpt(Style::separate_nhd), gpt(Style::separate_nhd));
  EXPECT_GE(m.regions.size(), 2u * 10u);  // two layers
}

TEST(MagnetonFailures, F06_OneFalseEarlyPairDiscardsAllLaterCuts) {
  const run::Run a = gpt(Style::addmm_hnd);
  run::Run b = gpt(Style::addmm_hnd);
  const std::size_t clean = checked(a, b).regions.size();
  std::size_t first = b.tensors.size(), last = 0;  // values of one size, early and late
  for (const run::Operator& op : b.operators) {
    if (op.name != "aten.add" || !op.module.ends_with("residual")) continue;
    first = std::min(first, op.outputs[0].index());
    last = std::max(last, op.outputs[0].index());
  }
  std::swap(b.tensors[first].fingerprint, b.tensors[last].fingerprint);
  std::swap(b.tensors[first].sample, b.tensors[last].sample);
  EXPECT_GE(checked(a, b).regions.size() + 6, clean);
}

TEST(MagnetonFailures, F07_OnlyTheLastOutputIsKept) {
  const auto program = [](bool backwards) {
    Options o;
    o.backwards = backwards;
    Eager e(o);
    const Tensor x = e.input("x", {6, 8});
    for (const char* w : {"one", "two", "three"}) {
      e.unary("exp", e.matmul(x, e.parameter(w, {8, 8}), "mm"), kExp);
    }
    return e.take();
  };
  const Match m = checked(program(false), program(true));
  EXPECT_EQ(m.regions.size(), 6u);
  EXPECT_TRUE(m.unmatched_a.empty());
}

TEST(MagnetonFailures, F08_AWeightNumberedBeforeTheInputBecomesTheEntry) {
  const auto program = [](bool weight_first) {
    Eager e({});
    const Tensor w = e.parameter("w", {8, 8}), v = e.parameter("v", {8, 8});
    if (weight_first) e.id(w);
    const Tensor x = e.input("x", {6, 8});
    const Tensor left = e.matmul(x, w, "mm"), right = e.matmul(x, v, "mm");
    e.add(e.unary("exp", left, kExp), e.unary("tanh", right, kTanh));
    return e.take();
  };
  const run::Run a = program(true), b = program(false);
  const Match m = checked(a, b);
  EXPECT_EQ(m.regions.size(), 5u);
  for (const Anchor& anchor : m.anchors) {
    EXPECT_NE(a.tensors[anchor.a.index()].role, run::Role::parameter);
  }
}

TEST(MagnetonFailures, F09_TheRegionAfterAnInPlaceOperatorDisappears) {
  const auto program = [](bool in_place) {
    Eager e({});
    const Tensor x = e.input("x", {6, 8}), y = e.input("y", {6, 8});
    Tensor h = e.unary("exp", x, kExp);
    if (in_place) {
      e.add_(h, y);
    } else {
      h = e.add(h, y);
    }
    e.unary("tanh", e.matmul(h, e.parameter("w", {8, 8}), "mm"), kTanh);
    return e.take();
  };
  const Match m = checked(program(false), program(true));
  EXPECT_EQ(m.regions.size(), 4u);
  EXPECT_TRUE(m.unmatched_b.empty());
}

TEST(MagnetonFailures, F10_NeighboursChargeTheSameOperatorTwice) {
  // Half-open: what makes an anchor belongs to the region above it, what reads it to the one below.
  Eager e({});
  const Tensor h = e.unary("exp", e.input("x", {6, 8}), kExp);
  e.unary("tanh", h, kTanh);
  const run::Run run = e.take();
  const Match m = checked(run, run);
  ASSERT_EQ(m.regions.size(), 2u);
  EXPECT_EQ(m.regions[0].a, Operators{run::OperatorId(0)});
  EXPECT_EQ(m.regions[1].a, Operators{run::OperatorId(1)});
  EXPECT_EQ(m.regions[0].outputs, m.regions[1].inputs);
}

TEST(MagnetonFailures, F12_SmallGraphsGiveUnstableRegions) {
  for (int n = 1; n <= 7; ++n) {
    const auto program = [n](unsigned seed) {
      Options o;
      o.seed = seed;
      Eager e(o);
      Tensor h = e.input("x", {4, 6});
      for (int i = 0; i < n; ++i) {
        h = i % 2 == 0 ? e.matmul(h, e.parameter("w" + std::to_string(i), {6, 6}), "mm")
                       : e.unary("tanh", h, kTanh);
      }
      return e.take();
    };
    for (unsigned seed = 0; seed < 5; ++seed) {
      const run::Run run = program(seed);
      EXPECT_EQ(checked(run, run).regions.size(), static_cast<std::size_t>(n));
      const Shuffled other = shuffled(run, seed);
      EXPECT_EQ(match(run, other.run).regions.size(), static_cast<std::size_t>(n));
    }
  }
}

}  // namespace
}  // namespace joulediff::match
