#include "base/format.h"

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

// Length of the UTF-8 sequence at the front of `text`, 0 where there is none.
std::size_t sequence_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned lead = byte(0);
  if (lead < 0x80) return 1;
  const std::size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || text.size() < length) return 0;
  unsigned code = lead & (0x7Fu >> length);
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
    code = code << 6 | (byte(i) & 0x3F);
  }
  constexpr std::array<unsigned, 5> kSmallest{0, 0, 0x80, 0x800, 0x10000};
  const bool surrogate = code >= 0xD800 && code <= 0xDFFF;
  return code < kSmallest[length] || code > 0x10FFFF || surrogate ? 0 : length;
}

bool continuation(char byte) {
  return (static_cast<unsigned char>(byte) & 0xC0) == 0x80;
}

// C1 controls (U+0080 to U+009F) and the bidirectional overrides move what a terminal shows too.
bool harmless(std::string_view sequence) {
  if (sequence.size() == 1) {
    const auto byte = static_cast<unsigned char>(sequence[0]);
    return byte >= 0x20 && byte != 0x7F;
  }
  if (sequence.size() == 2) return !(sequence[0] == '\xC2' && sequence < "\xC2\xA0");
  return !(sequence >= "\xE2\x80\xA8" && sequence <= "\xE2\x80\xAE") &&
         !(sequence >= "\xE2\x81\xA6" && sequence <= "\xE2\x81\xA9");
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
  return fmt::format("{} {}{}", three_digits(scaled), kPrefixes[prefix], unit);
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
    const std::size_t length = sequence_length(text);
    if (length != 0 && harmless(text.substr(0, length))) {
      out.append(text.substr(0, length));
    } else {
      out.push_back('?');
    }
    text.remove_prefix(length == 0 ? 1 : length);
  }
  return out;
}

std::size_t width_of(std::string_view text) {
  std::size_t width = 0;
  for (const char byte : text) width += continuation(byte) ? 0 : 1;
  return width;
}

std::string truncated(std::string_view text, std::size_t width, Cut cut) {
  std::size_t have = width_of(text);
  if (have <= width) return std::string(text);
  if (width == 0) return "";
  const auto shorten = [&](auto drop) {
    while (have > width - 1) {
      drop();
      --have;
    }
  };
  if (cut == Cut::begin) {
    shorten([&] {
      text.remove_prefix(1);
      while (!text.empty() && continuation(text.front())) text.remove_prefix(1);
    });
    return "…" + std::string(text);
  }
  shorten([&] {
    while (!text.empty() && continuation(text.back())) text.remove_suffix(1);
    text.remove_suffix(1);
  });
  return std::string(text) + "…";
}

}  // namespace joulediff
