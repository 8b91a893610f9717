#include "device/external.h"

#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <utility>

#include <fmt/format.h>

#include "device/meter_text.h"

namespace joulediff::device {
namespace {

constexpr std::size_t kLongestLine = 4096;

// Waits until `pid` has ended, for as long as `patience`; its status, or none.
std::optional<int> wait_for(pid_t pid, Nanoseconds patience) {
  constexpr Nanoseconds kPause = 5'000'000;
  int status = 0;
  for (Nanoseconds waited = 0;; waited += kPause) {
    if (waitpid(pid, &status, WNOHANG) == pid) return status;
    if (waited >= patience) return std::nullopt;
    const timespec pause{0, kPause};
    nanosleep(&pause, nullptr);
  }
}

// Whether a process's environment has `entry`.
bool has(const std::string& environment, const std::string& entry) {
  const std::string all = '\0' + environment;
  return all.find('\0' + entry + '\0') != std::string::npos;
}

// Ends every process with `entry` in its environment, until there is none: a child that made a
// session of its own is not in its parent's group.
void kill_marked(const std::string& entry) {
  constexpr int kRounds = 10;
  bool found = true;
  for (int round = 0; found && round < kRounds; ++round) {
    found = false;
    std::error_code error;
    for (std::filesystem::directory_iterator it("/proc", error), end; !error && it != end;
         it.increment(error)) {
      const pid_t pid = std::atoi(it->path().filename().c_str());
      if (pid <= 0) continue;
      std::ifstream file(it->path() / "environ", std::ios::binary);
      const std::string environment{std::istreambuf_iterator<char>(file), {}};
      if (has(environment, entry) && kill(pid, SIGKILL) == 0) {
        waitpid(pid, nullptr, WNOHANG);
        found = true;
      }
    }
    if (!found) return;
    const timespec pause{0, 5'000'000};
    nanosleep(&pause, nullptr);
  }
}

}  // namespace

std::optional<MeterSample> meter_line(std::string_view line) {
  line = trimmed(line);
  const std::size_t after_time = line.find_first_of(" \t");
  if (after_time == std::string_view::npos) return std::nullopt;
  const std::string_view rest = trimmed(line.substr(after_time));
  const std::size_t after_watts = rest.find_first_of(" \t");
  const std::string_view channel =
      after_watts == std::string_view::npos ? "" : trimmed(rest.substr(after_watts));
  const auto time = unix_time(line.substr(0, after_time));
  const auto milliwatts = power(rest.substr(0, after_watts));
  if (!time || !milliwatts) return std::nullopt;
  return MeterSample{*time, *milliwatts, std::string(channel)};
}

Result<MeterProgram> MeterProgram::start(const std::string& command) {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0)
    return fail(ExitCode::environment,
                fmt::format("cannot start the meter {}: {}", command, std::strerror(errno)));
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setpgroup(&attributes, 0);
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK);
  std::string shell = "sh", option = "-c", text = command;
  std::array<char*, 4> arguments{shell.data(), option.data(), text.data(), nullptr};
  pid_t pid = -1;
  static std::atomic<int> started = 0;
  std::string mark = fmt::format("JOULEDIFF_METER={}.{}", getpid(), ++started);
  std::vector<char*> environment;
  for (char** entry = environ; *entry != nullptr; ++entry) environment.push_back(*entry);
  environment.insert(environment.end(), {mark.data(), nullptr});
  const int trouble =
      posix_spawn(&pid, "/bin/sh", &actions, &attributes, arguments.data(), environment.data());
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  close(ends[1]);
  if (trouble != 0) {
    close(ends[0]);
    return fail(ExitCode::environment,
                fmt::format("cannot start the meter {}: {}", command, std::strerror(trouble)));
  }
  fcntl(ends[0], F_SETFL, O_NONBLOCK);
  return MeterProgram(command, std::move(mark), pid, ends[0]);
}

