// What a plan says: a year's service, the site that gives it, and the alternatives that could.
//
// Every number that a person may doubt is an input: a low, a base and a high, with its unit, where
// it came from and its standing. The plan refers to inputs by their number and the model is given a
// value for each, so whoever asks "and if this one were higher?" changes one value and asks again.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/diagnostics.h"
#include "base/energy.h"
#include "base/ids.h"
#include "base/result.h"
#include "facility/calendar.h"

namespace joulediff::facility {

struct Range {
  double low = 0;
  double base = 0;
  double high = 0;
};

using InputId = Id<struct InputTag>;  // index in Plan::inputs; none: not said

struct Input {
  std::string key;   // "A.joules_per_unit", "site.pue"
  std::string unit;  // "J", "EUR/kWh"; empty for a plain number
  Range range;
  bool ranged = false;  // low and high were said
  Standing standing = Standing::modelled;
  std::string origin;  // "plan.toml:12", "a.jd"
  double least = 0;    // what it can be at all
  double most = 0;
};

// What holds in each hour of the year: one level, or a course over the hours times a scale.
struct Signal {
  InputId level;               // the value itself, or the scale where it varies
  std::vector<double> course;  // by hour; empty: constant
  double floor = 0;            // of the course: only what lies above it is scaled (PUE: 1)
  std::string provider;

  bool varies() const { return !course.empty(); }
  double at(std::size_t hour, const std::vector<double>& values) const {
    const double level_value = values[level.index()];
    return varies() ? floor + level_value * (course[hour] - floor) : level_value;
  }
};

struct Service {
  std::string unit;             // of work: "request", "token"
  InputId per_year;             // units; where `arrivals` says them, none
  std::vector<double> weights;  // by hour, of sum 1; empty with arrivals
  Signal arrivals;              // units per second; level none with per_year
  InputId peak_factor;          // rate in the busiest minutes of an hour / the hour's mean
  InputId growth;               // a year, as a ratio; none: not said
  int years = 0;                // after which growth is looked at
  InputId rebound;              // share of a saving that more use takes back
};

// When a unit of work is in time. Without a wait, the largest utilisation of a replica at which its
// load test was; with one, as many replicas as queueing needs.
struct Slo {
  double share = 0.99;         // of units that must be in time
  InputId utilisation;         // largest share of a replica's throughput
  std::optional<double> wait;  // seconds that `share` of the units may wait at most
};

enum class Scaling {
  fixed,
  hourly
};  // replicas that run: always those of the busiest hour, or as needed

struct Alternative {
  std::string name;
  std::string from;                     // a run file; empty: numbers of the plan
  Boundary boundary = Boundary::board;  // of the energies below
  std::string meter;                    // what they were read with; empty: not said
  std::optional<double> systematic;     // relative, of that meter; in no range
  InputId joules_per_unit;              // at load, in the run's unit of work
  InputId throughput;                   // at load, of a replica: the run's units per second
  std::string run_unit;                 // the run's unit of work; empty: not said
  InputId work_per_unit;  // the run's units in one of the service's; none: they are the same
  InputId idle_watts;     // of a replica that waits for work
  InputId peak_watts;     // of a replica; none: its mean at load stands in
  InputId rest_watts;     // what the node draws beside what the meter saw; none: it saw the node
  InputId supply;         // efficiency of the power supply; none: the meter was before it
  InputId parked_watts;   // of a replica that is not needed, at the wall
  InputId slo_share;      // units in time at load; none: as the SLO asks
  InputId cost_per_year;  // of a replica: hire, or depreciation and upkeep
  InputId embodied;       // kg of CO2e that making a replica's hardware took
  InputId lifetime;       // years
  double embodied_share = 1;  // of the hardware that the replica takes up
  std::string embodied_source;
  std::optional<int> replicas;     // as many, whatever the SLO asks
  std::optional<int> concurrency;  // units that a replica works on at once
  Scaling scaling = Scaling::fixed;
};

struct Plan {
  std::string title;
  Zone zone = Zone::utc();
  int year = 0;
  std::vector<Hour> hours;
  std::vector<Input> inputs;
  Service service;
  Slo slo;

  Signal pue;  // level none: the alternatives' boundary is the facility
  std::string pue_source;
  int redundancy = 0;              // spare replicas: the k of N+k
  std::optional<double> capacity;  // watts that the site can give

  std::string currency;
  Signal price;  // per kWh; level none: not said
  bool price_by_file = false;
  InputId demand_charge;  // per kW of a month's highest hour
  std::string tariff_source;

  Signal carbon;             // g/kWh; level none: not said
  std::string carbon_kind;   // "average", "marginal"
  std::string carbon_basis;  // "location", "market"
  std::string carbon_zone;

  enum class Aim { energy, cost, carbon } aim = Aim::energy;  // what ranks the alternatives
  std::vector<Alternative> alternatives;
  Diagnostics diagnostics;

  std::vector<double> base_values() const;
};

std::string_view name(Plan::Aim aim);

// What a recorded run says of an alternative. What it does not know is NaN.
struct Measured {
  std::string work_unit;
  Boundary boundary = Boundary::board;
  std::string meter;
  std::optional<double> systematic;
  Range joules_per_unit;
  bool energy_ranged = false;
  Standing standing = Standing::measured;
  Range throughput;  // units per second
  bool throughput_ranged = false;
  Range idle_watts;
  bool idle_known = false;
};

// Where a plan's files come from; paths are as the plan has them.
struct Surroundings {
  std::function<Result<std::string>(const std::string& path)> read;
  std::function<Result<Measured>(const std::string& path)> measure;
};

// `file` is what errors call it.
Result<Plan> read_plan(std::string_view bytes, const std::string& file, const Surroundings& from);

}  // namespace joulediff::facility
