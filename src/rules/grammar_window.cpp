// The window, the readings in it, and the clocks that join the two.
#include <algorithm>
#include <cmath>

#include "rules/grammar_rules.h"

namespace joulediff::rules {
namespace {

std::string seconds(const Fact& s) {
  return s ? format(Seconds(*s)) : "unknown";
}

// Readings come a little late now and then: a window's edge may lie this far from the next.
constexpr double kJitter = 1.1;

}  // namespace

Objected window_from_markers(const Point& p) {
  if (p.window.scored == "log")
    return object(Severity::error, "the mean of the whole log is charged for the time of the run",
                  "integrate between the markers of the workload");
  if (p.window.markers && !*p.window.markers)
    return object(Severity::error, "the window comes from no marker of the workload",
                  "take its begin and end from what the workload logs");
  return {};
}

Objected overhang(const Point& p) {
  const auto& w = p.window;
  if (w.scored != "log" || !w.log_seconds || !w.seconds || !(*w.seconds > 0)) return {};
  const double over = (*w.log_seconds - *w.seconds) / *w.seconds;
  if (over <= 0.05) return {};
  std::string score;
  if (p.energy.joules && w.in_window_joules && *w.in_window_joules > 0)
    score = fmt::format("; the score is {} off the energy in the window",
                        format_percent(*p.energy.joules / *w.in_window_joules - 1));
  return object(
      Severity::warning,
      fmt::format("the log is {} longer than the run ({} against {}){}", format_percent(over),
                  seconds(w.log_seconds), seconds(w.seconds), score),
      "integrate between the markers of the workload");
}

Objected coverage(const Point& p) {
  if (!p.sampling.period) return {};
  const double limit = kJitter * *p.sampling.period;
  const double head = p.window.head.value_or(0), tail = p.window.tail.value_or(0);
  if (head <= limit && tail <= limit) return {};
  return object(Severity::error,
                fmt::format("no readings for the {} {} of the window, at one each {}",
                            head > limit ? "first" : "last", seconds(head > limit ? head : tail),
                            seconds(p.sampling.period)),
                "start the meter before the run and stop it after");
}

Objected duration(const Point& p) {
  if (!p.window.seconds) return {};
  const double s = *p.window.seconds;
  const bool tiny = p.kind == "tiny";
  if (s < (tiny ? 10 : 60))
    return object(
        Severity::error,
        fmt::format("the window is {} long, at least {} s are needed", seconds(s), tiny ? 10 : 60),
        "repeat the work within one window");
  if (p.kind == "inference" && s < 600)
    return object(Severity::warning,
                  fmt::format("the window is {} long, benchmarks ask for 600 s", seconds(s)),
                  "run for ten minutes");
  return {};
}

Objected phases_equal(const Point& a, const Point& b) {
  std::string text;
  const auto compare = [&text](std::string_view what, const Flag& x, const Flag& y) {
    if (!differ(x, y)) return;
    text += fmt::format("{}{} includes {}", text.empty() ? "" : ", ", *x ? "a" : "b", what);
  };
  compare("the loading of the model", a.phases.load, b.phases.load);
  compare("compilation", a.phases.compile, b.phases.compile);
  compare("warm-up", a.phases.warmup, b.phases.warmup);
  compare("checkpoints", a.phases.checkpoint, b.phases.checkpoint);
  if (text.empty()) return {};
  return object(Severity::error, fmt::format("the windows hold different phases: {}", text),
                "open and close both windows at the same phases");
}

Objected rate(const Point& p) {
  if (!p.sampling.period) return {};
  const double period = *p.sampling.period;
  // Meters that read each second are some ms late; that is no slower rate.
  if (p.kind != "tiny" && period > 1.02)
    return object(Severity::warning,
                  fmt::format("a reading comes each {}, the rule is one a second", seconds(period)),
                  "read the meter each second or more often");
  if (p.window.seconds && period > *p.window.seconds / 60)
    return object(Severity::warning,
                  fmt::format("{} between readings are more than a sixtieth of the window ({})",
                              seconds(period), seconds(p.window.seconds)),
                  "read more often, or run for longer");
  return {};
}

Objected gaps(const Point& p) {
  const auto& s = p.sampling;
  const bool wide = s.period && s.largest_gap && *s.largest_gap > 2 * *s.period;
  const double missing = s.missing_share.value_or(0);
  if (!wide && missing <= 0.001) return {};
  std::string text;
  if (s.largest_gap && s.period)
    text = fmt::format("the largest gap is {} at one reading each {}", seconds(s.largest_gap),
                       seconds(s.period));
  if (s.missing_share)
    text += fmt::format("{}{} of the readings are missing", text.empty() ? "" : "; ",
                        format_percent(missing));
  return object(missing > 0.01 ? Severity::error : Severity::warning, std::move(text),
                "find out why the logger pauses; measure again");
}

Objected invalid_readings(const Point& p) {
  const auto& s = p.sampling;
  if (!s.readings || !(*s.readings > 0)) return {};
  std::string kinds;
  double invalid = 0;
  for (const auto& [count, what] :
       {std::pair(s.nonpositive, "at or below 0 W"), std::pair(s.not_numbers, "no numbers"),
        std::pair(s.overflows, "overflows"), std::pair(s.duplicates, "with the time of another"),
        std::pair(s.backward, "earlier than the one before")}) {
    if (!count || !(*count > 0)) continue;
    invalid += *count;
    kinds += fmt::format("{}{} {}", kinds.empty() ? "" : ", ", said(count), what);
  }
  if (invalid == 0) return {};
  const double share = invalid / *s.readings;
  if (share >= 1)
    return object(Severity::error,
                  fmt::format("all of the {} readings are invalid: {}", said(s.readings), kinds),
                  "find out what the meter read, and measure again");
  return object(share > 0.001 ? Severity::error : Severity::warning,
                fmt::format("{} of {} readings are invalid: {}; leaving them out assumes that the "
                            "power was its mean meanwhile",
                            said(Fact(invalid)), said(s.readings), kinds),
                s.nonpositive.value_or(0) + s.overflows.value_or(0) > 0
                    ? "set the meter's range for the peak current, and measure again"
                    : "log each reading once, when it is made");
}

Objected integrator(const Point& p) {
  const Fact &t = p.energy.trapezoid, &m = p.energy.mean;
  if (!t || !m || !(*t > 0)) return {};
  const double off = *m / *t - 1;
  if (std::abs(off) <= 0.001) return {};
  return object(Severity::warning,
                fmt::format("mean power times time is {} off the integral ({} against {})",
                            format_percent(off), format(Joules(*m)), format(Joules(*t))),
                "integrate by trapezoid over the window");
}

Objected sensor_refresh(const Point& p) {
  const auto& s = p.sampling;
  if (s.longest_repeat && s.declared_period && *s.longest_repeat > *s.declared_period)
    return object(Severity::warning,
                  fmt::format("the sensor repeats a reading for {}, though it is said to renew it "
                              "each {}",
                              seconds(s.longest_repeat), seconds(s.declared_period)),
                  "take windows of many times that, or a faster sensor");
  if (s.averaging && s.period && *s.averaging > *s.period)
    return object(Severity::warning,
                  fmt::format("the sensor is a trailing mean over {}, read each {}",
                              seconds(s.averaging), seconds(s.period)),
                  "take windows of many times that, or shift the window by half of it");
  return {};
}

Objected clock_skew(const Point& p) {
  if (!p.clock.skew) return {};
  const double skew = *p.clock.skew;
  const double hours = std::round(skew / 3600);
  if (hours >= 1 && std::abs(skew - hours * 3600) < 60)
    return object(Severity::error,
                  fmt::format("the clocks are {:.0f} s apart: {:.0f} h of a time zone or daylight "
                              "saving",
                              skew, hours),
                  "run everything in UTC");
  if (skew <= 0.4) return {};
  return object(skew > 0.8 ? Severity::error : Severity::warning,
                fmt::format("the clocks are {} apart, at most 400 ms are fine", seconds(skew)),
                "synchronise both machines with one NTP server");
}

Objected skew_cost(const Point& p) {
  const Fact load = load_watts(p);
  if (!load || !p.idle.watts || !p.clock.skew || !p.window.seconds || !(*load > 0)) return {};
  const double bound =
      (1 - *p.idle.watts / *load) * std::min(1.0, *p.clock.skew / *p.window.seconds);
  if (bound <= 0.005) return {};
  return object(Severity::warning,
                fmt::format("a skew of {} may cost up to {} of the energy", seconds(p.clock.skew),
                            format_percent(bound)),
                "run for longer, or synchronise the clocks");
}

Objected alignment(const Point& p) {
  if (!p.clock.shift || !p.sampling.period || std::abs(*p.clock.shift) <= *p.sampling.period)
    return {};
  return object(Severity::warning,
                fmt::format("the power rises and falls {} {} the markers, at one reading each {}",
                            seconds(std::abs(*p.clock.shift)),
                            *p.clock.shift > 0 ? "after" : "before", seconds(p.sampling.period)),
                "find out which clock is off");
}

}  // namespace joulediff::rules
