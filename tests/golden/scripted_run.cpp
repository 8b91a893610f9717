#include "scripted_run.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <random>
#include <span>

namespace joulediff::golden {
namespace {

constexpr double kStaticWatts = 120;
constexpr double kBlockSpread = 0.004;  // relative, of what kernels draw
constexpr Nanoseconds kMicrosecond = 1'000;
constexpr Nanoseconds kTick = 100'000'000;  // of the energy counter
constexpr Nanoseconds kLook = 20'000'000;   // of the sampler at the host's processor time

std::uint32_t hash(const std::string& text) {
  std::uint32_t h = 2166136261u;
  for (const char c : text) h = (h ^ static_cast<unsigned char>(c)) * 16777619u;
  return h;
}

std::int64_t count_of(const std::vector<std::int64_t>& shape) {
  return std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
}

std::vector<std::int64_t> dense(const std::vector<std::int64_t>& shape) {
  std::vector<std::int64_t> stride(shape.size());
  std::int64_t next = 1;
  for (std::size_t i = shape.size(); i-- > 0; next *= shape[i]) stride[i] = next;
  return stride;
}

// A clock and a counter that is read just after each of its ticks.
class Meter {
 public:
  explicit Meter(Nanoseconds begin) : now_(begin), next_(begin + kTick) {}
  Nanoseconds now() const { return now_; }
  void pass(Nanoseconds length, double watts) {
    const Nanoseconds end = now_ + length;
    while (next_ <= end) {
      joules_ += watts * to_seconds(next_ - now_).value;
      now_ = next_;
      next_ += kTick;
      counter_.time.push_back(now_);
      counter_.value.push_back(1'000'000 + static_cast<std::int64_t>(1e3 * joules_));
      counter_.uncertainty.push_back(500 * kMicrosecond);
    }
    joules_ += watts * to_seconds(end - now_).value;
    now_ = end;
  }
  run::Series counter() const { return counter_; }

