#include "lab/launcher.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <signal.h>
#include <span>
#include <sstream>
#include <sys/socket.h>
#include <sys/un.h>
#include <thread>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lab/clock.h"
#include "lab/journal.h"
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

  Launch plan_of(const std::string& script) const {
    Launch plan;
    plan.command = {"/bin/sh", "-c", script};
    plan.spool = folder_;
    plan.settings = {"module:f", 7, 1.5, "values,order"};
    plan.replay_budget = [] { return kSecond; };
    plan.grace = 200 * kMillisecond;
    return plan;
  }
  Result<Launched> run_shell(const std::string& script, const Meters& meters = {}) {
    return run(plan_of(script), meters);
  }
  static Result<Launched> run(const Launch& plan, const Meters& meters = {}) {
    const Signals signals;
    return launch(plan, {"/lib/recorder.so", "/python/inject"}, meters, signals);
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

  // A shell's words for a daemon whose parents have ended.
  static std::string daemon(const std::string& script) {
    return "setsid sh -c '" + script + "' < /dev/null > /dev/null 2>&1 &";
  }
  // Words for becoming a process that has recorded a step.
  std::string record_step() const {
    const std::string spool = (folder_ / "template").string();
    spool::Writer writer;
    EXPECT_TRUE(writer.open(spool.c_str()));
    const spool::Step step{};
    writer.append(spool::Type::step, {reinterpret_cast<const char*>(&step), sizeof step});
    return "cp " + spool + " $JOULEDIFF_SPOOL/$$.spool; ";
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
  const auto launched = launch(plan, {}, {}, Signals());
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

// A job in the background that reads the terminal is held by such a signal, for ever.
TEST_F(Launcher, EndsAProgramThatReadsTheTerminal) {
  const auto launched = run_shell("kill -TTIN $$; while :; do sleep 0.05; done");
  ASSERT_TRUE(launched);
  EXPECT_TRUE(launched->terminal);
  EXPECT_FALSE(launched->interrupted);
  EXPECT_EQ(launched->exit_status, 128 + SIGTERM);
}

TEST_F(Launcher, HandsOnWhatIsForTheProgram) {
  std::jthread person([] {
    usleep(900'000);
    kill(getpid(), SIGUSR1);
  });
  const auto launched = run_shell("trap 'exit 7' USR1; while :; do sleep 0.05; done");
  ASSERT_TRUE(launched);
  EXPECT_FALSE(launched->interrupted);
  EXPECT_EQ(launched->exit_status, 7);
}

TEST_F(Launcher, WaitsForADaemonThatRecordsAndCountsItsTime) {
  const std::string work = "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done; ";
  const auto launched = run_shell(
      daemon(record_step() + work + "sleep 0.5; echo kept > " + (folder_ / "kept").string()));
  ASSERT_TRUE(launched);
  EXPECT_EQ(file("kept"), "kept\n");
  EXPECT_TRUE(launched->left_behind.empty());
  const run::Series* cpu = find(*launched, run::Source::host_cpu);
  ASSERT_TRUE(cpu);
  EXPECT_GE(cpu->value.back(), 20 * kMillisecond);
}

TEST_F(Launcher, EndsADaemonThatDoesNotRecordAndSaysSo) {
  const auto launched =
      run_shell(record_step() + daemon("trap : TERM; while :; do sleep 60; done"));
  ASSERT_TRUE(launched);
  ASSERT_FALSE(launched->left_behind.empty());
  EXPECT_THAT(launched->left_behind.front(), HasSubstr("(sh -c trap : TERM"));
  const pid_t pid = std::atoi(launched->left_behind.front().c_str());
  EXPECT_EQ(kill(pid, 0), -1);
  EXPECT_EQ(launched->exit_status, 0);
}

TEST_F(Launcher, WaitsForNobodyBeyondItsDeadline) {
  Launch plan = plan_of(daemon(record_step() + "sleep 60"));
  plan.deadline = now();
  const auto launched = run(plan);
  ASSERT_TRUE(launched);
  EXPECT_FALSE(launched->left_behind.empty());
}

TEST_F(Launcher, HelpersThatEndByThemselvesAreNotLeftBehind) {
  const auto launched = run_shell("sleep 0.05 &");
  ASSERT_TRUE(launched);
  EXPECT_TRUE(launched->left_behind.empty());
}

// Python's own, which a slow machine lets live a little longer.
TEST_F(Launcher, AResourceTrackerIsNobodyLeftBehind) {
  const auto launched = run_shell(
      record_step() + daemon("exec bash -c \"exec -a \\\"from multiprocessing.resource_tracker "
                             "import main\\\" sleep 2\""));
  ASSERT_TRUE(launched);
  EXPECT_TRUE(launched->left_behind.empty()) << launched->left_behind.front();
}

TEST_F(Launcher, StopsAProgramWhoseRecordingProcessesHaveEnded) {
  Launch plan = plan_of("sh -c '" + record_step() + "'; echo on; sleep 60");
  plan.stop = true;
  const auto launched = run(plan);
  ASSERT_TRUE(launched);
  EXPECT_TRUE(launched->stopped);
  EXPECT_EQ(launched->done, 0);
}

// It ends by itself: to be asked to would only disturb it.
TEST_F(Launcher, AProgramAtItsEndIsNotStopped) {
  Launch plan = plan_of("sh -c '" + record_step() + "'; sleep 0.5; exit 4");
  plan.stop = true;
  plan.grace = 3 * kSecond;
  const auto launched = run(plan);
  ASSERT_TRUE(launched);
  EXPECT_FALSE(launched->stopped);
  EXPECT_EQ(launched->exit_status, 4);
}

TEST_F(Launcher, KeepsAJournalOfWhatItReads) {
  Launch plan = plan_of("sleep 0.1; exit 3");
  plan.facts = R"({"label":"mine"})";
  const auto launched = run(plan);
  ASSERT_TRUE(launched);
  const JournalContents journal = read_journal(folder_);
  EXPECT_FALSE(journal.launched.cut);
  EXPECT_EQ(journal.launched.exit_status, 3);
  EXPECT_EQ(journal.launched.begin, launched->begin);
  EXPECT_EQ(journal.launched.end, launched->end);
  EXPECT_EQ(journal.facts, plan.facts);
  ASSERT_EQ(journal.launched.series.size(), launched->series.size());
  for (std::size_t i = 0; i < launched->series.size(); ++i) {
    EXPECT_EQ(journal.launched.series[i].source, launched->series[i].source);
    EXPECT_GE(journal.launched.series[i].time.size() + 1, launched->series[i].time.size());
    EXPECT_TRUE(std::ranges::equal(
        journal.launched.series[i].value,
        std::span(launched->series[i].value).first(journal.launched.series[i].value.size())));
  }
}

TEST_F(Launcher, AJournalWithoutItsEndIsCut) {
  {
    Journal journal(folder_);
    journal.began(100, "{}");
    run::Series series{run::Source::nvml_energy, {200, 300}, {1, 2}, {5, 6}, "GPU-a"};
    journal.sampled({{0, series}});
    series = {run::Source::nvml_energy, {400}, {3}, {7}, "GPU-a"};
    journal.sampled({{0, series}});
    series = {run::Source::nvml_energy, {450}, {0}, {8}, "GPU-a"};
    journal.sampled({{1, series}});
  }
  const Launched launched = read_journal(folder_).launched;
  EXPECT_TRUE(launched.cut);
  EXPECT_EQ(launched.exit_status, kUnknownStatus);
  EXPECT_EQ(launched.begin, 100);
  EXPECT_EQ(launched.end, 450);
  ASSERT_EQ(launched.series.size(), 2u);
  EXPECT_THAT(launched.series[0].time, ElementsAre(200, 300, 400));
  EXPECT_THAT(launched.series[0].uncertainty, ElementsAre(5, 6, 7));
  EXPECT_EQ(launched.series[0].channel, "GPU-a");
  EXPECT_THAT(launched.series[1].value, ElementsAre(0));
}

TEST_F(Launcher, AJournalKeepsWhatTheMetersSaid) {
  Journal journal(folder_);
  journal.began(100, "{}", {{Severity::note, "record.driver", "no driver", 1, "sudo modprobe"}});
  journal.diagnosed({});
  Diagnostics said{{Severity::warning, "record.meter_died", "it died", 1, "look"}};
  journal.diagnosed(said);
  said.push_back({Severity::warning, "record.counter_broke", "it broke", 3});
  journal.diagnosed(said);
  const JournalContents contents = read_journal(folder_);
  ASSERT_EQ(contents.notes.size(), 1u);
  EXPECT_EQ(contents.notes[0].remedy, "sudo modprobe");
  ASSERT_EQ(contents.launched.diagnostics.size(), 2u);
  EXPECT_EQ(contents.launched.diagnostics[0].severity, Severity::warning);
  EXPECT_EQ(contents.launched.diagnostics[0].message, "it died");
  EXPECT_EQ(contents.launched.diagnostics[0].remedy, "look");
  EXPECT_EQ(contents.launched.diagnostics[1].count, 3u);
}

// A disk that is full before the program has ended: what came after is held in memory.
TEST_F(Launcher, AJournalThatCannotBeWrittenLosesNothing) {
  const auto piece = [](std::uint32_t stretch, std::vector<Nanoseconds> time) {
    run::Series series{run::Source::rapl_package, time, {}, {}, "package-0"};
    for (const Nanoseconds t : time) series.value.push_back(t);
    return Samples::Piece{stretch, std::move(series)};
  };
  Diagnostics diagnostics;
  {
    Journal journal(folder_ / "nowhere");
    journal.sampled({piece(0, {1, 2})});
    journal.sampled({piece(0, {3}), piece(1, {7, 8})});
    const auto series = journal.series(diagnostics);
    ASSERT_EQ(series.size(), 2u);
    EXPECT_THAT(series[0].time, ElementsAre(1, 2, 3));
    EXPECT_THAT(series[1].value, ElementsAre(7, 8));
    EXPECT_TRUE(diagnostics.empty());
  }
  Journal journal(folder_);
  journal.sampled({piece(0, {1, 2})});
  std::filesystem::remove(folder_ / kJournalName);
  EXPECT_TRUE(journal.series(diagnostics).empty());
  ASSERT_EQ(diagnostics.size(), 1u);
  EXPECT_EQ(diagnostics[0].rule, "record.readings_lost");
  EXPECT_EQ(diagnostics[0].count, 2u);
}

TEST(ReplayServer, KnowsWhoIsDone) {
  auto server = ReplayServer::open([] {
    return ReplayJudge(
        host_policy(), [](Nanoseconds) { return std::vector<Reading>(); }, [] { return kSecond; });
  });
  ASSERT_TRUE(server);
  EXPECT_TRUE((*server)->done().empty());
  const int socket = ::socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  (*server)->path().copy(address.sun_path, sizeof address.sun_path - 1);
  ASSERT_EQ(connect(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  ASSERT_EQ(write(socket, "done\nplan 0\n", 12), 12);
  char byte = 0;
  ASSERT_EQ(read(socket, &byte, 1), 1);  // the plan's answer: what came before it is heard
  close(socket);
  EXPECT_THAT((*server)->done(), ElementsAre(getpid()));
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
