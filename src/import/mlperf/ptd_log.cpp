// ptd_logs.txt: `MM-DD-YYYY HH:MM:SS.mmm: text`, between lines of other kinds.
#include <fmt/format.h>

#include "base/format.h"
#include "import/mlperf/session.h"
#include "import/mlperf/text.h"

namespace joulediff::mlperf {
namespace {

constexpr std::size_t kTimeWidth = 23;
constexpr std::size_t kMaxTexts = 1000;

// "Uncertainty 1.02%, which is above 1.00% limit" -> "Uncertainty N%, which is above N% limit".
std::string without_numbers(std::string_view text) {
  std::string out;
  bool in_number = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const auto digit_at = [&](std::size_t at) {
      return at < text.size() && text[at] >= '0' && text[at] <= '9';
    };
    const bool exponent = (c == 'e' || c == 'E') && digit_at(i + 1);
    const bool number = digit_at(i) || (in_number && ((c == '.' && digit_at(i + 1)) || exponent));
    if (number && !in_number) out += 'N';
    if (!number) out += c;
    in_number = number;
  }
  return out;
}

std::optional<double> percent_after(std::string_view text, std::string_view words) {
  const std::size_t at = text.find(words);
  if (at == std::string_view::npos) return {};
  std::string_view rest = text.substr(at + words.size());
  while (rest.starts_with(' ')) rest.remove_prefix(1);
  const std::size_t sign = rest.find('%');
  if (sign == std::string_view::npos) return {};
  const auto percent = number(rest.substr(0, sign));
  return percent ? std::optional(*percent / 100) : std::nullopt;
}

struct Reader {
  run::PtdLog log{};
  std::map<std::string, std::uint32_t> known{};
  std::string last_text{};  // the same complaint comes every second
  std::uint32_t last_id = 0;

  std::uint32_t text(std::string_view words) {
    if (words == last_text && !log.texts.empty()) return last_id;
    const std::string plain = without_numbers(words);
    auto found = known.find(plain);
    if (found == known.end()) {
      if (log.texts.size() >= kMaxTexts) return static_cast<std::uint32_t>(kMaxTexts - 1);
      found = known.emplace(plain, static_cast<std::uint32_t>(log.texts.size())).first;
      log.texts.push_back(plain);
    }
    last_text = words;
    last_id = found->second;
    return last_id;
  }

  void event(Nanoseconds time, Severity severity, std::string_view words) {
    while (words.starts_with(' ')) words.remove_prefix(1);
    run::PtdEvent event{time, severity, text(words)};
    if (words.starts_with("Uncertainty") && words.find("above") != std::string_view::npos)
      event.uncertainty = percent_after(words, "Uncertainty");
    event.multichannel = words.find("channel") != std::string_view::npos;
    log.events.push_back(event);
  }
};

}  // namespace

run::PtdLog read_ptd_log(const std::string& file, std::string_view text, Diagnostics& diagnostics) {
  Reader reader;
  run::PtdLog& log = reader.log;
  log.file = file;
  Faults untimed(Severity::warning, "mlperf.untimed");
  Clock clock;
  Lines lines(text);
  for (std::string_view line; lines.next(line);) {
    if (line.size() < kTimeWidth + 2 || line[2] != '-') {
      if (line.starts_with("ERROR:") || line.starts_with("WARNING:"))
        untimed.add(file, lines.number(), line);
      continue;
    }
    std::string_view words = line.substr(kTimeWidth);
    if (!words.starts_with(": ")) continue;
    words.remove_prefix(2);
    const bool error = words.starts_with("ERROR:"), warning = words.starts_with("WARNING:");
    const bool go = words.starts_with("Go with mark "), done = words == "Completed test";
    const bool active =
        words.starts_with("Uncertainty checking for ") && words.ends_with("is activated");
    if (!error && !warning && !go && !done && !active) continue;
    const std::optional<Nanoseconds> time = clock.read(line.substr(0, kTimeWidth));
    if (!time) {
      untimed.add(file, lines.number(), line);
      continue;
    }
    if (error) reader.event(*time, Severity::error, words.substr(6));
    if (warning) reader.event(*time, Severity::warning, words.substr(8));
    if (go && words.find("_ranging") != std::string_view::npos && !log.ranging_begin)
      log.ranging_begin = *time;
    if (go && words.find("_testing") != std::string_view::npos && !log.testing_begin)
      log.testing_begin = *time;
    if (done && log.ranging_begin && !log.ranging_end) log.ranging_end = *time;
    if (active && !log.uncertainty_activated) log.uncertainty_activated = *time;
  }
  untimed.report(diagnostics, "the line has no time: it is left out");
  return std::move(reader.log);
}

}  // namespace joulediff::mlperf
