#include "lab/launcher.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <fstream>
#include <map>
#include <set>
#include <signal.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>

#include "device/host.h"
#include "lab/clock.h"
#include "lab/journal.h"
#include "lab/replay_server.h"
#include "lab/sampler.h"
#include "spool/spool.h"

namespace joulediff::lab {
namespace {

constexpr Nanoseconds kIdleBefore = 500 * kMillisecond;  // the device without our program
constexpr Nanoseconds kAfter = 200 * kMillisecond;       // the tick after the program's end
constexpr Nanoseconds kPatience = 300 * kMillisecond;    // with what is about to end by itself
constexpr Nanoseconds kJournalPeriod = kSecond;
constexpr Nanoseconds kLookPeriod = kSecond;  // at the spools of processes that have not said done

// While it lives, processes whose parents have ended become our children.
class Subreaper {
 public:
  Subreaper() {
    prctl(PR_GET_CHILD_SUBREAPER, &before_);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
  }
  ~Subreaper() { prctl(PR_SET_CHILD_SUBREAPER, before_); }
  Subreaper(const Subreaper&) = delete;
  Subreaper& operator=(const Subreaper&) = delete;

 private:
  int before_ = 0;
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
  all.reserve(texts.size() + 1);
  for (std::string& text : texts) all.push_back(text.data());
  all.push_back(nullptr);
  return all;
}

// Signals that end the program, each a grace after the one before.
class Ending {
 public:
  explicit Ending(Nanoseconds grace) : grace_(grace) {}
  void begin(std::vector<int> signals) {
    signals_ = std::move(signals);
    next_ = 0;
  }
  // The signal that is to be sent now; 0: none.
  int due() {
    if (signals_.empty() || now() < next_) return 0;
    last_ = signals_.front();
    signals_.erase(signals_.begin());
    next_ = now() + grace_;
    return last_;
  }
  bool begun() const { return last_ != 0 || !signals_.empty(); }
  bool spent() const { return signals_.empty(); }
  bool killed() const { return last_ == SIGKILL; }
  bool given_up() const { return killed() && spent() && now() >= next_; }

 private:
  const Nanoseconds grace_;
  std::vector<int> signals_;
  Nanoseconds next_ = 0;
  int last_ = 0;
};

// Whether a spool holds more than every process with the recorder in it writes.
bool holds_work(const std::filesystem::path& spool) {
  constexpr std::size_t kBeginning = std::size_t{64} * 1024;
  std::ifstream file(spool, std::ios::binary);
  std::string bytes(kBeginning, '\0');
  file.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  bytes.resize(static_cast<std::size_t>(file.gcount()));
  spool::Contents contents;
  return spool::read(bytes, contents) &&
         (bytes.size() == kBeginning ||
          std::ranges::any_of(contents.records, [](const spool::Record& record) {
            return record.type != spool::Type::fact && record.type != spool::Type::clock;
          }));
}

// The processes that have written a spool: PID.spool, PID.2.spool, ...
std::set<pid_t> recording_processes(const std::filesystem::path& folder) {
  std::set<pid_t> pids;
  std::error_code error;
  for (std::filesystem::directory_iterator it(folder, error), end; !error && it != end;
       it.increment(error)) {
    const pid_t pid = std::atoi(it->path().filename().c_str());
    if (pid > 0 && it->path().extension() == ".spool" && it->is_regular_file(error) &&
        holds_work(it->path()))
      pids.insert(pid);
  }
  return pids;
}

// Follows the program until it has ended, all of it.
class Attendance {
 public:
  Attendance(const Launch& launch, const Signals& signals, const ReplayServer& server,
             Launched& launched)
      : launch_(launch),
        signals_(signals),
        server_(server),
        launched_(launched),
        tree_(launched.pid),
        ending_(launch.grace) {}

  // `keep`: called about ten times a second.
  void wait(const std::function<void()>& keep) {
    while (!is_over()) {
      hear();
      decide();
      if (const int signal = ending_.due()) send(signal);
      keep();
    }
  }

 private:
  bool is_over() { return root_has_ended() && (others().empty() || ending_.given_up()); }

  // Leaves it to be waited for: so long its processor time can be read and its number is its own.
  bool root_has_ended() {
    siginfo_t info{};
    const auto root = static_cast<id_t>(launched_.pid);
    root_has_ended_ = root_has_ended_ ||
                      waitid(P_PID, root, &info, WEXITED | WNOWAIT | WNOHANG) != 0 ||
                      info.si_pid == launched_.pid;
    return root_has_ended_;
  }

  // The processes but for the root that have not ended; waits for those that came to us and have.
  std::vector<pid_t> others() {
    std::vector<pid_t> all = tree_.members();
    std::erase_if(all, [this](pid_t pid) {
      return pid == launched_.pid || waitpid(pid, nullptr, WNOHANG) == pid;
    });
    return all;
  }

  void hear() {
    const int signal = signals_.wait();
    if (signal == SIGCHLD) others();
    if (signal == 0 || signal == SIGCHLD) return;
    if (signal == SIGUSR1 || signal == SIGUSR2) {
      kill(launched_.pid, signal);
      return;
    }
    if (std::exchange(launched_.interrupted, true))
      ending_.begin({SIGKILL});
    else if (signal == SIGINT)
      ending_.begin({SIGINT});
    else
      ending_.begin({SIGTERM, SIGKILL});
  }

