// What the tests of this room share: a program of a transformer's shape, and how to read a ledger.
#pragma once

#include <algorithm>
#include <cmath>
#include <string>

#include <gtest/gtest.h>

#include "attribute/attribute.h"
#include "attribute/simulated_board.h"

namespace joulediff::attribute {

inline Program transformer() {
  Program program;
  program.loads.push_back({"embedding", 40 * kMicrosecond, 90});
  for (int layer = 0; layer < 4; ++layer) {
    program.loads.push_back({"view", 0, 0, false, true});
    program.loads.push_back({"norm", 145 * kMicrosecond, 240});
    program.loads.push_back({"qkv", 450 * kMicrosecond, 430});
    program.loads.push_back({"attention", 200 * kMicrosecond, 355});
    program.loads.push_back({"gelu", 283 * kMicrosecond, 260});
    program.loads.push_back({"proj", 410 * kMicrosecond, 418});
    program.loads.push_back({"add", 60 * kMicrosecond, 230, false});
  }
  program.loads.push_back({"head", 3300 * kMicrosecond, 278});
  return program;
}

inline Energy line(const Ledger& ledger, Line which) {
  EXPECT_TRUE(ledger.line(which)) << name(which) << " is not known";
  return ledger.line(which).value_or(Energy{Joules(NAN), Joules(NAN), Joules(NAN)});
}

inline double sum_of_lines(const Ledger& ledger) {
  double sum = 0;
  for (const auto& energy : ledger.lines) sum += energy ? energy->joules.value : 0;
  return sum;
}

inline bool says(const Diagnostics& diagnostics, const std::string& rule) {
  return std::ranges::any_of(diagnostics, [&](const auto& d) { return d.rule == rule; });
}

}  // namespace joulediff::attribute
