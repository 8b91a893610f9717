#include "joulediff/record.h"

#include <cmath>
#include <cstring>
#include <map>
#include <sys/resource.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

#include <gmock/gmock.h>

#include "record/recorded.h"

extern "C" int InitializeInjection(void);

namespace joulediff::record {
namespace {

using spool::Type;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

void call_everything() {
  const std::uint64_t ids[] = {1, 2};
  const jd_tensor_info tensor{};
  jd_fact("manifest", "{}");
  jd_step(JD_TRACE, 5, jd_now(), jd_now(), nullptr);
  jd_tensor(&tensor);
  jd_operator(0, "aten::add", ids, 2, ids, 1, "{}");
  jd_operator_begin(2, 0, "aten::add");
  jd_operator_end();
  jd_kernels(JD_ORDER);
  jd_kernels(JD_WARMUP);
  jd_operator_seconds(0);
  jd_replay("0", 1, 2, 3);
  jd_flush();
}

TEST(Record, IsOffWithoutAFolder) {
  const auto r = recorded(
      [] {
        JD_REQUIRE(jd_active() == 0);
        call_everything();
        JD_REQUIRE(InitializeInjection() == 1);
        JD_REQUIRE(jd_kernels(JD_TRACE) == 0);
        JD_REQUIRE(jd_operator_seconds(0) < 0);
      },
      {{"JOULEDIFF_SPOOL", ""}});
  EXPECT_EQ(r.status, 0) << r.err;
  EXPECT_THAT(r.files, IsEmpty());
  EXPECT_EQ(r.out + r.err, "");
}

TEST(Record, SaysOnceOnStderrThatTheFolderIsMissing) {
  const auto r = recorded(
      [] {
        JD_REQUIRE(jd_active() == 0);
        call_everything();
      },
      {{"JOULEDIFF_SPOOL", "/nowhere/at all"}});
  EXPECT_EQ(r.status, 0) << r.err;
  EXPECT_EQ(r.out, "");
  EXPECT_EQ(r.err,
            "joulediff: cannot write a spool in /nowhere/at all: No such file or directory; this "
            "process is not recorded\n");
}

TEST(Record, WritesEachKindOfRecord) {
  const auto r = recorded([] {
    JD_REQUIRE(jd_active() == JD_ABI);
    jd_fact("manifest", R"({"framework":"none"})");
    jd_step(JD_VALUES, 1, 100, 200, "f32[2]");
    const float samples[] = {1.5f, -2.5f};
    jd_tensor_info tensor{};
    tensor.id = 11;
    tensor.dims = 1;
    tensor.shape[0] = 2;
    tensor.fingerprint.count = 2;
    tensor.sample_count = 2;
    tensor.sample = samples;
    jd_tensor(&tensor);
    const std::uint64_t inputs[] = {11, 12}, outputs[] = {13};
    jd_operator(4, "aten::mul", inputs, 2, outputs, 1, R"({"stack":3})");
    jd_replay("77", 10, 20, 30);
  });
  EXPECT_EQ(r.status, 0) << r.err;
  EXPECT_FALSE(r.torn);
  EXPECT_EQ(r.out + r.err, "");
  ASSERT_THAT(r.files, SizeIs(1));
  EXPECT_THAT(r.facts("manifest"), ElementsAre(R"({"framework":"none"})"));

  const auto steps = r.all<spool::Step>(Type::step);
  ASSERT_THAT(steps, SizeIs(1));
  EXPECT_EQ(steps[0].pass, std::uint32_t{JD_VALUES});
  EXPECT_EQ(steps[0].end_ns, 200u);

  ASSERT_THAT(r.payloads(Type::tensor), SizeIs(1));
  const auto payload = r.payloads(Type::tensor)[0];
  constexpr std::size_t kInfo = offsetof(jd_tensor_info, sample);
  ASSERT_EQ(payload.size(), kInfo + 2 * sizeof(float));
  jd_tensor_info tensor{};
  std::memcpy(static_cast<void*>(&tensor), payload.data(), kInfo);
  EXPECT_EQ(tensor.id, 11u);
  EXPECT_EQ(tensor.fingerprint.count, 2u);
  float second = 0;
  std::memcpy(&second, payload.data() + kInfo + sizeof(float), sizeof second);
  EXPECT_EQ(second, -2.5f);

  ASSERT_THAT(r.payloads(Type::op), SizeIs(1));
  spool::Unpacker op(r.payloads(Type::op)[0]);
  std::uint32_t index = 0, count = 0;
  std::string_view name, json;
  std::uint64_t id = 0;
  EXPECT_TRUE(op.get(index) && op.get(name) && op.get(count));
  EXPECT_EQ(index, 4u);
  EXPECT_EQ(name, "aten::mul");
  EXPECT_EQ(count, 2u);
  EXPECT_TRUE(op.get(id) && op.get(id) && op.get(count));
  EXPECT_EQ(id, 12u);
  EXPECT_EQ(count, 1u);
  EXPECT_TRUE(op.get(id) && op.get(json));
  EXPECT_EQ(id, 13u);
  EXPECT_EQ(json, R"({"stack":3})");
  EXPECT_EQ(op.rest(), "");

  ASSERT_THAT(r.payloads(Type::replay), SizeIs(1));
  spool::Unpacker replay(r.payloads(Type::replay)[0]);
  std::uint64_t begin = 0, end = 0, executions = 0;
  EXPECT_TRUE(replay.get(begin) && replay.get(end) && replay.get(executions) && replay.get(name));
  EXPECT_EQ(executions, 30u);
  EXPECT_EQ(name, "77");
}

TEST(Record, NamesTheInputsOfStepsOnce) {
  const auto r = recorded([] {
    jd_step(JD_TRACE, 0, 1, 2, "float32 [1, 8]");
    jd_step(JD_TRACE, 1, 2, 3, "float32 [1, 9]");
    jd_step(JD_TRACE, 2, 3, 4, "float32 [1, 8]");
    jd_step(JD_TRACE, 3, 4, 5, nullptr);
    const pid_t pid = fork();
    if (pid == 0) {
      jd_step(JD_TRACE, 4, 5, 6, "float32 [1, 9]");
      std::exit(0);
    }
    waitpid(pid, nullptr, 0);
  });
  EXPECT_EQ(r.status, 0) << r.err;
  // Each spool for itself: the child's has its own first id.
  std::vector<std::string> texts;
  for (const auto& [file, bytes] : r.files) {
    spool::Contents contents;
    ASSERT_TRUE(spool::read(bytes, contents));
    std::map<std::uint32_t, std::string> names;
    for (const spool::Record& record : contents.records) {
      spool::Unpacker in(record.payload);
      std::uint32_t id = 0;
      std::string_view text;
      if (record.type == Type::inputs && in.get(id) && in.get(text)) names[id] = text;
      spool::Step step{};
      if (record.type == Type::step && in.get(step))
        texts.push_back(step.inputs == 0 ? "unknown" : names.at(step.inputs));
    }
  }
  EXPECT_THAT(texts, testing::UnorderedElementsAre("float32 [1, 8]", "float32 [1, 9]",
                                                   "float32 [1, 8]", "unknown", "float32 [1, 9]"));
  EXPECT_THAT(r.payloads(Type::inputs), SizeIs(3));
}

TEST(Record, ForgetsInputsThatNeverRepeat) {
  const auto r = recorded([] {
    for (std::uint32_t i = 0; i < 5000; ++i)
      jd_step(JD_TRACE, i, i, i + 1, std::to_string(i).c_str());
  });
  EXPECT_EQ(r.status, 0) << r.err;
  EXPECT_THAT(r.payloads(Type::inputs), SizeIs(4096));
  const auto steps = r.all<spool::Step>(Type::step);
  ASSERT_THAT(steps, SizeIs(5000));
  EXPECT_EQ(steps[4095].inputs, 4096u);
  EXPECT_EQ(steps[4096].inputs, 0u);
}

TEST(Record, PairsTheClocks) {
  const auto r = recorded([] {
    jd_fact("manifest", "{}");
    jd_kernels(JD_WARMUP);
  });
  const auto clocks = r.all<spool::Clock>(Type::clock);
  ASSERT_THAT(clocks, SizeIs(testing::Ge(3u)));  // first use, a pass, the end
  for (std::size_t i = 1; i < clocks.size(); ++i)
    EXPECT_GT(clocks[i].monotonic_ns, clocks[i - 1].monotonic_ns);
  EXPECT_GT(clocks[0].realtime_ns, clocks[0].monotonic_ns);
}

TEST(Record, TakesNullForAnything) {
  const auto r = recorded([] {
    jd_fact(nullptr, nullptr);
    jd_tensor(nullptr);
    jd_tensor_info tensor{};
    tensor.sample_count = 5;  // without a sample
    tensor.dims = 99;
    jd_tensor(&tensor);
    jd_operator(0, nullptr, nullptr, 3, nullptr, 3, nullptr);
    jd_operator_begin(0, 0, nullptr);
    jd_operator_end();
    jd_operator_end();  // one too many
    jd_replay(nullptr, 0, 0, 0);
  });
  EXPECT_EQ(r.status, 0) << r.err;
  EXPECT_FALSE(r.torn);
  EXPECT_EQ(r.payloads(Type::tensor)[0].size(), offsetof(jd_tensor_info, sample));
}

TEST(Record, TimesOperatorsOnTheHostWhereThereAreNoKernels) {
  const auto r = recorded([] {
    JD_REQUIRE(jd_kernels(JD_ORDER) == 0);
    for (std::uint32_t step = 2; step < 4; ++step) {
      jd_operator_begin(step, 0, "outer");
      jd_operator_begin(step, 1, "inner");
      usleep(2000);
      jd_operator_end();
      jd_operator_end();
    }
    JD_REQUIRE(jd_operator_seconds(1) >= 0.002);
    JD_REQUIRE(jd_operator_seconds(0) >= jd_operator_seconds(1));
    JD_REQUIRE(jd_operator_seconds(0) < 0.2);
    JD_REQUIRE(jd_operator_seconds(2) < 0);
    jd_operator_took(0, 2, "told", 1'000'000, 3'000'000);
    jd_operator_took(0, 3, "backwards", 3, 1);
    JD_REQUIRE(std::abs(jd_operator_seconds(2) - 0.002) < 1e-9);
    JD_REQUIRE(jd_operator_seconds(3) < 0);
  });
  EXPECT_EQ(r.status, 0) << r.err;
  const auto times = r.all<spool::OpTime>(Type::op_time);
  ASSERT_THAT(times, SizeIs(5));
  EXPECT_EQ(times[4].end_ns - times[4].begin_ns, 2'000'000u);
  EXPECT_EQ(times[0].index, 1u);  // in the order of their ends
  EXPECT_EQ(times[1].index, 0u);
  EXPECT_LE(times[1].begin_ns, times[0].begin_ns);
  EXPECT_GE(times[1].end_ns, times[0].end_ns);
  EXPECT_THAT(r.payloads(Type::op_name), SizeIs(3));
  EXPECT_THAT(r.facts("diagnostic"), ElementsAre(HasSubstr("record.no_kernels")));
}

TEST(Record, ACrashKeepsWhatWasFlushed) {
  const auto r = recorded([] {
    jd_step(JD_VALUES, 1, 1, 2, nullptr);
    jd_flush();
    jd_step(JD_VALUES, 2, 2, 3, nullptr);
    _exit(3);  // no exit handlers, as in a crash
  });
  EXPECT_EQ(WEXITSTATUS(r.status), 3);
  EXPECT_FALSE(r.torn);
  EXPECT_THAT(r.payloads(Type::step), SizeIs(1));
}

TEST(Record, AForkedChildHasASpoolOfItsOwn) {
  const auto r = recorded([] {
    jd_fact("who", "\"parent\"");  // buffered when the child is born
    const pid_t pid = fork();
    if (pid == 0) {
      jd_fact("who", "\"child\"");
      std::exit(0);
    }
    int status = 0;
    waitpid(pid, &status, 0);
    JD_REQUIRE(status == 0);
    jd_fact("who", "\"parent again\"");
  });
  EXPECT_EQ(r.status, 0) << r.err;
  EXPECT_FALSE(r.torn);
  ASSERT_THAT(r.files, SizeIs(2));
  EXPECT_THAT(r.facts("who"),
              testing::UnorderedElementsAre("\"parent\"", "\"child\"", "\"parent again\""));
}

TEST(Record, AChildThatRecordsNothingLeavesNothing) {
  const auto r = recorded([] {
    jd_fact("who", "\"parent\"");
    const pid_t pid = fork();
    if (pid == 0) std::exit(0);
    waitpid(pid, nullptr, 0);
  });
  EXPECT_THAT(r.files, SizeIs(1));
  EXPECT_THAT(r.facts("who"), SizeIs(1));
}

TEST(Record, AForkWhileOtherThreadsRecordDoesNotHang) {
  const auto r = recorded([] {
    std::atomic<bool> stop = false;
    std::jthread other([&] {
      for (std::uint32_t i = 0; !stop; ++i) jd_step(JD_TRACE, i, i, i + 1, nullptr);
    });
    for (int i = 0; i < 20; ++i) {
      const pid_t pid = fork();
      if (pid == 0) {
        jd_fact("who", "\"child\"");
        jd_flush();
        _exit(0);
      }
      int status = 0;
      waitpid(pid, &status, 0);
      JD_REQUIRE(status == 0);
    }
    stop = true;
  });
  EXPECT_EQ(r.status, 0) << r.err;
  EXPECT_FALSE(r.torn);
  EXPECT_THAT(r.facts("who"), SizeIs(20));
}

TEST(Record, AProgramThatReplacesItselfKeepsBothSpools) {
  const auto r = recorded([] {
    // What exec leaves behind: the process number and the file.
    const std::string path =
        std::string(std::getenv("JOULEDIFF_SPOOL")) + "/" + std::to_string(getpid()) + ".spool";
    spool::Writer before;
    JD_REQUIRE(before.open(path.c_str()));
    before.append(Type::step, "before");
    before.flush();
    jd_fact("who", "\"after\"");
  });
  EXPECT_EQ(r.status, 0) << r.err;
  EXPECT_FALSE(r.torn);
  EXPECT_THAT(r.files, SizeIs(2));
  EXPECT_THAT(r.payloads(Type::step), SizeIs(1));
  EXPECT_THAT(r.facts("who"), SizeIs(1));
}

std::string output_of(const std::string& command) {
  std::string text;
  FILE* const pipe = popen(command.c_str(), "r");
  for (int c = std::fgetc(pipe); c != EOF; c = std::fgetc(pipe)) text += static_cast<char>(c);
  return pclose(pipe) == 0 ? text : "";
}

// What a host's process gets with the library: no library but libc's own, and no name but the C
// ABI's.
TEST(Library, BringsNothingWithIt) {
  if (*JOULEDIFF_SANITIZERS != '\0') GTEST_SKIP() << "a sanitizer brings its own";
  const std::string library = JOULEDIFF_LIBRARY_DIR "/libjoulediff-record.so";
  const std::string needed = output_of("readelf -d " + library + " | grep NEEDED");
  const std::string exported = output_of("nm -D --defined-only " + library + " | cut -d' ' -f3-");
  if (needed.empty() || exported.empty()) GTEST_SKIP() << "no binutils here";
  std::istringstream lines(needed), names(exported);
  for (std::string line; std::getline(lines, line);)
    EXPECT_THAT(line, testing::AnyOf(HasSubstr("[libc.so.6]"), HasSubstr("[ld-linux"),
                                     HasSubstr("[libdl.so"), HasSubstr("[libpthread.so")));
  for (std::string name; std::getline(names, name);)
    EXPECT_TRUE(name.starts_with("jd_") || name == "InitializeInjection") << name;
}

TEST(Record, AFullDiskSwitchesItOff) {
  const auto r = recorded([] {
    const rlimit size{20'000, 20'000};
    setrlimit(RLIMIT_FSIZE, &size);
    JD_REQUIRE(jd_active() == JD_ABI);
    for (std::uint32_t i = 0; i < 1000; ++i) jd_step(JD_TRACE, i, i, i + 1, nullptr);
    jd_flush();
    JD_REQUIRE(jd_active() == 0);
    call_everything();
  });
  EXPECT_EQ(r.status, 0) << r.err;
  EXPECT_EQ(r.out, "");
  EXPECT_FALSE(r.torn);
  EXPECT_GT(r.payloads(Type::step).size(), 400u);
  EXPECT_THAT(r.facts("diagnostic"), ElementsAre(HasSubstr("record.spool_full")));
}

}  // namespace
}  // namespace joulediff::record
