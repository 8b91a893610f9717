// Verdicts: which regions differ, by how much, and what that is.
#pragma once

#include <vector>

#include "diagnose/compare.h"
#include "diagnose/costs.h"

namespace joulediff::diagnose {

constexpr double kLeastShare = 0.005;  // of a run's energy: what a finding must save
constexpr double kSlower = 1.01;       // the cheaper side may take this much longer

// Regions that run the same signatures on both sides: one measurement, hence one test.
struct Group {
  std::vector<std::size_t> regions;  // indices of the regions given
  Measured a;                        // of all its regions together
  Measured b;
  double level = 0;  // at which it was judged
  Difference difference;
  std::optional<double> noise_floor;
  Outcome outcome = Outcome::undecided;
  bool suspicious = false;  // undecided, but the sides seem to differ by more than the threshold
};

// Fills difference, noise floor and outcome of every region and returns their groups.
std::vector<Group> judge(const Inputs& inputs, std::vector<RegionResult>& regions);

// The operators of one side of several regions.
std::vector<run::OperatorId> operators_of(const std::vector<RegionResult>& regions,
                                          const std::vector<std::size_t>& which, Side side);

}  // namespace joulediff::diagnose
