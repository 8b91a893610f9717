#include "match/match.h"

#include <cstdio>

#include <gtest/gtest.h>

#include "match/test_checks.h"
#include "match/test_programs.h"

namespace joulediff::match {
namespace {

using namespace testing;

using Program = std::function<run::Run(Options)>;

Program of_style(Style style) {
  return [style](Options o) { return gpt(style, o); };
}
Program of_decode(bool in_place) {
  return [in_place](Options o) { return decode(in_place, o); };
}
Program of_train(bool foreach, float rate) {
  return [=](Options o) { return train(foreach, rate, o); };
}

struct Case {
  const char* name;
  Program a;
  Program b;
  std::size_t regions;  // at least
};

void PrintTo(const Case& c, std::ostream* out) {
  *out << c.name;
}

class EveryPair : public ::testing::TestWithParam<Case> {};

INSTANTIATE_TEST_SUITE_P(
    Match, EveryPair,
    ::testing::Values(Case{"addmm_nhd", of_style(Style::addmm_hnd), of_style(Style::separate_nhd),
                           22},
                      Case{"addmm_fused", of_style(Style::addmm_hnd), of_style(Style::fused), 22},
                      Case{"nhd_fused", of_style(Style::separate_nhd), of_style(Style::fused), 18},
                      Case{"decode", of_decode(false), of_decode(true), 28},
                      Case{"train", of_train(false, 0.1F), of_train(true, 0.1F), 20},
                      Case{"train_slowly", of_train(false, 1e-3F), of_train(true, 1e-3F), 20}),
    [](const auto& c) { return std::string(c.param.name); });

Options backwards(Precision precision = Precision::fp32) {
  Options o;
  o.precision = precision;
  o.backwards = true;
  return o;
}

// Operators that lead to nothing but a loss, a single number, have nothing to be recognised by.
bool only_losses(const run::Run& run, const Operators& rest) {
  return std::ranges::all_of(
      rest, [&](run::OperatorId op) { return run.operators[op.index()].name == "aten.sum"; });
}

TEST_P(EveryPair, MatchesAllOperatorsInSmallRegions) {
  const run::Run a = GetParam().a({}), b = GetParam().b(backwards());
  const Match m = checked(a, b);
  EXPECT_TRUE(only_losses(a, m.unmatched_a));
  EXPECT_TRUE(only_losses(b, m.unmatched_b));
  EXPECT_GE(m.regions.size(), GetParam().regions);
  for (const Region& region : m.regions) {
    EXPECT_FALSE(region.inputs_differ);
    EXPECT_TRUE(region.outputs_agree);
    EXPECT_FALSE(region.outputs.empty());
    EXPECT_EQ(region.matched_by, MatchedBy::value);
  }
}

TEST_P(EveryPair, SwapsToTheMirrorImage) {
  const run::Run a = GetParam().a({}), b = GetParam().b(backwards());
  EXPECT_EQ(split(match(a, b)), swapped(match(b, a)));
}

TEST_P(EveryPair, MatchesItselfWhole) {
  for (const Program& program : {GetParam().a, GetParam().b}) {
    const run::Run run = program({});
    const Match m = checked(run, run);
    EXPECT_TRUE(only_losses(run, m.unmatched_a));
    for (const Region& region : m.regions) {
      EXPECT_EQ(region.a, region.b);
      EXPECT_FALSE(region.inputs_differ);
    }
    for (const Anchor& anchor : m.anchors) {
      EXPECT_EQ(anchor.a, anchor.b);
      EXPECT_EQ(anchor.distance, 0);
    }
  }
}

TEST_P(EveryPair, DoesNotDependOnNumbersNamesOrWeights) {
  const run::Run a = GetParam().a({}), b = GetParam().b(backwards());
  const Match m = checked(a, b);
  const Shuffled sa = shuffled(a, 3), sb = shuffled(b, 4);
  const Match other = match(sa.run, sb.run);
  Split back;
  for (const Region& r : other.regions) back.emplace(original(sa, r.a), original(sb, r.b));
  EXPECT_EQ(split(m), back);

  Options weights_a, weights_b = backwards();
  weights_a.seed = weights_b.seed = 77;
  EXPECT_EQ(split(m), split(match(GetParam().a(weights_a), GetParam().b(weights_b))));
}

TEST_P(EveryPair, SurvivesTheNoiseOfCoarserFormats) {
  const Match exact = match(GetParam().a({}), GetParam().b(backwards()));
  for (const Precision p : {Precision::tf32, Precision::bf16_matmul, Precision::bf16}) {
    SCOPED_TRACE(static_cast<int>(p));
    const run::Run a = GetParam().a({}), b = GetParam().b(backwards(p));
    const Match m = checked(a, b);
    EXPECT_GT(matched_share(a, m.unmatched_a), 0.9);
    EXPECT_GT(matched_share(b, m.unmatched_b), 0.9);
    EXPECT_GE(m.regions.size() * 10, exact.regions.size() * 9);
  }
}

TEST_P(EveryPair, MatchesAcrossShapesThatWereNeverSampledAlike) {
  Options a, b = backwards(Precision::bf16_matmul);
  a.one_sample = b.one_sample = true;
  const Match exact = match(GetParam().a({}), GetParam().b(backwards()));
  const Match m = match(GetParam().a(a), GetParam().b(b));
  EXPECT_GE(m.regions.size() * 10, exact.regions.size() * 8);
}

class EveryGptPair : public ::testing::TestWithParam<std::pair<Style, Style>> {};

INSTANTIATE_TEST_SUITE_P(Match, EveryGptPair,
                         ::testing::Values(std::pair(Style::addmm_hnd, Style::separate_nhd),
                                           std::pair(Style::addmm_hnd, Style::fused),
                                           std::pair(Style::separate_nhd, Style::fused)));

TEST_P(EveryGptPair, SplitsResidualBlocksAndNeverMixesAttentionWithMlp) {
  const run::Run a = gpt(GetParam().first), b = gpt(GetParam().second, backwards());
  const Match m = checked(a, b);
  for (const Region& region : m.regions) {
    for (const auto& [run, operators] : {std::pair(&a, &region.a), std::pair(&b, &region.b)}) {
      std::set<std::string> parts;
      for (const std::string& module : modules(*run, *operators)) {
        for (const char* part : {"0.attention", "0.mlp", "1.attention", "1.mlp"}) {
          if (module.ends_with(part)) parts.insert(part);
        }
      }
      EXPECT_LE(parts.size(), 1u);
    }
  }
}

// Moves the fingerprints and samples of two values of the same size to each other's place.
void swap_values(run::Run& run, std::size_t s, std::size_t t) {
  std::swap(run.tensors[s].fingerprint, run.tensors[t].fingerprint);
  std::swap(run.tensors[s].sample, run.tensors[t].sample);
}

std::vector<std::size_t> outputs_of(const run::Run& run, const std::string& module,
                                    const std::string& name) {
  std::vector<std::size_t> found;
  for (const run::Operator& op : run.operators) {
    if (op.module == module && op.name == name) found.push_back(op.outputs[0].index());
  }
  return found;
}

TEST(Match, FalsePairsFarFromTheirPlaceDoNoHarm) {
  GptSize size;
  size.layers = 5;
  const run::Run a = gpt(Style::addmm_hnd, {}, size);
  run::Run b = gpt(Style::separate_nhd, backwards(), size);
  const std::size_t clean = checked(a, b).regions.size();
  swap_values(b, outputs_of(b, "h.0.residual", "aten.add")[0],
              outputs_of(b, "h.4.residual", "aten.add")[1]);
  const Match m = checked(a, b);
  EXPECT_GE(m.regions.size() + 6, clean);
  std::size_t largest = 0;
  for (const Region& region : m.regions) largest = std::max(largest, region.a.size());
  EXPECT_LT(largest, 40u);
}

// x and x + y, where y is lost in rounding: distance alone would take the later of A for the
// earlier of B.
TEST(Match, RoundingDecidesNothing) {
  const auto program = [](float first, float second) {
    Eager e{Options{}};
    const Tensor x = e.input("x", {6, 10});
    const Tensor y = e.unary("sin", x, [&](float v) { return std::sin(v) * first; });
    e.unary("add", y, [&](float v) { return v / first * second; });
    return e.take();
  };
  const run::Run a = program(1 + 6e-7F, 1 + 1.07e-6F), b = program(1 + 9.5e-7F, 1 + 2.4e-7F);
  const Match m = checked(a, b);
  const auto partner = [&](std::size_t op) {
    for (const Anchor& anchor : m.anchors)
      if (anchor.a == a.operators[op].outputs[0]) return anchor.b;
    return run::TensorId();
  };
  EXPECT_EQ(partner(0), b.operators[0].outputs[0]);
  EXPECT_EQ(partner(1), b.operators[1].outputs[0]);
}

// So it is where the runs differ by far more than x and x + y do: a norm's mean and its mean plus
// epsilon, in bfloat16.
TEST(Match, NoiseDecidesNothingBetweenNearValuesOfOneRun) {
  const auto program = [](float noise) {
    Eager e{Options{}};
    const Tensor x = e.input("x", {6, 10});
    const Tensor y = e.unary("sin", x, [&](float v) { return std::sin(v) * noise; });
    e.unary("add", y, [&](float v) { return v * (1 + 1e-6F); });
    return e.take();
  };
  const run::Run a = program(1), b = program(1.005F);
  const Match m = match(a, b, 0.02);
  ASSERT_EQ(m.anchors.size(), 3u);
  for (const std::size_t op : {0, 1}) {
    EXPECT_EQ(m.anchors[op + 1].a, a.operators[op].outputs[0]);
    EXPECT_EQ(m.anchors[op + 1].b, b.operators[op].outputs[0]);
  }
}

// Hashes do not see order. A value that was rolled is neither itself nor another roll of it.
TEST(Match, AShuffledValueIsAnother) {
  const auto program = [](std::ptrdiff_t shift) {
    Eager e{Options{}};
    const Tensor x = e.input("x", {6, 10});
    const Tensor y = e.unary("sin", x, [&](float v) { return std::sin(v); });
    std::vector<float> data = dense(y);
    std::ranges::rotate(data, data.begin() + shift);
    const Tensor rolled = e.make(y.shape, data);
    e.record("roll", {y}, {rolled});
    return e.take();
  };
  const run::Run a = program(10), b = program(20);
  EXPECT_EQ(checked(a, a).anchors.size(), 3u);
  EXPECT_EQ(checked(a, b).anchors.size(), 2u);
}

// The means of a softmax's rows: one number, but for the last bit.
TEST(Match, NearConstantsAnchorNothing) {
  const auto program = [](float last) {
    Eager e{Options{}};
    const Tensor x = e.input("x", {6, 10});
    e.unary("means", x, [&](float v) { return 0.1F * (1 + last * std::round(v)); });
    return e.take();
  };
  const run::Run a = program(1e-7F), b = program(3e-7F);
  for (const Anchor& anchor : checked(a, b).anchors) EXPECT_NE(anchor.a, a.operators[0].outputs[0]);
}

TEST(Match, LostAnchorsLeaveAPartition) {
  const run::Run a = gpt(Style::addmm_hnd);
  run::Run b = gpt(Style::fused, backwards());
  const std::size_t clean = checked(a, b).regions.size();
  std::mt19937 random(5);
  for (run::Tensor& t : b.tensors) {
    if (random() % 10 < 4) t.fingerprint.dtype = value::DType::other;
  }
  const Match m = checked(a, b);
  EXPECT_LT(m.regions.size(), clean);
  EXPECT_GT(m.regions.size(), clean / 4);
}

TEST(Match, RunsWithoutValuesAreUnmatched) {
  run::Run a = gpt(Style::fused), b = a;
  b.tensors.clear();
  for (run::Operator& op : b.operators) op.inputs = op.outputs = {};
  const Match m = checked(a, b);
  EXPECT_TRUE(m.anchors.empty());
  EXPECT_TRUE(m.regions.empty());
  EXPECT_EQ(m.unmatched_a.size(), a.operators.size());
  EXPECT_TRUE(match({}, {}).regions.empty());
}

TEST(Match, AnchorsNameTheAxesThatHoldOneAnother) {
  Eager ea({}), eb({});
  const Tensor x = ea.input("x", {3, 5, 4}), y = eb.input("x", {3, 5, 4});
  ea.unary("relu", x, [](float v) { return std::max(v, 0.0F); });
  eb.unary("relu", eb.clone(eb.permute(y, {2, 0, 1})), [](float v) { return std::max(v, 0.0F); });
  const run::Run a = ea.take(), b = eb.take();
  const Match m = checked(a, b);
  ASSERT_EQ(m.anchors.size(), 2u);
  EXPECT_EQ(m.anchors[1].axes, (std::vector<std::uint8_t>{1, 2, 0}));
  ASSERT_EQ(m.regions.size(), 2u);  // a copy of the input, in B alone, and the relu
  EXPECT_TRUE(m.regions[0].a.empty());
  EXPECT_EQ(m.regions[0].b.size(), 2u);
}

TEST(Match, RecomputedValuesJoinTheRegionThatMadeThemFirst) {
  const auto program = [](bool again) {
    Eager e({});
    const Tensor x = e.input("x", {6, 8}), w = e.parameter("w", {8, 8});
    const Tensor h = e.matmul(x, w, "mm");
    const Tensor y = e.unary("tanh", h, [](float v) { return std::tanh(v); });
    const Tensor back = e.mul(y, again ? e.matmul(x, w, "mm") : h);
    e.unary("exp", back, [](float v) { return std::exp(v); });
    return e.take();
  };
  const run::Run a = program(false), b = program(true);
  const Match m = checked(a, b);
  ASSERT_EQ(m.regions.size(), 4u);
  EXPECT_EQ(m.regions[0].a.size(), 1u);
  EXPECT_EQ(m.regions[0].b.size(), 2u);
  for (const Region& region : m.regions) EXPECT_FALSE(region.inputs_differ);
}

TEST(Match, ACopyInOneRunIsExtraWorkInTheSameRegion) {
  const auto program = [](bool copies) {
    Eager e({});
    Tensor h = e.matmul(e.input("x", {6, 8}), e.parameter("w", {8, 8}), "mm");
    if (copies) h = e.clone(e.unary("add.scalar", h, [](float v) { return v + 0.0F; }));
    e.unary("exp", h, [](float v) { return std::exp(v); });
    return e.take();
  };
  const Match m = checked(program(false), program(true));
  ASSERT_EQ(m.regions.size(), 2u);
  EXPECT_EQ(m.regions[0].b.size(), 3u);
}

TEST(Match, ABufferUsedAgainIsTwoValues) {
  const auto program = [](bool reuse) {
    Eager e({});
    const Tensor x = e.input("x", {6, 8}), y = e.input("y", {6, 8});
    Tensor out = e.constant({6, 8}, [](std::size_t) { return 0.0F; });
    const auto step = [&](const Tensor& in, float k) {
      if (!reuse) return e.unary("exp", e.scale(in, k), [](float v) { return std::exp(v); });
      e.copy_(out, e.scale(in, k));
      return e.unary("exp", out, [](float v) { return std::exp(v); });
    };
    e.add(step(x, 0.5F), step(y, 0.25F));
    return e.take();
  };
  const run::Run a = program(false), b = program(true);
  const Match m = checked(a, b);
  EXPECT_EQ(m.regions.size(), 5u);  // two products, two exponentials, one sum
  EXPECT_TRUE(m.unmatched_b.empty());
}

TEST(Match, ASharedOperatorMergesOnlyWhatIsClosed) {
  // `bias` is made once in B and read far apart; merging its readers would swallow what is between.
  const auto program = [](bool shared) {
    Eager e({});
    const Tensor x = e.input("x", {6, 8}), s = e.input("s", {8});
    const auto bias = [&] {
      return e.unary("sign", s, [](float v) { return v > 0 ? 1.0F : -1.0F; });
    };
    const Tensor once = shared ? bias() : Tensor{};
    Tensor h = x;
    for (int i = 0; i < 4; ++i) {
      h = e.add(e.matmul(h, e.parameter("w" + std::to_string(i), {8, 8}), "mm"),
                shared ? once : bias());
      h = e.unary("tanh", h, [](float v) { return std::tanh(v); });
    }
    return e.take();
  };
  const run::Run a = program(false), b = program(true);
  const Match m = checked(a, b);
  EXPECT_GE(m.regions.size(), 12u);
  EXPECT_TRUE(m.unmatched_a.empty());
  EXPECT_TRUE(m.unmatched_b.empty());
}

TEST(Match, ForeignInputsAreFlagged) {
  const auto program = [](const char* mask) {
    Eager e({});
    const Tensor x = e.input("x", {6, 8});
    const Tensor y = e.mul(x, e.unary("abs", e.input(mask, {6, 8}), [](float) { return 2.0F; }));
    e.unary("exp", y, [](float v) { return std::exp(v); });
    return e.take();
  };
  const Match m = checked(program("one"), program("two"));
  ASSERT_EQ(m.regions.size(), 2u);
  EXPECT_TRUE(m.regions[0].inputs_differ);
  EXPECT_FALSE(m.regions[1].inputs_differ);
}

TEST(Match, OutputsThatDifferByMoreThanAPercentDoNotAgree) {
  const auto program = [](float error) {
    Eager e({});
    if (error > 0) e.setting("torch.float32_matmul_precision", "medium");
    std::size_t i = 0;
    e.unary("relu", e.input("x", {16, 16}),
            [&](float v) { return std::max(v, 0.0F) + (i++ % 2 ? error : -error); });
    return e.take();
  };
  for (const auto& [error, agrees] : {std::pair(0.001F, true), std::pair(0.03F, false)}) {
    const Match m = checked(program(0), program(error));
    ASSERT_EQ(m.regions.size(), 1u);
    EXPECT_EQ(m.regions[0].outputs_agree, agrees);
  }
}

}  // namespace
}  // namespace joulediff::match
