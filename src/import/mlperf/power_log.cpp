// A line is a list of names and values: Time, Watts, Volts, Amps, PF and Mark of the sum, then
// those of each channel after ChN (by the same clock) or of each analyzer after AnalyzerN (by its
// own).
//
// Dates are MM-DD-YYYY; a log with a month beyond 12 is taken as DD-MM-YYYY as a whole. A line that
// is no reading is counted and left out; a reading whose watts are no number stays, as NaN: it is
// the meter that failed, not the log.
#include "import/mlperf/power_log.h"

#include <array>
#include <charconv>
#include <limits>

#include <fmt/format.h>

#include "import/mlperf/text.h"

namespace joulediff::mlperf {
namespace {

constexpr std::size_t kMaxAnalyzers = 64;

struct Values {
  std::string_view time, watts, amps, power_factor;
};

// One line, taken apart. The first of `analyzers` is the sum.
struct Row {
  Values total;
  std::array<Values, kMaxAnalyzers> analyzers;
  std::size_t analyzer_count = 0;
  std::size_t channels = 0;
  double channel_sum = 0;
  bool channels_known = true;
  bool shifted = false;  // a number stands where a name should: "Watts,30,12" by a decimal comma
};

bool starts_section(std::string_view name, std::string_view kind) {
  return name.size() > kind.size() && name.starts_with(kind) && name[kind.size()] >= '0' &&
         name[kind.size()] <= '9';
}

void take_apart(std::string_view line, Row& row) {
  row.analyzer_count = row.channels = 0;
  row.channel_sum = 0;
  row.channels_known = true;
  row.shifted = false;
  row.total = {};
  Values* target = &row.total;
  bool in_channel = false;
  while (!line.empty()) {
    const std::string_view name = take_field(line);
    if (starts_section(name, "Analyzer")) {
      if (row.analyzer_count == kMaxAnalyzers) return;
      target = &row.analyzers[row.analyzer_count++];
      *target = {};
      in_channel = false;
      continue;
    }
    if (starts_section(name, "Ch")) {
      in_channel = true;
      ++row.channels;
      continue;
    }
    row.shifted = row.shifted || number(name).has_value();
    const std::string_view value = take_field(line);
    if (in_channel) {
      if (name != "Watts") continue;
      const std::optional<double> watts = number(value);
      row.channels_known = row.channels_known && watts.has_value();
      row.channel_sum += watts.value_or(0);
    } else if (name == "Time") {
      target->time = value;
    } else if (name == "Watts") {
      target->watts = value;
    } else if (name == "Amps") {
      target->amps = value;
    } else if (name == "PF") {
      target->power_factor = value;
    }
  }
}

double watts_of(std::string_view text) {
  return number(text).value_or(std::numeric_limits<double>::quiet_NaN());
}

void append(run::PowerSeries& series, Nanoseconds time, const Values& values) {
  series.time.push_back(time);
  series.watts.push_back(watts_of(values.watts));
  series.amps.push_back(static_cast<float>(watts_of(values.amps)));
  series.power_factor.push_back(static_cast<float>(watts_of(values.power_factor)));
}

struct Reader {
  std::string file;
  bool day_first;
  Faults no_time{Severity::warning, "mlperf.no_time"};
  Faults no_watts{Severity::warning, "mlperf.no_watts"};
  Faults no_number{Severity::warning, "mlperf.no_number"};
  Faults over_range{Severity::warning, "mlperf.over_range"};
  Faults shifted{Severity::error, "mlperf.decimal_comma"};
  Faults analyzers{Severity::warning, "mlperf.analyzers"};
  bool day_beyond_month = false;  // a date that is one only with the day first

  run::PowerLog read(std::string_view text);
};

run::PowerLog Reader::read(std::string_view text) {
  run::PowerLog log;
  log.file = file;
  log.day_first = day_first;
  Clock clock(day_first), other(!day_first);
  std::vector<Clock> clocks;
  Row row;
  Lines lines(text);
  for (std::string_view line; lines.next(line);) {
    if (line.empty()) continue;
    take_apart(line, row);
    const std::optional<Nanoseconds> time = clock.read(row.total.time);
    if (!time) {
      day_beyond_month = day_beyond_month || other.read(row.total.time).has_value();
      no_time.add(file, lines.number(), line);
      continue;
    }
    if (row.total.watts.empty()) {
      no_watts.add(file, lines.number(), line);
      continue;
    }
    if (row.shifted) {
      shifted.add(file, lines.number(), line);
      row.total.watts = row.total.amps = row.total.power_factor = "?";
      row.channels = row.analyzer_count = 0;
    }
    append(log.total, *time, row.total);
    if (std::abs(log.total.watts.back()) >= kOverRange)
      over_range.add(file, lines.number(), row.total.watts);
    if (!row.shifted && std::isnan(log.total.watts.back()))
      no_number.add(file, lines.number(), row.total.watts);
    if (row.channels > 0) {
      log.channels = std::max(log.channels, row.channels);
      const double off = std::abs(row.channel_sum - log.total.watts.back());
      if (row.channels_known && off > log.channel_error) log.channel_error = off;
    }
    if (log.analyzers.empty() && log.total.size() == 1) {
      for (std::size_t i = 0; i < row.analyzer_count; ++i) {
        log.analyzers.push_back({fmt::format("analyzer {}", i + 1), {}, {}, {}, {}});
        clocks.emplace_back(day_first);
      }
    }
    if (row.analyzer_count != log.analyzers.size())
      analyzers.add(file, lines.number(), fmt::format("{} analyzers", row.analyzer_count));
    for (std::size_t i = 0; i < std::min(row.analyzer_count, log.analyzers.size()); ++i) {
      const std::optional<Nanoseconds> its = clocks[i].read(row.analyzers[i].time);
      if (its && !row.analyzers[i].watts.empty())
        append(log.analyzers[i], *its, row.analyzers[i]);
      else
        no_time.add(file, lines.number(), line);
    }
  }
  return log;
}

}  // namespace

run::PowerLog read_power_log(const std::string& file, std::string_view text,
                             Diagnostics& diagnostics) {
  Reader reader{.file = file, .day_first = false};
  run::PowerLog log = reader.read(text);
  if (reader.day_beyond_month) {
    Reader swapped{.file = file, .day_first = true};
    run::PowerLog again = swapped.read(text);
    if (swapped.no_time.count() < reader.no_time.count()) {
      diagnostics.push_back({Severity::warning, "mlperf.day_first",
                             fmt::format("{} writes dates as DD-MM-YYYY; it is read so, though "
                                         "PTDaemon writes MM-DD-YYYY: set its locale",
                                         file)});
      log = std::move(again);
      reader = swapped;
    }
  }
  reader.no_time.report(diagnostics,
                        "a reading begins with Time,MM-DD-YYYY HH:MM:SS.mmm: it is "
                        "left out");
  reader.no_watts.report(diagnostics, "the reading has no Watts: it is left out");
  reader.no_number.report(diagnostics, "the meter gave no number: no power is known then");
  reader.over_range.report(diagnostics, kNoReading);
  reader.shifted.report(diagnostics,
                        "a number stands where a name should, as with a decimal comma: no power is "
                        "known then; set the locale of PTDaemon");
  reader.analyzers.report(diagnostics, "the first line has another number of analyzers");
  if (log.total.size() == 0)
    diagnostics.push_back({Severity::error, "mlperf.no_readings",
                           fmt::format("{} holds no reading; file the log of PTDaemon", file)});
  return log;
}

}  // namespace joulediff::mlperf
