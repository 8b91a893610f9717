// What the order pass taught: the kernels of a step, and which operator launches each.
#pragma once

#include <cstdint>
#include <vector>

#include "attribute/lanes.h"
#include "run/model.h"

namespace joulediff::attribute {

// One step's kernels in order, as columns of equal length.
struct Template {
  run::InputsId inputs;  // the step's; none: unknown
  std::vector<run::KernelId> kernel;
  std::vector<run::OperatorId> op;
  std::vector<std::uint32_t> lane;
  std::vector<double> seconds;
  std::vector<double> calls;  // of `op` that one kernel stands for
  std::size_t size() const { return kernel.size(); }
};

// One for each kind of input, more where steps of equal inputs differ; none without an order pass.
struct Templates {
  std::vector<Template> steps;
  std::vector<run::OperatorId> untraced;  // launch sets too, which this block's trace leaves out
  Lanes lanes;
  std::size_t size() const { return steps.size(); }
};

// The part of each template that runs on one lane, or the whole: what a walk follows, and which
// place of the template each of its places is.
struct LanePatterns {
  std::vector<Pattern> patterns;
  std::vector<std::vector<std::uint32_t>> places;
};
LanePatterns patterns(std::span<const Template> templates, const std::vector<Symbol>& symbols,
                      std::optional<std::uint32_t> lane);

Templates step_templates(const run::Run& run, const run::Block& block);

}  // namespace joulediff::attribute
