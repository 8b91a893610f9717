// What the meter sees, how well it sees it, and what the machine draws at rest.
#include <algorithm>
#include <cmath>

#include "rules/grammar_rules.h"

namespace joulediff::rules {

// Meters say 9.91e37 where they have no reading, and 0 where they are not connected.
Objected possible_energy(const Point& p) {
  constexpr double kMostWatts = 1e9, kMostJoules = 1e18;
  if (!p.energy.joules) return {};
  const double joules = *p.energy.joules;
  const Fact watts = load_watts(p), each = p.per_unit();
  const bool too_much = !(joules <= kMostJoules) || (watts && !(*watts <= kMostWatts)) ||
                        (each && !(*each <= kMostJoules));
  if (joules > 0 && !too_much) return {};
  return object(
      Severity::error,
      joules > 0 ? fmt::format("{:.3g} J{} are more than any machine takes", joules,
                               p.window.seconds ? " in " + format(Seconds(*p.window.seconds)) : "")
                 : "0 J were measured, and no work is done for nothing",
      "leave out what is not known; else find out what the meter read");
}

// The energy that is divided by the work is that of one of the runs, or of all of them.
Objected energy_of_repeats(const Point& p) {
  constexpr double kRounding = 0.01;
  const Fact each = p.per_unit();
  const std::vector<double>& runs = p.repeats.joules;
  if (!each || runs.empty() || possible_energy(p)) return {};
  const auto [least, most] = std::ranges::minmax(runs);
  if (*each >= least * (1 - kRounding) && *each <= most * (1 + kRounding)) return {};
  return object(
      Severity::error,
      fmt::format("energy over work is {}, and the runs took {} to {} a unit",
                  format(Joules(*each)), format(Joules(least)), format(Joules(most))),
      "state repeats.joules a unit of work, of the runs whose energy and work are stated");
}

Objected boundary_equal(const Point& a, const Point& b) {
  if (!differ(a.boundary.kind, b.boundary.kind)) return {};
  return object(
      Severity::error,
      fmt::format("a was measured at the {}, b at the {}", a.boundary.kind, b.boundary.kind),
      "measure both at one boundary");
}

Objected components_equal(const Point& a, const Point& b) {
  if (!differ(a.boundary.includes, b.boundary.includes)) return {};
  const auto lacking = [](const Point& x, const Point& y) {
    std::vector<std::string> list;
    for (const std::string& one : x.boundary.includes)
      if (std::ranges::find(y.boundary.includes, one) == y.boundary.includes.end())
        list.push_back(one);
    return list;
  };
  const auto only_a = lacking(a, b), only_b = lacking(b, a);
  std::string text;
  if (!only_b.empty()) text += fmt::format("a leaves out {}", said(only_b));
  if (!only_a.empty())
    text += fmt::format("{}b leaves out {}", text.empty() ? "" : ", ", said(only_a));
  return object(Severity::error, fmt::format("the meters see different components: {}", text),
                "measure the same components on both sides");
}

Objected estimated_part(const Point& p) {
  if (p.boundary.estimated.empty() && !p.boundary.estimated_share) return {};
  if (p.boundary.estimated_share && *p.boundary.estimated_share <= 0.05) return {};
  return object(Severity::warning,
                fmt::format("{} of the energy is an estimate{}",
                            p.boundary.estimated_share ? format_percent(*p.boundary.estimated_share)
                                                       : "an unknown share",
                            p.boundary.estimated.empty() ? "" : " (" + p.boundary.estimated + ")"),
                "measure it, or claim nothing that rests on it");
}

Objected conversion(const Point& p) {
  if (!p.boundary.conversion || *p.boundary.conversion == 1 ||
      p.boundary.conversion_documented.value_or(false))
    return {};
  return object(Severity::warning,
                fmt::format("an efficiency of {} is assumed, and nothing documents it",
                            said(p.boundary.conversion)),
                "file the curve of the power supply at this load");
}

Objected nodes(const Point& p) {
  if (p.boundary.unrelated_load.value_or(false))
    return object(Severity::error, "the meter also feeds what has no part in the work",
                  "unplug it, or meter the nodes one by one");
  if (!differ(p.boundary.nodes_measured, p.boundary.nodes_participating)) return {};
  return object(Severity::error,
                fmt::format("{} nodes were measured, {} took part", said(p.boundary.nodes_measured),
                            said(p.boundary.nodes_participating)),
                "measure every node that took part, and no other");
}

Objected meters_summed(const Point& p) {
  if (!p.boundary.meters || *p.boundary.meters < 2 || p.boundary.summed_by != "line") return {};
  return object(Severity::warning,
                fmt::format("the {} meters are added up line by line, not by their times",
                            said(p.boundary.meters)),
                "integrate each by its own clock, then add the energies");
}

Objected uncertainty(const Point& p) {
  const auto& m = p.meter;
  const double limit = m.telemetry.value_or(false) ? 0.05 : 0.01;
  if (m.uncertainty && *m.uncertainty > limit)
    return object(
        Severity::error,
        fmt::format("the meter's uncertainty is {}, its limit {}", format_percent(*m.uncertainty),
                    format_percent(limit)),
        *m.uncertainty > 1 ? "it is a fraction of 1: write 0.02 for 2 %"
        : m.telemetry
            ? "take a meter, or a range, that is made for this power"
            : "take a meter, or a range, that is made for this power; of a sensor that is built "
              "in say meter.telemetry = true, and 5 % are allowed");
  if (!m.over_limit || !m.judged || !(*m.judged > 0) || !(*m.over_limit > 0)) return {};
  const double share = *m.over_limit / *m.judged;
  return object(share > 0.05 ? Severity::warning : Severity::note,
                fmt::format("{} of {} readings ({}) are less certain than {}", said(m.over_limit),
                            said(m.judged), format_percent(share), format_percent(limit)),
                "take a range that is made for this power");
}

Objected calibration(const Point& p) {
  if (p.meter.calibration_known && !*p.meter.calibration_known)
    return object(Severity::warning, "the meter's date of calibration is not stated",
                  "state it; it is due each year");
  if (!p.meter.calibration_days || *p.meter.calibration_days <= 366) return {};
  return object(
      Severity::warning,
      fmt::format("the meter was calibrated {:.0f} days before", *p.meter.calibration_days),
      "have it calibrated; it is due each year");
}

Objected range(const Point& p) {
  const auto& m = p.meter;
  if (m.range == "auto")
    return object(Severity::warning, "the meter chose its range by itself during the run",
                  "fix the range from a run before it");
  if (m.peak_amps && m.range_amps && *m.peak_amps > m.crest_factor.value_or(3) * *m.range_amps)
    return object(Severity::warning,
                  fmt::format("peaks of {} A are beyond the {} A range at a crest factor of {}",
                              said(m.peak_amps), said(m.range_amps), m.crest_factor.value_or(3)),
                  "take a wider range");
  const Fact watts = load_watts(p);
  if (m.power_factor && watts && *m.power_factor < 0.7 && *watts < 75)
    return object(Severity::warning,
                  fmt::format("a small supply ({}) with a power factor of {:.2f} may be read too "
                              "low: its peaks exceed the meter's crest factor",
                              format(Watts(*watts)), *m.power_factor),
                  "take a wider range, or a supply that corrects its power factor");
  return {};
}

Objected reference_run(const Point& p) {
  if (!p.meter.reference_change || *p.meter.reference_change >= -0.05) return {};
  return object(Severity::error,
                fmt::format("power is {} against the run that set the ranges",
                            format_percent(*p.meter.reference_change)),
                "measure again, at the same state of clocks and temperature");
}

Objected proxy(const Point& p) {
  if (p.meter.proxy.empty()) return {};
  return object(Severity::error, fmt::format("{} stands in for a measurement", p.meter.proxy),
                "measure the power");
}

Objected idle_equal(const Point& a, const Point& b) {
  Differences d;
  d.of("definition", a.idle.definition, b.idle.definition)
      .of("treatment", a.idle.treatment, b.idle.treatment);
  if (!d.any()) return {};
  return object(Severity::error, fmt::format("idle power differs: {}", d.text()),
                "define and treat idle power alike on both sides");
}

Objected idle_share(const Point& p) {
  const Fact load = load_watts(p);
  if (!load || !p.idle.watts || p.idle.utilisation || !(*load > 0)) return {};
  const double share = *p.idle.watts / *load;
  if (share <= 0.3) return {};
  constexpr double kUse = 0.2;
  const double factor = (kUse + (1 - kUse) * share) / kUse;
  return object(Severity::warning,
                fmt::format("idle power is {} of the load's ({} of {}): at 20 % utilisation each "
                            "item costs {:.1f} times as much",
                            format_percent(share), format(Watts(*p.idle.watts)),
                            format(Watts(*load)), factor),
                "state the utilisation for which this is claimed");
}

}  // namespace joulediff::rules
