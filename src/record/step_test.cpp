#include "record/step.h"

#include <array>
#include <fcntl.h>
#include <filesystem>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

#include <gmock/gmock.h>

#include "record/launcher_double.h"
#include "record/observed.h"
#include "record/recorded.h"

namespace joulediff::record {
namespace {

using spool::Type;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

std::vector<int> passes_of(const Asked& asked, std::vector<double> seconds = {}) {
  Schedule schedule(asked);
  std::vector<int> passes;
  double now = 0;
  for (std::size_t i = 0; i < 100; ++i) {
    if (i < seconds.size()) now = seconds[i];
    const int pass = schedule.next(static_cast<std::uint64_t>(now * 1e9));
    if (pass == kNoPass) break;
    passes.push_back(pass);
  }
  return passes;
}

TEST(Schedule, MakesTheSamePassesAsThePlugIns) {
  const Asked asked{true, true, true, true, 3, 0};
  EXPECT_THAT(passes_of(asked),
              ElementsAre(JD_WARMUP, JD_VALUES, JD_ORDER, JD_ORDER, JD_ORDER, JD_WARMUP, JD_WARMUP,
                          JD_TRACE, JD_TRACE, JD_TRACE, JD_REPLAY));
}

TEST(Schedule, TracesForAsLongAsItIsAsked) {
  const Asked asked{false, false, true, false, 1, 2.5};
  EXPECT_THAT(passes_of(asked, {0, 0, 0, 10, 11, 12, 13}),
              ElementsAre(JD_WARMUP, JD_WARMUP, JD_WARMUP, JD_TRACE, JD_TRACE, JD_TRACE));
}

TEST(Schedule, ReplaysOnlyWhatTheOrderPassTimed) {
  EXPECT_THAT(passes_of({true, false, false, true, 1, 0}), ElementsAre(JD_WARMUP, JD_VALUES));
}

TEST(Schedule, NamesWhatIsMissing) {
  Schedule schedule(Asked{});
  schedule.next(0);
  EXPECT_EQ(schedule.missing(schedule.next(0)), "values, order, trace, replay");
  for (int i = 0; i < 6; ++i) schedule.next(0);
  EXPECT_EQ(schedule.missing(kNoPass), "trace, replay");
}

// y = 2 x, then z = y + y in place, on the host.
struct Engine {
  std::array<float, 6> x{1, 2, 3, 4, 5, 6}, y{};
  int executions = 0;

