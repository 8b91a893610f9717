// Joules of what nobody replayed, from how the board's power goes with what runs.
//
// Each reading is a sum over unknowns of (how much of it is in the reading) x (its joules) + error:
// a linear regression. Unknowns that are energies are at least 0. What each is believed to be
// beforehand (the prior, normal) keeps apart what the readings cannot: where all of them have the
// same mixture, the answer is the prior, and that it is so is told. Readings of one source whose
// residuals scatter more or less than they were said to count for less or more, all alike.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace joulediff::attribute {

struct Observation {
  double value = 0;
  double deviation = 1;  // as it is said; relative to others of its source it is taken as it stands
  std::size_t source = 0;
  std::vector<double> amounts;  // by unknown
};

struct Belief {
  double value = 0;
  double half_width = 0;  // 95 %
  bool may_be_negative = false;
};

struct Fit {
  std::vector<Belief> unknowns;  // afterwards
  std::vector<double> scatter;   // by source: residuals in units of what was said
  // By source: of a residual with the next one, from -1 to 1; 0: they show no structure.
  std::vector<double> correlation;
  double misfit = 0;  // the less the likelier: -2 log likelihood, but for a constant
};

// `sources`: their number. Residuals that scatter less than `least_scatter` make no interval
// narrower: where deviations are known, as little as that is luck.
Fit regress(std::span<const Observation> observations, std::span<const Belief> prior,
            std::size_t sources, double least_scatter = 1e-3);

}  // namespace joulediff::attribute
