#include "base/progress.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <sys/ioctl.h>
#include <unistd.h>

#include <fmt/format.h>

#include "base/format.h"

namespace joulediff {

namespace {

constexpr std::size_t kBar = 12;
constexpr double kLeastFraction = 0.02;

std::size_t terminal_width() {
  winsize size{};
  if (::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return 80;
  return size.ws_col;
}

}  // namespace

std::string progress_line(std::string_view label, double fraction, Seconds elapsed,
                          std::size_t width) {
  fraction = std::isnan(fraction) ? 0 : std::clamp(fraction, 0.0, 1.0);
  const auto full = static_cast<std::size_t>(fraction * static_cast<double>(kBar));
  std::string tail = "  [";
  for (std::size_t i = 0; i < kBar; ++i) tail += i < full ? "█" : "░";
  tail += fmt::format("]  {:3.0f} %", std::floor(fraction * 100));
  if (fraction >= kLeastFraction && fraction < 1) {
    const double left = std::ceil(elapsed.value * (1 - fraction) / fraction);
    tail += left < 120 ? fmt::format("  {:.0f} s left", left)
                       : fmt::format("  {} left", format(Seconds(left)));
  }
  const std::size_t room = width > width_of(tail) ? width - width_of(tail) : 0;
  return truncated(truncated(printable(label), room) + tail, width);
}

Progress::Progress(bool quiet) {
  const char* term = std::getenv("TERM");
  const bool dumb = term != nullptr && std::string_view(term) == "dumb";
  shown_ = !quiet && !dumb && ::isatty(STDERR_FILENO) == 1;
  const char* no_color = std::getenv("NO_COLOR");
  colour_ = no_color == nullptr || *no_color == '\0';
}

void Progress::update(std::string_view label, double fraction) {
  if (!shown_) return;
  const Clock::time_point now = Clock::now();
  if (!started_) begin_ = now;
  const bool due =
      !started_ || label != last_label_ || now - last_ >= std::chrono::milliseconds(100);
  started_ = true;
  if (!due) return;
  last_ = now;
  last_label_ = label;
  const Seconds elapsed(std::chrono::duration<double>(now - begin_).count());
  // One column stays free: a full line would wrap.
  const std::string line = progress_line(label, fraction, elapsed, terminal_width() - 1);
  fmt::print(stderr, "\r\x1b[K{}{}{}", colour_ ? "\x1b[36m" : "", line, colour_ ? "\x1b[0m" : "");
  std::fflush(stderr);
  drawn_ = true;
}

void Progress::finish() {
  if (!drawn_) return;
  fmt::print(stderr, "\r\x1b[K");
  std::fflush(stderr);
  drawn_ = false;
}

}  // namespace joulediff
