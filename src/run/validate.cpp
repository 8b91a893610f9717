#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string_view>
#include <tuple>
#include <unordered_set>

#include <fmt/format.h>

#include "base/format.h"
#include "run/names.h"
#include "run/run_file.h"

namespace joulediff::run {

namespace {

// Sums and differences of two instants cannot overflow.
constexpr Nanoseconds kTimeLimit = Nanoseconds{1} << 61;
// Elements of a tensor; leaves room for what sample grids multiply.
constexpr std::int64_t kSizeLimit = std::int64_t{1} << 52;
constexpr std::size_t kMaxDims = 32;

// One fault: what and where. validate() adds what to do.
template <class... Args>
tl::unexpected<Error> fault(fmt::format_string<Args...> format, Args&&... args) {
  return fail(ExitCode::bad_input, fmt::format(format, std::forward<Args>(args)...));
}

template <class E>
bool known(E code) {
  return static_cast<std::size_t>(code) < kNames<E>.size();
}

bool in_time(Nanoseconds t) {
  return t > -kTimeLimit && t < kTimeLimit;
}
bool window(Nanoseconds begin, Nanoseconds end) {
  return in_time(begin) && in_time(end) && begin <= end;
}

// None, or in range.
template <class Tag>
bool fits(Id<Tag> id, std::size_t count) {
  return !id.valid() || id.index() < count;
}

// The frameworks that a text names, by their words: "torch 2.11.0+cu130" names one.
std::set<std::string_view> frameworks_of(std::string_view text) {
  static const std::map<std::string, std::string_view, std::less<>> kKnown{
      {"torch", "torch"},
      {"pytorch", "torch"},
      {"jax", "jax"},
      {"flax", "jax"},
      {"tensorflow", "tensorflow"},
      {"keras", "tensorflow"},
      {"onnxruntime", "onnxruntime"},
      {"onnx", "onnxruntime"}};
  std::set<std::string_view> found;
  std::string word;
  const auto end_word = [&] {
    if (const auto known_word = kKnown.find(word); known_word != kKnown.end()) {
      found.insert(known_word->second);
    }
    word.clear();
  };
  for (const char c : text) {
    const bool upper = c >= 'A' && c <= 'Z';
    const bool letter = upper || (c >= 'a' && c <= 'z');
    if (letter) {
      word.push_back(upper ? static_cast<char>(c - 'A' + 'a') : c);
    } else {
      end_word();
    }
  }
  end_word();
  return found;
}

Status check_manifest(const Manifest& manifest) {
  if (manifest.work.unit.empty()) return fault("the manifest has no unit of work");
  if (!std::isfinite(manifest.work.per_step) || !(manifest.work.per_step > 0)) {
    return fault("the manifest's work per step is {}, not a positive number",
                 manifest.work.per_step);
  }
  std::set<std::string_view> frameworks = frameworks_of(manifest.framework);
  if (const auto fact = manifest.facts.find("framework"); fact != manifest.facts.end()) {
    frameworks.merge(frameworks_of(fact->second));
  }
  if (frameworks.size() > 1) {
    return fault("the run names two frameworks, {} and {}; a run has one", *frameworks.begin(),
                 *std::next(frameworks.begin()));
  }
  return {};
}

Status check_names(const Run& run) {
  for (std::size_t i = 1; i < run.settings.size(); ++i) {
    if (!(run.settings[i - 1].key < run.settings[i].key)) {
      return fault("setting {} ({}) is there twice or not sorted by key", i,
                   printable(run.settings[i].key));
    }
  }
  std::unordered_set<std::string_view> texts;
  for (std::size_t i = 0; i < run.signatures.size(); ++i) {
    if (!texts.insert(run.signatures[i].text).second) {
      return fault("signature {} ({}) is there twice", i,
                   truncated(printable(run.signatures[i].text), 60));
    }
  }
  std::set<std::tuple<std::string_view, std::array<std::uint32_t, 3>, std::array<std::uint32_t, 3>,
                      KernelKind>>
      kernels;
  for (std::size_t i = 0; i < run.kernels.size(); ++i) {
    const Kernel& kernel = run.kernels[i];
    if (!known(kernel.kind)) return fault("kernel {} has no known kind", i);
    if (!kernels.emplace(kernel.name, kernel.grid, kernel.block, kernel.kind).second) {
      return fault("kernel {} ({}) is there twice", i, truncated(printable(kernel.name), 60));
    }
  }
  std::set<std::string_view> uuids;
  for (std::size_t i = 0; i < run.devices.size(); ++i) {
    if (!uuids.insert(run.devices[i].uuid).second) {
      return fault("device {} ({}) is there twice", i, printable(run.devices[i].uuid));
    }
  }
  texts.clear();
  for (std::size_t i = 0; i < run.inputs.size(); ++i) {
    if (!texts.insert(run.inputs[i].text).second) {
      return fault("inputs {} ({}) are there twice", i,
                   truncated(printable(run.inputs[i].text), 60));
    }
  }
  for (std::size_t i = 0; i < run.diagnostics.size(); ++i) {
    if (!known(run.diagnostics[i].severity)) return fault("diagnostic {} has no known severity", i);
  }
  return {};
}

Status check_stacks(const Run& run) {
  for (std::size_t i = 0; i < run.stacks.size(); ++i) {
    const StackNode& node = run.stacks[i];
    if (node.frame.index() >= run.frames.size()) {
      return fault("stack {} has the frame {}, which is not there", i, node.frame.value);
    }
    // A caller before what it calls: no call path can be a circle.
    if (node.caller.valid() && node.caller.index() >= i) {
      return fault(
          "stack {} has the caller {}, which does not come before it: a cycle or out of "
          "order",
          i, node.caller.value);
    }
  }
  return {};
}

// Without axes of length 1 and of stride 0; a complex tensor has a trailing axis of 2.
std::vector<std::int64_t> squeezed(const Tensor& tensor) {
  std::vector<std::int64_t> shape;
  for (std::size_t i = 0; i < tensor.shape.size(); ++i) {
    if (tensor.shape[i] != 1 && tensor.stride[i] != 0) shape.push_back(tensor.shape[i]);
  }
  if (value::class_of(tensor.fingerprint.dtype) == value::DTypeClass::complex) shape.push_back(2);
  return shape;
}

std::size_t grid_size(const Tensor& tensor) {
  std::size_t size = 1;
  for (const auto& axis : value::sample_grid(squeezed(tensor))) size *= axis.size();
  return size;
}

Status check_fingerprint(const value::Fingerprint& fingerprint, std::size_t id) {
  if (!known(fingerprint.dtype)) return fault("tensor {} has no known dtype", id);
  for (const double moment : {fingerprint.mean, fingerprint.mean_abs, fingerprint.rms,
                              fingerprint.l4, fingerprint.m3, fingerprint.min, fingerprint.max}) {
    // Infinite where the squares of huge float64 values overflow.
    if (std::isnan(moment)) return fault("tensor {} has a moment that is not a number", id);
  }
  if (fingerprint.distinct > 3) return fault("tensor {} has more than 3 distinct values", id);
  std::uint64_t finite = fingerprint.count;
  for (const std::uint64_t part :
       {fingerprint.nan, fingerprint.positive_infinity, fingerprint.negative_infinity}) {
    if (part > finite) return fault("tensor {} has more NaN and infinities than elements", id);
    finite -= part;
  }
  return {};
}

Status check_tensor(const Tensor& tensor, std::size_t id) {
  if (!known(tensor.role)) return fault("tensor {} has no known role", id);
  if (tensor.shape.size() != tensor.stride.size()) {
    return fault("tensor {} has {} lengths and {} strides", id, tensor.shape.size(),
                 tensor.stride.size());
  }
  if (tensor.shape.size() > kMaxDims) return fault("tensor {} has more than 32 axes", id);
  if (tensor.offset < 0) return fault("tensor {} has a negative offset", id);
  std::int64_t elements = 1;
  for (const std::int64_t length : tensor.shape) {
    if (length < 0) return fault("tensor {} has a negative length", id);
    // Axes of length 0 do not excuse the others: any product of lengths must fit.
    if (length > 0 && elements > kSizeLimit / length) return fault("tensor {} is too large", id);
    elements *= std::max<std::int64_t>(length, 1);
  }
  JD_TRY(check_fingerprint(tensor.fingerprint, id));
  if (!tensor.sample.empty()) {
    if (const std::size_t expected = grid_size(tensor); tensor.sample.size() != expected) {
      return fault("tensor {} has a sample of {} values where its shape gives {}", id,
                   tensor.sample.size(), expected);
    }
  }
  return {};
}

Status check_tensors(const Run& run) {
  using Key = std::tuple<std::uint64_t, std::uint64_t, std::int64_t, std::vector<std::int64_t>,
                         std::vector<std::int64_t>, value::DType>;
  std::map<Key, std::size_t> geometries;
  for (std::size_t i = 0; i < run.tensors.size(); ++i) {
    const Tensor& tensor = run.tensors[i];
    JD_TRY(check_tensor(tensor, i));
    const auto [first, fresh] =
        geometries.emplace(Key(tensor.storage, tensor.version, tensor.offset, tensor.shape,
                               tensor.stride, tensor.fingerprint.dtype),
                           i);
    if (!fresh) {
      return fault("tensors {} and {} are the same storage, version and geometry", first->second,
                   i);
    }
  }
  return {};
}

Status check_operators(const Run& run) {
  if (run.operators.empty()) return fault("the run has no operators");
  constexpr std::size_t kNobody = static_cast<std::size_t>(-1);
  std::vector<std::size_t> producer(run.tensors.size(), kNobody);
  const auto title = [&](std::size_t i) {
    return fmt::format("operator {} ({})", i, truncated(printable(run.operators[i].name), 60));
  };
  for (std::size_t i = 0; i < run.operators.size(); ++i) {
    const Operator& op = run.operators[i];
    if (!known(op.phase)) return fault("{} has no known phase", title(i));
    if (!fits(op.signature, run.signatures.size())) {
      return fault("{} has the signature {}, which is not there", title(i), op.signature.value);
    }
    if (!fits(op.stack, run.stacks.size())) {
      return fault("{} has the stack {}, which is not there", title(i), op.stack.value);
    }
    if (op.forward.valid() && op.forward.index() >= i) {
      return fault("{} belongs to the forward operator {}, which does not come before it", title(i),
                   op.forward.value);
    }
    for (const TensorId input : op.inputs) {
      if (input.index() >= run.tensors.size()) {
        return fault("{} reads tensor {}, which is not there", title(i), input.value);
      }
    }
    for (const TensorId output : op.outputs) {
      if (output.index() >= run.tensors.size()) {
        return fault("{} makes tensor {}, which is not there", title(i), output.value);
      }
      if (std::size_t& by = producer[output.index()]; by == kNobody) {
        by = i;
      } else {
        return fault("{} makes tensor {}, which {} made already", title(i), output.value,
                     title(by));
      }
    }
  }
  for (std::size_t i = 0; i < run.operators.size(); ++i) {
    for (const TensorId input : run.operators[i].inputs) {
      const std::size_t by = producer[input.index()];
      if (by != kNobody && by >= i) {
        return fault("{} reads tensor {}, which {} makes: a cycle or out of order", title(i),
                     input.value, by == i ? "it itself" : title(by));
      }
    }
  }
  return {};
}

Status check_kernels(const Run& run, const KernelSeries& series, std::string_view where) {
  const std::size_t n = series.size();
  if (series.start.size() != n || series.duration.size() != n || series.stream.size() != n ||
      series.op.size() != n || series.step.size() != n ||
      (!series.device.empty() && series.device.size() != n) ||
      (!series.stack.empty() && series.stack.size() != n)) {
    return fault("{}: the columns have different lengths", where);
  }
  for (std::size_t i = 0; i < n; ++i) {
    if (series.kernel[i].index() >= run.kernels.size()) {
      return fault("{}, record {}: kernel {} is not there", where, i, series.kernel[i].value);
    }
    if (!fits(series.op[i], run.operators.size())) {
      return fault("{}, record {}: operator {} is not there", where, i, series.op[i].value);
    }
    if (!fits(series.device_of(i), run.devices.size())) {
      return fault("{}, record {}: device {} is not there", where, i, series.device[i].value);
    }
    if (!fits(series.stack_of(i), run.stacks.size())) {
      return fault("{}, record {}: stack {} is not there", where, i, series.stack[i].value);
    }
    if (series.duration[i] < 0) return fault("{}, record {}: a negative duration", where, i);
    if (!in_time(series.start[i]) || !in_time(series.duration[i])) {
      return fault("{}, record {}: a time out of range", where, i);
    }
    if (i > 0 && series.start[i] < series.start[i - 1]) {
      return fault("{}, record {}: it starts before the one before it", where, i);
    }
  }
  return {};
}

Status check_times(const Run& run, const OperatorTimes& times, std::string_view where) {
  const std::size_t n = times.size();
  if (times.step.size() != n || times.begin.size() != n || times.end.size() != n) {
    return fault("{}: the columns have different lengths", where);
  }
  for (std::size_t i = 0; i < n; ++i) {
    if (times.op[i].index() >= run.operators.size()) {
      return fault("{}, record {}: operator {} is not there", where, i, times.op[i].value);
    }
    if (!window(times.begin[i], times.end[i])) {
      return fault("{}, record {}: it ends before it begins, or out of range", where, i);
    }
  }
  return {};
}

Status check_waits(const Synchronisations& waits, std::string_view where) {
  const std::size_t n = waits.size();
  if (waits.start.size() != n || waits.duration.size() != n || waits.stream.size() != n) {
    return fault("{}: the columns have different lengths", where);
  }
  for (std::size_t i = 0; i < n; ++i) {
    if (!known(waits.kind[i])) return fault("{}, record {}: no known kind", where, i);
    if (waits.duration[i] < 0 || !in_time(waits.start[i]) || !in_time(waits.duration[i])) {
      return fault("{}, record {}: a negative duration, or a time out of range", where, i);
    }
    if (i > 0 && waits.start[i] < waits.start[i - 1]) {
      return fault("{}, record {}: it starts before the one before it", where, i);
    }
  }
  return {};
}

bool below_zero(Source source) {
  return source == Source::nvml_temperature || source == Source::amd_temperature;
}

Status check_sensor(const Series& series, std::string_view where) {
  const std::size_t n = series.time.size();
  if (!known(series.source)) return fault("{}: no known source", where);
  if (series.value.size() != n || (!series.uncertainty.empty() && series.uncertainty.size() != n)) {
    return fault("{}: the columns have different lengths", where);
  }
  for (std::size_t i = 0; i < n; ++i) {
    if (!in_time(series.time[i])) return fault("{}, record {}: a time out of range", where, i);
    if (i > 0 && series.time[i] < series.time[i - 1]) {
      return fault("{}, record {}: its time is before that of the one before it", where, i);
    }
    if (series.value[i] < 0 && !below_zero(series.source)) {
      return fault("{}, record {}: the negative value {}", where, i, series.value[i]);
    }
    if (i > 0 && is_energy_counter(series.source) && series.value[i] < series.value[i - 1]) {
      return fault("{}, record {}: a counter of energy that goes back", where, i);
    }
    if (!series.uncertainty.empty() &&
        (series.uncertainty[i] < 0 || !in_time(series.uncertainty[i]))) {
      return fault("{}, record {}: a negative uncertainty, or out of range", where, i);
    }
  }
  return {};
}

Status check_block(const Run& run, std::size_t id) {
  const Block& block = run.blocks[id];
  if (!window(block.begin, block.end)) return fault("block {} ends before it begins", id);
  for (std::size_t i = 0; i < block.steps.size(); ++i) {
    if (!known(block.steps[i].pass)) return fault("block {}, step {}: no known pass", id, i);
    if (!window(block.steps[i].begin, block.steps[i].end)) {
      return fault("block {}, step {}: it ends before it begins", id, i);
    }
    if (!fits(block.steps[i].inputs, run.inputs.size())) {
      return fault("block {}, step {}: inputs {} are not there", id, i,
                   block.steps[i].inputs.value);
    }
  }
  for (std::size_t i = 0; i < block.replays.size(); ++i) {
    const Replay& replay = block.replays[i];
    if (!known(replay.kind)) return fault("block {}, replay {}: no known kind", id, i);
    const bool has_signature = replay.signature.index() < run.signatures.size();
    if (replay.kind == ReplayKind::op ? !has_signature : replay.signature.valid()) {
      return fault("block {}, replay {}: signature {} is not there", id, i, replay.signature.value);
    }
    if (!window(replay.begin, replay.end)) {
      return fault("block {}, replay {}: it ends before it begins", id, i);
    }
    if (replay.count == 0) return fault("block {}, replay {}: no executions", id, i);
  }
  JD_TRY(check_kernels(run, block.order_kernels, fmt::format("block {}, order kernels", id)));
  JD_TRY(check_kernels(run, block.trace_kernels, fmt::format("block {}, trace kernels", id)));
  JD_TRY(check_times(run, block.operator_times, fmt::format("block {}, operator times", id)));
  JD_TRY(check_waits(block.synchronisations, fmt::format("block {}, synchronisations", id)));
  for (std::size_t i = 0; i < block.series.size(); ++i) {
    JD_TRY(check_sensor(block.series[i], fmt::format("block {}, series {} ({})", id, i,
                                                     name(block.series[i].source))));
  }
  return {};
}

// What one launch was read with is in one of its blocks, or it would count twice.
Status check_launches(const Run& run) {
  std::set<std::pair<std::uint32_t, std::string_view>> read;
  for (std::size_t i = 0; i < run.blocks.size(); ++i) {
    const Block& block = run.blocks[i];
    const bool first = read.emplace(block.order, block.host).second;
    if (!first && !block.series.empty()) {
      return fault("block {} has series, which the first block of its launch has", i);
    }
  }
  return {};
}

Status check(const Run& run) {
  JD_TRY(check_manifest(run.manifest));
  JD_TRY(check_names(run));
  JD_TRY(check_stacks(run));
  JD_TRY(check_tensors(run));
  JD_TRY(check_operators(run));
  for (std::size_t i = 0; i < run.blocks.size(); ++i) JD_TRY(check_block(run, i));
  return check_launches(run);
}

}  // namespace

Status validate(const Run& run) {
  Status status = check(run);
  if (!status) status.error().message += "; record or import the run again";
  return status;
}

}  // namespace joulediff::run
