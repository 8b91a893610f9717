// Equal tensors and equivalent regions of two runs (docs/architecture.md, "match").
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "run/model.h"

namespace joulediff::match {

// A tensor of A and a tensor of B found equal. `axes`: B's squeezed axis that holds A's axis i;
// empty where only a merged or split geometry fits.
struct Anchor {
  run::TensorId a;
  run::TensorId b;
  double distance = 0;  // relative Frobenius over the sample
  std::vector<std::uint8_t> axes;
};

enum class MatchedBy { value, name };

// A pair of subgraphs that turn equal inputs into equal outputs. Operators ascending. A region may
// have no operators on one side.
struct Region {
  std::vector<run::OperatorId> a;
  std::vector<run::OperatorId> b;
  std::vector<std::size_t> inputs;  // indices of Match::anchors
  std::vector<std::size_t> outputs;
  MatchedBy matched_by = MatchedBy::value;
  bool inputs_differ = false;  // the two sides do not rest on the same anchors
  bool outputs_agree = true;   // 99.9 % of the sample within element_tolerance(); integers exactly
};

struct Match {
  double tolerance = 0;
  std::vector<Anchor> anchors;
  std::vector<Region> regions;  // in topological order; with the tails they partition the operators
  std::vector<run::OperatorId> unmatched_a;
  std::vector<run::OperatorId> unmatched_b;
};

// `tolerance`: within which values are equal; none: that of the runs' formats (tolerance.h).
Match match(const run::Run& a, const run::Run& b, std::optional<double> tolerance = {});

}  // namespace joulediff::match
