// What a replay does not pay: an operator that is executed again and again finds its inputs in the
// L2 cache, while in the program they may have to come from HBM.
//
// Reuse distance decides: an input that was last touched longer ago than the cache holds is cold in
// the program. Where the operator's own bytes do not fit into the cache, its replay was cold, too.
#pragma once

#include <optional>
#include <vector>

#include "attribute/slowdown.h"
#include "run/model.h"

namespace joulediff::attribute {

class Caches {
 public:
  explicit Caches(const run::Run& run);

  struct Extra {
    double joules = 0;  // on top of the replayed ones, for one call in the program
    double half_width = 0;
  };
  // `warm_joules`: dynamic, of one execution in replay. `slower`: in the program, where its times
  // tell.
  Extra extra(run::OperatorId op, double warm_joules, const std::optional<Slowdown>& slower) const;
  // Where a replay with cold operands says what they cost on top of the warm one: that part of it
  // of which the operands are cold in the program. The interval spans both where the reuse distance
  // does not tell: it is not known, or within a factor of two of what the cache holds.
  Extra between(run::OperatorId op, const Extra& all_cold) const;

 private:
  std::vector<double> cold_bytes_;  // by operator; negative: its tensors are not known
  // Share of its inputs that is cold, with a cache of twice the size and of half of it.
  std::vector<double> least_, most_;
};

}  // namespace joulediff::attribute
