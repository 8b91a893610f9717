// make_runs DIR: writes the runs that the golden cases compare, and submissions of MLPerf.
#include <cmath>
#include <cstdio>
#include <string>

#include "diagnose/noise.h"
#include "meter/calibrate.h"
#include "run/run_file.h"
#include "scripted_run.h"
#include "submissions.h"

namespace joulediff::golden {
namespace {

using run::Role;
using run::TensorId;

const std::string kModel = "/usr/lib/python3/dist-packages/transformers/models/gpt2/modeling.py";
const std::string kActivations = "/usr/lib/python3/dist-packages/transformers/activations.py";
const std::string kTorch = "/usr/lib/python3/dist-packages/torch/nn/functional.py";
const run::Frame kMain{"/home/user/train.py", 30, "main"};

const Kernel kProduct{"gemm_tf32", 250, 380};
const Kernel kSlowProduct{"gemm_fp32", 700, 420};

Kernel pointwise(const std::string& name) {
  return {"elementwise_" + name, 40, 200};
}

// Two layers of a GPT-like MLP: a product, a GELU in pieces or in one, a product.
Script mlp(const std::string& label, const std::string& side, bool fused, const Kernel& product,
           std::int64_t rows = 64, double noise = 0) {
  Script s(label, side);
  s.set_noise(noise);
  if (rows != 64) s.manifest().work.per_step = 16.0 * static_cast<double>(rows);
  const std::vector<std::int64_t> wide{rows, 96};
  s.at({kMain});
  TensorId x = s.value("x", wide, Role::input);
  for (const std::string layer : {"0.", "1."}) {
    s.at({{kTorch, 20, "linear"}, {kModel, 80, "forward"}, kMain});
    const TensorId up = s.value(layer + "up", {96, 96}, Role::parameter);
    const TensorId h = s.call("aten.mm.default", {x, up}, layer + "h", wide, product);
    TensorId g;
    if (fused) {
      s.at({{kTorch, 44, "gelu"}, {kActivations, 70, "forward"}, kMain});
      g = s.call("aten.gelu.default", {h}, layer + "gelu", wide, {"gelu_kernel", 45, 210});
    } else {
      s.at({{kActivations, 52, "forward"}, {kModel, 81, "forward"}, kMain});
      const auto scalar = [&](const std::string& op, const TensorId& in, const std::string& out) {
        return s.call("aten." + op + ".Tensor", {in}, layer + out, wide, pointwise(op));
      };
      const TensorId half = scalar("mul", h, "half");
      const TensorId cube = scalar("pow", h, "cube");
      const TensorId scaled = scalar("mul", cube, "scaled");
      const TensorId sum =
          s.call("aten.add.Tensor", {h, scaled}, layer + "sum", wide, pointwise("add"));
      const TensorId inner = scalar("mul", sum, "inner");
      const TensorId tanh = scalar("tanh", inner, "tanh");
      const TensorId one = scalar("add", tanh, "one");
      g = s.call("aten.mul.Tensor", {half, one}, layer + "gelu", wide, pointwise("mul"));
    }
    s.at({{kTorch, 20, "linear"}, {kModel, 82, "forward"}, kMain});
    const TensorId down = s.value(layer + "down", {96, 96}, Role::parameter);
    x = s.call("aten.mm.default", {g, down}, layer + "out", wide, product);
  }
  return s;
}

Script gelu_a() {
  Script s = mlp("gelu_new", "a", false, kProduct);
  s.set("model.config.activation_function", "gelu_new");
  return s;
}

Script gelu_b() {
  Script s = mlp("gelu_pytorch_tanh", "b", true, kProduct);
  s.set("model.config.activation_function", "gelu_pytorch_tanh");
  return s;
}

Script precision(const std::string& side, const std::string& value) {
  const bool exact = value == "highest";
  Script s = mlp("precision_" + value, side, true, exact ? kSlowProduct : kProduct, 64, 5e-4);
  s.set("torch.float32_matmul_precision", value);
  s.set("torch.backends.cuda.matmul.allow_tf32", exact ? "False" : "True");
  s.set("torch.backends.cudnn.benchmark", exact ? "True" : "False");
  return s;
}

// Layer norm over the channels of an image: through a permuted view and a copy, or in one kernel.
Script norm(const std::string& side, bool channels_first) {
  Script s(channels_first ? "channels_first" : "permute_and_norm", side);
  const std::vector<std::int64_t> image{4, 24, 40};
  s.at({{kTorch, 90, "conv1d"}, {"/home/user/net.py", 11, "forward"}, kMain});
  const TensorId in = s.value("image", image, Role::input);
  const TensorId weights = s.value("weights", {24, 24}, Role::parameter);
  const TensorId x = s.call("aten.convolution.default", {in, weights}, "features", image, kProduct);
  s.at({{"/home/user/net.py", 14, "forward"}, kMain});
  if (channels_first) {
    s.call("triton.channels_first_norm", {x}, "normalised", image,
           {"channels_first_norm", 90, 260});
    return s;
  }
  const TensorId last = s.permute(x, {0, 2, 1});
  const TensorId y = s.call("aten.native_layer_norm.default", {last}, "normalised_last",
                            {4, 40, 24}, {"layer_norm_kernel", 260, 240});
  const TensorId back = s.permute(y, {0, 2, 1});
  s.call("aten.clone.default", {back}, "normalised", image, {"copy_kernel", 80, 180});
  return s;
}

// The same on a machine without a device: the host's processor time is all there is.
run::Run on_processor(run::Run run) {
  run.manifest.device = "Simulated processor";
  run.kernels.clear();
  for (run::Block& block : run.blocks) {
    block.order_kernels = {};
    block.trace_kernels = {};
    std::erase_if(block.series,
                  [](const run::Series& one) { return one.source != run::Source::host_cpu; });
    std::erase_if(block.replays,
                  [](const run::Replay& one) { return one.kind != run::ReplayKind::op; });
  }
  return run;
}

// Beside the board: a meter on the node's plug, whose means over 400 ms come 0.9 s late, and a
// rail.
run::Run with_other_meters(run::Run run) {
  constexpr Nanoseconds kMillisecond = 1'000'000;
  constexpr std::size_t kTicks = 4;  // 100 ms apart
  run.manifest.facts["meter_boundary"] = "node";
  for (run::Block& block : run.blocks) {
    const run::Series board = block.series.front();
    run::Series plug{run::Source::external_power, {}, {}, {}, "plug"};
    run::Series rail{run::Source::hwmon_power, {}, {}, {}, "ina3221 VDD_IN"};
    for (std::size_t i = kTicks; i < board.time.size(); ++i) {
      const auto milliwatts = [&](std::size_t ticks) {
        const double seconds = to_seconds(board.time[i] - board.time[i - ticks]).value;
        return static_cast<double>(board.value[i] - board.value[i - ticks]) / seconds;
      };
      rail.time.push_back(board.time[i]);
      rail.value.push_back(std::llround(1e3 * milliwatts(1)));
      if (i % 2 != 0) continue;
      plug.time.push_back(board.time[i] + 900 * kMillisecond);
      plug.value.push_back(std::llround(milliwatts(kTicks)) + 90'000);
    }
    block.series.push_back(std::move(plug));
    block.series.push_back(std::move(rail));
  }
  return run;
}

// On a board that was calibrated, and on a machine whose noise floor was measured.
run::Run on_known_board(run::Run run) {
  const auto cost = [](const char* what, const char* per, double joules) {
    return meter::Coefficient{what,
                              per,
                              {joules, 0.7 * joules, 1.1 * joules, {}},
                              {{"random", {joules, 0.9 * joules, 1.1 * joules, {}}}}};
  };
  const std::string uuid = run.manifest.device_uuid;
  meter::Profile profile{"Simulated H200", uuid, "580", "2026-12-01", {}, {}, {}, {}};
  profile.static_per_celsius = meter::Property::unknown("one temperature");
  profile.coefficients = {cost("matmul dtype=float32 unit=vector", "flop", 5e-12),
                          cost("vector dtype=float32 unit=vector", "flop", 4e-12),
                          cost("copy level=hbm", "byte", 60e-12)};
  run.manifest.facts[meter::profile_fact(uuid)] = meter::to_json({profile});
  run.manifest.facts[diagnose::noise_fact(uuid)] =
      diagnose::to_json({"Simulated H200", uuid, "580", "2026-12-01", "gpt2", 8, 0.2, 0.4, 12});
  return run;
}

// What remains of a recording that was cut before its replay.
run::Run without_replay(run::Run run) {
  for (run::Block& block : run.blocks) block.replays.clear();
  return run;
}

int write(const std::string& folder) {
  const std::vector<std::uint32_t> side_a{0, 3};
  const std::vector<std::uint32_t> side_b{1, 2};
  const std::vector<std::pair<std::string, run::Run>> runs = {
      {"gelu_a", gelu_a().record(side_a)},
      {"gelu_b", gelu_b().record(side_b)},
      {"gelu_a_once", gelu_a().record({0})},
      {"gelu_a_again", gelu_a().record({4})},
      {"gelu_b_once", gelu_b().record({1})},
      {"gelu_b_twice_as_many", mlp("gelu_128", "b", true, kProduct, 128).record(side_b)},
      {"gelu_a_without_meter", gelu_a().record({})},
      {"gelu_a_on_processor", on_processor(gelu_a().record(side_a))},
      {"gelu_a_with_meters", with_other_meters(gelu_a().record(side_a))},
      {"gelu_a_cut_short", without_replay(gelu_a().record(side_a))},
      {"gelu_b_cut_short", without_replay(gelu_b().record(side_b))},
      {"gelu_b_slightly_dearer",
       mlp("slightly_dearer", "b", true, {"gemm_tf32", 262.5, 380}).record(side_b)},
      {"gelu_a_on_known_board", on_known_board(gelu_a().record(side_a))},
      {"gelu_b_on_known_board", on_known_board(gelu_b().record(side_b))},
      {"tf32_a", precision("a", "highest").record(side_a)},
      {"tf32_b", precision("b", "high").record(side_b)},
      {"norm_a", norm("a", false).record(side_a)},
      {"norm_b", norm("b", true).record(side_b)},
  };
  for (const auto& [name, run] : runs) {
    if (const Status written = run::write_run(run, folder + "/" + name + ".jd"); !written) {
      std::fprintf(stderr, "make_runs: %s\n", written.error().message.c_str());
      return 1;
    }
  }
  write_submissions(folder);
  return 0;
}

}  // namespace
}  // namespace joulediff::golden

int main(int argc, char** argv) {
  if (argc == 2) return joulediff::golden::write(argv[1]);
  std::fprintf(stderr, "usage: make_runs DIR\n");
  return 2;
}
