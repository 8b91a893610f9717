#include "lab/fused_kernels.h"

#include <algorithm>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

namespace joulediff::lab {
namespace {

using Names = std::vector<std::string>;

Names kernels_of(const run::Operator& op) {
  if (op.arguments.find("\"kernels\"") == std::string::npos) return {};
  const auto json = nlohmann::json::parse(op.arguments, nullptr, false);
  if (!json.is_object() || !json.contains("kernels") || !json["kernels"].is_array()) return {};
  Names names;
  for (const auto& name : json["kernels"])
    if (name.is_string()) names.push_back(name.get<std::string>());
  return names;
}

// One kernel that an operator says it has.
struct Slot {
  std::size_t op;
  bool taken = false;
};

// The operators [first, last) of one call, and its kernels: indices into the series, by start.
class Call {
 public:
  Call(const std::vector<Names>& names, std::size_t first, std::size_t last) {
    for (std::size_t op = first; op < last; ++op)
      for (const std::string& name : names[op]) {
        by_name_[name].push_back(slots_.size());
        slots_.push_back({op});
      }
  }
  bool empty() const { return slots_.empty(); }

  void charge(const run::Run& run, run::KernelSeries& order,
              const std::vector<std::size_t>& kernels) {
    std::vector<std::size_t> unnamed;
    std::size_t before = 0;  // slots up to here lie before the kernels that wait in `unnamed`
    for (const std::size_t i : kernels) {
      const std::size_t slot = take(run.kernels[order.kernel[i].index()].name);
      if (slot == kNone) {
        unnamed.push_back(i);
        continue;
      }
      order.op[i] = run::OperatorId(slots_[slot].op);
      between_.emplace_back(std::exchange(unnamed, {}), std::pair(before, slot));
      before = slot + 1;
    }
    between_.emplace_back(std::move(unnamed), std::pair(before, slots_.size()));
    for (const auto& [waiting, range] : between_) charge_unnamed(order, waiting, range);
  }

 private:
  static constexpr std::size_t kNone = std::numeric_limits<std::size_t>::max();

  std::size_t take(const std::string& name) {
    const auto found = by_name_.find(name);
    if (found == by_name_.end()) return kNone;
    std::size_t& next = next_[name];
    if (next == found->second.size()) next = 0;  // more often than the values pass saw it
    const std::size_t slot = found->second[next++];
    slots_[slot].taken = true;
    return slot;
  }

  void charge_unnamed(run::KernelSeries& order, const std::vector<std::size_t>& kernels,
                      std::pair<std::size_t, std::size_t> range) {
    std::vector<std::size_t> free;
    for (std::size_t s = range.first; s < range.second; ++s)
      if (!slots_[s].taken) free.push_back(s);
    for (std::size_t k = 0; k < kernels.size(); ++k)
      order.op[kernels[k]] =
          free.empty() ? run::OperatorId()
                       : run::OperatorId(slots_[free[k * free.size() / kernels.size()]].op);
  }

  std::vector<Slot> slots_;
  std::map<std::string, std::vector<std::size_t>> by_name_;
  std::map<std::string, std::size_t> next_;
  std::vector<std::pair<std::vector<std::size_t>, std::pair<std::size_t, std::size_t>>> between_;
};

}  // namespace

void charge_by_name(const run::Run& run, run::KernelSeries& order) {
  std::vector<Names> names;
  for (const run::Operator& op : run.operators) names.push_back(kernels_of(op));
  if (std::ranges::all_of(names, &Names::empty)) return;
  // What was launched under one operator of one step is one call.
  std::map<std::uint32_t, std::map<std::size_t, std::vector<std::size_t>>> steps;
  for (std::size_t i = 0; i < order.size(); ++i)
    if (order.op[i].valid()) steps[order.step[i]][order.op[i].index()].push_back(i);
  for (const auto& [step, calls] : steps)
    for (auto call = calls.begin(); call != calls.end(); ++call) {
      const auto next = std::next(call);
      Call found(names, call->first, next == calls.end() ? names.size() : next->first);
      if (!found.empty()) found.charge(run, order, call->second);
    }
}

}  // namespace joulediff::lab
