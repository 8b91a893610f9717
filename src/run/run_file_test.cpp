#include "run/run_file.h"

#include <csignal>
#include <cstring>
#include <filesystem>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "base/file.h"
#include "run/json.h"
#include "run/test_runs.h"

namespace joulediff::run {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

RC_GTEST_PROP(RunFile, KeepsEveryValidRun, (std::uint64_t seed)) {
  const Run run = RandomRun::make(seed, *rc::gen::inRange<std::size_t>(0, 30));
  const auto bytes = write_run_bytes(run);
  RC_ASSERT(bytes.has_value());
  const auto again = read_run_bytes(*bytes);
  RC_ASSERT(again.has_value());
  RC_ASSERT(to_json(*again) == to_json(run));
  RC_ASSERT(write_run_bytes(*again).value() == *bytes);  // NaN payloads and the like, too
}

RC_GTEST_PROP(RunJson, KeepsEveryValidRun, (std::uint64_t seed)) {
  const Run run = RandomRun::make(seed, *rc::gen::inRange<std::size_t>(0, 30));
  const auto again = from_json(to_json(run));
  RC_ASSERT(again.has_value());
  RC_ASSERT(write_run_bytes(*again).value() == write_run_bytes(run).value());
}

// Every field by hand: the list of fields that tables and JSON share could forget one.
Run full_run() {
  Run run;
  run.manifest = {"label",        "command", "device", "uuid",      "torch 2.11.0",
                  {"token", 2.5}, "pair",    "a",      {{"k", "v"}}};
  run.settings = {{"a", "1"}, {"b", "2"}};
  run.frames = {{"file.py", 7, "f"}};
  run.stacks = {{StackId(), FrameId(0)}, {StackId(0), FrameId(0)}};
  run.signatures = {{"aten.mul(float32[4])"}};
  Tensor t;
  t.storage = 0xFFFFFFFFFFFFFFFE;
  t.version = 3;
  t.offset = 4;
  t.role = Role::parameter;
  t.shape = {4};
  t.stride = {2};
  t.fingerprint = {4,
                   1,
                   1,
                   1,
                   0.1,
                   0.2,
                   0.3,
                   0.4,
                   0.5,
                   -1,
                   1,
                   {1, 2},
                   {3, 4},
                   {5, 0xFFFFFFFF},
                   value::DType::float16,
                   3};
  t.sample = {0.5f, -0.0f, 3.0f, 4.0f};
  run.tensors = {t, {}};
  run.operators = {{"aten.mul",
                    {TensorId(0)},
                    {TensorId(1)},
                    SignatureId(0),
                    StackId(1),
                    OperatorId(),
                    Phase::backward,
                    true,
                    "m",
                    "{}"},
                   {"aten.add",
                    {},
                    {},
                    SignatureId(),
                    StackId(),
                    OperatorId(0),
                    Phase::optimizer,
                    false,
                    "",
                    ""}};
  run.kernels = {{"k", {1, 2, 3}, {4, 5, 6}, KernelKind::copy}};
  Block b;
  b.order = 1;
  b.pid = 2;
  b.begin = 3;
  b.end = 4;
  b.exit_status = -9;
  b.dropped_kernels = 5;
  b.steps = {{Pass::trace, 6, 7, 8}};
  b.order_kernels = {{KernelId(0)}, {9}, {10}, {11}, {OperatorId(1)}, {12}};
  b.trace_kernels = {{KernelId(0)}, {13}, {14}, {15}, {OperatorId()}, {0}};
  b.operator_times = {{OperatorId(1)}, {16}, {17}, {18}};
  b.replays = {{ReplayKind::op, SignatureId(0), 19, 20, 21}};
  b.series = {{Source::rapl_package, {22}, {23}, {24}}};
  run.blocks = {b};
  run.diagnostics = {{Severity::warning, "rule", "message", 25, "remedy"}};
  return run;
}

void expect_full(const Run& run) {
  const Manifest& m = run.manifest;
  EXPECT_EQ(m.label + m.command + m.device + m.device_uuid, "labelcommanddeviceuuid");
  EXPECT_EQ(m.framework + m.pair + m.side, "torch 2.11.0paira");
  EXPECT_EQ(m.work, (Work{"token", 2.5}));
  EXPECT_EQ(m.facts, (std::map<std::string, std::string>{{"k", "v"}}));
  EXPECT_EQ(run.settings, (std::vector<Setting>{{"a", "1"}, {"b", "2"}}));
  EXPECT_EQ(run.frames, (std::vector<Frame>{{"file.py", 7, "f"}}));
  ASSERT_EQ(run.stacks.size(), 2u);
  EXPECT_FALSE(run.stacks[0].caller.valid());
  EXPECT_EQ(run.stacks[1].caller, StackId(0));
  EXPECT_EQ(run.stacks[1].frame, FrameId(0));
  EXPECT_EQ(call_path(run, StackId(1)), (std::vector<FrameId>{FrameId(0), FrameId(0)}));
  EXPECT_EQ(run.signatures.at(0).text, "aten.mul(float32[4])");

  const Run expected = full_run();
  ASSERT_EQ(run.tensors.size(), 2u);
  const Tensor& t = run.tensors[0];
  EXPECT_EQ(t.storage, 0xFFFFFFFFFFFFFFFE);
  EXPECT_EQ(t.version, 3u);
  EXPECT_EQ(t.offset, 4);
  EXPECT_EQ(t.role, Role::parameter);
  EXPECT_EQ(t.shape, (std::vector<std::int64_t>{4}));
  EXPECT_EQ(t.stride, (std::vector<std::int64_t>{2}));
  EXPECT_EQ(t.fingerprint, expected.tensors[0].fingerprint);
  ASSERT_EQ(t.sample.size(), 4u);
  EXPECT_EQ(std::memcmp(t.sample.data(), expected.tensors[0].sample.data(), 16), 0);

  ASSERT_EQ(run.operators.size(), 2u);
  const Operator& op = run.operators[0];
  EXPECT_EQ(op.name + op.module + op.arguments, "aten.mulm{}");
  EXPECT_EQ(op.inputs, (std::vector<TensorId>{TensorId(0)}));
  EXPECT_EQ(op.outputs, (std::vector<TensorId>{TensorId(1)}));
  EXPECT_EQ(op.signature, SignatureId(0));
  EXPECT_EQ(op.stack, StackId(1));
  EXPECT_EQ(op.phase, Phase::backward);
  EXPECT_TRUE(op.view);
  EXPECT_EQ(run.operators[1].forward, OperatorId(0));
  EXPECT_FALSE(run.operators[1].stack.valid());
  EXPECT_EQ(run.kernels, expected.kernels);

  ASSERT_EQ(run.blocks.size(), 1u);
  const Block& b = run.blocks[0];
  EXPECT_EQ(b.order, 1u);
  EXPECT_EQ(b.pid, 2u);
  EXPECT_EQ(b.begin, 3);
  EXPECT_EQ(b.end, 4);
  EXPECT_EQ(b.exit_status, -9);
  EXPECT_EQ(b.dropped_kernels, 5u);
  EXPECT_EQ(b.steps.at(0).pass, Pass::trace);
  EXPECT_EQ(b.steps[0].index, 6u);
  EXPECT_EQ(b.steps[0].begin, 7);
  EXPECT_EQ(b.steps[0].end, 8);
  EXPECT_EQ(b.order_kernels.kernel.at(0), KernelId(0));
  EXPECT_EQ(b.order_kernels.start.at(0), 9);
  EXPECT_EQ(b.order_kernels.duration.at(0), 10);
  EXPECT_EQ(b.order_kernels.stream.at(0), 11u);
  EXPECT_EQ(b.order_kernels.op.at(0), OperatorId(1));
  EXPECT_EQ(b.order_kernels.step.at(0), 12u);
  EXPECT_EQ(b.trace_kernels.start.at(0), 13);
  EXPECT_FALSE(b.trace_kernels.op.at(0).valid());
  EXPECT_EQ(b.operator_times.op.at(0), OperatorId(1));
  EXPECT_EQ(b.operator_times.step.at(0), 16u);
  EXPECT_EQ(b.operator_times.begin.at(0), 17);
  EXPECT_EQ(b.operator_times.end.at(0), 18);
  EXPECT_EQ(b.replays.at(0).kind, ReplayKind::op);
  EXPECT_EQ(b.replays[0].signature, SignatureId(0));
  EXPECT_EQ(b.replays[0].begin, 19);
  EXPECT_EQ(b.replays[0].end, 20);
  EXPECT_EQ(b.replays[0].count, 21u);
  EXPECT_EQ(b.series.at(0).source, Source::rapl_package);
  EXPECT_EQ(b.series[0].time.at(0), 22);
  EXPECT_EQ(b.series[0].value.at(0), 23);
  EXPECT_EQ(b.series[0].uncertainty.at(0), 24);
  const Diagnostic& d = run.diagnostics.at(0);
  EXPECT_EQ(d.severity, Severity::warning);
  EXPECT_EQ(d.rule + d.message, "rulemessage");
  EXPECT_EQ(d.count, 25u);
  EXPECT_EQ(d.remedy, "remedy");
}

TEST(RunFile, KeepsEveryField) {
  const auto bytes = write_run_bytes(full_run());
  ASSERT_TRUE(bytes) << bytes.error().message;
  const auto run = read_run_bytes(*bytes);
  ASSERT_TRUE(run) << run.error().message;
  expect_full(*run);
}

TEST(RunJson, KeepsEveryField) {
  const auto run = from_json(to_json(full_run()));
  ASSERT_TRUE(run) << run.error().message;
  expect_full(*run);
}

TEST(RunJson, SaysWhereTheFaultIs) {
  const auto fault = [](std::string_view text) { return from_json(text).error().message; };
  EXPECT_THAT(fault("{"), HasSubstr("not JSON"));
  EXPECT_EQ(fault("{}"), "schema: expected joulediff.run/1");
  EXPECT_EQ(fault("[]"), "the text: expected an object");
  EXPECT_EQ(fault(R"({"schema": "joulediff.run/1", "manifest": 1})"),
            "manifest: expected an object");
  const std::string head = R"({"schema": "joulediff.run/1", )";
  EXPECT_EQ(fault(head + R"("operators": [{"name": "x"}, {"name": 3}]})"),
            "operators[1].name: expected a string");
  EXPECT_EQ(fault(head + R"("operators": [{"phase": "sideways"}]})"),
            "operators[0].phase: expected one of forward, backward, optimizer");
  EXPECT_EQ(fault(head + R"("frames": [{"line": -1}]})"),
            "frames[0].line: expected a number in range");
  EXPECT_EQ(fault(head + R"("frames": [{"line": 1.5}]})"),
            "frames[0].line: expected a whole number");
  EXPECT_EQ(fault(head + R"("blocks": [{"trace_kernels": {"start": ["x"]}}]})"),
            "blocks[0].trace_kernels.start: expected a whole number");
  EXPECT_THAT(fault(head + R"("operators": []})"), HasSubstr("no operators"));
  EXPECT_THAT(fault(std::string(100000, '[')), HasSubstr("not JSON"));
}

TEST(RunJson, TheDocumentedExampleReads) {
  const std::string doc =
      read_file(std::string(JOULEDIFF_SOURCE_DIR) + "/docs/file-format.md", 1 << 20).value();
  const std::size_t begin = doc.find("    {\n");
  ASSERT_NE(begin, std::string::npos);
  const auto run = from_json(std::string_view(doc).substr(begin));
  ASSERT_TRUE(run) << run.error().message;
  EXPECT_EQ(run->manifest.work, (Work{"token", 1024}));
  EXPECT_EQ(run->tensors.at(0).sample, (std::vector<float>{1, 2}));
}

class RunFileOnDisk : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "joulediff-run-XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { fs::remove_all(folder_); }
  std::string at(const std::string& name) const { return (folder_ / name).string(); }
  std::string fault(const std::string& bytes) const {
    EXPECT_TRUE(write_file_atomically(at("x.jd"), bytes));
    const auto run = read_run(at("x.jd"));
    if (run) return "no fault";
    EXPECT_EQ(run.error().code, ExitCode::bad_input);
    EXPECT_EQ(run.error().message.find('\n'), std::string::npos);
    return run.error().message;
  }
  fs::path folder_;
};

