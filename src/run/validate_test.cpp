#include <functional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "run/database.h"
#include "run/run_file.h"

namespace joulediff::run {
namespace {

// Two operators, a stack, a kernel, one block with everything in it.
Run small_run() {
  Run run;
  run.manifest.framework = "torch 2.11.0+cu130";
  run.settings = {{"a", "1"}, {"b", "2"}};
  run.frames = {{"file.py", 7, "f"}};
  run.stacks = {{StackId(), FrameId(0)}, {StackId(0), FrameId(0)}};
  run.signatures = {{"aten.mul"}, {"aten.add"}};
  for (std::uint64_t i = 0; i < 3; ++i) {
    Tensor t;
    t.storage = i;
    t.shape = {4};
    t.stride = {1};
    t.fingerprint.count = 4;
    t.fingerprint.dtype = value::DType::float32;
    t.sample = {1, 2, 3, 4};
    run.tensors.push_back(t);
  }
  Operator mul;
  mul.name = "aten.mul";
  mul.inputs = {TensorId(0)};
  mul.outputs = {TensorId(1)};
  mul.signature = SignatureId(0);
  mul.stack = StackId(1);
  Operator add = mul;
  add.name = "aten.add";
  add.inputs = {TensorId(1)};
  add.outputs = {TensorId(2)};
  add.signature = SignatureId(1);
  add.forward = OperatorId(0);
  run.operators = {mul, add};
  run.kernels = {{"k", {1, 1, 1}, {32, 1, 1}, KernelKind::kernel},
                 {"k", {2, 1, 1}, {32, 1, 1}, KernelKind::kernel}};
  Block b;
  b.end = 100;
  b.steps = {{Pass::trace, 0, 0, 100}};
  b.order_kernels = {{KernelId(0), KernelId(1)},     {10, 20}, {5, 5}, {7, 7},
                     {OperatorId(0), OperatorId(1)}, {1, 1}};
  b.trace_kernels = {{KernelId(1), KernelId(0)},   {50, 60}, {5, 5}, {7, 7},
                     {OperatorId(), OperatorId()}, {0, 0}};
  b.operator_times = {{OperatorId(0), OperatorId(1)}, {1, 1}, {10, 20}, {15, 25}};
  b.replays = {{ReplayKind::op, SignatureId(0), 70, 80, 3}, {ReplayKind::idle, {}, 80, 90, 1}};
  b.series = {{Source::nvml_energy, {0, 50, 100}, {5, 6, 7}, {1, 1, 1}},
              {Source::nvml_power_instant, {0, 50}, {9, 8}, {}}};
  run.blocks = {b};
  return run;
}

struct Fault {
  const char* name;
  std::function<void(Run&)> make;
  const char* message;  // part of it
};

class Validate : public testing::TestWithParam<Fault> {};

TEST(ValidateGood, AcceptsAGoodRun) {
  const Status status = validate(small_run());
  EXPECT_TRUE(status) << status.error().message;
}

TEST(ValidateGood, AcceptsOddButTrueRuns) {
  run::Run run = small_run();
  run.blocks.clear();  // no device, nothing measured
  run.tensors[0].fingerprint.rms = std::numeric_limits<double>::infinity();
  run.tensors[0].sample[0] = std::numeric_limits<float>::quiet_NaN();
  run.tensors[2].version = run.tensors[1].version + 1;  // an in-place operator
  run.tensors[2].storage = run.tensors[1].storage;
  run.tensors.push_back(run.tensors[0]);  // the same bytes as another type
  run.tensors.back().fingerprint.dtype = value::DType::int32;
  const Status status = validate(run);
  EXPECT_TRUE(status) << status.error().message;
}

// The digest of such a file is right: only validation stands between it and the later stages.
TEST_P(Validate, RefusesWithOneLine) {
  run::Run run = small_run();
  GetParam().make(run);
  const Status status = validate(run);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ExitCode::bad_input);
  EXPECT_THAT(status.error().message, testing::HasSubstr(GetParam().message));
  EXPECT_THAT(status.error().message, testing::EndsWith("; record or import the run again"));
  EXPECT_THAT(status.error().message, testing::Not(testing::HasSubstr("\n")));
  EXPECT_FALSE(write_run_bytes(run));
}

TEST_P(Validate, NoSuchFileIsRead) {
  run::Run run = small_run();
  GetParam().make(run);
  const auto database = to_database(run);
  if (!database) {  // SQLite has no NaN
    EXPECT_THAT(GetParam().name, testing::HasSubstr("Nan"));
    return;
  }
  const auto again = read_run_bytes(seal(*database));
  EXPECT_FALSE(again);
}

// Columns of different lengths cannot even be written; they have a test of their own.
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
const Fault kFaults[] = {
    {"NoOperators", [](Run& r) { r.operators.clear(), r.blocks.clear(); }, "no operators"},
    {"NoWorkUnit", [](Run& r) { r.manifest.work.unit = ""; }, "no unit of work"},
    {"NanWork", [](Run& r) { r.manifest.work.per_step = kNan; }, "work per step is nan"},
    {"ZeroWork", [](Run& r) { r.manifest.work.per_step = 0; }, "work per step is 0"},
    {"InfiniteWork", [](Run& r) { r.manifest.work.per_step = 1 / 0.0; }, "work per step is inf"},
    {"TwoFrameworks", [](Run& r) { r.manifest.framework = "torch 2.11, jax 0.5"; },
     "two frameworks, jax and torch"},
    {"FrameworkFact", [](Run& r) { r.manifest.facts["framework"] = "TensorFlow 2.19"; },
     "two frameworks, tensorflow and torch"},
    {"SettingTwice", [](Run& r) { r.settings[1].key = "a"; }, "setting 1 (a) is there twice"},
    {"SettingOrder", [](Run& r) { r.settings[0].key = "c"; }, "not sorted"},
    {"SignatureTwice", [](Run& r) { r.signatures[1] = r.signatures[0]; },
     "signature 1 (aten.mul) is there twice"},
    {"KernelTwice", [](Run& r) { r.kernels[1] = r.kernels[0]; }, "kernel 1 (k) is there twice"},
    {"KernelKindCode", [](Run& r) { r.kernels[1].kind = static_cast<KernelKind>(3); },
     "kernel 1 has no known kind"},
    {"SeverityCode", [](Run& r) { r.diagnostics = {{static_cast<Severity>(9), "", "", 1}}; },
     "diagnostic 0"},
    {"FrameOfStack", [](Run& r) { r.stacks[1].frame = FrameId(1); }, "stack 1 has the frame 1"},
    {"NoFrame", [](Run& r) { r.stacks[1].frame = FrameId(); }, "stack 1 has the frame"},
    {"StackCallsItself", [](Run& r) { r.stacks[1].caller = StackId(1); }, "a cycle"},
    {"StackCycle", [](Run& r) { r.stacks[0].caller = StackId(1); }, "a cycle"},
    {"RoleCode", [](Run& r) { r.tensors[1].role = static_cast<Role>(4); },
     "tensor 1 has no known role"},
    {"DtypeCode", [](Run& r) { r.tensors[1].fingerprint.dtype = static_cast<value::DType>(15); },
     "tensor 1 has no known dtype"},
    {"ShapeAndStride", [](Run& r) { r.tensors[1].stride.clear(); }, "1 lengths and 0 strides"},
    {"NegativeLength", [](Run& r) { r.tensors[1].shape[0] = -1; }, "negative length"},
    {"NegativeOffset", [](Run& r) { r.tensors[1].offset = -1; }, "negative offset"},
    {"HugeShape",
     [](Run& r) {
       r.tensors[1].shape = {std::int64_t{1} << 40, std::int64_t{1} << 40};
       r.tensors[1].stride = {1, 1};
     },
     "too large"},
    {"HugeAxis", [](Run& r) { r.tensors[1].shape[0] = INT64_MAX; }, "too large"},
    {"ManyAxes",
     [](Run& r) {
       r.tensors[1].shape.assign(33, 2);
       r.tensors[1].stride.assign(33, 1);
     },
     "more than 32 axes"},
    {"NanMoment", [](Run& r) { r.tensors[1].fingerprint.m3 = kNan; }, "tensor 1 has a moment"},
    {"Distinct", [](Run& r) { r.tensors[1].fingerprint.distinct = 4; }, "3 distinct"},
    {"MoreNansThanElements", [](Run& r) { r.tensors[1].fingerprint.nan = 5; }, "more NaN"},
    {"CountsOverflow",
     [](Run& r) {
       r.tensors[1].fingerprint.positive_infinity = 4;
       r.tensors[1].fingerprint.negative_infinity = UINT64_MAX;
     },
     "more NaN"},
    {"SampleSize", [](Run& r) { r.tensors[1].sample.pop_back(); },
     "a sample of 3 values where its shape gives 4"},
    {"ComplexSampleSize", [](Run& r) { r.tensors[1].fingerprint.dtype = value::DType::complex64; },
     "a sample of 4 values where its shape gives 8"},
    {"ExpandedSampleSize", [](Run& r) { r.tensors[1].stride[0] = 0; },
     "a sample of 4 values where its shape gives 1"},
    {"TensorTwice",
     [](Run& r) {
       r.tensors.push_back(r.tensors[1]);
       r.tensors.back().sample.clear();
     },
     "tensors 1 and 3 are the same"},
    {"InputRange", [](Run& r) { r.operators[1].inputs[0] = TensorId(3); },
     "operator 1 (aten.add) reads tensor 3, which is not there"},
    {"OutputRange", [](Run& r) { r.operators[1].outputs[0] = TensorId(3); },
     "operator 1 (aten.add) makes tensor 3, which is not there"},
    {"MadeTwice", [](Run& r) { r.operators[1].outputs[0] = TensorId(1); },
     "operator 1 (aten.add) makes tensor 1, which operator 0 (aten.mul) made already"},
    {"MadeTwiceByOne", [](Run& r) { r.operators[1].outputs.push_back(TensorId(2)); },
     "makes tensor 2, which operator 1 (aten.add) made already"},
    {"Cycle", [](Run& r) { r.operators[0].inputs[0] = TensorId(2); },
     "operator 0 (aten.mul) reads tensor 2, which operator 1 (aten.add) makes: a cycle"},
    {"OwnOutput", [](Run& r) { r.operators[1].inputs[0] = TensorId(2); }, "which it itself makes"},
    {"SignatureRange", [](Run& r) { r.operators[1].signature = SignatureId(2); }, "signature 2"},
    {"StackRange", [](Run& r) { r.operators[1].stack = StackId(2); }, "stack 2"},
    {"ForwardLater", [](Run& r) { r.operators[0].forward = OperatorId(1); },
     "forward operator 1, which does not come before"},
    {"PhaseCode", [](Run& r) { r.operators[0].phase = static_cast<Phase>(3); }, "no known phase"},
    {"BlockEnds", [](Run& r) { r.blocks[0].end = -1; }, "block 0 ends before it begins"},
    {"StepEnds", [](Run& r) { r.blocks[0].steps[0].begin = 101; }, "block 0, step 0: it ends"},
    {"PassCode", [](Run& r) { r.blocks[0].steps[0].pass = static_cast<Pass>(5); },
     "block 0, step 0: no known pass"},
    {"KernelRange", [](Run& r) { r.blocks[0].trace_kernels.kernel[1] = KernelId(2); },
     "block 0, trace kernels, record 1: kernel 2"},
    {"NoKernel", [](Run& r) { r.blocks[0].trace_kernels.kernel[1] = KernelId(); },
     "trace kernels, record 1"},
    {"KernelOperator", [](Run& r) { r.blocks[0].order_kernels.op[1] = OperatorId(2); },
     "order kernels, record 1: operator 2"},
    {"NegativeDuration", [](Run& r) { r.blocks[0].order_kernels.duration[1] = -1; },
     "block 0, order kernels, record 1: a negative duration"},
    {"KernelOrder", [](Run& r) { r.blocks[0].order_kernels.start[1] = 9; },
     "starts before the one before"},
    {"KernelTime", [](Run& r) { r.blocks[0].order_kernels.start[1] = INT64_MAX; },
     "a time out of range"},
    {"TimesOperator", [](Run& r) { r.blocks[0].operator_times.op[0] = OperatorId(); },
     "operator times, record 0"},
    {"TimesEnd", [](Run& r) { r.blocks[0].operator_times.end[1] = 19; },
     "operator times, record 1: it ends before"},
    {"ReplaySignature", [](Run& r) { r.blocks[0].replays[0].signature = SignatureId(2); },
     "replay 0: signature 2"},
    {"ReplayWithoutSignature", [](Run& r) { r.blocks[0].replays[0].signature = {}; },
     "replay 0: signature"},
    {"IdleSignature", [](Run& r) { r.blocks[0].replays[1].signature = SignatureId(0); },
     "replay 1: signature 0"},
    {"ColdSignature", [](Run& r) { r.blocks[0].replays[1].kind = ReplayKind::cold; },
     "replay 1: signature 4294967295"},
    {"ReplayEnds", [](Run& r) { r.blocks[0].replays[0].end = 69; }, "replay 0: it ends before"},
    {"ReplayOfNothing", [](Run& r) { r.blocks[0].replays[0].count = 0; }, "no executions"},
    {"ReplayKindCode", [](Run& r) { r.blocks[0].replays[0].kind = static_cast<ReplayKind>(4); },
     "replay 0: no known kind"},
    {"SourceCode", [](Run& r) { r.blocks[0].series[0].source = static_cast<Source>(24); },
     "no known source"},
    {"InputsOfAStep", [](Run& r) { r.blocks[0].steps[0].inputs = InputsId(7); },
     "block 0, step 0: inputs 7 are not there"},
    {"InputsTwice", [](Run& r) { r.inputs = {{"float32[2]"}, {"float32[2]"}}; },
     "inputs 1 (float32[2]) are there twice"},
    {"DeviceTwice", [](Run& r) { r.devices = {{"GPU-1", "a"}, {"GPU-1", "b"}}; },
     "device 1 (GPU-1) is there twice"},
    {"DeviceOfAKernel",
     [](Run& r) {
       auto& kernels = r.blocks[0].order_kernels;
       kernels.device.assign(kernels.size(), DeviceId(3));
     },
     "order kernels, record 0: device 3 is not there"},
    {"NegativeWait",
     [](Run& r) { r.blocks[0].synchronisations = {{SynchronisationKind::stream}, {1}, {-2}, {7}}; },
     "synchronisations, record 0: a negative duration"},
    {"SeriesOfARank",
     [](Run& r) {
       r.blocks.push_back(r.blocks[0]);
       r.blocks.back().rank = 1;
     },
     "block 1 has series, which the first block of its launch has"},
    {"SensorOrder", [](Run& r) { r.blocks[0].series[0].time[1] = -1; },
     "block 0, series 0 (nvml_energy), record 1: its time is before"},
    {"NegativePower", [](Run& r) { r.blocks[0].series[1].value[1] = -8; },
     "series 1 (nvml_power_instant), record 1: the negative value -8"},
    {"EnergyGoesBack", [](Run& r) { r.blocks[0].series[0].value[1] = 4; }, "goes back"},
    {"NegativeUncertainty", [](Run& r) { r.blocks[0].series[0].uncertainty[2] = -1; },
     "negative uncertainty"},
};

INSTANTIATE_TEST_SUITE_P(Faults, Validate, testing::ValuesIn(kFaults),
                         [](const auto& fault) { return fault.param.name; });

TEST(ValidateColumns, RefusesColumnsOfDifferentLengths) {
  const auto fault = [](auto shorten) {
    run::Run run = small_run();
    shorten(run.blocks[0]);
    const Status status = validate(run);
    return status ? std::string("no fault") : status.error().message;
  };
  const auto expected = testing::HasSubstr("the columns have different lengths");
  EXPECT_THAT(fault([](Block& b) { b.order_kernels.kernel.pop_back(); }), expected);
  EXPECT_THAT(fault([](Block& b) { b.order_kernels.start.pop_back(); }), expected);
  EXPECT_THAT(fault([](Block& b) { b.order_kernels.duration.pop_back(); }), expected);
  EXPECT_THAT(fault([](Block& b) { b.trace_kernels.stream.pop_back(); }), expected);
  EXPECT_THAT(fault([](Block& b) { b.trace_kernels.op.pop_back(); }), expected);
  EXPECT_THAT(fault([](Block& b) { b.trace_kernels.step.pop_back(); }), expected);
  EXPECT_THAT(fault([](Block& b) { b.operator_times.op.pop_back(); }), expected);
  EXPECT_THAT(fault([](Block& b) { b.operator_times.step.pop_back(); }), expected);
  EXPECT_THAT(fault([](Block& b) { b.operator_times.begin.pop_back(); }), expected);
  EXPECT_THAT(fault([](Block& b) { b.operator_times.end.pop_back(); }), expected);
  EXPECT_THAT(fault([](Block& b) { b.series[0].value.pop_back(); }), expected);
  EXPECT_THAT(fault([](Block& b) { b.series[0].uncertainty.pop_back(); }), expected);
}

}  // namespace
}  // namespace joulediff::run
