// The year of one alternative at a site, hour by hour. Nothing here is measured: it is arithmetic
// on a plan's inputs.
//
// In an hour of s seconds with demand of d units a second, R replicas run, each able to do T a
// second at J joules a unit; n of the R are there for the demand, the others are spares. Then
//
//   served     u = min(d, R T)                                   a second
//   busy       b = u / T                                         replicas
//   work       u J s                                             at the meter of the run
//   idle       (n - b) P_idle s,   spares  (R - n) P_idle s
//   rest       R P_rest s          what the node draws beside what the meter saw
//   supply     (work + idle + spares + rest) (1/eta - 1)         lost before the meter
//   parked     (installed - R) P_parked s
//   cooling    (the sum of the above) (PUE(t) - 1)               cooling and all else of the site
//
// which is the site's energy of the hour. It is linear in utilisation, as power between idle and
// load is when a replica is either at work or waits: J per unit = (U P_load + (1 - U) P_idle) / (U
// T).
#pragma once

#include <array>
#include <optional>
#include <vector>

#include "facility/plan.h"

namespace joulediff::facility {

enum class Line { work, idle, spares, rest, supply, parked, cooling };
constexpr std::size_t kLines = 7;
std::string_view name(Line line);

// What is unknown is NaN.
struct Year {
  std::array<double, kLines> lines{};  // J; of energies of a node, rest and supply are in the work
  double site = 0;                     // J: the sum of the known lines
  double nodes = 0;                    // J: their sum without cooling
  double without_work = 0;             // J of `site` while replicas waited, were spare or parked

  double arrived = 0;  // units
  double served = 0;
  double in_time = 0;
  double installed = 0;    // replicas, spares among them
  double utilisation = 0;  // busy / running, over the year

  double peak = 0;          // W: all replicas at their peak in the hour of the worst PUE
  double highest_hour = 0;  // W: mean of the highest hour

  double energy_cost = 0;
  double demand_cost = 0;
  double replica_cost = 0;
  double cost = 0;  // of what is known of these

  double operation = 0;  // g of CO2e
  double embodied = 0;
  double carbon = 0;  // of what is known of these

  double of(Plan::Aim aim) const;
  double operator[](Line line) const { return lines[static_cast<std::size_t>(line)]; }
};

// `values` are those of the plan's inputs; `demand` multiplies the service's.
Year year_of(const Plan& plan, const Alternative& alternative, const std::vector<double>& values,
             double demand = 1);

// Whether a replica draws more at load, or while it waits, than the peak that is said of it.
bool above_peak(const Alternative& alternative, const std::vector<double>& values);

// J per unit of the service at load, as measured: no site, no idle time, no spare is in it.
double device_joules(const Alternative& alternative, const std::vector<double>& values);

}  // namespace joulediff::facility