  bool is_held_by_terminal() const {
    siginfo_t info{};
    return waitid(P_PID, static_cast<id_t>(launched_.pid), &info, WSTOPPED | WNOWAIT | WNOHANG) ==
               0 &&
           info.si_pid == launched_.pid && (info.si_status == SIGTTIN || info.si_status == SIGTTOU);
  }

  void decide() {
    if (!ending_.begun() && is_held_by_terminal()) {
      launched_.terminal = true;
      ending_.begin({SIGTERM, SIGKILL});
    }
    if (launch_.stop && !ending_.begun() && nothing_is_left()) {
      launched_.stopped = true;
      ending_.begin({SIGINT, SIGTERM, SIGKILL});
    }
    if (root_has_ended() && ending_.spent() && !ending_.killed()) end_what_stays();
  }

  void end_what_stays() {
    const std::vector<pid_t> stay = others();
    const bool awaited = !ending_.begun() && now() < launch_.deadline && is_awaited(stay);
    if (stay.empty() || awaited) {
      stays_since_ = 0;
      return;
    }
    if (stays_since_ == 0) stays_since_ = now();
    if (now() - stays_since_ < (ending_.begun() ? launch_.grace : kPatience)) return;
    for (pid_t pid : stay)
      if (!device::is_pythons_helper(pid))
        launched_.left_behind.push_back(std::to_string(pid) + " (" + device::command_of(pid) + ")");
    ending_.begin({SIGTERM, SIGKILL});
  }

  // One of these is among the `recording`, and has not said that it is done.
  bool one_is_unfinished(const std::vector<pid_t>& pids, const std::set<pid_t>& recording) const {
    const std::set<pid_t> done = server_.done();
    return std::ranges::any_of(
        pids, [&](pid_t pid) { return recording.contains(pid) && !done.contains(pid); });
  }

  // A program of which nothing is recorded yet may be about to begin.
  bool is_awaited(const std::vector<pid_t>& pids) const {
    const std::set<pid_t> recording = recording_processes(launch_.spool);
    return recording.empty() || one_is_unfinished(pids, recording);
  }

  // To record. Where all that recorded have ended without saying that they are done, so may the
  // program: it is given the grace.
  bool nothing_is_left() {
    const bool one_is_done = !server_.done().empty();
    if (!one_is_done && now() < next_look_) return false;
    next_look_ = now() + kLookPeriod;
    const std::set<pid_t> recording = recording_processes(launch_.spool);
    if (recording.empty() || one_is_unfinished(tree_.members(), recording)) {
      nothing_since_ = 0;
      return false;
    }
    if (nothing_since_ == 0) nothing_since_ = now();
    return one_is_done || now() - nothing_since_ >= launch_.grace;
  }

  // To the program's group, and to those that have left it.
  void send(int signal) {
    kill(-launched_.pid, signal);
    kill(-launched_.pid, SIGCONT);  // who is held hears nothing
    for (pid_t pid : others())
      if (getpgid(pid) != launched_.pid) kill(pid, signal);
  }

  const Launch& launch_;
  const Signals& signals_;
  const ReplayServer& server_;
  Launched& launched_;
  device::ProcessTree tree_;
  Ending ending_;
  bool root_has_ended_ = false;
  Nanoseconds next_look_ = 0;
  Nanoseconds nothing_since_ = 0;  // is left to record; 0: something is
  Nanoseconds stays_since_ = 0;    // that which nobody waits for; 0: nothing stays
};

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
  environment.reserve(environment.size() + variables.size());
  for (const auto& [name, value] : variables) environment.push_back(name + "=" + value);
  return environment;
}

Result<Launched> launch(const Launch& launch, const Installation& installation,
                        const Meters& meters, const Signals& signals) {
  const Subreaper subreaper;
  Launched launched;
  Sampler sampler(meters);
  Journal journal(launch.spool);
  JD_ASSIGN(const auto server, ReplayServer::open([&] {
              return ReplayJudge(
                  meters.boards.empty() ? host_policy() : board_policy(),
                  [&sampler](Nanoseconds begin) { return sampler.meter_since(begin); },
                  launch.replay_budget,
                  [&sampler](Nanoseconds begin, Nanoseconds end) {
                    return sampler.board_state(begin, end);
                  });
            }));
  launched.begin = now();
  journal.began(launched.begin, launch.facts, meters.notes);
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
  Nanoseconds next_entry = 0;
  Attendance(launch, signals, *server, launched).wait([&] {
    launch.tick();
    if (now() < next_entry) return;
    journal.sampled(sampler.fresh());
    journal.diagnosed(sampler.samples().diagnostics());
    next_entry = now() + kJournalPeriod;
  });
  sampler.unwatch();

  int status = 0;
  while (waitpid(launched.pid, &status, 0) < 0 && errno == EINTR) {
  }
  launched.exit_status = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  pause_for(kAfter);
  launched.replay = server->stop();
  launched.done = server->last_done();
  sampler.end();
  journal.sampled(sampler.fresh());
  launched.diagnostics = sampler.samples().diagnostics();
  if (launched.replay.refused > 0)
    launched.diagnostics.push_back(
        {Severity::warning, "record.bad_line",
         "lines on JOULEDIFF_SOCKET that are none of docs/recording.md, or of numbers that cannot "
         "be, were refused",
         launched.replay.refused});
  journal.diagnosed(launched.diagnostics);
  launched.end = now();
  journal.ended(launched);
  launched.series = journal.series(launched.diagnostics);
  return launched;
}

}  // namespace joulediff::lab
