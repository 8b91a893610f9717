#include "record/output.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <string>
#include <unistd.h>

#include "record/clock.h"
#include "record/json.h"

namespace joulediff::record {
namespace {

// A program that calls exec keeps its number, and so does a later one after a long while.
std::string free_path(const std::string& folder) {
  const std::string stem = folder + "/" + std::to_string(getpid());
  std::string path = stem + ".spool";
  for (int n = 2; access(path.c_str(), F_OK) == 0; ++n)
    path = stem + "." + std::to_string(n) + ".spool";
  return path;
}

}  // namespace

bool Output::open() noexcept {
  const std::lock_guard lock(mutex_);
  if (state_ != State::unopened) return state_ == State::open && writer_.ok();
  state_ = State::off;
  // Read once: a later change of the environment must not split a recording.
  static const char* const variable = std::getenv("JOULEDIFF_SPOOL");
  if (variable == nullptr || *variable == '\0') return false;
  try {
    static const std::string folder = variable;
    if (writer_.open(free_path(folder).c_str())) {
      state_ = State::open;
      write_clock();
      return true;
    }
    // No spool can carry this diagnostic; the launcher passes stderr on.
    const std::string line = "joulediff: cannot write a spool in " + folder + ": " +
                             std::strerror(errno) + "; this process is not recorded\n";
    [[maybe_unused]] const ssize_t ignored = ::write(STDERR_FILENO, line.data(), line.size());
  } catch (const std::exception&) {
    return false;
  }
  return false;
}

void Output::clock() noexcept {
  if (state_.load(std::memory_order_acquire) == State::open) write_clock();
}

void Output::write_clock() noexcept {
  const ClockPair now = ClockPair::now();
  const spool::Clock clock{now.monotonic, now.realtime};
  writer_.append(spool::Type::clock, {reinterpret_cast<const char*>(&clock), sizeof clock});
}

void Output::fact(std::string_view topic, std::string_view json) {
  spool::Packer packer;
  append(spool::Type::fact, packer.put(topic).put(json).bytes());
}

void Output::diagnostic(std::string_view severity, std::string_view rule,
                        std::string_view message) {
  fact("diagnostic", R"({"severity":")" + escaped(severity) + R"(","rule":")" + escaped(rule) +
                         R"(","message":")" + escaped(message) + R"("})");
}

void Output::switch_off() noexcept {
  flush();
  state_ = State::off;
}

void Output::before_fork() noexcept {
  mutex_.lock();
  writer_.before_fork();
}

void Output::after_fork(bool child) noexcept {
  writer_.after_fork(child);
  if (child && state_ == State::open) state_ = State::unopened;
  mutex_.unlock();
}

}  // namespace joulediff::record