MeterProgram::MeterProgram(MeterProgram&& other) noexcept
    : command_(std::move(other.command_)),
      mark_(std::move(other.mark_)),
      pid_(std::exchange(other.pid_, -1)),
      output_(std::exchange(other.output_, -1)),
      rest_(std::move(other.rest_)),
      ended_(other.ended_),
      died_(other.died_),
      status_(other.status_),
      readings_(other.readings_),
      garbage_(other.garbage_),
      first_garbage_(std::move(other.first_garbage_)) {}

MeterProgram::~MeterProgram() {
  stop();
}

std::vector<MeterSample> MeterProgram::lines() {
  std::vector<MeterSample> samples;
  std::array<char, 1 << 16> buffer;
  ssize_t got = 0;
  while ((got = ::read(output_, buffer.data(), buffer.size())) > 0) {
    rest_.append(buffer.data(), static_cast<std::size_t>(got));
    std::size_t begin = 0;
    for (std::size_t end; (end = rest_.find('\n', begin)) != std::string::npos; begin = end + 1) {
      const std::string line = rest_.substr(begin, end - begin);
      if (auto reading = meter_line(line)) {
        ++readings_;
        samples.push_back(std::move(*reading));
      } else if (!trimmed(line).empty() && !line.starts_with('#')) {
        if (garbage_++ == 0) first_garbage_ = line.substr(0, 80);
      }
    }
    rest_.erase(0, begin);
    if (rest_.size() > kLongestLine) {  // no line at all
      if (garbage_++ == 0) first_garbage_ = rest_.substr(0, 80);
      rest_.clear();
    }
  }
  if (got == 0) ended_ = true;
  return samples;
}

std::vector<MeterSample> MeterProgram::read(Nanoseconds patience) {
  if (output_ < 0 || ended_) return {};
  pollfd output{output_, POLLIN, 0};
  poll(&output, 1, static_cast<int>(patience / 1'000'000));
  auto samples = lines();
  if (ended_) died_ = true;
  return samples;
}

std::vector<MeterSample> MeterProgram::stop() {
  if (pid_ < 0) return {};
  constexpr Nanoseconds kPatience = 1'000'000'000;
  auto samples = lines();
  if (ended_) {
    // It closed its output before it was told to: what became of it?
    died_ = true;
    if (const auto status = wait_for(pid_, kPatience / 10)) {
      status_ = *status;
      kill(-pid_, SIGKILL);  // whom it left behind
      pid_ = -1;
    }
  }
  if (pid_ > 0) {
    kill(-pid_, SIGTERM);
    const auto status = wait_for(pid_, kPatience);
    kill(-pid_, SIGKILL);
    if (!status) wait_for(pid_, kPatience);
    pid_ = -1;
    for (MeterSample& late : lines()) samples.push_back(std::move(late));
  }
  kill_marked(mark_);
  close(std::exchange(output_, -1));
  return samples;
}

Diagnostics MeterProgram::notes() const {
  Diagnostics notes;
  if (died_)
    notes.push_back(
        {Severity::warning, "record.meter_died",
         fmt::format("the meter {} ended by itself ({}) after {} readings: nothing is known from "
                     "it after that",
                     command_,
                     WIFSIGNALED(status_) ? fmt::format("signal {}", WTERMSIG(status_))
                                          : fmt::format("exit status {}", WEXITSTATUS(status_)),
                     readings_),
         1, "see what it says on stderr"});
  else if (readings_ == 0)
    notes.push_back({Severity::warning, "record.meter_silent",
                     fmt::format("the meter {} gave no reading", command_), 1,
                     "let it print lines of `unix_seconds watts [channel]`, and flush each"});
  if (garbage_ > 0)
    notes.push_back({Severity::warning, "record.meter_garbage",
                     fmt::format("the meter {} printed lines that are no `unix_seconds watts "
                                 "[channel]`, the first of them \"{}\"",
                                 command_, first_garbage_),
                     garbage_});
  return notes;
}

}  // namespace joulediff::device