  void step() {
    const jd_value in = vector_of(x), out = vector_of(y);
    const jd_place caller{"model.cpp", "forward", 7, 0, nullptr};
    const jd_place place{"model.cpp", "layer", 3, 0, &caller};
    run(
        "engine.twice", {in}, {out},
        [this] {
          for (std::size_t i = 0; i < x.size(); ++i) y[i] = 2 * x[i];
          ++executions;
          usleep(200);
        },
        &place);
    run("engine.double", {out}, {out}, [this] {
      for (float& value : y) value += value;
      usleep(200);
    });
  }
};

const Environment kTwoTraceSteps{{"JOULEDIFF_STEPS", "2"}};

TEST(Steps, AreNothingWithoutARecorder) {
  const auto r = recorded(
      [] {
        Engine engine;
        JD_REQUIRE(jd_recording() == 0);
        JD_REQUIRE(jd_step_begin("x") == -1);
        JD_REQUIRE(jd_pass() == -1);
        engine.step();
        jd_step_end();
        JD_REQUIRE(engine.executions == 1);
        JD_REQUIRE(engine.y[5] == 24);
        jd_run(nullptr, nullptr, nullptr);
        jd_observe(nullptr, nullptr);
        jd_use_device(nullptr);
      },
      {{"JOULEDIFF_SPOOL", ""}});
  EXPECT_EQ(r.status, 0) << r.err;
  EXPECT_THAT(r.files, IsEmpty());
}

// What an operator is in the middle of stays until it is done.
TEST(Steps, NeitherEndNorBeginInsideAnOperator) {
  const auto r = recorded(
      [] {
        jd_op op{};
        op.name = "op";
        while (jd_recording() != 0) {
          const int pass = jd_step_begin("x");
          static int inside;
          jd_run(
              &op,
              [](void*) {
                inside = jd_step_begin("y");
                jd_step_end();
              },
              nullptr);
          JD_REQUIRE(pass != JD_VALUES || (inside == pass && jd_pass() == pass));
          jd_step_end();
        }
      },
      kTwoTraceSteps);
  EXPECT_EQ(r.status, 0) << r.err;
  EXPECT_THAT(r.facts("diagnostic"), testing::Contains(HasSubstr("record.step_in_operator")));
}

TEST(Steps, ValuesThatAreCountedAndNotGivenAreNone) {
  const auto r = recorded(
      [] {
        jd_op op{};
        op.name = "op";
        op.input_count = op.output_count = 5;
        while (jd_recording() != 0) {
          jd_step_begin("x");
          jd_run(&op, [](void*) {}, nullptr);
          jd_step_end();
        }
      },
      kTwoTraceSteps);
  EXPECT_EQ(r.status, 0) << r.err;
}

TEST(Steps, MakeThePassesOfAProgramThatLoops) {
  const auto r = recorded(
      [] {
        Engine engine;
        int steps = 0;
        for (; jd_recording() != 0; ++steps) {
          const int pass = jd_step_begin("x float32 [6]");
          JD_REQUIRE(pass >= 0 && jd_pass() == pass);
          engine.step();
          jd_step_end();
          JD_REQUIRE(jd_pass() == -1);
        }
        JD_REQUIRE(steps == 10);
        JD_REQUIRE(engine.executions == steps);  // nobody to measure for
      },
      kTwoTraceSteps);
  EXPECT_EQ(r.status, 0) << r.err;
  EXPECT_EQ(r.out + r.err, "");
  std::vector<std::uint32_t> passes, indices;
  for (const auto payload : r.payloads(Type::step)) {
    spool::Unpacker step(payload);
    std::uint32_t pass = 0, index = 0;
    std::uint64_t begin = 0, end = 0;
    ASSERT_TRUE(step.get(pass) && step.get(index) && step.get(begin) && step.get(end));
    EXPECT_LE(begin, end);
    passes.push_back(pass);
    indices.push_back(index);
  }
  EXPECT_THAT(passes, ElementsAre(JD_WARMUP, JD_VALUES, JD_ORDER, JD_ORDER, JD_ORDER, JD_WARMUP,
                                  JD_WARMUP, JD_TRACE, JD_TRACE, JD_REPLAY));
  EXPECT_THAT(indices, ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8, 9));
  ASSERT_THAT(r.payloads(Type::inputs), SizeIs(1));
  EXPECT_TRUE(r.payloads(Type::inputs)[0].ends_with("x float32 [6]"));
  EXPECT_THAT(r.all<spool::OpTime>(Type::op_time), SizeIs(6));
  EXPECT_THAT(r.facts("diagnostic"),
              testing::Contains(HasSubstr("no launcher is there to measure")));
}

TEST(Steps, AreToldToTheLauncherWhenAllAreMade) {
  char name[] = "/tmp/jd-socket-XXXXXX";
  const std::string folder = mkdtemp(name), path = folder + "/socket";
  const int listener = socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  ASSERT_EQ(bind(listener, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  ASSERT_EQ(listen(listener, 4), 0);
  const auto r = recorded(
      [] {
        Engine engine;
        for (int i = 0; i < 20; ++i) {  // it goes on when nobody records any more
          jd_step_begin(nullptr);
          engine.step();
          jd_step_end();
        }
      },
      {{"JOULEDIFF_PASSES", "values"}, {"JOULEDIFF_SOCKET", path}});
  EXPECT_EQ(r.status, 0) << r.err;
  const int connection = accept(listener, nullptr, nullptr);
  char heard[16] = "";
  EXPECT_EQ(read(connection, heard, sizeof heard), 5);
  EXPECT_STREQ(heard, "done\n");
  fcntl(listener, F_SETFL, O_NONBLOCK);
  EXPECT_EQ(accept(listener, nullptr, nullptr), -1) << "once";
  close(connection);
  close(listener);
  std::filesystem::remove_all(folder);
}

TEST(Steps, EndWhereTheNextBegins) {
  const auto r = recorded(
      [] {
        Engine engine;
        while (jd_step_begin(nullptr) >= 0) engine.step();
      },
      {{"JOULEDIFF_STEPS", "1"}, {"JOULEDIFF_PASSES", "values,trace"}});
  EXPECT_EQ(r.status, 0) << r.err;
  EXPECT_THAT(r.payloads(Type::step), SizeIs(5));  // warm-up, values, two to settle, trace
  EXPECT_THAT(r.facts("diagnostic"), IsEmpty());
}

TEST(Steps, ThatRunNothingAreNoValuesPass) {
  const auto r = recorded(
      [] {
        Engine engine;
        jd_step_begin(nullptr);
        jd_step_begin(nullptr);
        while (jd_step_begin(nullptr) >= 0) engine.step();
      },
      {{"JOULEDIFF_STEPS", "1"}, {"JOULEDIFF_PASSES", "values,trace"}});
  EXPECT_EQ(r.status, 0) << r.err;
  EXPECT_THAT(operators(r), SizeIs(2));
  EXPECT_THAT(r.payloads(Type::step), SizeIs(5)) << "the empty one is none";
  EXPECT_THAT(r.facts("diagnostic"), IsEmpty());
  const auto without = recorded(
      [] {
        while (jd_step_begin(nullptr) >= 0) continue;
      },
      {{"JOULEDIFF_STEPS", "1"}, {"JOULEDIFF_PASSES", "values,trace"}});
  EXPECT_EQ(without.status, 0) << "a program that runs nothing through jd_run ends its passes too";
}

TEST(Steps, SayWhatAProgramThatEndsEarlyLeftOut) {
  const auto r = recorded([] {
    Engine engine;
    for (int i = 0; i < 2; ++i) {
      jd_step_begin(nullptr);
      engine.step();
    }
  });
  EXPECT_EQ(r.status, 0) << r.err;
  EXPECT_THAT(r.payloads(Type::op), SizeIs(2));  // of the step that nobody ended
  EXPECT_THAT(r.facts("diagnostic"),
              ElementsAre(HasSubstr("before it had made values, order, trace, replay")));
}

TEST(Steps, OfAForkedChildAreNone) {
  const auto r = recorded([] {
    Engine engine;
    jd_step_begin(nullptr);
    jd_step_end();
    jd_step_begin(nullptr);
    const pid_t child = fork();
    if (child == 0) {
      engine.step();
      _exit(jd_step_begin(nullptr) == -1 && jd_recording() == 0 && engine.executions == 1 ? 0 : 1);
    }
    int status = 0;
    waitpid(child, &status, 0);
    JD_REQUIRE(status == 0);
    engine.step();
    jd_step_end();
  });
  EXPECT_EQ(r.status, 0) << r.err;
  EXPECT_THAT(r.payloads(Type::op), SizeIs(2));
}

TEST(Steps, LeaveOutOtherThreadsAndSaySo) {
  const auto r = recorded([] {
    Engine engine, other;
    jd_step_begin(nullptr);
    jd_step_begin(nullptr);
    std::thread([&] { other.step(); }).join();
    engine.step();
    jd_step_end();
    JD_REQUIRE(other.executions == 1);
  });
  EXPECT_EQ(r.status, 0) << r.err;
  EXPECT_THAT(r.payloads(Type::op), SizeIs(2));
  EXPECT_THAT(r.facts("diagnostic"), testing::Contains(HasSubstr("record.other_thread")));
}

TEST(Steps, AnOperatorInsideAnOperatorIsPartOfIt) {
  const auto r = recorded([] {
    std::array<float, 4> x{1, 2, 3, 4}, y{};
    jd_step_begin(nullptr);
    jd_step_begin(nullptr);
    run("outer", {vector_of(x)}, {vector_of(y)},
        [&] { run("inner", {vector_of(x)}, {vector_of(y)}, [&] { y = x; }); });
    jd_step_end();
    JD_REQUIRE(y == x);
  });
  EXPECT_EQ(r.status, 0) << r.err;
  EXPECT_THAT(operators(r), ElementsAre(testing::Field(&SeenOperator::name, "outer")));
}

TEST(Replay, MeasuresEachOperatorForAsLongAsTheLauncherAsks) {
  LauncherDouble launcher({"replay 3", "enough", "more 3", "enough", "more 2", "enough"});
  const auto r = recorded(
      [] {
        Engine engine;
        while (jd_recording() != 0) {
          jd_step_begin(nullptr);
          engine.step();
          jd_step_end();
          JD_REQUIRE(engine.y[5] == 24);  // however often it was executed
        }
      },
      {{"JOULEDIFF_STEPS", "1"}, {"JOULEDIFF_SOCKET", launcher.path()}});
  EXPECT_EQ(r.status, 0) << r.err;
  const auto lines = launcher.heard();
  ASSERT_THAT(lines, SizeIs(6));
  EXPECT_EQ(lines[0], "plan 3");  // two operators and the idle floor
  const auto windows = replays(r);
  ASSERT_THAT(windows, SizeIs(5));
  EXPECT_EQ(windows[0].signature, "joulediff.idle");
  EXPECT_THAT(windows[1].signature, HasSubstr("engine."));
  EXPECT_EQ(windows[2].signature, windows[1].signature);
  EXPECT_EQ(windows[2].count, 3u);
  EXPECT_NE(windows[3].signature, windows[1].signature);
  EXPECT_EQ(windows[4].count, 2u);
  EXPECT_EQ(lines[5], "replay 2 " + std::to_string(windows[4].begin) + " " +
                          std::to_string(windows[4].end) + " 2");
  EXPECT_THAT(r.facts("diagnostic"), testing::Not(testing::Contains(HasSubstr("not_replayed"))));
}

// An engine that makes all its passes.
Recorded with_launcher(const LauncherDouble& launcher) {
  return recorded(
      [] {
        Engine engine;
        while (jd_recording() != 0) {
          jd_step_begin(nullptr);
          engine.step();
          jd_step_end();
        }
      },
      {{"JOULEDIFF_STEPS", "1"}, {"JOULEDIFF_SOCKET", launcher.path()}});
}

TEST(Replay, GoesOnWithoutALauncherThatDies) {
  LauncherDouble launcher({"replay 3"});
  const auto r = with_launcher(launcher);
  EXPECT_EQ(r.status, 0) << r.err;
  EXPECT_THAT(r.facts("diagnostic"), testing::Contains(HasSubstr("record.launcher_lost")));
  EXPECT_THAT(r.payloads(Type::step), SizeIs(9));
}

TEST(Replay, BelievesNoAnswerThatIsNone) {
  for (const char* answer : {"replay 3x", "replay ", "replay -1", "replay 99999999999999999999"}) {
    LauncherDouble launcher({answer, "enough", "enough", "enough", "enough"});
    const auto r = with_launcher(launcher);
    EXPECT_EQ(r.status, 0) << r.err;
    EXPECT_THAT(r.facts("diagnostic"), testing::Contains(HasSubstr("record.launcher_lost")))
        << answer;
    EXPECT_THAT(launcher.heard(), SizeIs(1)) << answer;
  }
}

TEST(Replay, ChoosesWhatMakesUpTheTime) {
  const std::vector<Described> all{{"a", "a", false}, {"b", "b", false}, {"a", "a", false},
                                   {"c", "c", true},  {"d", "d", false}, {"e", "e", false}};
  const std::vector<double> seconds{4, 5, 4, 100, 0.2, -1};
  const auto chosen = costliest(all, [&](std::uint32_t i) { return seconds[i]; });
  EXPECT_THAT(chosen, ElementsAre(testing::Pair("a", 0u), testing::Pair("b", 1u)));
}

}  // namespace
}  // namespace joulediff::record
