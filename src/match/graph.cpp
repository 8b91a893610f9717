// From tensors to values. A tensor is a geometry over a version of a storage; what matters for the
// dataflow is which elements it covers. Tensors with the same elements collapse to one value, which
// makes views of whole tensors vanish from the graph (their nodes become aliases).
//
// A value that no operator returned has been made by memory: a cache is its old elements and the
// slice that was written; a slice of a buffer outlives a write beside it. For such a value we walk
// back over the versions of its storage, collect the writes that overlap it until something covers
// it, and add a node that assembles it; likewise for a view across several writes. So in-place
// operators need no case of their own anywhere.
#include "match/graph.h"

#include <algorithm>
#include <map>
#include <utility>

#include <boost/unordered/unordered_flat_map.hpp>

#include "match/geometry.h"

namespace joulediff::match {
namespace {

struct Stored {
  std::uint64_t version;
  ElementSet elements;
  std::uint32_t value;
};

using Storages = std::map<std::uint64_t, std::vector<Stored>>;

void add_once(Few& list, std::uint32_t item) {
  if (std::ranges::find(list, item) == list.end()) list.push_back(item);
}

Storages collapse(const run::Run& run, Graph& graph, std::vector<std::uint32_t>& value_of) {
  struct Known {
    ElementSet elements;
    value::DType dtype;
    value::Lanes own;
    std::uint32_t value;
  };
  using Memory = std::pair<std::uint64_t, std::uint64_t>;  // a storage and its version
  boost::unordered_flat_map<Memory, std::vector<Known>> known;
  graph.values.reserve(run.tensors.size());
  Storages storages;
  for (std::size_t t = 0; t < run.tensors.size(); ++t) {
    const run::Tensor& tensor = run.tensors[t];
    std::vector<Known>& there = known[{tensor.storage, tensor.version}];
    ElementSet elements = element_set(tensor);
    auto it = std::ranges::find_if(there, [&](const Known& k) {
      return k.elements == elements && k.dtype == tensor.fingerprint.dtype &&
             k.own == tensor.fingerprint.own;
    });
    if (it == there.end()) {
      const auto value = static_cast<std::uint32_t>(graph.values.size());
      graph.values.emplace_back();
      storages[tensor.storage].push_back({tensor.version, elements, value});
      there.push_back(
          {std::move(elements), tensor.fingerprint.dtype, tensor.fingerprint.own, value});
      it = there.end() - 1;
    }
    graph.values[it->value].tensors.emplace_back(t);
    value_of[t] = it->value;
  }
  for (const auto& [storage, stored] : storages) {
    for (const Stored& s : stored) {
      graph.values[s.value].storage = static_cast<std::uint32_t>(graph.storages);
    }
    ++graph.storages;
  }
  return storages;
}

void connect(const run::Run& run, const std::vector<std::uint32_t>& value_of, Graph& graph) {
  for (const run::Operator& op : run.operators) {
    Node node;
    node.free = op.view;
    for (const run::TensorId t : op.inputs) add_once(node.reads, value_of[t.index()]);
    for (const run::TensorId t : op.outputs) add_once(node.writes, value_of[t.index()]);
    graph.nodes.push_back(std::move(node));
  }
}

void link(Graph& graph) {
  for (Value& value : graph.values) value.writers = value.aliases = value.readers = {};
  for (std::uint32_t n = 0; n < graph.nodes.size(); ++n) {
    const Node& node = graph.nodes[n];
    for (const std::uint32_t v : node.writes) {
      const bool alias = std::ranges::find(node.reads, v) != node.reads.end();
      (alias ? graph.values[v].aliases : graph.values[v].writers).push_back(n);
    }
    for (const std::uint32_t v : node.reads) {
      const bool alias = std::ranges::find(node.writes, v) != node.writes.end();
      if (!alias || node.writes.size() > 1) graph.values[v].readers.push_back(n);
    }
  }
}

bool written(const Graph& graph, std::uint32_t value) {
  return std::ranges::any_of(graph.values[value].writers,
                             [&](std::uint32_t n) { return !graph.nodes[n].free; });
}

// The values that `whole` consists of, newest write first; `stored` is sorted by falling version.
// What one version shows of the memory is all that was written until then, so that the first
// version that covers what is still missing ends the search.
Few parts_of(const Graph& graph, const std::vector<Stored>& stored, const Stored& whole) {
  Few parts;
  ElementSet missing = whole.elements;
  for (auto it = stored.begin(); it != stored.end();) {
    const auto end =
        std::find_if(it, stored.end(), [&](const Stored& s) { return s.version != it->version; });
    if (it->version > whole.version) {
      it = end;
      continue;
    }
    const Stored* cover = nullptr;
    std::vector<const Stored*> writes;
    for (auto s = it; s != end; ++s) {
      const bool write = written(graph, s->value);
      // Of the same version only what was written can be older than `whole`.
      if (s->value == whole.value || (s->version == whole.version && !write)) continue;
      const Relation r = relation(s->elements, missing);
      if (r == Relation::covers && (cover == nullptr || s->elements == missing)) cover = &*s;
      if (r == Relation::overlaps && write) writes.push_back(&*s);
    }
    if (cover != nullptr) {
      parts.push_back(cover->value);
      break;
    }
    for (const Stored* s : writes) {
      parts.push_back(s->value);
      if (auto left = without(missing, s->elements)) missing = *std::move(left);
    }
    it = end;
  }
  return parts;
}

void assemble(Graph& graph, Storages& storages) {
  std::vector<Node> made;
  for (auto& [storage, stored] : storages) {
    if (stored.size() < 2) continue;
    std::ranges::sort(stored, [](const Stored& s, const Stored& t) {
      return s.version != t.version ? s.version > t.version : s.value < t.value;
    });
    for (const Stored& s : stored) {
      if (written(graph, s.value)) continue;
      Few parts = parts_of(graph, stored, s);
      const Few& views = graph.values[s.value].writers;
      // A view of one value is as recorded; one of several writes is made of just those it shows.
      if (parts.empty() || (!views.empty() && parts.size() < 2)) continue;
      for (const std::uint32_t n : views) {
        if (graph.nodes[n].writes.size() == 1) graph.nodes[n].reads = {s.value};
      }
      Node node;
      node.reads = std::move(parts);
      node.writes = {s.value};
      node.free = true;
      made.push_back(std::move(node));
    }
  }
  for (Node& node : made) graph.nodes.push_back(std::move(node));
}

// Depth first, so that any order of the recorded operators gives a topological one; an edge that
// would close a cycle (a write that the recorder missed) is ignored.
void sort(Graph& graph) {
  enum class State : std::uint8_t { fresh, open, done };
  std::vector<State> state(graph.nodes.size(), State::fresh);
  std::vector<std::pair<std::uint32_t, bool>> stack;
  for (std::uint32_t root = 0; root < graph.nodes.size(); ++root) {
    stack.emplace_back(root, false);
    while (!stack.empty()) {
      const auto [n, leave] = stack.back();
      stack.pop_back();
      if (leave) {
        state[n] = State::done;
        graph.order.push_back(n);
        continue;
      }
      if (state[n] != State::fresh) continue;
      state[n] = State::open;
      stack.emplace_back(n, true);
      for (const std::uint32_t v : graph.nodes[n].reads) {
        for (const std::uint32_t w : graph.values[v].writers) {
          if (state[w] == State::fresh) stack.emplace_back(w, false);
        }
      }
    }
  }
  graph.position.resize(graph.nodes.size());
  for (std::uint32_t i = 0; i < graph.order.size(); ++i) graph.position[graph.order[i]] = i;
}

void describe(const run::Run& run, Graph& graph) {
  for (Value& value : graph.values) {
    const run::Role role = run.tensors[value.tensors.front().index()].role;
    value.constant =
        value.writers.empty() && (role == run::Role::parameter || role == run::Role::constant);
  }
  for (const std::uint32_t n : graph.order) {
    Node& node = graph.nodes[n];
    node.constant = true;
    for (const std::uint32_t v : node.reads) {
      node.constant = node.constant && graph.values[v].constant;
      for (const std::uint32_t w : graph.values[v].writers) {
        if (graph.position[w] < graph.position[n]) {
          node.depth = std::max(node.depth, graph.nodes[w].depth + 1);
        }
      }
    }
    // What is made of no tensor is a constant only if the recorder says so: random numbers are not.
    if (node.reads.empty()) {
      node.constant = std::ranges::all_of(node.writes, [&](std::uint32_t v) {
        return run.tensors[graph.values[v].tensors.front().index()].role == run::Role::constant;
      });
    }
    for (const std::uint32_t v : node.writes) {
      Value& value = graph.values[v];
      if (std::ranges::find(value.writers, n) == value.writers.end()) continue;
      value.constant = std::ranges::all_of(
          value.writers, [&](std::uint32_t w) { return graph.nodes[w].constant; });
    }
    graph.depth = std::max(graph.depth, node.depth);
  }
}

}  // namespace

Graph make_graph(const run::Run& run) {
  Graph graph;
  graph.operators = run.operators.size();
  graph.nodes.reserve(run.operators.size());
  std::vector<std::uint32_t> value_of(run.tensors.size());
  Storages storages = collapse(run, graph, value_of);
  connect(run, value_of, graph);
  link(graph);
  assemble(graph, storages);
  link(graph);
  sort(graph);
  describe(run, graph);
  return graph;
}

}  // namespace joulediff::match
