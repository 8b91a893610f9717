#include "import/mlperf/tiny.h"

#include <bit>
#include <cmath>

#include <fmt/format.h>

#include "base/format.h"
#include "import/mlperf/session.h"
#include "import/mlperf/text.h"

namespace joulediff::mlperf {
namespace {

float little_endian(std::string_view bytes, std::size_t at) {
  std::uint32_t bits = 0;
  for (std::size_t i = 0; i < 4; ++i)
    bits |= static_cast<std::uint32_t>(static_cast<unsigned char>(bytes[at + i])) << (8 * i);
  return std::bit_cast<float>(bits);
}

// "m-bm-cfg-name[ulp-ml]-key[model]-val[kws01]" and "m-model-[kws01]": what follows `mark` up to
// "]".
std::optional<std::string_view> bracketed(std::string_view line, std::string_view mark) {
  const std::size_t at = line.find(mark);
  if (at == std::string_view::npos) return {};
  const std::string_view rest = line.substr(at + mark.size());
  const std::size_t end = rest.find(']');
  return end == std::string_view::npos ? std::nullopt : std::optional(rest.substr(0, end));
}

std::string_view word(std::string_view& rest) {
  while (rest.starts_with(' ')) rest.remove_prefix(1);
  const std::string_view found = rest.substr(0, rest.find(' '));
  rest.remove_prefix(found.size());
  return found;
}

// The number after the colon of "  # Inferences :          30".
std::optional<double> figure(std::string_view line) {
  const std::size_t colon = line.rfind(':');
  if (colon == std::string_view::npos) return {};
  std::string_view rest = line.substr(colon + 1);
  return number(word(rest));
}

// "1821.699 uJ/inf.", "1.82 mJ/inf.": in uJ. None of a unit that is not known.
std::optional<double> microjoules(std::string_view rest) {
  constexpr std::pair<std::string_view, double> kUnits[] = {
      {"nJ", 1e-3}, {"uJ", 1}, {"mJ", 1e3}, {"J", 1e6}};
  const std::optional<double> value = number(word(rest));
  const std::string_view unit = word(rest);
  for (const auto& [name, factor] : kUnits)
    if (value && unit.substr(0, unit.find('/')) == name) return *value * factor;
  return {};
}

std::optional<double> figure_after(std::string_view line, std::string_view words) {
  const std::size_t at = line.find(words);
  if (at == std::string_view::npos) return {};
  std::string_view rest = line.substr(at + words.size());
  while (rest.starts_with(' ')) rest.remove_prefix(1);
  std::size_t end = rest.find_first_of(" %:");
  if (end == std::string_view::npos) end = rest.size();
  return number(rest.substr(0, end));
}

}  // namespace

void read_energy_trace(const std::string& file, std::string_view bytes, run::Tiny& tiny,
                       Diagnostics& diagnostics) {
  constexpr std::size_t kHeader = 5;
  const auto refuse = [&](std::string_view why) {
    diagnostics.push_back({Severity::error, "mlperf.trace", fmt::format("{} {}", file, why)});
  };
  if (bytes.size() < kHeader || static_cast<unsigned char>(bytes[0]) != 0xf1)
    return refuse("is no energy trace of the runner: it does not begin with 0xf1 and a rate");
  const double rate = little_endian(bytes, 1);
  if (!(rate > 0) || !(rate < 1e9)) return refuse("has no rate of samples above 0");
  tiny.rate = rate;
  if ((bytes.size() - kHeader) % 4 != 0) refuse("ends within a sample; it was cut short");
  const std::size_t count = (bytes.size() - kHeader) / 4;
  tiny.microjoules.reserve(count);
  for (std::size_t i = 0; i < count; ++i)
    tiny.microjoules.push_back(little_endian(bytes, kHeader + 4 * i));
}

void read_windows(const std::string& file, std::string_view text, run::Tiny& tiny,
                  Diagnostics& diagnostics) {
  const std::vector<double> instants = read_timestamps(file, text, diagnostics);
  for (std::size_t i = 1; i + 1 < instants.size(); i += 2)
    tiny.windows.push_back({instants[i], instants[i + 1], {}, {}, {}});
  if (!instants.empty() && instants.size() % 2 == 0)
    diagnostics.push_back(
        {Severity::warning, "mlperf.timestamps",
         fmt::format("{} ends within a window: {} instants", file, instants.size())});
}

void read_tiny_results(const std::string& file, std::string_view text, run::Tiny& tiny,
                       Diagnostics& diagnostics) {
  std::size_t energies = 0, performances = 0;
  run::TinyWindow* window = nullptr;
  Faults broken(Severity::warning, "mlperf.no_number");
  const auto window_at = [&](std::size_t& seen) {
    const std::size_t i = seen++;
    return i < tiny.windows.size() ? &tiny.windows[i] : nullptr;
  };
  Lines lines(text);
  for (std::string_view line; lines.next(line);) {
    if (line.find("Energy data for window") != std::string_view::npos) window = window_at(energies);
    if (line.find("Performance results for window") != std::string_view::npos)
      window = window_at(performances);
    constexpr std::string_view kMedian = "Median energy cost is";
    const std::size_t colon = line.rfind(':');
    const auto energy = [&](std::string_view rest) {
      const auto value = microjoules(rest);
      if (!value) broken.add(file, lines.number(), line);
      return value;
    };
    if (const std::size_t at = line.find(kMedian); at != std::string_view::npos)
      tiny.reported = energy(line.substr(at + kMedian.size()));
    if (window == nullptr) continue;
    if (line.find("  Energy/Inf.") != std::string_view::npos) {
      window->per_inference = energy(line.substr(colon + 1));
    } else if (line.find("  Energy ") != std::string_view::npos) {
      window->microjoules = energy(line.substr(colon + 1));
    } else if (line.find("# Inferences") != std::string_view::npos) {
      window->inferences = figure(line);
    }
  }
  broken.report(diagnostics, "no energy in nJ, uJ, mJ or J is read there");
  if (energies != tiny.windows.size())
    diagnostics.push_back({Severity::warning, "mlperf.windows",
                           fmt::format("{} has {} windows, the timestamps {}; file both of one "
                                       "run",
                                       file, energies, tiny.windows.size())});
}

void read_tiny_log(std::string_view text, run::Tiny& tiny) {
  Lines lines(text);
  for (std::string_view line; lines.next(line);) {
    if (const auto model = bracketed(line, "m-model-[")) tiny.model = *model;
    if (const auto millivolts = bracketed(line, "m-voltage-mv["))
      tiny.millivolts = number(*millivolts);
  }
}

void read_tiny_accuracy(std::string_view text, run::Tiny& tiny) {
  Lines lines(text);
  for (std::string_view line; lines.next(line);) {
    // As EEMBC's runner says it, and as MLCommons' does.
    constexpr std::pair<const char*, const char*> kMarks[] = {
        {"Top-1", "Top-1:"}, {"Top-1", "Top 1% ="}, {"AUC", "AUC:"}, {"AUC", "AUC ="}};
    for (const auto& [metric, mark] : kMarks)
      if (const auto value = figure_after(line, mark)) tiny.qualities[metric] = *value;
  }
}

}  // namespace joulediff::mlperf
