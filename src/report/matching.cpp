#include "report/matching.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "diagnose/evidence.h"
#include "diagnose/place.h"
#include "report/prose.h"
#include "run/names.h"

namespace joulediff::report {
namespace {

using Json = nlohmann::ordered_json;
using match::WhyAlone;

constexpr std::size_t kLabel = 12;

// The first operator that returns the tensor; none: an input of the program.
run::OperatorId maker_of(const run::Run& run, run::TensorId tensor) {
  for (std::size_t i = 0; i < run.operators.size(); ++i) {
    if (std::ranges::find(run.operators[i].outputs, tensor) != run.operators[i].outputs.end())
      return run::OperatorId(i);
  }
  return {};
}

std::string called(const run::Run& run, run::OperatorId id) {
  return fmt::format("{} #{}", diagnose::base_name(run.operators[id.index()].name), id.index());
}

// "aten.mul #13, [8, 1024] float32".
std::string described(const run::Run& run, run::TensorId id) {
  const run::Tensor& tensor = run.tensors[id.index()];
  const run::OperatorId maker = maker_of(run, id);
  return fmt::format("{}, [{}] {}", maker.valid() ? called(run, maker) : "an input",
                     fmt::join(tensor.shape, ", "), run::name(tensor.fingerprint.dtype));
}

std::string operators(const run::Run& run, const std::vector<run::OperatorId>& ids) {
  std::vector<std::string> names;
  for (const run::OperatorId id : ids) names.push_back(called(run, id));
  return names.empty() ? "nothing" : fmt::format("{}", fmt::join(names, ", "));
}

bool in_order(const std::vector<std::uint8_t>& axes) {
  return std::ranges::is_sorted(axes);
}

std::string pair(const MatchPage& page, const match::Anchor& anchor) {
  std::string words =
      fmt::format("A {} = B {}: ", described(page.a, anchor.a), described(page.b, anchor.b));
  words += anchor.distance == 0 ? "equal" : fmt::format("{:.1e} apart", anchor.distance);
  if (!in_order(anchor.axes))
    words += fmt::format(", B holds A as ({})", fmt::join(anchor.axes, ", "));
  return words;
}

std::string why(const MatchPage& page, const match::Alone& one, bool of_a) {
  const run::Run& other = of_a ? page.b : page.a;
  const char* there = of_a ? "B" : "A";
  const auto nearest = [&] { return fmt::format("{} {}", there, described(other, one.nearest)); };
  switch (one.why) {
    case WhyAlone::constant: return "made of weights and numbers alone";
    case WhyAlone::indistinct: return "too few distinct elements to be told from others";
    case WhyAlone::unlike:
      return fmt::format("nothing in {} has as many elements, as many of them not finite", there);
    case WhyAlone::far:
      return fmt::format("the nearest, {}, is {:.1e} apart, beyond the tolerance", nearest(),
                         one.distance);
    case WhyAlone::nearer:
      return fmt::format("{} is {:.1e} apart, but nearer to another", nearest(), one.distance);
    case WhyAlone::out_of_order:
      return fmt::format("{} is {:.1e} apart, but elsewhere in the order of the programs",
                         nearest(), one.distance);
  }
  return "?";
}

std::string_view name(WhyAlone why) {
  switch (why) {
    case WhyAlone::constant: return "constant";
    case WhyAlone::indistinct: return "indistinct";
    case WhyAlone::unlike: return "unlike";
    case WhyAlone::far: return "far";
    case WhyAlone::nearer: return "nearer";
    case WhyAlone::out_of_order: return "out_of_order";
  }
  return "?";
}

Json operator_json(const run::Run& run, run::OperatorId id) {
  const auto place = diagnose::places(run, id).where;
  return {{"index", id.index()},
          {"name", run.operators[id.index()].name},
          {"where", place ? Json{{"file", place->file}, {"line", place->line}} : Json(nullptr)}};
}

Json operators_json(const run::Run& run, const std::vector<run::OperatorId>& ids) {
  Json list = Json::array();
  for (const run::OperatorId id : ids) list.push_back(operator_json(run, id));
  return list;
}

Json tensor_json(const run::Run& run, run::TensorId id) {
  const run::Tensor& tensor = run.tensors[id.index()];
  const run::OperatorId maker = maker_of(run, id);
  return {{"operator", maker.valid() ? operator_json(run, maker) : Json(nullptr)},
          {"shape", tensor.shape},
          {"dtype", run::name(tensor.fingerprint.dtype)}};
}

Json anchors_json(const MatchPage& page, const std::vector<std::size_t>& anchors) {
  Json list = Json::array();
  for (const std::size_t i : anchors) {
    const match::Anchor& anchor = page.match.anchors[i];
    list.push_back({{"a", tensor_json(page.a, anchor.a)},
                    {"b", tensor_json(page.b, anchor.b)},
                    {"distance", anchor.distance},
                    {"axes", anchor.axes.empty() ? Json(nullptr) : Json(anchor.axes)}});
  }
  return list;
}

Json alone_json(const MatchPage& page, const std::vector<match::Alone>& alone, bool of_a) {
  Json list = Json::array();
  for (const match::Alone& one : alone) {
    Json value = tensor_json(of_a ? page.a : page.b, one.value);
    value["why"] = name(one.why);
    value["nearest"] =
        one.nearest.valid() ? tensor_json(of_a ? page.b : page.a, one.nearest) : Json(nullptr);
    value["distance"] = one.nearest.valid() ? Json(one.distance) : Json(nullptr);
    list.push_back(std::move(value));
  }
  return list;
}

}  // namespace

std::string text(const MatchPage& page) {
  const match::Region& region = page.match.regions[page.region];
  std::string out =
      fmt::format("Region r{}, tolerance {:.1e}\n", page.region, page.match.tolerance);
  out += entry("A", operators(page.a, region.a), kLabel);
  out += entry("B", operators(page.b, region.b), kLabel);
  for (const std::size_t i : region.inputs)
    out += entry("rests on", pair(page, page.match.anchors[i]), kLabel);
  for (const std::size_t i : region.outputs)
    out += entry("gives", pair(page, page.match.anchors[i]), kLabel);
  if (region.inputs_differ)
    out += entry("but", "the two sides do not rest on the same values", kLabel);
  if (!region.outputs_agree) out += entry("but", "what they give does not agree", kLabel);
  for (const bool of_a : {true, false}) {
    for (const match::Alone& one : of_a ? page.explanation.a : page.explanation.b)
      out +=
          entry(of_a ? "only in A" : "only in B",
                described(of_a ? page.a : page.b, one.value) + ": " + why(page, one, of_a), kLabel);
  }
  return out;
}

std::string json(const MatchPage& page) {
  const match::Region& region = page.match.regions[page.region];
  const Json root{{"schema", "joulediff.match/1"},
                  {"region", fmt::format("r{}", page.region)},
                  {"tolerance", page.match.tolerance},
                  {"a", operators_json(page.a, region.a)},
                  {"b", operators_json(page.b, region.b)},
                  {"inputs", anchors_json(page, region.inputs)},
                  {"outputs", anchors_json(page, region.outputs)},
                  {"inputs_differ", region.inputs_differ},
                  {"outputs_agree", region.outputs_agree},
                  {"alone",
                   {{"a", alone_json(page, page.explanation.a, true)},
                    {"b", alone_json(page, page.explanation.b, false)}}}};
  return root.dump(2) + "\n";
}

}  // namespace joulediff::report
