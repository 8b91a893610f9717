// Checks of the meter's own log, and of what it read.
#include <algorithm>
#include <cmath>

#include "rules/mlperf_rules.h"

namespace joulediff::rules {
namespace {

using run::Inference;
using run::PtdEvent;

struct Window {
  Nanoseconds begin;
  Nanoseconds end;
  bool has(Nanoseconds time) const { return begin < time && time < end; }
};

std::optional<Window> testing_window(const Inference& i) {
  const run::LoadGenLog& log = i.testing.loadgen;
  if (!log.power_begin || !log.power_end) return {};
  return Window{*log.power_begin, *log.power_end};
}

std::optional<Window> ranging_of(const run::PtdLog& ptd) {
  if (!ptd.ranging_begin || !ptd.ranging_end) return {};
  return Window{*ptd.ranging_begin, *ptd.ranging_end};
}

// Complaints that come with every ranging: the meter looks for its range.
bool common_in_ranging(const std::string& text) {
  for (const char* known :
       {"Can't evaluate uncertainty of this sample!", "Bad watts reading nan from ",
        "Bad amps reading nan from ", "Bad pf reading nan from ", "Bad volts reading nan from "})
    if (text.starts_with(known)) return true;
  return false;
}

// What the official scan makes of the log. It stops at the first thing that it warns of, so that
// nothing behind it is seen; its tolerance of 800 ms is added to seconds; and it knows the words of
// single channels only. The three functions below are this scan without the three.
struct Scan {
  Checked outcome = Checked::passed;
  std::string stopped_by;  // the complaint, where it stopped early
};

Scan official_scan(const Inference& i) {
  const run::PtdLog& ptd = i.ptd;
  const auto ranging = ranging_of(ptd);
  const auto load = testing_window(i);
  if (!ranging || !load) return {Checked::failed, {}};
  constexpr Nanoseconds kTolerance = 800'000'000'000;  // 800 s, though 800 ms were meant
  const Window inner{load->begin + kTolerance, load->end - kTolerance};
  for (const PtdEvent& event : ptd.events) {
    const std::string& text = ptd.texts[event.text];
    if (event.severity == Severity::error) {
      if (text == "USB.") return {Checked::warned, text};
      if (!ranging->has(event.time)) return {Checked::failed, text};
      if (!common_in_ranging(text)) return {Checked::warned, text};
    } else if (inner.has(event.time)) {
      const bool over = event.uncertainty && !event.multichannel;
      return {over ? Checked::failed : Checked::warned, text};
    }
  }
  return {};
}

std::string explanation(const Scan& scan, const Inference& i, bool multichannel) {
  const auto load = testing_window(i);
  if (multichannel && scan.stopped_by.starts_with("Uncertainty"))
    return "the checker does not know the words of a meter with several channels";
  if (!scan.stopped_by.empty() && scan.outcome == Checked::warned)
    return fmt::format("the checker stops at its first warning (\"{}\") and sees nothing behind it",
                       truncated(scan.stopped_by, 40));
  if (load && to_seconds(load->end - load->begin).value <= 1600)
    return "the checker adds its 800 ms to seconds: in a run of 1600 s or less it looks at nothing";
  return {};
}

}  // namespace

MlperfCheck uncertainty_activated(const Inference& i) {
  MlperfCheck check = passed("mlperf.uncertainty_on");
  const run::PtdLog& ptd = i.ptd;
  std::string problem;
  if (ptd.file.empty())
    problem = "ptd_logs.txt is missing";
  else if (!ranging_of(ptd))
    problem = "ptd_logs.txt marks no begin and end of ranging";
  else if (!ptd.uncertainty_activated)
    problem = "PTDaemon did not judge the uncertainty of its readings";
  else if (*ptd.uncertainty_activated >= *ptd.ranging_begin)
    problem = "PTDaemon judged the uncertainty of its readings only after ranging had begun";
  if (problem.empty()) return check;
  check.official = check.ours = Checked::failed;
  check.message = problem;
  check.remedy = "run PTDaemon with its check of uncertainty on, and file its log";
  return check;
}

MlperfCheck meter_errors(const Inference& i) {
  const Scan scan = official_scan(i);
  MlperfCheck check = passed("mlperf.meter_errors", scan.outcome);
  const auto load = testing_window(i);
  const auto ranging = ranging_of(i.ptd);
  if (!load || !ranging) {
    check.ours = Checked::unchecked;
    check.message = "no window is known to look at";
    check.remedy = "file the whole logs";
    return check;
  }
  std::uint64_t within = 0, elsewhere = 0, odd = 0;
  std::string first;
  for (const PtdEvent& event : i.ptd.events) {
    if (event.severity != Severity::error) continue;
    const std::string& text = i.ptd.texts[event.text];
    if (load->has(event.time)) {
      if (within++ == 0) first = text;
    } else if (!ranging->has(event.time)) {
      if (elsewhere++ == 0 && first.empty()) first = text;
    } else if (!common_in_ranging(text)) {
      if (odd++ == 0 && first.empty()) first = text;
    }
  }
  if (within + elsewhere + odd == 0) return check;
  check.ours = within > 0 ? Checked::failed : Checked::warned;
  check.message = fmt::format(
      "the meter reported {} errors in the window, {} of unusual kinds in "
      "ranging, {} elsewhere: \"{}\"",
      within, odd, elsewhere, truncated(first, 70));
  check.remedy = "mend what it complains of, and measure again";
  if (check.ours != check.official) check.why = explanation(scan, i, false);
  return check;
}

MlperfCheck uncertain_readings(const Inference& i) {
  const Scan scan = official_scan(i);
  // Where an error of the meter stopped the scan, that is the other check's.
  const bool here = scan.stopped_by.starts_with("Uncertainty");
  MlperfCheck check = passed("mlperf.uncertainty", here ? scan.outcome : Checked::passed);
  const auto load = testing_window(i);
  if (!load) {
    check.ours = Checked::unchecked;
    check.message = "no window is known to look at";
    check.remedy = "file the whole logs";
    return check;
  }
  std::uint64_t over = 0, unknown = 0;
  double worst = 0;
  bool multichannel = false;
  for (const PtdEvent& event : i.ptd.events) {
    if (event.severity != Severity::warning || !load->has(event.time)) continue;
    if (event.uncertainty) {
      ++over;
      worst = std::max(worst, *event.uncertainty);
      multichannel = multichannel || event.multichannel;
    } else if (i.ptd.texts[event.text].starts_with("Uncertainty unknown")) {
      ++unknown;
    }
  }
  if (over + unknown == 0) return check;
  check.ours = over > 0 ? Checked::failed : Checked::warned;
  std::string message;
  if (over > 0)
    message = fmt::format("{} in the window {} less certain than 1 % (the worst {})",
                          over == 1 ? "1 reading" : fmt::format("{} readings", over),
                          over == 1 ? "is" : "are", format_percent(worst));
  if (unknown > 0)
    message += fmt::format("{}the uncertainty of {} in the window is unknown", over > 0 ? ", " : "",
                           unknown == 1 ? "1 reading" : fmt::format("{} readings", unknown));
  check.message = message;
  check.remedy = "choose ranges that fit the load, or a meter for this power";
  if (check.ours != check.official) check.why = explanation(scan, i, multichannel);
  return check;
}

MlperfCheck reference_power(const Inference& i) {
  MlperfCheck check = passed("mlperf.reference_power");
  const auto ranging = measured(i.ranging), testing = measured(i.testing);
  if (!ranging || !testing) {
    check.official = Checked::failed;
    check.ours = Checked::unchecked;
    check.message = "the power of both runs is not known";
    check.remedy = "file both logs";
    return check;
  }
  const double change = testing->total.mean_positive / ranging->total.mean_positive - 1;
  if (change > -0.05) return check;
  check.official = check.ours = Checked::failed;
  check.message = fmt::format("the testing run draws {} against the ranging run's {} ({})",
                              format(testing->total.mean_positive),
                              format(ranging->total.mean_positive), format_percent(change));
  check.remedy = "run both in the same state of clocks and temperature";
  return check;
}

MlperfCheck valid_result(const Inference& i) {
  MlperfCheck check = passed("mlperf.valid", Checked::unchecked);
  const run::LoadGenLog& log = i.testing.loadgen;
  const bool streams = log.scenario == "SingleStream" || log.scenario == "MultiStream";
  const bool work =
      streams ? log.query_count.has_value()
              : log.tokens_per_second || log.samples_per_second || log.completed_per_second;
  if (log.validity == "VALID" && log.errors == 0 && work) return check;
  check.ours = Checked::failed;
  check.message =
      log.validity != "VALID" ? fmt::format("LoadGen calls the result {}",
                                            log.validity.empty() ? "nothing at all" : log.validity)
      : log.errors > 0        ? fmt::format("LoadGen logged {} errors", log.errors)
                              : fmt::format(
                             "LoadGen states no {}: how much was done is not "
                                    "known",
                             streams ? "result_query_count" : "result_samples_per_second");
  check.remedy = "submit a run that LoadGen calls VALID";
  return check;
}

MlperfCheck minimum_duration(const Inference& i) {
  MlperfCheck check = passed("mlperf.duration", Checked::unchecked);
  const auto load = testing_window(i);
  if (!load) {
    check.ours = Checked::unchecked;
    return check;
  }
  const double s = to_seconds(load->end - load->begin).value;
  if (s >= 600) return check;
  check.ours = Checked::failed;
  check.message = fmt::format("the window is {} long, 600 s are the least", short_time(Seconds(s)));
  check.remedy = "raise min_duration";
  return check;
}

MlperfCheck fixed_range(const Inference& i) {
  MlperfCheck check = passed("mlperf.fixed_range", Checked::unchecked);
  // The last ranges set before the second Go are those of the testing run.
  std::string volts, amps;
  std::size_t starts = 0;
  for (const run::Message& message : i.server.ptd_messages) {
    if (message.command.starts_with("Go,") && ++starts == 2) break;
    if (message.command.starts_with("SR,V,")) volts = message.command.substr(5);
    if (message.command.starts_with("SR,A,")) amps = message.command.substr(5);
  }
  if (starts < 2) {
    check.ours = Checked::unchecked;
    check.message = "server.json shows no testing run";
    check.remedy = "file the session as the tools left it";
    return check;
  }
  if (!volts.starts_with("Auto") && !amps.starts_with("Auto")) return check;
  check.ours = Checked::failed;
  check.message = fmt::format("the testing run has the ranges {} V and {} A", volts, amps);
  check.remedy = "fix both from the ranging run";
  return check;
}

MlperfCheck peak_current(const Inference& i) {
  MlperfCheck check = passed("mlperf.peak_current", Checked::unchecked);
  const auto load = testing_window(i);
  if (!load) {
    check.ours = Checked::unchecked;
    return check;
  }
  std::uint64_t peaks = 0;
  for (const PtdEvent& event : i.ptd.events)
    if (load->has(event.time) && i.ptd.texts[event.text].starts_with("Current exceeds peak"))
      ++peaks;
  if (peaks == 0) return check;
  check.ours = Checked::failed;
  check.message = fmt::format(
      "{} times the current's peak was beyond the meter's range: power was "
      "read wrongly then",
      peaks);
  check.remedy =
      "take a wider range: a poor power factor has peaks of more than three times the "
      "effective current";
  return check;
}

MlperfCheck log_clock(const Inference& i) {
  MlperfCheck check = passed("mlperf.log_clock", Checked::unchecked);
  const auto load = testing_window(i);
  const run::PowerSeries& series = i.testing.power.total;
  if (!load || series.size() == 0) {
    check.ours = Checked::unchecked;
    return check;
  }
  const auto [first, last] = std::ranges::minmax_element(series.time);
  if (*first <= load->begin && *last >= load->end) return check;
  const double offset = to_seconds(*first - load->begin).value;
  const double hours = std::round(offset / 3600);
  const auto shift = static_cast<Nanoseconds>(hours * 3600e9);
  constexpr double kWidestZone = 14;
  if (hours != 0 && std::abs(hours) <= kWidestZone &&
      *first - shift <= load->begin + 60'000'000'000 &&
      *last - shift >= load->end - 60'000'000'000) {
    check.ours = Checked::failed;
    check.message = fmt::format(
        "the readings are {:+.0f} h off LoadGen's window: daylight saving or "
        "a time zone",
        hours);
    check.remedy = "run PTDaemon and LoadGen in UTC";
    return check;
  }
  // Days and months changed places: 07-12 is 12-07 to the other.
  constexpr double kDay = 86400;
  if (std::abs(offset) > 27 * kDay && std::abs(std::remainder(offset, kDay)) < 3600) {
    check.ours = Checked::failed;
    check.message = fmt::format(
        "the readings are {:.0f} days off LoadGen's window: day and month "
        "may have changed places",
        offset / kDay);
    check.remedy = "write dates as MM-DD-YYYY";
    return check;
  }
  check.ours = Checked::failed;
  check.message =
      fmt::format("the readings span {:+.1f} s to {:+.1f} s of a window of {:.1f} s", offset,
                  to_seconds(*last - load->begin).value, to_seconds(load->end - load->begin).value);
  check.remedy = "file the log of the same run, whole";
  return check;
}

MlperfCheck summary_agrees(const Inference& i) {
  MlperfCheck check = passed("mlperf.summary", Checked::unchecked);
  const run::LoadGenLog& log = i.testing.loadgen;
  const auto rate = log.samples_per_second ? log.samples_per_second : log.completed_per_second;
  if (log.summary_validity.empty() && log.summary_scenario.empty()) {
    check.ours = Checked::warned;
    check.message = "no mlperf_log_summary.txt says anything of the result";
    check.remedy = "file the one of the run";
    return check;
  }
  const auto told = [](const std::string& text) { return text.empty() ? "unknown" : text; };
  std::string what;
  if (!log.summary_validity.empty() && log.summary_validity != log.validity)
    what = fmt::format("the result is {} in the detail, {} in the summary", told(log.validity),
                       log.summary_validity);
  if (!log.summary_scenario.empty() && log.summary_scenario != log.scenario)
    what = fmt::format("the scenario is {} in the detail, {} in the summary", told(log.scenario),
                       log.summary_scenario);
  if (rate && log.summary_rate && std::abs(*rate / *log.summary_rate - 1) > 1e-4)
    what = fmt::format("samples per second are {:g} in the detail, {:g} in the summary", *rate,
                       *log.summary_rate);
  if (what.empty() && rate && log.summary_rate && std::isnan(*log.summary_rate)) {
    check.ours = Checked::warned;
    check.message = "the samples per second of the summary are no number";
    check.remedy = "file the one of the run";
    return check;
  }
  if (what.empty()) return check;
  check.ours = Checked::failed;
  check.message = what;
  check.remedy = "file both of one run";
  return check;
}

}  // namespace joulediff::rules
