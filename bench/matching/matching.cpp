// matching A.jd B.jd [TOLERANCE...]: what match finds of two runs within each tolerance, as JSON.
// For bench/matching/run, which holds it against the truth.
//
// Operators are {name, module, line, view, classes}; `classes` has, for each output, the number of
// the class of equal values that it is in, or null. Matches are {tolerance, anchors: [[class of A,
// class of B], ...], regions: [[operators of A], [operators of B]]}.
#include <charconv>
#include <cstdio>
#include <iostream>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "match/classes.h"
#include "match/match.h"
#include "run/run_file.h"

namespace {

using namespace joulediff;
using nlohmann::json;

// The class of each tensor.
std::vector<std::uint32_t> classes_of(const run::Run& run) {
  const match::Graph graph = match::make_graph(run);
  const match::Classes classes = match::equal_classes(run, graph);
  std::vector<std::uint32_t> of(run.tensors.size(), match::kNone);
  for (std::size_t v = 0; v < graph.values.size(); ++v)
    for (const run::TensorId tensor : graph.values[v].tensors)
      of[tensor.index()] = classes.of_value[v];
  return of;
}

json operators(const run::Run& run, const std::vector<std::uint32_t>& classes) {
  json all = json::array();
  for (const run::Operator& op : run.operators) {
    json& one = all.emplace_back();
    one["name"] = op.name;
    one["module"] = op.module;
    one["view"] = op.view;
    if (op.stack.valid()) {
      const run::Frame& frame = run.frames[run.stacks[op.stack.index()].frame.index()];
      one["line"] = frame.file + ":" + std::to_string(frame.line);
    }
    one["classes"] = json::array();
    for (const run::TensorId tensor : op.outputs) {
      const std::uint32_t number = classes[tensor.index()];
      one["classes"].push_back(number == match::kNone ? json() : json(number));
    }
  }
  return all;
}

json numbers(const std::vector<run::OperatorId>& operators) {
  json all = json::array();
  for (const run::OperatorId op : operators) all.push_back(op.index());
  return all;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: matching A.jd B.jd [TOLERANCE...]\n");
    return 2;
  }
  const Result<run::Run> a = run::read_run(argv[1]), b = run::read_run(argv[2]);
  for (const Result<run::Run>* run : {&a, &b})
    if (!*run) {
      std::fprintf(stderr, "matching: %s\n", run->error().message.c_str());
      return 3;
    }
  std::vector<std::optional<double>> tolerances;
  for (int i = 3; i < argc; ++i) {
    const std::string_view text = argv[i];
    double value = 0;
    if (std::from_chars(text.data(), text.data() + text.size(), value).ec != std::errc()) {
      std::fprintf(stderr, "matching: %s is no tolerance\n", argv[i]);
      return 2;
    }
    tolerances.emplace_back(value);
  }
  if (tolerances.empty()) tolerances.emplace_back();

  const auto classes_a = classes_of(*a), classes_b = classes_of(*b);
  json out{{"a", operators(*a, classes_a)}, {"b", operators(*b, classes_b)}};
  for (const std::optional<double> tolerance : tolerances) {
    const match::Match found = match::match(*a, *b, tolerance);
    json anchors = json::array(), regions = json::array();
    for (const match::Anchor& anchor : found.anchors)
      anchors.push_back({classes_a[anchor.a.index()], classes_b[anchor.b.index()]});
    for (const match::Region& region : found.regions)
      regions.push_back({numbers(region.a), numbers(region.b)});
    out["matches"].push_back(
        {{"tolerance", found.tolerance}, {"anchors", anchors}, {"regions", regions}});
  }
  std::cout << out.dump() << "\n";
}
