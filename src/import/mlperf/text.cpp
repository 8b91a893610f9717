#include "import/mlperf/text.h"

#include <charconv>
#include <chrono>
#include <cstring>

#include <fmt/format.h>

#include "base/format.h"

namespace joulediff::mlperf {
namespace {

// `count` digits at `at` as a number, or a negative one.
int digits(std::string_view text, std::size_t at, std::size_t count) {
  int value = 0;
  for (std::size_t i = at; i < at + count; ++i) {
    if (text[i] < '0' || text[i] > '9') return -1;
    value = value * 10 + (text[i] - '0');
  }
  return value;
}

}  // namespace

bool Lines::next(std::string_view& line) {
  if (rest_.empty()) return false;
  const void* end = std::memchr(rest_.data(), '\n', rest_.size());
  const std::size_t length =
      end == nullptr ? rest_.size()
                     : static_cast<std::size_t>(static_cast<const char*>(end) - rest_.data());
  line = rest_.substr(0, length);
  rest_.remove_prefix(std::min(rest_.size(), length + 1));
  if (line.ends_with('\r')) line.remove_suffix(1);
  ++number_;
  return true;
}

std::string_view take_field(std::string_view& rest) {
  const std::size_t comma = rest.find(',');
  const std::string_view field = rest.substr(0, comma);
  rest.remove_prefix(comma == std::string_view::npos ? rest.size() : comma + 1);
  return field;
}

std::optional<double> number(std::string_view text) {
  // "32.530000": digits enough for a double, and no need for the general reading.
  std::uint64_t mantissa = 0;
  std::size_t i = text.starts_with('-') ? 1 : 0, seen = 0, fraction = 0;
  bool point = false;
  for (; i < text.size() && seen < 15; ++i) {
    if (text[i] == '.' && !point) {
      point = true;
    } else if (text[i] >= '0' && text[i] <= '9') {
      mantissa = mantissa * 10 + static_cast<std::uint64_t>(text[i] - '0');
      ++seen;
      fraction += point ? 1 : 0;
    } else {
      break;
    }
  }
  constexpr double kTens[] = {1,   1e1, 1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                              1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15};
  if (i == text.size() && seen > 0 && seen < 15) {
    const double value = static_cast<double>(mantissa) / kTens[fraction];  // both exact
    return text.starts_with('-') ? -value : value;
  }
  double value = 0;
  if (text.starts_with('+')) text.remove_prefix(1);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value)) return {};
  return value;
}

std::optional<Nanoseconds> Clock::read(std::string_view text) {
  // 01234567890123456789012
  // MM-DD-YYYY HH:MM:SS.mmm
  if (text.size() < 19 || text[10] != ' ' || text[13] != ':' || text[16] != ':') return {};
  if (text.substr(0, 10) != date_) {
    if (text[2] != '-' || text[5] != '-') return {};
    int month = digits(text, 0, 2), day = digits(text, 3, 2);
    const int year = digits(text, 6, 4);
    if (day_first_) std::swap(month, day);
    if (month < 1 || day < 1 || year < 1970 || year > 2200) return {};
    const std::chrono::year_month_day date{std::chrono::year(year),
                                           std::chrono::month(static_cast<unsigned>(month)),
                                           std::chrono::day(static_cast<unsigned>(day))};
    if (!date.ok()) return {};
    date_ = text.substr(0, 10);
    midnight_ = std::chrono::sys_days(date).time_since_epoch().count() * 86'400'000'000'000;
  }
  const int hours = digits(text, 11, 2), minutes = digits(text, 14, 2),
            seconds = digits(text, 17, 2);
  if (hours < 0 || hours > 23 || minutes < 0 || minutes > 59 || seconds < 0 || seconds > 60)
    return {};
  Nanoseconds nanoseconds = 0;
  if (text.size() > 19) {
    if (text[19] != '.' || text.size() == 20 || text.size() > 29) return {};
    Nanoseconds unit = 1'000'000'000;
    for (std::size_t i = 20; i < text.size(); ++i) {
      if (text[i] < '0' || text[i] > '9') return {};
      unit /= 10;
      nanoseconds += (text[i] - '0') * unit;
    }
  }
  return midnight_ + ((hours * 60LL + minutes) * 60 + seconds) * 1'000'000'000 + nanoseconds;
}

std::optional<std::string_view> json_field(std::string_view line, std::string_view key) {
  for (std::size_t at = line.find(key); at != std::string_view::npos; at = line.find(key, at + 1)) {
    const std::size_t end = at + key.size();
    if (at == 0 || line[at - 1] != '"' || end >= line.size() || line[end] != '"') continue;
    if (at >= 2 && line[at - 2] == '\\') continue;  // within a string
    std::size_t i = end + 1;
    const auto skip_blanks = [&] {
      while (i < line.size() && line[i] == ' ') ++i;
    };
    skip_blanks();
    if (i >= line.size() || line[i] != ':') continue;
    ++i;
    skip_blanks();
    if (i >= line.size()) return {};
    if (line[i] == '"') {
      const std::size_t begin = ++i;
      while (i < line.size() && line[i] != '"') i += line[i] == '\\' ? 2 : 1;
      if (i >= line.size()) return {};
      return line.substr(begin, i - begin);
    }
    const std::size_t begin = i;
    while (i < line.size() && line[i] != ',' && line[i] != '}' && line[i] != ' ') ++i;
    return line.substr(begin, i - begin);
  }
  return {};
}

void Faults::add(const std::string& file, std::size_t line, std::string_view what) {
  if (count_++ == 0) first_ = fmt::format("{}:{}: {}", file, line, truncated(printable(what), 60));
}

void Faults::report(Diagnostics& diagnostics, std::string_view remedy) const {
  if (count_ > 0)
    diagnostics.push_back({severity_, rule_, fmt::format("{}; {}", first_, remedy), count_});
}

}  // namespace joulediff::mlperf
