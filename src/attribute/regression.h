// Watts of what nobody replayed, from how the board's power goes with what runs.
//
// Joules of a window above the floor = sum over classes of watts x seconds in it + error: a linear
// regression over windows in which the classes have different shares of the time. Watts are at
// least 0, and what they are believed to be beforehand (the prior, normal) keeps apart what the
// windows cannot: where all windows have the same mixture, as they do when many short steps fit
// into each, the answer is the prior, and that it is so is told.
#pragma once

#include <span>
#include <vector>

namespace joulediff::attribute {

struct PowerWindow {
  double joules = 0;
  double half_width = 0;        // 95 %
  std::vector<double> seconds;  // by class
};

struct ClassPower {
  double watts = 0;
  double half_width = 0;  // 95 %
  bool told = false;      // by the windows rather than by the prior
};

// `prior`: watts and half width of each class beforehand. One answer for each.
std::vector<ClassPower> regress(std::span<const PowerWindow> windows,
                                std::span<const ClassPower> prior);

}  // namespace joulediff::attribute
