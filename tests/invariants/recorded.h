// The recorded pairs of cases/, for tests that hold for every real run.
#pragma once

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "attribute/attribute.h"
#include "diagnose/compare.h"
#include "match/match.h"
#include "run/model.h"

namespace joulediff::invariants {

struct Side {
  run::Run run;
  attribute::Attribution cost;
};

// "cases/ID/runs/a.jd" as it is called in messages.
std::string name_of(const std::string& id, const std::string& side);

// Every folder of cases/ with a case.toml, sorted.
std::vector<std::string> case_ids();

bool recorded(const std::string& id);

// Read once for each program; fails the test where the file is there and cannot be read.
const Side& side(const std::string& id, const std::string& side);

struct Compared {
  match::Match match;
  diagnose::Comparison comparison;
};
Compared compare(const Side& a, const Side& b);

// A region as the operators of each side.
using Operators = std::set<std::size_t>;
using Regions = std::set<std::pair<Operators, Operators>>;
Regions regions_of(const match::Match& match);
Operators indices(const std::vector<run::OperatorId>& operators);

}  // namespace joulediff::invariants

// In a test of one case: skips it where its runs are not there.
#define JD_NEEDS(id)                          \
  if (!::joulediff::invariants::recorded(id)) \
  GTEST_SKIP() << "cases/" << (id)            \
               << "/runs has no a.jd and b.jd: record them with cases/run on a machine with a GPU"