 private:
  Nanoseconds now_;
  Nanoseconds next_;
  double joules_ = 0;
  run::Series counter_{run::Source::nvml_energy, {}, {}, {}};
};

// A program that keeps one core busy: it spins while it waits for the device.
run::Series processor_time(Nanoseconds begin, Nanoseconds end) {
  run::Series series{run::Source::host_cpu, {}, {}, {}};
  for (Nanoseconds time = begin; time <= end; time += kLook) {
    series.time.push_back(time);
    series.value.push_back(time - begin);
    series.uncertainty.push_back(50 * kMicrosecond);
  }
  return series;
}

}  // namespace

Script::Script(std::string label, std::string side) {
  run::Manifest& m = run_.manifest;
  m.label = std::move(label);
  m.side = std::move(side);
  m.device = "Simulated H200";
  m.device_uuid = "GPU-simulated";
  m.framework = "torch 2.11.0";
  m.work = {"token", 1024};
  m.pair = "golden";
}

void Script::set(const std::string& key, const std::string& value) {
  run_.settings.push_back({key, value});
  std::sort(run_.settings.begin(), run_.settings.end(),
            [](const run::Setting& x, const run::Setting& y) { return x.key < y.key; });
}

void Script::at(const std::vector<run::Frame>& frames) {
  run::StackId caller;
  for (auto frame = frames.rbegin(); frame != frames.rend(); ++frame) {
    run_.frames.push_back(*frame);
    run_.stacks.push_back({caller, run::FrameId(run_.frames.size() - 1)});
    caller = run::StackId(run_.stacks.size() - 1);
  }
}

std::vector<float> Script::numbers(const std::string& name, std::size_t count, double noise) const {
  std::mt19937 random(hash(name));
  std::mt19937 other(hash(name + run_.manifest.side));
  std::vector<float> values;
  const auto unit = [](std::mt19937& engine) { return std::ldexp(double(engine()), -31) - 1; };
  for (std::size_t i = 0; i < count; ++i) {
    const double exact = unit(random) + unit(random) + unit(random);
    values.push_back(static_cast<float>(exact * (1 + noise * unit(other))));
  }
  return values;
}

run::TensorId Script::add(const std::string& name, run::Tensor tensor) {
  const std::vector<std::int64_t>& whole = whole_.back();
  const std::vector<std::size_t>& axes = axes_.back();
  const double noise = tensor.role == run::Role::computed ? noise_ : 0;
  const auto source = numbers(name, static_cast<std::size_t>(count_of(whole)), noise);
  // The elements in the order of the tensor's own axes.
  const std::vector<std::int64_t> whole_stride = dense(whole);
  const std::vector<std::int64_t> own_stride = dense(tensor.shape);
  std::vector<float> ordered(source.size());
  for (std::size_t i = 0; i < ordered.size(); ++i) {
    std::int64_t from = 0;
    for (std::size_t axis = 0; axis < axes.size(); ++axis)
      from += static_cast<std::int64_t>(i) / own_stride[axis] % tensor.shape[axis] *
              whole_stride[axes[axis]];
    ordered[i] = source[static_cast<std::size_t>(from)];
  }
  const auto bytes = std::as_bytes(std::span(ordered));
  tensor.fingerprint = value::fingerprint(value::DType::float32, bytes);
  if (tensor.role != run::Role::parameter)
    tensor.sample = value::sample(value::DType::float32, bytes, tensor.shape);
  value_names_.push_back(name);
  run_.tensors.push_back(std::move(tensor));
  return run::TensorId(run_.tensors.size() - 1);
}

run::TensorId Script::value(const std::string& name, std::vector<std::int64_t> shape,
                            run::Role role) {
  run::Tensor tensor;
  tensor.storage = run_.tensors.size() + 1;
  tensor.role = role;
  tensor.shape = shape;
  tensor.stride = dense(shape);
  axes_.emplace_back(shape.size());
  std::iota(axes_.back().begin(), axes_.back().end(), std::size_t{0});
  whole_.push_back(std::move(shape));
  return add(name, std::move(tensor));
}

run::TensorId Script::permute(run::TensorId source, const std::vector<std::size_t>& axes) {
  const run::Tensor from = run_.tensors[source.index()];
  run::Tensor tensor;
  tensor.storage = from.storage;
  tensor.role = from.role;
  std::vector<std::size_t> of_value;
  for (const std::size_t axis : axes) {
    tensor.shape.push_back(from.shape[axis]);
    tensor.stride.push_back(from.stride[axis]);
    of_value.push_back(axes_[source.index()][axis]);
  }
  axes_.push_back(of_value);
  whole_.push_back(std::vector<std::int64_t>(whole_[source.index()]));
  const run::TensorId view = add(value_names_[source.index()], std::move(tensor));
  run::Operator op;
  op.name = "aten.permute.default";
  op.inputs = {source};
  op.outputs = {view};
  op.view = true;
  if (!run_.stacks.empty()) op.stack = run::StackId(run_.stacks.size() - 1);
  run_.operators.push_back(std::move(op));
  kernels_.emplace_back();
  return view;
}

run::TensorId Script::call(const std::string& name, const std::vector<run::TensorId>& inputs,
                           const std::string& value_name, std::vector<std::int64_t> shape,
                           const Kernel& kernel, const std::string& arguments) {
  run::Operator op;
  op.name = name;
  op.inputs = inputs;
  op.outputs = {value(value_name, std::move(shape), run::Role::computed)};
  op.arguments = arguments;
  if (!run_.stacks.empty()) op.stack = run::StackId(run_.stacks.size() - 1);
  std::string text = name + arguments;
  for (const run::TensorId input : inputs)
    for (const std::int64_t length : run_.tensors[input.index()].shape)
      text += ":" + std::to_string(length);
  const auto same = [&](const run::Signature& s) { return s.text == text; };
  const auto found = std::find_if(run_.signatures.begin(), run_.signatures.end(), same);
  op.signature = run::SignatureId(static_cast<std::size_t>(found - run_.signatures.begin()));
  if (found == run_.signatures.end()) run_.signatures.push_back({text});
  const run::Kernel recorded{kernel.name, {64, 1, 1}, {256, 1, 1}, run::KernelKind::kernel};
  if (std::find(run_.kernels.begin(), run_.kernels.end(), recorded) == run_.kernels.end())
    run_.kernels.push_back(recorded);
  run_.operators.push_back(op);
  kernels_.push_back(kernel);
  return op.outputs.front();
}

run::Block Script::play(std::uint32_t order) const {
  run::Block block;
  block.order = order;
  block.pid = 1000 + order;
  Meter meter(Nanoseconds{1'000'000'000} * (1 + order * 100));
  block.begin = meter.now();
  std::mt19937 random(hash(run_.manifest.label + std::to_string(order)));
  const double warmth = 1 + kBlockSpread * (std::ldexp(double(random()), -31) - 1);
  const auto id = [&](const Kernel& kernel) {
    const auto named = [&](const run::Kernel& k) { return k.name == kernel.name; };
    return run::KernelId(static_cast<std::size_t>(
        std::find_if(run_.kernels.begin(), run_.kernels.end(), named) - run_.kernels.begin()));
  };
  const auto run_kernel = [&](const Kernel& kernel) {
    const auto length = static_cast<Nanoseconds>(kernel.microseconds * 1e3);
    meter.pass(length, kStaticWatts + kernel.watts * warmth);
    return length;
  };
  const auto step = [&](run::Pass pass, std::uint32_t index, run::KernelSeries& series) {
    const Nanoseconds begin = meter.now();
    for (std::size_t i = 0; i < kernels_.size(); ++i) {
      if (kernels_[i].microseconds == 0) continue;
      series.kernel.push_back(id(kernels_[i]));
      series.start.push_back(meter.now());
      series.duration.push_back(run_kernel(kernels_[i]));
      series.stream.push_back(7);
      series.op.push_back(pass == run::Pass::order ? run::OperatorId(i) : run::OperatorId());
      series.step.push_back(pass == run::Pass::order ? index : 0);
      meter.pass(2 * kMicrosecond, kStaticWatts);
    }
    meter.pass(50 * kMicrosecond, kStaticWatts);
    block.steps.push_back({pass, index, begin, meter.now()});
  };

  meter.pass(500'000 * kMicrosecond, kStaticWatts);
  for (std::uint32_t i = 0; i < 3; ++i) step(run::Pass::order, i, block.order_kernels);
  const Nanoseconds trace_end = meter.now() + Nanoseconds{2'000'000'000};
  for (std::uint32_t i = 0; meter.now() < trace_end; ++i)
    step(run::Pass::trace, i, block.trace_kernels);
  const Nanoseconds floor = meter.now();
  meter.pass(Nanoseconds{1'500'000'000}, kStaticWatts);
  block.replays.push_back({run::ReplayKind::static_power, {}, floor, meter.now(), 1});
  std::vector<bool> done(run_.signatures.size());
  for (std::size_t i = 0; i < kernels_.size(); ++i) {
    const run::SignatureId signature = run_.operators[i].signature;
    if (kernels_[i].microseconds == 0 || done[signature.index()]) continue;
    done[signature.index()] = true;
    const Nanoseconds begin = meter.now();
    std::uint64_t count = 0;
    for (; meter.now() < begin + Nanoseconds{1'500'000'000}; ++count) run_kernel(kernels_[i]);
    block.replays.push_back({run::ReplayKind::op, signature, begin, meter.now(), count});
    meter.pass(50'000 * kMicrosecond, kStaticWatts);
  }
  block.end = meter.now();
  block.series = {meter.counter(), processor_time(block.begin, block.end)};
  return block;
}

run::Run Script::record(const std::vector<std::uint32_t>& orders) const {
  run::Run run = run_;
  for (const std::uint32_t order : orders) run.blocks.push_back(play(order));
  if (orders.empty()) {
    run.blocks.push_back(play(0));
    run.blocks.front().series.clear();
  }
  return run;
}

}  // namespace joulediff::golden
