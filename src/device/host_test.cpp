#include "device/host.h"

#include <filesystem>
#include <fstream>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <thread>
#include <time.h>
#include <unistd.h>

#include <gtest/gtest.h>

namespace joulediff::device {
namespace {

constexpr Nanoseconds kMillisecond = 1'000'000;

void burn(Nanoseconds amount) {
  timespec t{};
  Nanoseconds begin = -1;
  for (;;) {
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    const Nanoseconds used = t.tv_sec * 1'000'000'000 + t.tv_nsec;
    if (begin < 0) begin = used;
    if (used - begin >= amount) return;
  }
}

TEST(ProcessTree, CountsThreadsChildrenAndTheEnded) {
  int ready[2], go[2];
  ASSERT_EQ(pipe(ready), 0);
  ASSERT_EQ(pipe(go), 0);
  const pid_t root = fork();
  if (root == 0) {
    char byte = 0;
    std::thread(burn, 30 * kMillisecond).join();  // a thread that has ended
    const pid_t gone = fork();
    if (gone == 0) {
      burn(30 * kMillisecond);
      _exit(0);
    }
    waitpid(gone, nullptr, 0);  // a child that has ended
    if (fork() == 0) {          // a child that lives
      burn(30 * kMillisecond);
      (void)!write(ready[1], "x", 1);
      (void)!read(go[0], &byte, 1);
      _exit(0);
    }
    (void)!read(go[0], &byte, 1);
    _exit(0);
  }
  char byte = 0;
  ASSERT_EQ(read(ready[0], &byte, 1), 1);
  ProcessTree tree(root);
  const Nanoseconds alive = tree.processor_time();
  EXPECT_GE(alive, 80 * kMillisecond);
  EXPECT_LE(alive, 200 * kMillisecond);
  (void)!write(go[1], "xx", 2);
  siginfo_t info{};
  waitid(P_PID, static_cast<id_t>(root), &info, WEXITED | WNOWAIT);
  EXPECT_GE(tree.processor_time(), alive);  // a zombie keeps its time
  waitpid(root, nullptr, 0);
  EXPECT_GE(tree.processor_time(), alive);  // and so does nothing at all
}

// A daemon comes to its reaper when its parents have ended; what was the reaper's before is not the
// tree's.
TEST(ProcessTree, FollowsTheOrphansThatComeToUs) {
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  int ready[2], go[2];
  ASSERT_EQ(pipe(ready), 0);
  ASSERT_EQ(pipe(go), 0);
  char byte = 0;
  const auto stay = [&] {
    (void)!write(ready[1], "x", 1);
    (void)!read(go[0], &byte, 1);
    _exit(0);
  };
  const pid_t stranger = fork();
  if (stranger == 0) stay();
  ASSERT_EQ(read(ready[0], &byte, 1), 1);
  usleep(30'000);  // the kernel counts starts in ticks of 10 ms
  const pid_t root = fork();
  if (root == 0) {
    if (fork() > 0) _exit(0);
    setsid();
    burn(30 * kMillisecond);
    stay();
  }
  ASSERT_EQ(read(ready[0], &byte, 1), 1);
  siginfo_t info{};
  waitid(P_PID, static_cast<id_t>(root), &info, WEXITED | WNOWAIT);
  ProcessTree tree(root);
  const std::vector<pid_t> members = tree.members();
  const Nanoseconds used = tree.processor_time();
  (void)!write(go[1], "xx", 2);
  EXPECT_GE(used, 30 * kMillisecond);
  EXPECT_EQ(members.size(), 2u);
  EXPECT_EQ(members.front(), root);
  EXPECT_NE(members.back(), stranger);
  for (pid_t pid : {stranger, members.back(), root}) EXPECT_EQ(waitpid(pid, nullptr, 0), pid);
  EXPECT_GE(tree.processor_time(), used);
  prctl(PR_SET_CHILD_SUBREAPER, 0);
}

TEST(CommandOf, IsOneLine) {
  const pid_t pid = fork();
  if (pid == 0) execl("/bin/sh", "sh", "-c", "sleep 9; :", nullptr);
  std::string command;
  for (int i = 0; i < 500 && !command.starts_with("sh "); ++i) {
    usleep(10'000);
    command = command_of(pid);
  }
  EXPECT_EQ(command, "sh -c sleep 9; :");
  kill(pid, SIGKILL);
  waitpid(pid, nullptr, 0);
  EXPECT_EQ(command_of(pid), "");
}

TEST(HostInfo, NamesTheMachine) {
  const HostInfo info = host_info();
  EXPECT_FALSE(info.name.empty());
  EXPECT_GE(info.cores, 1u);
}

TEST(ProcessTree, KnowsItsMembers) {
  const pid_t root = fork();
  if (root == 0) {
    pause();
    _exit(0);
  }
  ProcessTree tree(root);
  EXPECT_TRUE(tree.contains(root));
  EXPECT_FALSE(tree.contains(getpid()));
  kill(root, SIGKILL);
  waitpid(root, nullptr, 0);
}

TEST(MachineBusyTime, IsWhatIsNeitherIdleNorWaiting) {
  const auto file = std::filesystem::temp_directory_path() / ("stat" + std::to_string(getpid()));
  std::ofstream(file) << "cpu  100 20 30 5000 600 7 3 40 100 0\ncpu0 1 1 1 1 1 1 1 0 0 0\n";
  EXPECT_EQ(machine_busy_time(file), (100 + 20 + 30 + 7 + 3) * 10 * kMillisecond);
  std::ofstream(file) << "nothing\n";
  EXPECT_FALSE(machine_busy_time(file));
  std::filesystem::remove(file);
  EXPECT_FALSE(machine_busy_time(file));
  EXPECT_TRUE(machine_busy_time());
}

}  // namespace
}  // namespace joulediff::device
