#include "base/format.h"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

namespace joulediff {

namespace {

// Three significant digits, as people write them: 1.50, 28.4, 284.
std::string three_digits(double value) {
  const double magnitude = std::fabs(value);
  if (magnitude >= 99.95) return fmt::format("{:.0f}", value);
  if (magnitude >= 9.995) return fmt::format("{:.1f}", value);
  return fmt::format("{:.2f}", value);
}

// The UTF-8 sequence at the front of a text; of length 0 where there is none.
struct Sequence {
  std::size_t length = 0;
  unsigned code = 0;
};

Sequence sequence(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned lead = byte(0);
  if (lead < 0x80) return {1, lead};
  const std::size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || text.size() < length) return {};
  unsigned code = lead & (0x7Fu >> length);
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return {};
    code = code << 6 | (byte(i) & 0x3F);
  }
  constexpr std::array<unsigned, 5> kSmallest{0, 0, 0x80, 0x800, 0x10000};
  const bool surrogate = code >= 0xD800 && code <= 0xDFFF;
  return code < kSmallest[length] || code > 0x10FFFF || surrogate ? Sequence{}
                                                                  : Sequence{length, code};
}

bool continuation(char byte) {
  return (static_cast<unsigned char>(byte) & 0xC0) == 0x80;
}

struct Range {
  unsigned first, last;
};

template <std::size_t N>
bool within(unsigned code, const std::array<Range, N>& ranges) {
  return std::ranges::any_of(
      ranges, [code](const Range& range) { return range.first <= code && code <= range.last; });
}

// Columns of a terminal: marks that combine take none, the East Asian wide and full-width ones and
// pictographs take two (Unicode Standard Annex 11).
std::size_t columns(unsigned code) {
  constexpr std::array<Range, 4> kNone{
      {{0x0300, 0x036F}, {0x1AB0, 0x1AFF}, {0x20D0, 0x20FF}, {0xFE00, 0xFE0F}}};
  constexpr std::array<Range, 9> kTwo{{{0x1100, 0x115F},
                                       {0x2E80, 0x303E},
                                       {0x3041, 0xA4CF},
                                       {0xAC00, 0xD7A3},
                                       {0xF900, 0xFAFF},
                                       {0xFE30, 0xFE6F},
                                       {0xFF00, 0xFF60},
                                       {0x1F300, 0x1FAFF},
                                       {0x20000, 0x3FFFD}}};
  return within(code, kNone) ? 0 : within(code, kTwo) ? 2 : 1;
}

// Controls move what a terminal shows; so do marks and overrides of the direction of text, and what
// has no width hides in it.
bool harmless(unsigned code) {
  constexpr std::array<Range, 6> kHarmful{{{0x00, 0x1F},
                                           {0x7F, 0x9F},
                                           {0x200B, 0x200F},
                                           {0x2028, 0x202E},
                                           {0x2060, 0x2069},
                                           {0xFEFF, 0xFEFF}}};
  return !within(code, kHarmful);
}

}  // namespace

std::string format_quantity(double value, std::string_view unit) {
  if (std::isnan(value)) return "unknown";
  if (std::isinf(value)) return fmt::format("{}infinite {}", value < 0 ? "-" : "", unit);
  if (value == 0) return fmt::format("0 {}", unit);
  constexpr std::array<std::string_view, 9> kPrefixes{"p", "n", "µ", "m", "", "k", "M", "G", "T"};
  constexpr std::size_t kUnity = 4;
  std::size_t prefix = kUnity;
  double scaled = value;
  while (std::fabs(scaled) >= 999.5 && prefix + 1 < kPrefixes.size()) {
    scaled /= 1000;
    ++prefix;
  }
  while (std::fabs(scaled) < 0.9995 && prefix > 0) {
    scaled *= 1000;
    --prefix;
  }
  const std::string digits =
      std::fabs(scaled) < 1e5 ? three_digits(scaled) : fmt::format("{:.2e}", scaled);
  return fmt::format("{} {}{}", digits, kPrefixes[prefix], unit);
}

std::string format(Joules joules) {
  return format_quantity(joules.value, "J");
}
std::string format(Watts watts) {
  return format_quantity(watts.value, "W");
}

std::string format(Seconds seconds) {
  if (!(seconds.value >= 120) || seconds.value > 1e12) return format_quantity(seconds.value, "s");
  const auto whole = static_cast<std::int64_t>(std::llround(seconds.value));
  if (whole < 3600) return fmt::format("{} min {} s", whole / 60, whole % 60);
  return fmt::format("{} h {} min", whole / 3600, whole % 3600 / 60);
}

std::string format(const Energy& energy) {
  const double value = std::fabs(energy.joules.value);
  const double down = (energy.joules - energy.low).value;
  const double up = (energy.high - energy.joules).value;
  if (std::isnan(energy.joules.value)) return "unknown";
  if (down == 0 && up == 0) return format(energy.joules);
  const double half = (down + up) / 2;
  const bool even = std::fabs(up - down) <= 0.2 * half;
  if (!even || half >= value) {
    return fmt::format("{} ({} to {})", format(energy.joules), format(energy.low),
                       format(energy.high));
  }
  return fmt::format("{} ±{}", format(energy.joules), format_percent(half / value));
}

std::string format_count(std::uint64_t count) {
  if (count < 1000) return fmt::format("{}", count);
  if (count < 10000) return fmt::format("{},{:03}", count / 1000, count % 1000);
  std::string text = format_quantity(static_cast<double>(count), "");
  if (text.back() == ' ') text.pop_back();
  return text;
}

std::string format_percent(double ratio) {
  if (!std::isfinite(ratio)) return "unknown";
  const double percent = ratio * 100;
  const double magnitude = std::fabs(percent);
  if (percent == 0 || magnitude >= 9.95) return fmt::format("{:.0f} %", percent);
  if (magnitude >= 0.095) {
    // "3 %", not "3.0 %".
    std::string text = fmt::format("{:.1f}", percent);
    if (text.ends_with(".0")) text.resize(text.size() - 2);
    return text + " %";
  }
  return fmt::format("{:.1g} %", percent);
}

std::string printable(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const Sequence next = sequence(text);
    if (next.length != 0 && harmless(next.code)) {
      out.append(text.substr(0, next.length));
    } else {
      out.push_back('?');
    }
    text.remove_prefix(std::max<std::size_t>(next.length, 1));
  }
  return out;
}

std::size_t width_of(std::string_view text) {
  std::size_t width = 0;
  while (!text.empty()) {
    const Sequence next = sequence(text);
    width += next.length == 0 ? 1 : columns(next.code);
    text.remove_prefix(std::max<std::size_t>(next.length, 1));
  }
  return width;
}

std::string truncated(std::string_view text, std::size_t width, Cut cut) {
  std::size_t have = width_of(text);
  if (have <= width) return std::string(text);
  if (width == 0) return "";
  while (have > width - 1) {
    std::size_t bytes = 1;  // of the character that goes
    if (cut == Cut::begin) {
      bytes = std::max<std::size_t>(sequence(text).length, 1);
      have -= width_of(text.substr(0, bytes));
      text.remove_prefix(bytes);
    } else {
      while (bytes < text.size() && continuation(text[text.size() - bytes])) ++bytes;
      have -= width_of(text.substr(text.size() - bytes));
      text.remove_suffix(bytes);
    }
  }
  return cut == Cut::begin ? "…" + std::string(text) : std::string(text) + "…";
}

}  // namespace joulediff