TEST_F(RunFileOnDisk, RoundTrip) {
  ASSERT_TRUE(write_run(full_run(), at("a.jd")));
  const auto run = read_run(at("a.jd"));
  ASSERT_TRUE(run) << run.error().message;
  expect_full(*run);
}

TEST_F(RunFileOnDisk, OtherFilesAreNamed) {
  EXPECT_EQ(fault(""), "cannot read " + at("x.jd") + ": the file is empty");
  EXPECT_THAT(fault("hello\n"), HasSubstr("it is not a Joulediff run"));
  EXPECT_THAT(fault(std::string(1000, 'x')), HasSubstr("it is not a Joulediff run"));
  EXPECT_THAT(fault("JDSPOOL1 and so on"), HasSubstr("spool"));
  EXPECT_THAT(fault(std::string("SQLite format 3\0", 16) + std::string(1000, '\0')),
              HasSubstr("another program"));
  EXPECT_THAT(read_run(folder_.string()).error().message, HasSubstr("it is a directory"));
  EXPECT_THAT(read_run(at("none.jd")).error().message, HasSubstr("No such file"));
}

TEST_F(RunFileOnDisk, WritingWhereOneMayNot) {
  const auto status = write_run(full_run(), "/proc/joulediff.jd");
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ExitCode::environment);
  EXPECT_THAT(status.error().message, HasSubstr("cannot write /proc/joulediff.jd"));
}

