#include "simulate/program.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/format.h"

namespace joulediff::simulate {
namespace {

constexpr double kLongestTrace = 600;
constexpr double kMostKernels = 2e6;

bool within(double value, double low, double high) {
  return std::isfinite(value) && value >= low && value <= high;
}

Status check(const Operator& op) {
  const auto fault = [&](std::string_view key, std::string_view wanted) {
    return fail(ExitCode::bad_input,
                fmt::format("operator {}: {} is not {}", printable(op.name), key, wanted));
  };
  if (op.name.empty()) return fail(ExitCode::bad_input, "an operator has no name");
  if (!within(op.seconds, 1e-7, 10)) return fault("seconds", "between 1e-7 and 10");
  if (!within(op.joules, 0, 1e5)) return fault("joules", "between 0 and 1e5");
  if (op.kernels < 1 || op.kernels > 100'000) return fault("kernels", "between 1 and 100000");
  if (op.calls < 1 || op.calls > 10'000) return fault("calls", "between 1 and 10000");
  if (op.stream < 0 || op.stream > 100) return fault("stream", "between 0 and 100");
  if (!within(op.compute_bound, 0, 1)) return fault("compute_bound", "between 0 and 1");
  if (!within(op.cold, 0, 10)) return fault("cold", "between 0 and 10");
  if (!within(op.cold_time, 0, 10)) return fault("cold_time", "between 0 and 10");
  if (!within(op.operand_spread, 0, 1)) return fault("operand_spread", "between 0 and 1");
  return {};
}

}  // namespace

Status check(const Program& program) {
  const auto fault = [](std::string_view key, std::string_view wanted) {
    return fail(ExitCode::bad_input, fmt::format("the program's {} is not {}", key, wanted));
  };
  if (program.operators.empty()) return fail(ExitCode::bad_input, "the program has no operators");
  if (program.layers < 1 || program.layers > 1000) return fault("layers", "between 1 and 1000");
  if (!within(program.launch_gap, 0, 1)) return fault("launch_gap", "between 0 and 1 (seconds)");
  if (!within(program.gap_spread, 0, 3)) return fault("gap_spread", "between 0 and 3");
  if (!within(program.pause, 0, 60)) return fault("pause", "between 0 and 60 (seconds)");
  if (!within(program.pause_jitter, 0, 1)) return fault("pause_jitter", "between 0 and 1");
  if (!within(program.seconds, 0.1, kLongestTrace))
    return fault("seconds", fmt::format("between 0.1 and {:.0f}", kLongestTrace));
  double kernels = 0, step = program.pause;
  for (std::size_t i = 0; i < program.operators.size(); ++i) {
    const Operator& op = program.operators[i];
    JD_TRY(check(op));
    if (std::ranges::count(program.operators, op.name, &Operator::name) > 1)
      return fail(ExitCode::bad_input, "operator " + printable(op.name) +
                                           " is there twice; say `calls`, or give another name");
    kernels += program.layers * static_cast<double>(op.calls) * op.kernels;
    step += program.layers * op.calls * op.seconds;
  }
  step += kernels * program.launch_gap;
  if (kernels * (5 + program.seconds / step) > kMostKernels)
    return fail(ExitCode::bad_input,
                fmt::format("the program has more than {:.0f} kernels; take fewer kernels or "
                            "seconds",
                            kMostKernels));
  return {};
}

Program square_wave(double period, double duty, double dynamic_watts, double seconds) {
  Program program;
  program.name = "square wave";
  program.seconds = seconds;
  program.launch_gap = 0;
  program.pause = period * (1 - duty);
  const double busy = period * duty;
  // Kernels of about a millisecond, so that the clock can change within a long one.
  const int kernels = std::clamp(static_cast<int>(busy / 1e-3), 1, 100'000);
  program.operators.push_back({"load", busy, busy * dynamic_watts, kernels});
  return program;
}

Program transformer(double dynamic_watts, double seconds) {
  Program program;
  program.name = "transformer";
  program.layers = 12;
  program.launch_gap = 6e-6;
  program.pause = 2e-3;
  program.pause_jitter = 0.25;
  program.seconds = seconds;
  const auto add = [&](std::string name, double microseconds, double share, double compute_bound) {
    Operator op;
    op.name = std::move(name);
    op.seconds = 1e-6 * microseconds;
    op.joules = op.seconds * share * dynamic_watts;
    op.compute_bound = compute_bound;
    program.operators.push_back(std::move(op));
  };
  add("layer_norm", 145, 0.41, 0.2);
  add("qkv", 449, 0.77, 0.9);
  add("attention", 198, 0.62, 0.8);
  add("projection", 176, 0.75, 0.9);
  add("up", 411, 0.74, 0.9);
  add("gelu", 283, 0.46, 0.2);
  add("down", 352, 0.76, 0.9);
  add("residual", 61, 0.43, 0.2);
  return program;
}

}  // namespace joulediff::simulate
