// The replay pass of an engine: each operator that matters, again and again where its inputs lie,
// for as long as the launcher asks (docs/recording.md, "Socket").
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "record/launcher.h"
#include "record/observe.h"

namespace joulediff::record {

struct Described {
  std::string name, signature;
  bool once = false;
};

// The signatures that make up 95 % of the time, costliest first, each with one index that has it.
// seconds(index): negative where unknown.
inline std::vector<std::pair<std::string, std::uint32_t>> costliest(
    const std::vector<Described>& operators, const std::function<double(std::uint32_t)>& seconds) {
  constexpr double kShareOfSeconds = 0.95;
  struct Cost {
    double seconds = 0;
    std::uint32_t index = 0;
  };
  std::map<std::string, Cost> costs;
  double rest = 0;
  for (std::uint32_t i = 0; i < operators.size(); ++i) {
    if (operators[i].once) continue;
    Cost& cost = costs.try_emplace(operators[i].signature, Cost{0, i}).first->second;
    const double more = std::max(0.0, seconds(i));
    cost.seconds += more;
    rest += kShareOfSeconds * more;
  }
  std::vector<std::pair<std::string, Cost>> order(costs.begin(), costs.end());
  std::ranges::stable_sort(order, std::ranges::greater(),
                           [](const auto& entry) { return entry.second.seconds; });
  std::vector<std::pair<std::string, std::uint32_t>> chosen;
  for (const auto& [signature, cost] : order) {
    if (rest <= 0 || cost.seconds <= 0) break;
    chosen.emplace_back(signature, cost.index);
    rest -= cost.seconds;
  }
  return chosen;
}

class Replay {
 public:
  // `operators`: those of a step, by index.
  explicit Replay(std::vector<Described> operators) : operators_(std::move(operators)) {}

  void begin();  // chooses, and measures the floors
  // Measures the operator if it is one of the chosen; afterwards memory holds what it held before.
  void at(std::uint32_t index, const jd_op& op, void (*execute)(void*), void* context);
  void end();

 private:
  struct Saved {
    void* to;
    std::vector<std::byte> bytes;
  };
  void measure(const std::string& signature, double seconds,
               const std::function<void(std::uint64_t)>& run, const std::vector<Saved>& fresh);
  static std::vector<Saved> changed_in_place(const jd_op& op);

  std::vector<Described> operators_;
  std::map<std::string, std::uint32_t> wanted_;  // signature to an index
  Launcher launcher_;
  std::uint64_t number_ = 0;
  std::uint64_t other_shape_ = 0;
};

// One line of ours in the run's diagnostics.
void tell(const char* severity, const char* rule, const std::string& message);
void tell_impossible(std::uint64_t values);

}  // namespace joulediff::record
