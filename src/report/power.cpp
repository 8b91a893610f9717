#include "report/power.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/format.h"
#include "base/text_table.h"
#include "report/interval.h"

namespace joulediff::report {
namespace {

using Json = nlohmann::ordered_json;
using meter::PowerCurve;
using meter::PowerSegment;

// What the block did over a time.
struct Part {
  std::string what;
  Nanoseconds begin = 0, end = 0;
};

std::string_view name_of(run::Pass pass) {
  switch (pass) {
    case run::Pass::warmup: return "warm-up";
    case run::Pass::values: return "values";
    case run::Pass::order: return "order";
    case run::Pass::trace: return "trace";
    case run::Pass::replay: return "replay";
  }
  return "?";
}

std::string_view name_of(run::ReplayKind kind) {
  switch (kind) {
    case run::ReplayKind::static_power: return "spinning kernel";
    case run::ReplayKind::idle: return "idle";
    case run::ReplayKind::op:
    case run::ReplayKind::cold: break;
  }
  return "replay";
}

// The passes and the replays in time, those of one name that follow one another as one; the whole
// block last.
std::vector<Part> parts_of(const run::Block& block, const PowerCurve& curve) {
  std::vector<Part> all;
  for (const run::Step& step : block.steps)
    if (step.pass != run::Pass::replay)
      all.push_back({std::string(name_of(step.pass)), step.begin, step.end});
  for (const run::Replay& replay : block.replays)
    all.push_back({std::string(name_of(replay.kind)), replay.begin, replay.end});
  // A trace whose steps nobody marked is that of its kernels.
  const run::KernelSeries& trace = block.trace_kernels;
  if (trace.size() > 0 && std::ranges::none_of(all, [](const Part& one) {
        return one.what == name_of(run::Pass::trace);
      }))
    all.push_back({std::string(name_of(run::Pass::trace)), trace.start.front(),
                   trace.start.back() + trace.duration.back()});
  std::ranges::stable_sort(all, {}, &Part::begin);
  std::vector<Part> merged;
  for (Part& one : all)
    if (!merged.empty() && merged.back().what == one.what)
      merged.back().end = std::max(merged.back().end, one.end);
    else
      merged.push_back(std::move(one));
  merged.push_back({"all", curve.segments().front().begin, curve.segments().back().end});
  return merged;
}

// The part of it that the curve knows at its two ends: a board is read from its first tick on.
Part clipped(const PowerCurve& curve, Part part) {
  for (const PowerSegment& one : curve.segments())
    if (one.end > part.begin) {
      if (!one.known) part.begin = std::max(part.begin, one.end);
      if (one.known) break;
    }
  for (auto one = curve.segments().rbegin(); one != curve.segments().rend(); ++one)
    if (one->begin < part.end) {
      if (!one->known) part.end = std::min(part.end, one->begin);
      if (one->known) break;
    }
  return part;
}

// "412 W ±1.2 %".
std::string power(const std::optional<Energy>& energy, double seconds) {
  if (!energy) return "unknown";
  return with_unit(rules::Interval{energy->joules.value / seconds, energy->low.value / seconds,
                                   energy->high.value / seconds},
                   "W");
}

// The least and the highest mean of the segments in a part.
std::pair<std::string, std::string> extremes(const PowerCurve& curve, const Part& part) {
  std::optional<Watts> least, most;
  for (const PowerSegment& one : curve.segments()) {
    if (!one.known || one.begin < part.begin || one.end > part.end) continue;
    least = std::min(least.value_or(one.watts), one.watts);
    most = std::max(most.value_or(one.watts), one.watts);
  }
  const auto text = [](const std::optional<Watts>& watts) {
    return watts ? format(*watts) : std::string("-");
  };
  return {text(least), text(most)};
}

// By how many seconds of it each source gives its shape; the largest first.
std::vector<std::pair<run::Source, double>> sources_of(const PowerCurve& curve) {
  std::map<run::Source, double> seconds;
  for (const PowerSegment& one : curve.segments())
    if (one.known) seconds[one.source] += one.seconds().value;
  std::vector<std::pair<run::Source, double>> all(seconds.begin(), seconds.end());
  std::ranges::stable_sort(all, std::greater<>(), [](const auto& one) { return one.second; });
  return all;
}

double usual_length(const PowerCurve& curve, run::Source source) {
  std::vector<double> lengths;
  for (const PowerSegment& one : curve.segments())
    if (one.known && one.source == source) lengths.push_back(one.seconds().value);
  std::ranges::nth_element(lengths, lengths.begin() + std::ssize(lengths) / 2);
  return lengths[lengths.size() / 2];
}

const char* words(run::Source source) {
  switch (source) {
    case run::Source::nvml_power_samples: return "ring of samples";
    case run::Source::nvml_power_instant: return "instant field";
    case run::Source::nvml_power_average: return "averaged field";
    case run::Source::amd_power: return "power field";
    default: return "energy counter's steps";
  }
}

std::string provenance(const PowerCurve& curve) {
  std::string text;
  double all = 0;
  const auto sources = sources_of(curve);
  for (const auto& [source, seconds] : sources) all += seconds;
  for (const auto& [source, seconds] : sources) {
    if (seconds < 0.005 * all && !text.empty()) continue;
    text +=
        fmt::format("{}{} ({} of the time, {} each)", text.empty() ? "" : ", ", words(source),
                    format_percent(seconds / all), format(Seconds(usual_length(curve, source))));
  }
  const bool slow = sources.front().first == run::Source::nvml_power_average;
  return "read from: " + text + "\n" +
         (curve.closed ? "its joules are the energy counter's\n"
                       : "no energy counter: its joules are the field's\n") +
         (slow ? "a mean over a second: what changed faster is not resolved\n" : "");
}

// One character for each of equal times: the mean power from 0 to the highest of them.
std::string line_of_blocks(const PowerCurve& curve) {
  constexpr int kColumns = 80;
  constexpr const char* kBlocks[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  const Nanoseconds begin = curve.segments().front().begin;
  const Nanoseconds length = curve.segments().back().end - begin;
  std::vector<std::optional<double>> watts;
  double most = 0;
  for (int i = 0; i < kColumns; ++i) {
    const Nanoseconds from = begin + length * i / kColumns,
                      to = begin + length * (i + 1) / kColumns;
    const auto energy = curve.energy(from, to);
    watts.push_back(energy ? std::optional(energy->joules.value / to_seconds(to - from).value)
                           : std::nullopt);
    most = std::max(most, watts.back().value_or(0));
  }
  std::string line;
  for (const auto& one : watts)
    line +=
        !one ? "?" : kBlocks[std::clamp(static_cast<int>(8 * *one / std::max(most, 1e-9)), 0, 7)];
  return fmt::format(
      "  {}\n  from 0 to {}; {} a character{}\n", line, format(Watts(most)),
      format(to_seconds(length) / kColumns),
      std::ranges::any_of(watts, [](const auto& one) { return !one; }) ? "; ?: unknown" : "");
}

std::string board_name(const run::Run& run, const PowerCurve& curve) {
  const std::string& uuid = curve.meter.channels.front();
  const auto device = std::ranges::find(run.devices, uuid, &run::Device::uuid);
  const std::string name = device == run.devices.end() ? run.manifest.device : device->name;
  return name.empty() ? uuid : uuid.empty() ? name : name + " " + uuid;
}

Json energy_json(const std::optional<Energy>& energy) {
  if (!energy)
    return {{"joules", nullptr}, {"low", nullptr}, {"high", nullptr}, {"standing", nullptr}};
  return {{"joules", energy->joules.value},
          {"low", energy->low.value},
          {"high", energy->high.value},
          {"standing", name(energy->standing)}};
}

// Lists of numbers and words on a line each: there are thousands.
std::string columns_on_lines(const std::string& text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    out += text[i];
    if (text[i] != '[') continue;
    const std::size_t end = text.find_first_of("[]{}", i + 1);
    if (end == std::string::npos || text[end] != ']') continue;
    for (++i; i < end; ++i)
      if (text[i] != '\n' && (text[i] != ' ' || text[i - 1] == ',')) out += text[i];
    out += ']';
  }
  return out;
}

Json segments_json(const PowerCurve& curve) {
  const auto milliwatts = [](Watts watts) { return std::round(1e3 * watts.value) / 1e3; };
  Json begin = Json::array(), end = begin, watts = begin, low = begin, high = begin, from = begin;
  for (const PowerSegment& one : curve.segments()) {
    begin.push_back(one.begin);
    end.push_back(one.end);
    watts.push_back(one.known ? Json(milliwatts(one.watts)) : Json(nullptr));
    low.push_back(one.known ? Json(milliwatts(one.low)) : Json(nullptr));
    high.push_back(one.known ? Json(milliwatts(one.high)) : Json(nullptr));
    from.push_back(one.known ? Json(meter::name_of(one.source)) : Json(nullptr));
  }
  return {{"begin_ns", std::move(begin)}, {"end_ns", std::move(end)}, {"watts", std::move(watts)},
          {"low", std::move(low)},        {"high", std::move(high)},  {"source", std::move(from)}};
}

}  // namespace

std::string power_text(const PowerPage& page) {
  std::string out;
  for (const PowerCurve& curve : page.curves) {
    const run::Block& block = page.run->blocks[curve.block];
    out += fmt::format("{}Power of {}", out.empty() ? "" : "\n",
                       printable(board_name(*page.run, curve)));
    if (page.run->blocks.size() > 1)
      out += fmt::format(", process {} of {}", curve.block + 1, page.run->blocks.size());
    out += "\n\n" + line_of_blocks(curve) + "\n";
    TextTable table({{"what ran"},
                     {"from", Align::right},
                     {"for", Align::right},
                     {"energy", Align::right},
                     {"mean power", Align::right},
                     {"lowest", Align::right},
                     {"highest", Align::right}});
    const Nanoseconds zero = curve.segments().front().begin;
    for (Part part : parts_of(block, curve)) {
      part = clipped(curve, part);
      const double seconds = to_seconds(part.end - part.begin).value;
      const auto energy = curve.energy(part.begin, part.end);
      const auto [least, most] = extremes(curve, part);
      table.add({part.what, format(to_seconds(part.begin - zero)), format(Seconds(seconds)),
                 energy ? format(energy->joules) : "unknown", power(energy, seconds), least, most});
    }
    out += table.text() + "\n" + provenance(curve);
  }
  return out;
}

std::string power_json(const PowerPage& page) {
  Json boards = Json::array();
  for (const PowerCurve& curve : page.curves) {
    Json parts = Json::array();
    for (Part part : parts_of(page.run->blocks[curve.block], curve)) {
      part = clipped(curve, part);
      Json one{{"what", part.what}, {"begin_ns", part.begin}, {"end_ns", part.end}};
      one.update(energy_json(curve.energy(part.begin, part.end)));
      parts.push_back(std::move(one));
    }
    boards.push_back({{"board", curve.meter.channels.front()},
                      {"block", curve.block},
                      {"closed_against", curve.closed ? Json(curve.meter.name) : Json(nullptr)},
                      {"systematic", *curve.meter.systematic},
                      {"parts", std::move(parts)},
                      {"segments", segments_json(curve)}});
  }
  const Json all{{"schema", "joulediff.power/1"}, {"boards", std::move(boards)}};
  return columns_on_lines(all.dump(2)) + "\n";
}

}  // namespace joulediff::report