TEST_F(RunFileOnDisk, AFullDiskLosesNothing) {
  ASSERT_TRUE(write_run(full_run(), at("a.jd")));
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  rlimit small = before;
  small.rlim_cur = 4096;
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  const Status status = write_run(RandomRun::make(1, 50), at("a.jd"));
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  std::signal(SIGXFSZ, handler);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ExitCode::environment);
  expect_full(read_run(at("a.jd")).value());
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), fs::directory_iterator{}), 1);
}

TEST(RunFile, AnInvalidRunIsNotWritten) {
  run::Run run = full_run();
  run.operators[0].inputs = {TensorId(99)};
  EXPECT_THAT(write_run_bytes(run).error().message, HasSubstr("reads tensor 99"));
}

TEST(RunFile, AFileCutShortAnywhereIsAnError) {
  const std::string bytes = write_run_bytes(full_run()).value();
  for (std::size_t n = 0; n < bytes.size(); n += n < 200 || n + 200 > bytes.size() ? 1 : 61) {
    const auto run = read_run_bytes(std::string_view(bytes).substr(0, n));
    ASSERT_FALSE(run) << n;
    EXPECT_EQ(run.error().code, ExitCode::bad_input);
  }
  EXPECT_THAT(read_run_bytes(bytes.substr(0, bytes.size() / 2)).error().message,
              HasSubstr("cut short"));
  EXPECT_FALSE(read_run_bytes(bytes + "x"));
}

TEST(RunFile, EveryDamagedByteIsAnError) {
  std::string bytes = write_run_bytes(full_run()).value();
  for (std::size_t i = 0; i<bytes.size(); i += i + 200> bytes.size() ? 1 : 7) {
    bytes[i] = static_cast<char>(bytes[i] ^ 0x11);
    ASSERT_FALSE(read_run_bytes(bytes)) << "byte " << i;
    bytes[i] = static_cast<char>(bytes[i] ^ 0x11);
  }
  EXPECT_TRUE(read_run_bytes(bytes));
}

}  // namespace
}  // namespace joulediff::run
