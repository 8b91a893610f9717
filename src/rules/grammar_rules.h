// The rules of the grammar, by chapter; grammar.cpp is their table.
#pragma once

#include <fmt/format.h>

#include "base/format.h"
#include "rules/grammar.h"

namespace joulediff::rules {

using Objected = std::optional<Objection>;
using run::Fact;
using run::Flag;
using run::Point;

inline Objected object(Severity severity, std::string message, std::string remedy) {
  return Objection{{}, severity, std::move(message), std::move(remedy), Whom::both};
}

// Both are known, and are not the same. Numbers are the same within rounding.
bool differ(const std::string& a, const std::string& b);
bool differ(const Fact& a, const Fact& b);
bool differ(const Flag& a, const Flag& b);
bool differ(const std::vector<std::string>& a, const std::vector<std::string>& b);

std::string said(const std::string& text);  // "unknown" for an empty one
std::string said(const Fact& fact);
std::string said(const Flag& flag);
std::string said(const std::vector<std::string>& list);

// "batch 8 against 16" for each fact that differs; empty: none does.
class Differences {
 public:
  template <class T>
  Differences& of(std::string_view what, const T& a, const T& b) {
    if (differ(a, b)) {
      if (!text_.empty()) text_ += ", ";
      text_ += fmt::format("{} {} against {}", what, said(a), said(b));
    }
    return *this;
  }
  bool any() const { return !text_.empty(); }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

Fact load_watts(const Point& p);                       // mean power over the window
Fact relative_change(const Point& a, const Point& b);  // (b-a)/max, of joules per unit

// work, quality, scenario
Objected work_unit(const Point& a, const Point& b);
Objected completed_work(const Point& p);
Objected token_conversion(const Point& p);
Objected quality_reached(const Point& p);
Objected quality_equal(const Point& a, const Point& b);
Objected precision(const Point& a, const Point& b);
Objected one_build(const Point& p);
Objected scenario_equal(const Point& a, const Point& b);
Objected slo_met(const Point& p);
Objected inferred(const Point& p);
Objected copied(const Point& a, const Point& b);
// window, sampling, clocks
Objected window_from_markers(const Point& p);
Objected overhang(const Point& p);
Objected coverage(const Point& p);
Objected duration(const Point& p);
Objected phases_equal(const Point& a, const Point& b);
Objected rate(const Point& p);
Objected gaps(const Point& p);
Objected invalid_readings(const Point& p);
Objected integrator(const Point& p);
Objected sensor_refresh(const Point& p);
Objected clock_skew(const Point& p);
Objected skew_cost(const Point& p);
Objected alignment(const Point& p);
// energy, boundary, meter, idle
Objected possible_energy(const Point& p);
Objected energy_of_repeats(const Point& p);
Objected boundary_equal(const Point& a, const Point& b);
Objected components_equal(const Point& a, const Point& b);
Objected estimated_part(const Point& p);
Objected conversion(const Point& p);
Objected nodes(const Point& p);
Objected meters_summed(const Point& p);
Objected uncertainty(const Point& p);
Objected calibration(const Point& p);
Objected range(const Point& p);
Objected reference_run(const Point& p);
Objected proxy(const Point& p);
Objected idle_equal(const Point& a, const Point& b);
Objected idle_share(const Point& p);
// control, temperature, software, statistics, disclosure
Objected control_equal(const Point& a, const Point& b);
Objected drift(const Point& p);
Objected warm_up(const Point& p);
Objected temperature_equal(const Point& a, const Point& b);
Objected software_equal(const Point& a, const Point& b);
Objected repeats(const Point& p);
Objected interval(const Point& a, const Point& b);
Objected budget(const Point& a, const Point& b);
Objected noise_floor_without_repeats(const Point& a, const Point& b);
Objected trimming(const Point& p);
Objected trimming_equal(const Point& a, const Point& b);
Objected same_runs(const Point& p);
Objected mandatory_fields(const Point& p);
Objected integrity(const Point& p);
Objected label(const Point& p);
// facility: never mixed with a score of a device
Objected pue(const Point& p);
Objected pue_equal(const Point& a, const Point& b);
Objected facility_utilisation(const Point& p);
Objected capacity(const Point& p);
Objected price(const Point& p);
Objected carbon(const Point& p);
Objected carbon_equal(const Point& a, const Point& b);
Objected embodied(const Point& p);
Objected sensitivity(const Point& p);
Objected rebound(const Point& p);

}  // namespace joulediff::rules
