// What is in each reading of a trace: calls of operators, times of the board's states, and the
// sensors' own errors. The unknowns of the regression (fitted.cpp), and its observations.
#pragma once

#include <optional>
#include <vector>

#include "attribute/estimate.h"
#include "attribute/presence.h"
#include "attribute/regression.h"
#include "meter/samples.h"

namespace joulediff::attribute {

// Which unknown is which.
struct Layout {
  std::size_t classes = 0;  // those of operators that are told apart
  std::size_t pooled() const { return classes; }
  std::size_t known() const { return classes + 1; }  // joules of units that are known
  std::size_t kinds() const { return classes + 2; }  // of kernels
  std::size_t floor() const { return classes + 2; }
  std::size_t idle() const { return classes + 3; }
  std::size_t beside() const { return classes + 4; }
  std::size_t start() const { return classes + 5; }
  std::size_t gain(std::size_t source) const { return classes + 5 + source; }  // from 1
};

// Readings of one source.
struct Readings {
  std::vector<double> value;  // joules since the first, or mean watts
  std::vector<double> deviation;
  std::vector<meter::Stamps> stamps;  // of polled ones several are possible
  std::vector<double> windows{0};     // seconds that each may be over; 0: since the first
  bool polled = false;
};

// What is assumed of the sensors.
struct Assumed {
  std::size_t stamps = 0;           // which of those that are possible
  double window = 0, response = 0;  // seconds
  Nanoseconds shift = 0;            // of polled readings in the middle of the trace
  Nanoseconds late = 0;             // by which the counter's ticks are
  double drift = 0;                 // of the shift, seconds a second
};

class Mixture {
 public:
  // The operators that ran and are not known are its unknowns.
  Mixture(const Traced& traced, const std::vector<UnitCost>& units);

  const Layout& layout() const { return layout_; }
  // The unknown of an operator; classes(): pooled.
  std::size_t class_of(std::size_t op) const { return class_of_[op]; }
  std::size_t classes() const { return layout_.classes; }
  const std::vector<Belief>& prior() const { return prior_; }
  // The counter first, then at most one of short windows.
  const std::vector<Readings>& sources() const { return sources_; }
  Nanoseconds middle() const;
  std::vector<Observation> observe(const Assumed& assumed) const;

 private:
  struct Class {
    double calls = 0, seconds = 0;  // in the reading
  };
  static constexpr std::size_t kNone = static_cast<std::size_t>(-1);

  void add_counter();
  void add_samples();
  std::vector<double> windows(run::Source source) const;
  void believe(const std::vector<UnitCost>& units);
  Presence presence_of(const std::vector<UnitCost>& units) const;
  Observation observation(std::size_t source, std::size_t k,
                          std::pair<Nanoseconds, Nanoseconds> span, const Present& from,
                          const Present& to) const;

  const Traced& traced_;
  std::vector<std::size_t> class_of_;  // by operator; none: known
  std::vector<Class> classes_;
  Layout layout_;
  std::optional<meter::StaticPower> idle_;
  std::vector<Readings> sources_;
  std::vector<Belief> prior_;
  std::optional<Presence> presence_;
};

// An operator that ran, and of which nothing else tells the joules.
bool is_missing(const UnitCost& unit, const Usage& usage);

}  // namespace joulediff::attribute
