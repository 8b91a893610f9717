// Two programs made by hand for the tests of this room: operators with their joules in each block,
// a match and a verdict that says they may be compared.
#pragma once

#include <string>
#include <vector>

#include "diagnose/compare.h"
#include "diagnose/evidence.h"

namespace joulediff::diagnose::testing {

struct Call {
  std::string name;
  double joules = 1;
  double seconds = 1e-3;
  std::vector<std::int64_t> shape = {8, 8};
  std::vector<std::int64_t> stride = {8, 1};
  value::DType dtype = value::DType::float32;
  std::string arguments = "{}";
  std::string kernel = {};  // empty: none was recorded
  std::string file = "/home/user/model.py";
  std::uint32_t line = 10;
  std::string signature = {};  // empty: its name
};

// One program with its costs. `wobble`: what each block measured, relative to the joules of a call.
struct Program {
  run::Run run;
  attribute::Attribution cost;
};

inline Program program(const std::vector<Call>& calls, const std::vector<double>& wobble = {1, 1},
                       double total = 100) {
  Program p;
  p.run.manifest.work = {"token", 10};
  for (std::uint32_t order = 0; order < wobble.size(); ++order)
    p.run.blocks.emplace_back().order = order;
  for (std::size_t i = 0; i < calls.size(); ++i) {
    const Call& call = calls[i];
    run::Tensor tensor;
    tensor.shape = call.shape;
    tensor.stride = call.stride;
    tensor.fingerprint.dtype = call.dtype;
    p.run.tensors.insert(p.run.tensors.end(), {tensor, tensor});
    p.run.frames.push_back({call.file, call.line, "forward"});
    p.run.stacks.push_back({{}, run::FrameId(i)});
    run::Operator op;
    op.name = call.name;
    op.inputs = {run::TensorId(2 * i)};
    op.outputs = {run::TensorId(2 * i + 1)};
    op.stack = run::StackId(i);
    op.arguments = call.arguments;
    const std::string text = call.signature.empty() ? call.name : call.signature;
    std::size_t signature = 0;
    while (signature < p.run.signatures.size() && p.run.signatures[signature].text != text)
      ++signature;
    if (signature == p.run.signatures.size()) p.run.signatures.push_back({text});
    op.signature = run::SignatureId(signature);
    p.run.operators.push_back(op);
    if (call.kernel.empty()) continue;
    p.run.kernels.push_back({call.kernel, {1, 1, 1}, {32, 1, 1}, run::KernelKind::kernel});
    run::KernelSeries& series = p.run.blocks.front().order_kernels;
    series.kernel.push_back(run::KernelId(p.run.kernels.size() - 1));
    series.op.push_back(run::OperatorId(i));
    series.step.push_back(0);
  }
  const auto energy = [](double joules) {
    return Energy::around(Joules(joules), Joules(1e-4 * joules), Standing::replayed);
  };
  for (std::size_t b = 0; b < wobble.size(); ++b) {
    attribute::BlockCosts block;
    for (const Call& call : calls) {
      attribute::OperatorCost cost;
      cost.total = energy(call.joules * wobble[b]);
      cost.seconds = Seconds(call.seconds);
      cost.known = true;
      block.operators.push_back(cost);
    }
    block.ledger.emplace();
    block.ledger->total = energy(total * wobble[b]);
    p.cost.ledger = *block.ledger;
    p.cost.operators = block.operators;
    p.cost.blocks.push_back(std::move(block));
  }
  p.cost.ledger.total = energy(total);
  for (std::size_t i = 0; i < calls.size(); ++i)
    p.cost.operators[i].total = energy(calls[i].joules);
  return p;
}

inline std::vector<run::OperatorId> ids(std::size_t from, std::size_t to) {
  std::vector<run::OperatorId> all;
  for (; from < to; ++from) all.emplace_back(from);
  return all;
}

// Regions by the number of operators on each side, in order.
inline match::Match regions(const std::vector<std::pair<std::size_t, std::size_t>>& sizes) {
  match::Match match;
  std::size_t a = 0;
  std::size_t b = 0;
  for (const auto& [of_a, of_b] : sizes) {
    match::Region region;
    region.a = ids(a, a + of_a);
    region.b = ids(b, b + of_b);
    a += of_a;
    b += of_b;
    match.regions.push_back(region);
  }
  return match;
}

inline Comparison compare(const Program& a, const Program& b, const match::Match& match) {
  return diagnose::compare({a.run, b.run, a.cost, b.cost, match, rules::Verdict{}});
}

// The whole of both programs as one region, whose dear side is `a`.
inline Question question(const Program& a, const Program& b) {
  return ask({a.run, a.cost, Side::a, ids(0, a.run.operators.size())},
             {b.run, b.cost, Side::b, ids(0, b.run.operators.size())});
}

}  // namespace joulediff::diagnose::testing
