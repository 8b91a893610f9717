#include "rules/rules.h"

#include <algorithm>

#include <gmock/gmock.h>

namespace joulediff::rules {
namespace {

using testing::HasSubstr;

run::Tensor input(std::uint32_t hash) {
  run::Tensor tensor;
  tensor.storage = hash;
  tensor.role = run::Role::input;
  tensor.shape = {8, 512};
  tensor.stride = {512, 1};
  tensor.fingerprint.count = 4096;
  tensor.fingerprint.dtype = value::DType::float32;
  tensor.fingerprint.own = {hash, hash + 1};
  tensor.fingerprint.bf16 = {hash / 16, 1};
  tensor.fingerprint.fp16 = {hash / 4, 2};
  return tensor;
}

// Two blocks on one board, one operator, one input: comparable with itself.
run::Run good() {
  run::Run run;
  run.manifest.device = "NVIDIA H200";
  run.manifest.device_uuid = "GPU-1";
  run.manifest.framework = "torch 2.11.0";
  run.manifest.work = {"token", 4096};
  run.manifest.pair = "p1";
  run.tensors.push_back(input(1000));
  run::Operator op;
  op.name = "aten.addmm.default";
  op.module = "lm_head";
  op.inputs = {run::TensorId(0)};
  run.operators.push_back(op);
  for (std::uint32_t i = 0; i < 2; ++i) {
    run::Block block;
    run::Series counter{run::Source::nvml_energy, {}, {}, {}};
    for (int tick = 1; tick < 50; ++tick) {
      counter.time.push_back(tick * 100'000'000LL);
      counter.value.push_back(tick * 40'000);
    }
    block.series.push_back(counter);
    run.blocks.push_back(block);
  }
  return run;
}

const Diagnostic* find(const Verdict& verdict, const std::string& rule) {
  const auto found = std::ranges::find(verdict.reasons, rule, &Diagnostic::rule);
  return found == verdict.reasons.end() ? nullptr : &*found;
}

// The rule's finding for good() against a changed good(), in both orders; one severity.
void expect(const std::string& rule, Severity severity, const run::Run& changed,
            const std::string& part = "") {
  const run::Run base = good();
  EXPECT_EQ(find(comparable(base, base), rule), nullptr) << rule;
  for (const Verdict& verdict : {comparable(base, changed), comparable(changed, base)}) {
    const Diagnostic* found = find(verdict, rule);
    ASSERT_NE(found, nullptr) << rule;
    EXPECT_EQ(found->severity, severity) << rule;
    EXPECT_THAT(found->message, HasSubstr(part));
    EXPECT_EQ(verdict.ok, severity != Severity::error) << rule;
  }
}

TEST(Comparable, ARunWithItself) {
  const Verdict verdict = comparable(good(), good());
  EXPECT_TRUE(verdict.ok);
  EXPECT_FALSE(verdict.recorded_apart);
  EXPECT_TRUE(verdict.reasons.empty());
}

TEST(Comparable, WorkUnit) {
  run::Run other = good();
  other.manifest.work.unit = "image";
  expect("rules.work_unit", Severity::error, other, "image");
}

TEST(Comparable, WorkCount) {
  run::Run other = good();
  other.manifest.work.per_step = 2048;
  expect("rules.work_count", Severity::error, other, "2048");
}

// What a manifest states in the words of the grammar is asked for by its rules.
TEST(Comparable, WhatTheManifestsState) {
  const auto with = [](const std::string& key, const std::string& value) {
    run::Run run = good();
    run.manifest.facts = {{"work.dataset", "squad"},     {"quality.metric", "F1"},
                          {"quality.value", "90.9"},     {"quality.target", "90.8"},
                          {"scenario.slo_seconds", "2"}, {"quality.precision", "fp8,bf16"}};
    run.manifest.facts[key] = value;
    return run;
  };
  const run::Run base = with("label", "");
  EXPECT_TRUE(comparable(base, base).reasons.empty());
  struct Case {
    const char *key, *value, *rule;
    Severity severity;
  };
  for (const Case& one : {Case{"work.dataset", "imdb", "WU1", Severity::error},
                          Case{"quality.metric", "accuracy", "Q1", Severity::error},
                          Case{"quality.value", "90.1", "Q1", Severity::error},
                          Case{"quality.target", "89", "Q1", Severity::error},
                          Case{"quality.precision", "fp8,fp32", "Q2", Severity::warning},
                          Case{"scenario.slo_seconds", "3", "SC1", Severity::error}}) {
    const Verdict verdict = comparable(base, with(one.key, one.value));
    const Diagnostic* found = find(verdict, one.rule);
    ASSERT_NE(found, nullptr) << one.key;
    EXPECT_EQ(found->severity, one.severity) << one.key;
  }
  // What cannot be read is unknown, and what is measured is not for the manifest to say.
  EXPECT_TRUE(comparable(base, with("scenario.slo_seconds", "two")).reasons.empty());
  EXPECT_TRUE(comparable(base, with("meter.uncertainty", "0.5")).reasons.empty());
  EXPECT_TRUE(comparable(base, with("phases.load", "true")).reasons.empty()) << "recorded: false";
}

TEST(Comparable, Quality) {
  run::Run a = good(), b = good();
  a.manifest.facts["quality"] = "99 %";
  EXPECT_TRUE(comparable(a, b).ok) << "not stated is not different";
  b.manifest.facts["quality"] = "99.9 %";
  const Verdict verdict = comparable(a, b);
  EXPECT_FALSE(verdict.ok);
  EXPECT_NE(find(verdict, "rules.quality"), nullptr);
}

TEST(Comparable, NoOperators) {
  run::Run other = good();
  other.operators.clear();
  expect("rules.no_operators", Severity::error, other);
}

TEST(Comparable, NoEnergy) {
  run::Run other = good();
  for (run::Block& block : other.blocks) block.series.clear();
  expect("rules.no_energy", Severity::error, other, "doctor");
}

TEST(Comparable, Boundary) {
  run::Run other = good();
  for (run::Block& block : other.blocks) block.series[0].source = run::Source::host_cpu;
  expect("rules.boundary", Severity::error, other, "host");
}

TEST(Comparable, MeterOfOneBoundary) {
  run::Run a = good(), b = good();
  for (run::Block& block : a.blocks) block.series[0].source = run::Source::host_cpu;
  for (run::Block& block : b.blocks) block.series[0].source = run::Source::rapl_package;
  EXPECT_NE(find(comparable(a, b), "rules.meter"), nullptr);
  EXPECT_EQ(find(comparable(a, a), "rules.meter"), nullptr);
}

TEST(Comparable, Device) {
  run::Run other = good();
  other.manifest.device = "NVIDIA A100";
  expect("rules.device", Severity::error, other, "A100");
}

TEST(Comparable, Board) {
  run::Run other = good();
  other.manifest.device_uuid = "GPU-2";
  expect("rules.board", Severity::warning, other, "GPU-2");
}

TEST(Comparable, RecordedApart) {
  run::Run other = good();
  other.manifest.pair = "p2";
  expect("rules.recorded_apart", Severity::warning, other, "--pair");
  run::Run alone = good();
  alone.manifest.pair.clear();
  EXPECT_TRUE(comparable(alone, alone).recorded_apart) << "no pair is not the same pair";
}

TEST(Comparable, NotInterleaved) {
  run::Run a = good(), b = good();
  for (std::uint32_t i = 0; i < 2; ++i) {  // A B B A
    a.blocks[i].order = 3 * i;
    b.blocks[i].order = 1 + i;
  }
  EXPECT_EQ(find(comparable(a, b), "rules.not_interleaved"), nullptr);
  a.blocks[1].order = 1;
  b.blocks[0].order = 2;
  b.blocks[1].order = 3;
  const Verdict verdict = comparable(a, b);
  ASSERT_NE(find(verdict, "rules.not_interleaved"), nullptr);
  EXPECT_TRUE(verdict.ok);
  EXPECT_NE(find(comparable(b, a), "rules.not_interleaved"), nullptr);
}

TEST(Comparable, NoFloor) {
  run::Run other = good();
  other.blocks.pop_back();
  expect("rules.no_floor", Severity::warning, other, "A/A");
}

TEST(Comparable, FailedProcess) {
  run::Run other = good();
  other.blocks[1].exit_status = 139;
  expect("rules.failed", Severity::warning, other, "139");
}

TEST(Comparable, AnotherFrameworkIsANote) {
  run::Run other = good();
  other.manifest.framework = "jax 0.9";
  expect("rules.framework", Severity::note, other, "jax 0.9");
}

TEST(Comparable, TheGrammarOfMeasurementsIsAskedToo) {
  run::Run a = good(), b = good();
  a.manifest.facts["scenario"] = "offline";
  EXPECT_TRUE(comparable(a, b).ok) << "not stated is not different";
  b.manifest.facts["scenario"] = "server";
  const Verdict verdict = comparable(a, b);
  EXPECT_FALSE(verdict.ok);
  ASSERT_NE(find(verdict, "SC1"), nullptr);
  EXPECT_THAT(find(verdict, "SC1")->message, HasSubstr("offline against server"));
  a = b = good();
  a.manifest.facts["driver"] = "550";
  b.manifest.facts["driver"] = "560";
  EXPECT_TRUE(comparable(a, b).ok);
  ASSERT_NE(find(comparable(a, b), "SW1"), nullptr);
}

TEST(Inputs, OthersAreNamedWithHowToSeedThem) {
  run::Run other = good();
  other.tensors[0] = input(7777);
  expect("rules.inputs", Severity::error, other, "8 x 512");
  const Verdict verdict = comparable(good(), other);
  EXPECT_THAT(find(verdict, "rules.inputs")->message, HasSubstr("manual_seed"));
  EXPECT_THAT(find(verdict, "rules.inputs")->message, HasSubstr("lm_head"));
}

TEST(Inputs, OfAnotherWorkerAreSaidToBe) {
  run::Run other = good();
  other.tensors[0] = input(7777);
  other.manifest.facts["values_of_rank"] = "1";
  const Verdict verdict = comparable(good(), other);
  EXPECT_THAT(find(verdict, "rules.inputs")->message, HasSubstr("of b those of rank 1"));
}

TEST(Inputs, RoundingIsAWarning) {
  run::Run other = good();
  other.tensors[0].fingerprint.own = {1, 2};
  other.tensors[0].fingerprint.dtype = value::DType::bfloat16;
  expect("rules.inputs_rounded", Severity::warning, other);
}

TEST(Inputs, TheSameNumberOfBytesInAnotherClassDiffers) {
  run::Run other = good();
  other.tensors[0].fingerprint.dtype = value::DType::int32;
  expect("rules.inputs", Severity::error, other);
}

TEST(Inputs, OrderAndLayoutDoNotMatter) {
  run::Run a = good(), b = good();
  a.tensors.push_back(input(2000));
  b.tensors.insert(b.tensors.begin(), input(2000));
  std::swap(b.tensors[0].shape[0], b.tensors[0].shape[1]);
  for (run::Run* run : {&a, &b}) run->operators[0].inputs.push_back(run::TensorId(1));
  EXPECT_TRUE(comparable(a, b).reasons.empty());
}

// good() with a view of its input, made and read within the step.
run::Run with_view(run::Tensor view) {
  run::Run run = good();
  view.storage = run.tensors[0].storage;
  run.tensors.push_back(view);
  run::Operator make, read;
  make.name = "aten.permute.default";
  make.view = true;
  make.inputs = {run::TensorId(0)};
  make.outputs = {run::TensorId(1)};
  read.name = "aten.native_layer_norm.default";
  read.inputs = {run::TensorId(1)};
  run.operators.insert(run.operators.begin(), {make, read});
  return run;
}

TEST(Inputs, AViewOfAnInputIsTheSameValue) {
  run::Tensor permuted = input(1000);
  std::swap(permuted.shape[0], permuted.shape[1]);
  std::swap(permuted.stride[0], permuted.stride[1]);
  EXPECT_TRUE(comparable(good(), with_view(permuted)).reasons.empty());
  EXPECT_TRUE(comparable(with_view(permuted), good()).reasons.empty());
}

TEST(Inputs, AnEqualValueCountsOnce) {
  run::Run other = good();  // the same elements in another storage, made outside the step
  other.tensors.push_back(other.tensors[0]);
  other.tensors[1].storage = 7;
  other.operators[0].inputs.push_back(run::TensorId(1));
  EXPECT_TRUE(comparable(good(), other).reasons.empty());
  EXPECT_TRUE(comparable(other, good()).reasons.empty());
}

TEST(Inputs, APartCutOutWithinTheStepIsNoOtherInput) {
  run::Tensor half = input(3000);
  half.shape = {4, 512};
  half.fingerprint.count = 2048;
  EXPECT_TRUE(comparable(good(), with_view(half)).reasons.empty());
  run::Run prepared = good();  // B gets the part, A cuts it out
  prepared.tensors[0] = half;
  EXPECT_TRUE(comparable(with_view(half), prepared).reasons.empty());
  EXPECT_TRUE(comparable(prepared, with_view(half)).reasons.empty());
  // But the rest of an input that the other has in part only is no excuse for a foreign one.
  run::Run foreign = good();
  foreign.tensors[0] = input(7777);
  const Verdict verdict = comparable(with_view(half), foreign);
  ASSERT_NE(find(verdict, "rules.inputs"), nullptr);
  EXPECT_THAT(find(verdict, "rules.inputs")->message, HasSubstr("[8 x 512] read by aten.permute"));
}

TEST(Inputs, NeighboursInOneBufferAreTwoInputs) {
  run::Run other = good();
  other.tensors.push_back(input(2000));
  other.tensors[1].storage = other.tensors[0].storage;
  other.tensors[1].offset = 4096;
  other.operators[0].inputs.push_back(run::TensorId(1));
  expect("rules.extra_inputs", Severity::warning, other);
}

TEST(Inputs, WhatOnlyOneReadsIsAWarning) {
  run::Run other = good();
  other.tensors.push_back(input(2000));
  other.operators[0].inputs.push_back(run::TensorId(1));
  expect("rules.extra_inputs", Severity::warning, other);
}

TEST(Weights, OfAnotherSeedAreTold) {
  const auto with_weights = [](std::uint32_t seed) {
    run::Run run = good();
    for (std::uint32_t i = 0; i < 4; ++i) {
      run::Tensor weight = input(seed + i);
      weight.role = run::Role::parameter;
      weight.fingerprint.bf16 = {seed + i, 9};
      weight.fingerprint.distinct = 3;
      weight.fingerprint.rms = weight.fingerprint.l4 = 1;
      weight.fingerprint.max = 3 + 0.1 * (seed + i);
      run.tensors.push_back(weight);
    }
    run::Tensor bias = input(0);  // zeros, whatever the seed
    bias.role = run::Role::parameter;
    bias.fingerprint.distinct = 1;
    run.tensors.push_back(bias);
    return run;
  };
  const Verdict differ = comparable(with_weights(100), with_weights(200));
  ASSERT_NE(find(differ, "rules.weights"), nullptr);
  EXPECT_TRUE(differ.ok) << "merged weights are equal work too";
  run::Run rounded = with_weights(100);
  for (run::Tensor& tensor : rounded.tensors)
    if (tensor.fingerprint.distinct == 3) tensor.fingerprint.own = {tensor.fingerprint.own[0], 5};
  EXPECT_EQ(find(comparable(with_weights(100), rounded), "rules.weights"), nullptr);
  EXPECT_EQ(find(comparable(with_weights(100), with_weights(101)), "rules.weights"), nullptr)
      << "three of four are equal";
  EXPECT_EQ(find(comparable(good(), with_weights(100)), "rules.weights"), nullptr);
  run::Run trained = with_weights(100);  // a few steps, in another order of additions
  for (run::Tensor& tensor : trained.tensors) {
    if (tensor.fingerprint.distinct != 3) continue;
    tensor.fingerprint.own[1] += 77;
    tensor.fingerprint.bf16[1] += 77;
    tensor.fingerprint.mean += 1e-5;
    tensor.fingerprint.max += 1e-4;
  }
  EXPECT_EQ(find(comparable(with_weights(100), trained), "rules.weights"), nullptr);
}

TEST(Inputs, ParametersAreNoInputs) {
  run::Run other = good();
  other.tensors.push_back(input(2000));
  other.tensors.back().role = run::Role::parameter;
  other.operators[0].inputs.push_back(run::TensorId(1));
  EXPECT_TRUE(comparable(good(), other).reasons.empty());
}

TEST(Inputs, UnknownIsNotEqual) {
  run::Run other = good();
  other.tensors[0].role = run::Role::computed;
  expect("rules.inputs_unknown", Severity::warning, other);
}

}  // namespace
}  // namespace joulediff::rules
