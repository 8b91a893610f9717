#include "device/external.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstring>
#include <fcntl.h>
#include <fstream>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <utility>

#include <fmt/format.h>

extern char** environ;

namespace joulediff::device {
namespace {

constexpr double kMostWatts = 1e9;
constexpr std::size_t kLongestLine = 4096;

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlank = " \t\r\"";
  const std::size_t begin = text.find_first_not_of(kBlank);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlank) - begin + 1);
}

std::optional<double> number(std::string_view text) {
  double value = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || rest != text.data() + text.size() || !std::isfinite(value))
    return std::nullopt;
  return value;
}

// Unix time in seconds; larger numbers are milliseconds, microseconds or nanoseconds.
std::optional<Nanoseconds> unix_time(std::string_view text) {
  constexpr double kLargestSeconds = 1e11;  // the year 5138
  auto time = number(text);
  if (!time || *time <= 0) return std::nullopt;
  double unit = 1e9;
  while (*time * unit >= kLargestSeconds * 1e9 && unit > 1) unit /= 1e3;
  if (*time * unit >= kLargestSeconds * 1e9) return std::nullopt;
  // Whole and broken seconds apart, since a double does not hold nanoseconds of our time.
  const double whole = std::floor(*time);
  return static_cast<Nanoseconds>(whole) * static_cast<Nanoseconds>(unit) +
         std::llround((*time - whole) * unit);
}

std::optional<MeterSample> sample(std::string_view time, std::string_view watts,
                                  std::string_view channel) {
  const auto when = unix_time(time);
  const auto power = number(watts);
  if (!when || !power || *power < 0 || *power > kMostWatts) return std::nullopt;
  return MeterSample{*when, std::llround(*power * 1e3), std::string(channel)};
}

std::vector<std::string_view> split(std::string_view line, std::string_view separators) {
  std::vector<std::string_view> fields;
  while (true) {
    const std::size_t end = line.find_first_of(separators);
    fields.push_back(trimmed(line.substr(0, end)));
    if (end == std::string_view::npos) return fields;
    line.remove_prefix(end + 1);
  }
}

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

struct Columns {
  std::size_t time = 0, watts = 1, channel = 2;
};

// By the names of a header; none where the line is no header.
std::optional<Columns> header(const std::vector<std::string_view>& fields) {
  constexpr std::array kTime{"time", "timestamp", "unix_seconds", "unix", "seconds", "t"};
  constexpr std::array kWatts{"watts", "watt", "power", "power_w", "w"};
  constexpr std::array kChannel{"channel", "name", "sensor", "outlet"};
  std::optional<std::size_t> time, watts, channel;
  for (std::size_t i = 0; i < fields.size(); ++i) {
    std::string name(fields[i].substr(0, fields[i].find_first_of(" [(")));
    std::ranges::transform(name, name.begin(), [](unsigned char c) { return std::tolower(c); });
    if (!time && std::ranges::find(kTime, name) != kTime.end()) time = i;
    if (!watts && std::ranges::find(kWatts, name) != kWatts.end()) watts = i;
    if (!channel && std::ranges::find(kChannel, name) != kChannel.end()) channel = i;
  }
  if (!time || !watts) return std::nullopt;
  return Columns{*time, *watts, channel.value_or(fields.size())};
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
  return sample(line.substr(0, after_time), rest.substr(0, after_watts), channel);
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
  const int trouble =
      posix_spawn(&pid, "/bin/sh", &actions, &attributes, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  close(ends[1]);
  if (trouble != 0) {
    close(ends[0]);
    return fail(ExitCode::environment,
                fmt::format("cannot start the meter {}: {}", command, std::strerror(trouble)));
  }
  fcntl(ends[0], F_SETFL, O_NONBLOCK);
  return MeterProgram(command, pid, ends[0]);
}

MeterProgram::MeterProgram(MeterProgram&& other) noexcept
    : command_(std::move(other.command_)),
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

Result<MeterFile> read_meter_file(const std::string& path) {
  std::ifstream file(path);
  if (!file)
    return fail(ExitCode::environment,
                fmt::format("cannot read the meter's file {}: {}", path, std::strerror(errno)));
  MeterFile result;
  Columns columns;
  bool first = true;
  for (std::string line; std::getline(file, line);) {
    if (trimmed(line).empty() || line.starts_with('#')) continue;
    const std::string_view separators = line.find_first_of(",;") == std::string::npos ? "\t" : ",;";
    const auto fields = split(line, separators);
    const auto named = first ? header(fields) : std::nullopt;
    first = false;
    if (named) {
      columns = *named;
      continue;
    }
    const auto field = [&](std::size_t i) {
      return i < fields.size() ? fields[i] : std::string_view();
    };
    if (auto reading = sample(field(columns.time), field(columns.watts), field(columns.channel)))
      result.samples.push_back(std::move(*reading));
    else
      ++result.garbage;
  }
  if (result.samples.empty())
    return fail(ExitCode::bad_input,
                fmt::format("{} holds no readings: it should have columns time (unix seconds), "
                            "watts and, if there are several, channel",
                            path));
  return result;
}

}  // namespace joulediff::device
