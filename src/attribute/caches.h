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

 private:
  std::vector<double> cold_bytes_;  // by operator; negative: its tensors are not known
};

}  // namespace joulediff::attribute
