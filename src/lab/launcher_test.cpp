#include "lab/launcher.h"

#include <cstdlib>
#include <fstream>
#include <signal.h>
#include <sstream>
#include <sys/socket.h>
#include <sys/un.h>
#include <thread>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lab/clock.h"
#include "lab/record.h"
#include "lab/replay_server.h"

namespace joulediff::lab {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class Launcher : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() / ("launcher" + std::to_string(getpid()));
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  Result<Launched> run_shell(const std::string& script, const Meters& meters = {}) {
    Launch plan;
    plan.command = {"/bin/sh", "-c", script};
    plan.spool = folder_;
    plan.settings = {"module:f", 7, 1.5, "values,order"};
    plan.replay_budget = [] { return kSecond; };
    return launch(plan, {"/lib/recorder.so", "/python/inject"}, meters);
  }
  std::string file(const std::string& name) const {
    std::ifstream in(folder_ / name);
    std::ostringstream text;
    text << in.rdbuf();
    return text.str();
  }
  static const run::Series* find(const Launched& launched, run::Source source) {
    for (const run::Series& series : launched.series)
      if (series.source == source) return &series;
    return nullptr;
  }

  std::filesystem::path folder_;
};

TEST_F(Launcher, GivesTheProgramItsEnvironment) {
  setenv("PYTHONPATH", "/mine", 1);
  const auto launched = run_shell("env > " + (folder_ / "env").string());
  unsetenv("PYTHONPATH");
  ASSERT_TRUE(launched);
  EXPECT_EQ(launched->exit_status, 0);
  const std::string env = file("env");
  for (const char* line :
       {"JOULEDIFF_LIBRARY=/lib/recorder.so\n", "CUDA_INJECTION64_PATH=/lib/recorder.so\n",
        "JOULEDIFF_REGION=module:f\n", "JOULEDIFF_STEPS=7\n", "JOULEDIFF_TRACE_SECONDS=1.5",
        "JOULEDIFF_PASSES=values,order\n", "PYTHONPATH=/python/inject:/mine\n",
        "JOULEDIFF_SOCKET=/tmp/"})
    EXPECT_THAT(env, HasSubstr(line));
  EXPECT_THAT(env, HasSubstr("JOULEDIFF_SPOOL=" + folder_.string() + "\n"));
}

TEST_F(Launcher, KeepsTheExitStatus) {
  EXPECT_EQ(run_shell("exit 3")->exit_status, 3);
  EXPECT_EQ(run_shell("kill -SEGV $$")->exit_status, 128 + SIGSEGV);
}

TEST_F(Launcher, AProgramThatIsNotThereIsAnError) {
  Launch plan;
  plan.command = {"/no/such/program"};
  plan.spool = folder_;
  const auto launched = launch(plan, {}, {});
  ASSERT_FALSE(launched);
  EXPECT_THAT(launched.error().message, HasSubstr("/no/such/program"));
}

TEST_F(Launcher, ReadsTheProcessorTimeOfTheWholeTree) {
  const auto launched =
      run_shell("(i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done) & wait; sleep 0.1");
  const run::Series* cpu = find(*launched, run::Source::host_cpu);
  ASSERT_TRUE(cpu);
  EXPECT_GE(cpu->time.size(), 5u);
  EXPECT_GE(cpu->value.back(), 20 * kMillisecond);
  EXPECT_TRUE(std::is_sorted(cpu->value.begin(), cpu->value.end()));
  EXPECT_GE(cpu->time.front() - launched->begin, 300 * kMillisecond);  // idle before
}

