// The dataflow of one run: operators as nodes, and values between them.
#pragma once

#include <cstdint>
#include <vector>

#include <boost/container/small_vector.hpp>

#include "run/model.h"

namespace joulediff::match {

// Most hold one or two.
using Few = boost::container::small_vector<std::uint32_t, 2>;

// One element set of one version of a storage: all views of the same elements are one value, unless
// they read them as something else (another format, the conjugate).
struct Value {
  boost::container::small_vector<run::TensorId, 2> tensors;
  std::uint32_t storage = 0;  // numbered from 0
  Few writers;                // nodes that make it and do not read it
  Few aliases;                // nodes that read and return it: views of all its elements
  Few readers;                // nodes that read it and make something else
  bool constant = false;      // made of parameters and numbers alone
};

struct Node {
  Few reads;                // distinct values
  Few writes;               // distinct values
  std::uint32_t depth = 0;  // longest path from a value that no node makes
  bool free = false;        // moves no data
  bool constant = false;    // reads nothing but constants
};

// Nodes 0 .. operators-1 are the run's operators. The others stand for what memory does by itself:
// they make a value of the values it consists of (a cache of its old elements and a written slice).
struct Graph {
  std::size_t operators = 0;
  std::size_t storages = 0;
  std::vector<Node> nodes;
  std::vector<Value> values;
  std::vector<std::uint32_t> order;     // nodes, topologically
  std::vector<std::uint32_t> position;  // inverse of order
  std::uint32_t depth = 1;              // the greatest depth, at least 1

  bool real(std::uint32_t node) const { return node < operators; }
};

Graph make_graph(const run::Run& run);

}  // namespace joulediff::match
