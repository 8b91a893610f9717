// Why a region is matched as it is: what anchored it, and what in it has no partner.
#pragma once

#include <string>

#include "match/explain.h"
#include "match/match.h"
#include "run/model.h"

namespace joulediff::report {

struct MatchPage {
  const run::Run& a;
  const run::Run& b;
  const match::Match& match;
  std::size_t region = 0;  // in Match::regions
  match::Explanation explanation;
};

// At most 100 columns.
std::string text(const MatchPage& page);
std::string json(const MatchPage& page);  // schema joulediff.match/1

}  // namespace joulediff::report