TEST_F(Launcher, SamplesTheBoardBeforeAndAfterTheProgram) {
  const auto bin = std::filesystem::read_symlink("/proc/self/exe").parent_path();
  setenv("JOULEDIFF_NVML", (bin / "../lib/fakes/libnvidia-ml.so.1").c_str(), 1);
  const Meters meters = open_meters();
  ASSERT_EQ(meters.boards.size(), 1u);
  const auto launched = run_shell("sleep 0.6", meters);
  const run::Series* energy = find(*launched, run::Source::nvml_energy);
  ASSERT_TRUE(energy);
  // 1.3 s with a tick each 100 ms, at 100 W.
  ASSERT_GE(energy->time.size(), 9u);
  ASSERT_EQ(energy->uncertainty.size(), energy->time.size());
  const double seconds = to_seconds(energy->time.back() - energy->time.front()).value;
  const double joules = static_cast<double>(energy->value.back() - energy->value.front()) / 1000;
  const double width = to_seconds(energy->uncertainty.front() + energy->uncertainty.back()).value;
  EXPECT_NEAR(joules, 100 * seconds, 100 * width + 0.01);
  const run::Series* ring = find(*launched, run::Source::nvml_power_samples);
  ASSERT_TRUE(ring);
  EXPECT_GE(ring->time.size(), 50u);
  EXPECT_GE(ring->time.front(), launched->begin - 30 * kMillisecond);
  EXPECT_LE(ring->time.back(), launched->end);
  for (run::Source source :
       {run::Source::nvml_power_instant, run::Source::nvml_power_average,
        run::Source::nvml_power_memory, run::Source::nvml_sm_clock, run::Source::nvml_throttle,
        run::Source::nvml_temperature, run::Source::nvml_power_limit})
    EXPECT_TRUE(find(*launched, source)) << static_cast<int>(source);
}

TEST_F(Launcher, CtrlCEndsTheProgramAndKeepsIt) {
  std::jthread person([] {
    usleep(900'000);
    kill(getpid(), SIGINT);  // blocked here: it waits for the launcher to take it
  });
  const auto launched = run_shell("trap 'echo kept > " + (folder_ / "kept").string() +
                                  "; exit 5' INT; "
                                  "while :; do sleep 0.05; done");
  ASSERT_TRUE(launched);
  EXPECT_TRUE(launched->interrupted);
  EXPECT_EQ(launched->exit_status, 5);
  EXPECT_EQ(file("kept"), "kept\n");
}

TEST(ReplayServer, AnswersAConnectionAndTalliesIt) {
  auto server = ReplayServer::open([] {
    return ReplayJudge(
        host_policy(), [](Nanoseconds) { return std::vector<Reading>(); }, [] { return kSecond; });
  });
  ASSERT_TRUE(server);
  const int socket = ::socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  (*server)->path().copy(address.sun_path, sizeof address.sun_path - 1);
  ASSERT_EQ(connect(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  const auto ask = [socket](const std::string& text) {
    EXPECT_EQ(write(socket, text.data(), text.size()), static_cast<ssize_t>(text.size()));
  };
  const auto hear = [socket] {
    std::string line;
    for (char c = 0; read(socket, &c, 1) == 1 && c != '\n';) line += c;
    return line;
  };
  ask("plan 1\nrepl");  // a line may come in pieces
  usleep(20'000);
  ask("ay 4 0 100000000 10\n");
  EXPECT_EQ(hear(), "replay 1");
  EXPECT_EQ(hear(), "more 5");
  ask("replay 4 100000000 1200000000 10\n");
  EXPECT_EQ(hear(), "enough");
  const std::string path = (*server)->path();
  close(socket);
  const ReplayJudge::Tally tally = (*server)->stop();
  EXPECT_EQ(tally.planned, 1u);
  EXPECT_EQ(tally.cut, 1u);
  server->reset();
  EXPECT_FALSE(std::filesystem::exists(std::filesystem::path(path).parent_path()));
}

TEST(BlockOrder, IsAbba) {
  EXPECT_THAT(block_order(2, 4), ElementsAre(0, 1, 1, 0));
  EXPECT_THAT(block_order(2, 6), ElementsAre(0, 1, 1, 0, 0, 1));
  EXPECT_THAT(block_order(1, 3), ElementsAre(0, 0, 0));
}

TEST(ReplayShare, IsWhatTheOtherBlocksLeave) {
  EXPECT_EQ(replay_share(100, {}), 100);
  EXPECT_EQ(replay_share(100, {10, 30}), 20);
  EXPECT_EQ(replay_share(100, {60, 60}), 0);
}

}  // namespace
}  // namespace joulediff::lab
