// Energy, quality, latency and rate of many measurements as one curve.
#pragma once

#include <string>
#include <vector>

#include "frontier/frontier.h"

namespace joulediff::report {

struct FrontierPage {
  std::vector<run::Point> points;
  frontier::Frontier frontier;  // of them
  frontier::Question question;
  std::size_t top = 20;  // told of each group: trades, and what is not on its frontier
};

std::string text(const FrontierPage& page);  // at most 100 columns
std::string json(const FrontierPage& page);  // schema joulediff.frontier/1

// What stands for the entry in table and plot: A, B, ... Z, then 27, 28, ...
std::string mark(std::size_t entry);

// Energy from left to right against another axis, better above, each placed point by its mark
// (small where it is not best). Empty where nothing varies.
std::string plot(const frontier::Group& group);

}  // namespace joulediff::report
