// The grammar of measurements: what one measurement must say of itself, and what two must have in
// common, before anybody divides one by the other. One small function for each rule.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/diagnostics.h"
#include "run/point.h"

namespace joulediff::rules {

enum class Whom { a, b, both };

// What a rule holds against a measurement, or against a comparison of two.
struct Objection {
  std::string rule;  // "WU1"
  Severity severity = Severity::warning;
  std::string message;  // with the figures
  std::string remedy;
  Whom whom = Whom::both;
};

using OneRule = std::optional<Objection> (*)(const run::Point&);
using PairRule = std::optional<Objection> (*)(const run::Point&, const run::Point&);

struct Rule {
  std::string_view id;
  std::string_view title;
  OneRule one = nullptr;    // of each measurement alone
  PairRule pair = nullptr;  // of the two together
};

// All of them, in the order of docs/rules.md.
std::span<const Rule> grammar();

std::vector<Objection> check(const run::Point& point);
std::vector<Objection> check(const run::Point& a, const run::Point& b);

bool refuses(std::span<const Objection> objections);  // any of them is an error

}  // namespace joulediff::rules
