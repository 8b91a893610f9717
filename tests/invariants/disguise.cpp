#include "disguise.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <random>
#include <set>

namespace joulediff::invariants {
namespace {

using Random = std::mt19937_64;
using Places = std::vector<std::size_t>;  // by old index: the new one

Places identity(std::size_t size) {
  Places places(size);
  std::iota(places.begin(), places.end(), 0);
  return places;
}

Places shuffled(std::size_t size, Random& random) {
  Places places = identity(size);
  std::shuffle(places.begin(), places.end(), random);
  return places;
}

template <class T>
void move_to(std::vector<T>& items, const Places& places) {
  std::vector<T> moved(items.size());
  for (std::size_t i = 0; i < items.size(); ++i) moved[places[i]] = std::move(items[i]);
  items = std::move(moved);
}

template <class Tag>
void rename(Id<Tag>& id, const Places& places) {
  if (id.valid()) id = Id<Tag>(places[id.index()]);
}

template <class Tag>
void rename(std::vector<Id<Tag>>& ids, const Places& places) {
  for (Id<Tag>& id : ids) rename(id, places);
}

// Nodes in a random order in which each comes after those that it `needs`.
Places topological(const std::vector<std::set<std::size_t>>& needs, Random& random) {
  std::vector<std::vector<std::size_t>> waiting(needs.size());
  std::vector<std::size_t> missing(needs.size());
  std::vector<std::size_t> ready;
  for (std::size_t i = 0; i < needs.size(); ++i) {
    missing[i] = needs[i].size();
    if (missing[i] == 0) ready.push_back(i);
    for (const std::size_t before : needs[i]) waiting[before].push_back(i);
  }
  Places places(needs.size());
  for (std::size_t place = 0; !ready.empty(); ++place) {
    std::swap(ready[random() % ready.size()], ready.back());
    const std::size_t next = ready.back();
    ready.pop_back();
    places[next] = place;
    for (const std::size_t after : waiting[next])
      if (--missing[after] == 0) ready.push_back(after);
  }
  return places;
}

Places stack_places(const run::Run& run, Random& random) {
  std::vector<std::set<std::size_t>> needs(run.stacks.size());
  for (std::size_t i = 0; i < needs.size(); ++i)
    if (run.stacks[i].caller.valid()) needs[i].insert(run.stacks[i].caller.index());
  return topological(needs, random);
}

// Storages and versions that an operator touches, and those that it writes: an output is a write
// unless the operator reads the same version.
struct Touched {
  std::set<std::uint64_t> storages;
  std::set<std::uint64_t> written;
};

Touched touched(const run::Run& run, const run::Operator& op) {
  Touched one;
  std::set<std::pair<std::uint64_t, std::uint64_t>> read;
  for (const run::TensorId id : op.inputs) {
    const run::Tensor& tensor = run.tensors[id.index()];
    read.emplace(tensor.storage, tensor.version);
    one.storages.insert(tensor.storage);
  }
  for (const run::TensorId id : op.outputs) {
    const run::Tensor& tensor = run.tensors[id.index()];
    one.storages.insert(tensor.storage);
    if (!read.contains({tensor.storage, tensor.version})) one.written.insert(tensor.storage);
  }
  return one;
}

Places operator_places(const run::Run& run, Random& random) {
  std::vector<std::set<std::size_t>> needs(run.operators.size());
  std::map<std::size_t, std::size_t> maker;
  std::map<std::uint64_t, std::size_t> writer;               // by storage: the last
  std::map<std::uint64_t, std::vector<std::size_t>> others;  // since then
  for (std::size_t i = 0; i < run.operators.size(); ++i) {
    const run::Operator& op = run.operators[i];
    for (const run::TensorId in : op.inputs)
      if (const auto made = maker.find(in.index()); made != maker.end())
        needs[i].insert(made->second);
    for (const run::TensorId out : op.outputs) maker[out.index()] = i;
    if (op.forward.valid()) needs[i].insert(op.forward.index());
    const Touched one = touched(run, op);
    for (const std::uint64_t storage : one.storages) {
      if (const auto last = writer.find(storage); last != writer.end())
        needs[i].insert(last->second);
      if (one.written.contains(storage)) {
        needs[i].insert(others[storage].begin(), others[storage].end());
        others[storage].clear();
        writer[storage] = i;
      } else {
        others[storage].push_back(i);
      }
    }
    needs[i].erase(i);
  }
  return topological(needs, random);
}

}  // namespace

Disguised renumbered(const run::Run& original, std::uint64_t seed) {
  Random random(seed);
  Disguised disguised{original, identity(original.operators.size())};
  run::Run& run = disguised.run;
  const Places tensors = shuffled(run.tensors.size(), random);
  const Places frames = shuffled(run.frames.size(), random);
  const Places stacks = stack_places(run, random);
  const Places signatures = shuffled(run.signatures.size(), random);
  const Places kernels = shuffled(run.kernels.size(), random);
  std::map<std::uint64_t, std::uint64_t> storages;
  for (run::Tensor& tensor : run.tensors)
    tensor.storage = storages.try_emplace(tensor.storage, random()).first->second;
  for (run::StackNode& node : run.stacks) {
    rename(node.caller, stacks);
    rename(node.frame, frames);
  }
  for (run::Operator& op : run.operators) {
    rename(op.inputs, tensors);
    rename(op.outputs, tensors);
    rename(op.signature, signatures);
    rename(op.stack, stacks);
  }
  for (run::Block& block : run.blocks) {
    rename(block.order_kernels.kernel, kernels);
    rename(block.trace_kernels.kernel, kernels);
    for (run::Replay& replay : block.replays) rename(replay.signature, signatures);
  }
  move_to(run.tensors, tensors);
  move_to(run.frames, frames);
  move_to(run.stacks, stacks);
  move_to(run.signatures, signatures);
  move_to(run.kernels, kernels);
  return disguised;
}

Disguised reordered(const run::Run& original, std::uint64_t seed) {
  Random random(seed);
  const Places places = operator_places(original, random);
  Disguised disguised{original, Places(places.size())};
  for (std::size_t i = 0; i < places.size(); ++i) disguised.original[places[i]] = i;
  run::Run& run = disguised.run;
  for (run::Operator& op : run.operators) rename(op.forward, places);
  for (run::Block& block : run.blocks) {
    rename(block.order_kernels.op, places);
    rename(block.trace_kernels.op, places);
    rename(block.operator_times.op, places);
  }
  move_to(run.operators, places);
  return disguised;
}

Disguised nameless(const run::Run& original) {
  Disguised disguised{original, identity(original.operators.size())};
  for (run::Operator& op : disguised.run.operators) {
    op.name = "op";
    op.module.clear();
    op.arguments.clear();
  }
  for (run::Frame& frame : disguised.run.frames) frame = {"file", 1, "function"};
  return disguised;
}

}  // namespace joulediff::invariants
