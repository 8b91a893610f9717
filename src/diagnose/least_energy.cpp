#include "diagnose/least_energy.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "diagnose/reference.h"
#include "diagnose/work.h"

namespace joulediff::diagnose {
namespace {

// Joules for each unit of work.
struct Cost {
  double value = 0, low = 0, high = 0;
};

std::optional<Cost> cost_of(const meter::Profile& profile, std::string_view what) {
  const auto found = std::ranges::find(profile.coefficients, what, &meter::Coefficient::what);
  if (found == profile.coefficients.end() || !found->joules.identified()) return std::nullopt;
  Cost cost{found->joules.value, found->joules.low, found->joules.high};
  for (const auto& [values, joules] : found->by_values)
    if (values == "random" && joules.identified()) cost.value = joules.value;
  if (!(cost.value > 0)) return std::nullopt;
  cost.low = std::clamp(cost.low, 0.0, cost.value);
  cost.high = std::max(cost.high, cost.value);
  return cost;
}

std::string_view product_of(const run::Run& run, value::DType dtype, bool convolution) {
  using enum value::DType;
  switch (dtype) {
    case float16: return "matmul dtype=float16 unit=matrix";
    case bfloat16: return "matmul dtype=bfloat16 unit=matrix";
    case float64: return "matmul dtype=float64 unit=matrix";
    case float32:
      return allows_tf32(run, convolution) ? "matmul dtype=tf32 unit=matrix"
                                           : "matmul dtype=float32 unit=vector";
    default: return {};
  }
}

// Adds `work` units that cost so much; false: nothing is known of their cost.
bool add(Cost& sum, const meter::Profile& profile, std::string_view what, double work) {
  if (work <= 0) return true;
  const auto cost = cost_of(profile, what);
  if (!cost) return false;
  sum.value += work * cost->value;
  sum.low += work * cost->low;
  sum.high += work * cost->high;
  return true;
}

}  // namespace

std::optional<meter::Profile> profile_of(const run::Run& run) {
  const std::string& used = run.manifest.device_uuid;
  const std::string prefix = meter::profile_fact("");
  for (auto at = run.manifest.facts.lower_bound(prefix);
       at != run.manifest.facts.end() && at->first.starts_with(prefix); ++at) {
    // Some say "GPU-..." and some leave it out.
    const std::string uuid = at->first.substr(prefix.size());
    if (used.empty() || uuid.find(used) != std::string::npos ||
        used.find(uuid) != std::string::npos)
      return meter::profile_of(run, uuid);
  }
  return std::nullopt;
}

std::optional<LeastEnergy> least_energy(const run::Run& run, const attribute::Attribution& costs,
                                        std::span<const run::OperatorId> operators) {
  if (costs.ledger.boundary != Boundary::board) return std::nullopt;
  const auto profile = profile_of(run);
  if (!profile) return std::nullopt;
  Cost least;
  double joules = 0, half_width = 0;
  for (const run::OperatorId id : operators) {
    const run::Operator& op = run.operators[id.index()];
    const attribute::OperatorCost& own = costs.operators[id.index()];
    if (own.seconds.value <= 0) continue;
    const auto work = work_of(run, op);
    if (!work || !own.known) return std::nullopt;
    joules += own.dynamic.joules.value;
    half_width += own.dynamic.half_width().value;  // calls of one signature share their error
    const bool convolution = op.name.find("convolution") != std::string::npos;
    // What is no product is computed in float32, whatever the tensors are.
    if (!add(least, *profile, product_of(run, work->dtype, convolution), work->matrix) ||
        !add(least, *profile, "vector dtype=float32 unit=vector", work->vector) ||
        !add(least, *profile, "copy level=hbm", work->bytes))
      return std::nullopt;
  }
  if (!(least.value > 0)) return std::nullopt;
  const double distance = joules / least.value;
  const double below =
      std::hypot(half_width / least.value, distance * (1 - least.value / least.high));
  const double above =
      least.low > 0 ? std::hypot(half_width / least.value, distance * (least.value / least.low - 1))
                    : std::numeric_limits<double>::infinity();
  return LeastEnergy{
      {Joules(least.value), Joules(least.low), Joules(least.high), Standing::modelled},
      distance,
      std::max(0.0, distance - below),
      distance + above};
}

}  // namespace joulediff::diagnose
