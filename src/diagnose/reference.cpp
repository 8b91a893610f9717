#include "diagnose/reference.h"

#include <algorithm>
#include <array>

#include "diagnose/work.h"

namespace joulediff::diagnose {
namespace {

// A kernel that does nothing takes about this long on the device.
constexpr double kLaunch = 1e-6;

// From the vendors' data sheets: dense, without sparsity. The first whose name is a part of the
// driver's is taken, so the more special ones come first.
constexpr Hardware kBoards[] = {
    {"B200", 2250e12, 4500e12, 1125e12, 37e12, 75e12, 7.7e12},
    {"GH200", 989.4e12, 1978.9e12, 494.7e12, 66.9e12, 66.9e12, 4.0e12},
    {"H200", 989.4e12, 1978.9e12, 494.7e12, 66.9e12, 66.9e12, 4.8e12},
    {"H100 PCIe", 756e12, 1513e12, 378e12, 51e12, 51e12, 2.0e12},
    {"H100 NVL", 835e12, 1671e12, 417e12, 60e12, 60e12, 3.9e12},
    {"H100", 989.4e12, 1978.9e12, 494.7e12, 66.9e12, 66.9e12, 3.35e12},
    {"A100-SXM4-40GB", 312e12, 624e12, 156e12, 19.5e12, 19.5e12, 1.555e12},
    {"A100-PCIE-40GB", 312e12, 624e12, 156e12, 19.5e12, 19.5e12, 1.555e12},
    {"A100", 312e12, 624e12, 156e12, 19.5e12, 19.5e12, 1.935e12},
    {"L40S", 362e12, 733e12, 183e12, 0, 91.6e12, 0.864e12},
    {"A10", 125e12, 250e12, 62.5e12, 0, 31.2e12, 0.6e12},
    {"V100", 125e12, 0, 0, 0, 15.7e12, 0.9e12},
    {"RTX 4090", 165.2e12, 330.3e12, 82.6e12, 0, 82.6e12, 1.008e12},
    {"MI300X", 1307.4e12, 2614.9e12, 653.7e12, 163.4e12, 163.4e12, 5.3e12},
};

bool is(const run::Run& run, std::string_view key, std::string_view value) {
  const auto found = std::ranges::find(run.settings, key, &run::Setting::key);
  return found != run.settings.end() && found->value == value;
}

// Operations a second of the unit for this dtype, and which unit.
std::pair<double, Bound> matrix_peak(const run::Run& run, const Hardware& board, value::DType dtype,
                                     bool convolution) {
  using enum value::DType;
  double peak = 0;
  if (dtype == float16 || dtype == bfloat16) peak = board.matrix_16;
  if (dtype == float8_e4m3 || dtype == float8_e5m2 || dtype == int8 || dtype == uint8)
    peak = board.matrix_8;
  if (dtype == float32 && allows_tf32(run, convolution)) peak = board.matrix_tf32;
  if (dtype == float64) peak = board.matrix_64;
  return peak > 0 ? std::pair(peak, Bound::matrix) : std::pair(board.vector_32, Bound::vector);
}

}  // namespace

bool allows_tf32(const run::Run& run, bool convolution) {
  return convolution ? is(run, "torch.backends.cudnn.allow_tf32", "True")
                     : is(run, "torch.backends.cuda.matmul.allow_tf32", "True");
}

std::string_view name(Bound bound) {
  constexpr std::string_view kNames[] = {"matrix", "vector", "HBM", "launch", "host"};
  return kNames[static_cast<std::size_t>(bound)];
}

const Hardware* hardware_of(std::string_view device) {
  for (const Hardware& board : kBoards)
    if (device.find(board.name) != std::string_view::npos) return &board;
  return nullptr;
}

std::optional<Reference> reference(const run::Run& run, const attribute::Attribution& costs,
                                   std::span<const run::OperatorId> operators) {
  const Hardware* board = hardware_of(run.manifest.device);
  if (board == nullptr || costs.ledger.boundary != Boundary::board) return std::nullopt;
  std::array<double, 5> by_bound{};
  double least = 0, taken = 0;
  for (const run::OperatorId id : operators) {
    const run::Operator& op = run.operators[id.index()];
    const double seconds = costs.operators[id.index()].seconds.value;
    if (seconds <= 0) continue;
    const auto work = work_of(run, op);
    if (!work) return std::nullopt;
    const bool convolution = op.name.find("convolution") != std::string::npos;
    const auto [peak, unit] = matrix_peak(run, *board, work->dtype, convolution);
    const std::pair<double, Bound> bounds[] = {{work->matrix / peak, unit},
                                               {work->vector / board->vector_32, Bound::vector},
                                               {work->bytes / board->hbm, Bound::hbm},
                                               {kLaunch, Bound::launch}};
    const auto& most = *std::ranges::max_element(bounds, {}, &std::pair<double, Bound>::first);
    by_bound[static_cast<std::size_t>(most.second)] += most.first;
    least += most.first;
    taken += seconds;
  }
  if (taken <= 0) return std::nullopt;
  Reference result{Seconds(least), Bound::hbm, taken / least};
  result.bound = static_cast<Bound>(std::ranges::max_element(by_bound) - by_bound.begin());
  // While the device waits for more than half of the time, a faster kernel ends nothing sooner.
  const attribute::Ledger& ledger = costs.ledger;
  if (ledger.busy_time && 2 * ledger.busy_time->value < ledger.step_time.value)
    result.bound = Bound::host;
  return result;
}

}  // namespace joulediff::diagnose
