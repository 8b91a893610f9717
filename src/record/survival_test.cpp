// Programs that end badly, or in the middle, or are several: what was recorded stays readable.

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sys/resource.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

#include <gmock/gmock.h>

#include "joulediff/record.h"
#include "record/fake_device.h"

extern "C" int InitializeInjection(void);

namespace joulediff::record {
namespace {

using spool::Type;
using testing::ElementsAre;
using testing::Ge;
using testing::HasSubstr;
using testing::SizeIs;

int wait_for(pid_t pid) {
  int status = -1;
  waitpid(pid, &status, 0);
  return status;
}

// Two whole buffers and a bit; what the bit holds is CUPTI's.
void launch_a_lot() {
  for (std::uint64_t i = 1; i <= 10'000; ++i) kernel(i, 1);
}

void dies_by(int signal) {
  const auto r = recorded(
      [signal] {
        InitializeInjection();
        jd_kernels(JD_TRACE);
        launch_a_lot();
        raise(signal);
      },
      kFake);
  EXPECT_EQ(WTERMSIG(r.status), signal);
  EXPECT_EQ(r.out + r.err, "");
  ASSERT_THAT(r.files, SizeIs(1));
  const auto kernels = r.kernels();
  EXPECT_THAT(kernels, SizeIs(Ge(9000u)));
  const auto names = r.kernel_names();
  for (std::size_t i = 0; i < kernels.size(); ++i) {
    ASSERT_EQ(kernels[i].start_ns, i + 1);
    ASSERT_EQ(names.count(kernels[i].name), 1u);
  }
}

TEST(Survival, WhatAKilledProgramLeftIsReadable) {
  dies_by(SIGKILL);
}
TEST(Survival, WhatAnInterruptedProgramLeftIsReadable) {
  dies_by(SIGINT);
}
TEST(Survival, WhatACrashedProgramLeftIsReadable) {
  dies_by(SIGABRT);  // no sanitizer catches it before us
}

TEST(Survival, AFlushBeforeAQuickExitKeepsAll) {
  const auto r = recorded(
      [] {
        jd_kernels(JD_TRACE);
        launch_a_lot();
        jd_flush();
        _exit(0);
      },
      kFake);
  EXPECT_EQ(r.status, 0);
  EXPECT_FALSE(r.torn);
  EXPECT_THAT(r.kernels(), SizeIs(10'000));
}

// Data loaders fork after CUDA has started, and their children live on without it.
TEST(Survival, AForkInTheStretchOfAnUnattendedProgramDoesNotHang) {
  if (std::string_view(JOULEDIFF_SANITIZERS).starts_with("address"))
    GTEST_SKIP() << "the sanitizer's own allocator can hang in a child whose parent had threads";
  const auto r = recorded(
      [] {
        InitializeInjection();
        std::atomic<bool> stop = false;
        std::jthread launches([&] {
          for (std::uint64_t i = 1; !stop; ++i) kernel(i, 1);
        });
        for (int i = 0; i < 30; ++i) {
          const pid_t pid = fork();
          if (pid == 0) {
            jd_fact("who", "\"child\"");
            jd_step(JD_TRACE, 0, 1, 2, "x");
            jd_operator_begin(0, 0, "op");
            JD_REQUIRE(jd_kernels(JD_ORDER) == 0);
            jd_operator_end();
            jd_flush();
            std::exit(0);
          }
          JD_REQUIRE(wait_for(pid) == 0);
        }
        stop = true;
      },
      kFake);
  EXPECT_EQ(r.status, 0) << r.err;
  EXPECT_FALSE(r.torn);
  EXPECT_THAT(r.facts("who"), SizeIs(30));
}

TEST(Survival, AChildOfAChildHasASpoolToo) {
  const auto r = recorded(
      [] {
        jd_kernels(JD_TRACE);
        const pid_t pid = fork();
        if (pid == 0) {
          const pid_t grandchild = fork();
          if (grandchild == 0) {
            jd_fact("who", "\"grandchild\"");
            std::exit(0);
          }
          std::exit(wait_for(grandchild));
        }
        JD_REQUIRE(wait_for(pid) == 0);
      },
      kFake);
  EXPECT_EQ(r.status, 0) << r.err;
  EXPECT_THAT(r.files, SizeIs(2));
}

TEST(Survival, AnotherProgramCanBeStartedInTheMiddle) {
  const auto r = recorded(
      [] {
        jd_kernels(JD_TRACE);
        kernel(10, 5);
        const pid_t forked = fork();
        if (forked == 0) execl("/bin/true", "true", nullptr);
        JD_REQUIRE(wait_for(forked) == 0);
        JD_REQUIRE(std::system("true") == 0);  // by vfork, or what is like it
        kernel(20, 5);
      },
      kFake);
  EXPECT_EQ(r.status, 0) << r.err;
  EXPECT_FALSE(r.torn);
  EXPECT_THAT(r.kernels(), SizeIs(2));
}

// What the next test's program turns itself into.
TEST(Survival, DISABLED_ANextProgram) {
  InitializeInjection();
  kernel(20, 5);
  const char* const left = std::getenv("JD_TEST_LEFT");
  if (left == nullptr || *left == '0') return;
  const std::string fewer = std::to_string(std::atoi(left) - 1);
  setenv("JD_TEST_LEFT", fewer.c_str(), 1);
  jd_flush();
  execl("/proc/self/exe", "record_test", "--gtest_filter=Survival.DISABLED_ANextProgram",
        "--gtest_also_run_disabled_tests", "--gtest_brief=1", nullptr);
}

TEST(Survival, AChainOfProgramsLeavesASpoolForEach) {
  const auto r = recorded(
      [] {
        setenv("JD_TEST_LEFT", "1", 1);
        jd_kernels(JD_TRACE);
        kernel(10, 5);
        jd_flush();
        execl("/proc/self/exe", "record_test", "--gtest_filter=Survival.DISABLED_ANextProgram",
              "--gtest_also_run_disabled_tests", "--gtest_brief=1", nullptr);
      },
      kFake);
  EXPECT_EQ(r.status, 0) << r.err;
  EXPECT_FALSE(r.torn);
  std::vector<std::string> ends;
  for (const auto& [name, bytes] : r.files) ends.push_back(name.substr(name.find('.')));
  EXPECT_THAT(ends, testing::UnorderedElementsAre(".spool", ".2.spool", ".3.spool"));
  EXPECT_THAT(r.kernels(), SizeIs(3));
}

TEST(Survival, ThreadsThatOutliveMainAreHarmless) {
  const auto r = recorded(
      [] {
        jd_kernels(JD_TRACE);
        std::thread([] {
          for (std::uint32_t i = 1;; ++i) {
            kernel(i, 1);
            jd_step(JD_TRACE, i, i, i + 1, nullptr);
            if (i % 64 == 0) jd_flush();
          }
        }).detach();
        usleep(20'000);
      },
      kFake);
  EXPECT_EQ(r.status, 0) << r.err;
  EXPECT_EQ(r.out + r.err, "");
  EXPECT_THAT(r.files, SizeIs(1));
  EXPECT_THAT(r.all<spool::Step>(Type::step), SizeIs(Ge(1u)));
}

TEST(Survival, ALibraryThatCannotBeLoadedIsSaid) {
  const std::string path = "/tmp/jd-no-library-" + std::to_string(getpid());
  std::ofstream(path) << "no library at all";
  const auto r = recorded(
      [] {
        InitializeInjection();
        JD_REQUIRE(jd_kernels(JD_TRACE) == 0);
      },
      {{"JOULEDIFF_CUPTI", path}});
  std::filesystem::remove(path);
  EXPECT_EQ(r.status, 0) << r.err;
  EXPECT_THAT(r.facts("diagnostic"),
              ElementsAre(testing::AllOf(HasSubstr("record.no_kernels"), HasSubstr(path))));
}

TEST(Survival, ALibraryOfAnotherKindIsSaid) {
  const auto r = recorded([] { JD_REQUIRE(jd_kernels(JD_TRACE) == 0); },
                          {{"JOULEDIFF_CUPTI", JOULEDIFF_FAKE_CUDA}});
  EXPECT_EQ(r.status, 0) << r.err;
  EXPECT_THAT(r.facts("diagnostic"), ElementsAre(HasSubstr("libcupti has no cupti")));
}

TEST(Survival, AFullDiskStopsTheRecorderAndNotTheProgram) {
  const auto r = recorded(
      [] {
        const rlimit size{100'000, 100'000};
        setrlimit(RLIMIT_FSIZE, &size);
        InitializeInjection();
        for (std::uint64_t i = 1; i <= 30'000; ++i) kernel(i, 1);
        jd_flush();
        JD_REQUIRE(jd_active() == 0);
      },
      kFake);
  EXPECT_EQ(r.status, 0) << r.err;
  EXPECT_EQ(r.out + r.err, "");
  EXPECT_FALSE(r.torn);
  EXPECT_THAT(r.kernels(), SizeIs(Ge(500u)));
  EXPECT_THAT(r.facts("diagnostic"), ElementsAre(HasSubstr("record.spool_full")));
}

}  // namespace
}  // namespace joulediff::record
