#include "lab/launcher.h"

#include <array>
#include <cstring>
#include <fcntl.h>
#include <map>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lab/clock.h"
#include "lab/replay_server.h"
#include "lab/sampler.h"

extern char** environ;

namespace joulediff::lab {
namespace {

constexpr Nanoseconds kIdleBefore = 500 * kMillisecond;  // the device without our program
constexpr Nanoseconds kAfter = 200 * kMillisecond;       // the tick after the program's end
constexpr std::array kOurSignals = {SIGINT, SIGTERM, SIGHUP, SIGCHLD};

// Signals are waited for, not handled: blocked in this thread and so in those it starts. The
// program gets the mask that was there before.
class BlockedSignals {
 public:
  BlockedSignals() {
    sigemptyset(&ours_);
    for (int signal : kOurSignals) sigaddset(&ours_, signal);
    pthread_sigmask(SIG_BLOCK, &ours_, &before_);
  }
  ~BlockedSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  BlockedSignals(const BlockedSignals&) = delete;
  BlockedSignals& operator=(const BlockedSignals&) = delete;

  const sigset_t& before() const { return before_; }

  // 0: none within a tenth of a second.
  int wait() const {
    const timespec patience{0, 100 * kMillisecond};
    const int signal = sigtimedwait(&ours_, nullptr, &patience);
    return signal > 0 ? signal : 0;
  }

 private:
  sigset_t ours_{};
  sigset_t before_{};
};

class SpawnAttributes {
 public:
  explicit SpawnAttributes(const sigset_t& mask) {
    posix_spawnattr_init(&attributes_);
    posix_spawn_file_actions_init(&actions_);
    posix_spawnattr_setpgroup(&attributes_, 0);
    posix_spawnattr_setsigmask(&attributes_, &mask);
    sigset_t default_handling;  // the command itself ignores it
    sigemptyset(&default_handling);
    sigaddset(&default_handling, SIGXFSZ);
    posix_spawnattr_setsigdefault(&attributes_, &default_handling);
    posix_spawnattr_setflags(
        &attributes_, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    if (isatty(STDIN_FILENO))
      posix_spawn_file_actions_addopen(&actions_, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  }
  ~SpawnAttributes() {
    posix_spawnattr_destroy(&attributes_);
    posix_spawn_file_actions_destroy(&actions_);
  }
  SpawnAttributes(const SpawnAttributes&) = delete;
  SpawnAttributes& operator=(const SpawnAttributes&) = delete;

  const posix_spawnattr_t* attributes() const { return &attributes_; }
  const posix_spawn_file_actions_t* actions() const { return &actions_; }

 private:
  posix_spawnattr_t attributes_{};
  posix_spawn_file_actions_t actions_{};
};

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> all;
  for (std::string& text : texts) all.push_back(text.data());
  all.push_back(nullptr);
  return all;
}

// Waits until `pid` has ended, and leaves it to be waited for. True: we were asked to end it.
bool wait_for_end(pid_t pid, const BlockedSignals& signals, const std::function<void()>& tick) {
  int asked = 0;
  for (;;) {
    siginfo_t info{};
    if (waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOWAIT | WNOHANG) != 0 ||
        info.si_pid == pid)
      return asked > 0;
    const int signal = signals.wait();
    if (signal != 0 && signal != SIGCHLD)
      kill(-pid, ++asked > 1 ? SIGKILL : signal == SIGHUP ? SIGTERM : signal);
    tick();
  }
}

void pause_for(Nanoseconds time) {
  const timespec pause{time / kSecond, time % kSecond};
  nanosleep(&pause, nullptr);
}

}  // namespace

std::vector<std::string> recording_environment(const Launch& launch,
                                               const Installation& installation,
                                               const std::string& socket) {
  std::map<std::string, std::string> variables;
  for (char** entry = environ; *entry; ++entry) {
    const std::string text(*entry);
    const std::size_t equals = text.find('=');
    if (equals != std::string::npos) variables[text.substr(0, equals)] = text.substr(equals + 1);
  }
  const auto was = variables.find("PYTHONPATH");
  const std::string python_path =
      installation.inject.string() +
      (was != variables.end() && !was->second.empty() ? ":" + was->second : "");
  variables["PYTHONPATH"] = python_path;
  variables["JOULEDIFF_SPOOL"] = std::filesystem::absolute(launch.spool).string();
  variables["JOULEDIFF_LIBRARY"] = installation.recorder.string();
  variables["CUDA_INJECTION64_PATH"] = installation.recorder.string();
  variables["JOULEDIFF_REGION"] = launch.settings.region;
  variables["JOULEDIFF_STEPS"] = std::to_string(launch.settings.steps);
  variables["JOULEDIFF_TRACE_SECONDS"] = std::to_string(launch.settings.trace_seconds);
  variables["JOULEDIFF_PASSES"] = launch.settings.passes;
  variables["JOULEDIFF_SOCKET"] = socket;
  std::vector<std::string> environment;
  for (const auto& [name, value] : variables) environment.push_back(name + "=" + value);
  return environment;
}

Result<Launched> launch(const Launch& launch, const Installation& installation,
                        const Meters& meters) {
  const BlockedSignals signals;
  Launched launched;
  Sampler sampler(meters);
  JD_ASSIGN(const auto server, ReplayServer::open([&] {
              return ReplayJudge(
                  meters.boards.empty() ? host_policy() : board_policy(),
                  [&sampler](Nanoseconds begin) { return sampler.meter_since(begin); },
                  launch.replay_budget);
            }));
  launched.begin = now();
  pause_for(kIdleBefore);

  std::vector<std::string> command = launch.command;
  std::vector<std::string> environment =
      recording_environment(launch, installation, server->path());
  const SpawnAttributes spawn(signals.before());
  const int trouble =
      posix_spawnp(&launched.pid, command.front().c_str(), spawn.actions(), spawn.attributes(),
                   pointers(command).data(), pointers(environment).data());
  if (trouble != 0)
    return fail(ExitCode::environment, "cannot start " + command.front() + ": " +
                                           std::strerror(trouble) + "; check the command after --");
  sampler.watch(launched.pid);
  launched.interrupted = wait_for_end(launched.pid, signals, launch.tick);
  sampler.unwatch();
  kill(-launched.pid, SIGTERM);  // workers left behind would disturb the next block

  int status = 0;
  while (waitpid(launched.pid, &status, 0) < 0 && errno == EINTR) {
  }
  launched.exit_status = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  pause_for(kAfter);
  launched.replay = server->stop();
  Sampler::Gathered gathered = sampler.stop();
  launched.series = std::move(gathered.series);
  launched.diagnostics = std::move(gathered.diagnostics);
  launched.end = now();
  return launched;
}

}  // namespace joulediff::lab
