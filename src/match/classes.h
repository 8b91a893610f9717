// Equal values within one run.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "match/graph.h"

namespace joulediff::match {

constexpr std::uint32_t kNone = 0xFFFFFFFFu;

// A shape under which the class was sampled. Values that cannot be compared by distance (NaN,
// infinities, masks near the greatest float) are 0 in `sample` and named in `special`.
struct Geometry {
  run::TensorId tensor;
  std::vector<std::int64_t> shape;   // squeezed
  std::vector<std::int64_t> sorted;  // its lengths, ascending
  std::vector<std::uint32_t> grid;   // samples along each axis
  std::span<const float> sample;     // of the run, or `cleared`
  std::vector<std::int8_t> special;  // empty: none
  double norm = 0;                   // root of the sum of squares
  std::unique_ptr<std::vector<float>> cleared = nullptr;
};

// Values with the same elements, in whatever layout: views, reshapes, copies and recomputations.
struct EqualClass {
  std::vector<std::uint32_t> values;
  run::TensorId tensor;  // whose fingerprint stands for all
  std::vector<Geometry> geometries;
  double depth = 0;  // of the first value, relative to the graph's
};

struct Classes {
  std::vector<EqualClass> classes;
  std::vector<std::uint32_t> of_value;  // kNone: a constant, or too little to be recognised by
};

Classes equal_classes(const run::Run& run, const Graph& graph);

}  // namespace joulediff::match
