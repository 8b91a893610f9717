#include "lab/order_steps.h"

#include <algorithm>
#include <joulediff/record.h>
#include <tuple>

#include <nlohmann/json.hpp>

#include "lab/align.h"

namespace joulediff::lab {
namespace {

constexpr std::string_view kOfOrderAlone = R"({"of_order_alone":)";
bool is_of_order_alone(const run::Operator& op) {
  return op.arguments.starts_with(kOfOrderAlone);
}

}  // namespace

OrderSteps::OrderSteps(const run::Run& run, const SpoolContents& spool)
    : first_new_(run.operators.size()) {
  for (std::size_t i = 0; i < run.operators.size(); ++i) {
    const run::Operator& op = run.operators[i];
    if (is_of_order_alone(op))
      known_[op.arguments] = static_cast<std::uint32_t>(i);
    else
      reference_.push_back(op.name);  // these come first
  }
  std::map<std::uint32_t, std::string> inputs;
  std::string values_inputs;
  for (const spool::Step& step : spool.steps) {
    const auto text = spool.inputs.find(step.inputs);
    if (text == spool.inputs.end()) continue;
    inputs[step.index] = text->second;
    if (step.pass == JD_VALUES) values_inputs = text->second;
  }
  std::map<std::uint32_t, std::uint32_t> lengths;
  for (const spool::OpTime& time : spool.operator_times)
    lengths[time.step] = std::max(lengths[time.step], time.index + 1);
  for (const spool::Correlation& correlation : spool.correlations)
    lengths[correlation.step] = std::max(lengths[correlation.step], correlation.index + 1);
  std::vector<SpoolOperatorName> names = spool.operator_names;
  std::sort(names.begin(), names.end(), [](const auto& a, const auto& b) {
    return std::tie(a.step, a.index, a.name) < std::tie(b.step, b.index, b.name);
  });
  std::vector<std::string_view> current;
  auto next = names.begin();
  for (const auto& [step, length] : lengths) {
    // A name is spooled where it differs from that of the step before.
    for (; next != names.end() && next->step <= step; ++next) {
      if (next->index >= current.size()) current.resize(next->index + 1);
      current[next->index] = next->name;
    }
    if (current.size() < length) current.resize(length);
    partners_[step] = align(reference_, std::span(current).first(length));
    operators_ += length;
    const auto strangers = std::ranges::count(partners_[step], kNoPartner);
    strangers_ += static_cast<std::uint64_t>(strangers);
    if (values_inputs.empty() || inputs[step].empty() || inputs[step] == values_inputs)
      unexpected_ += static_cast<std::uint64_t>(strangers);
    name_strangers(inputs[step], current, partners_[step]);
  }
}

void OrderSteps::add_strangers(run::Run& run) const {
  run.operators.insert(run.operators.end(), new_.begin(), new_.end());
}

// The same call of the same inputs is the same operator in every step and block.
void OrderSteps::name_strangers(const std::string& inputs, std::span<const std::string_view> names,
                                std::vector<std::uint32_t>& partners) {
  constexpr std::size_t kMost = 100'000;  // a program whose every step is another
  std::map<std::string_view, std::uint32_t> seen;
  for (std::size_t i = 0; i < partners.size(); ++i) {
    if (partners[i] != kNoPartner || names[i].empty() || known_.size() >= kMost) continue;
    const nlohmann::json which = {inputs, names[i], seen[names[i]]++};
    const std::string arguments =
        std::string(kOfOrderAlone) +
        which.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "}";
    const auto number = static_cast<std::uint32_t>(first_new_ + new_.size());
    const auto [known, fresh] = known_.try_emplace(arguments, number);
    partners[i] = known->second;
    if (!fresh) continue;
    run::Operator& op = new_.emplace_back();
    op.name = names[i];
    op.arguments = arguments;
  }
}

run::OperatorId OrderSteps::find(std::uint32_t step, std::uint32_t index) const {
  const auto partners = partners_.find(step);
  if (partners == partners_.end() || index >= partners->second.size()) return {};
  const std::uint32_t partner = partners->second[index];
  return partner == kNoPartner ? run::OperatorId() : run::OperatorId(partner);
}

}  // namespace joulediff::lab
