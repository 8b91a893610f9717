// The model of one recorded program: what every later stage reads, and nothing that it computes.
//
// A Run is facts as they were recorded: the operators of one step with the values that flowed
// between them (values pass), and for each Block (one process; a pair has several for each side)
// the kernels of the order and trace passes, the replay windows and the raw series of the meters.
// Energies are not here: attribute makes them again from the raw samples whenever they are asked
// for.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/diagnostics.h"
#include "base/energy.h"
#include "base/ids.h"
#include "base/units.h"
#include "value/fingerprint.h"

namespace joulediff::run {

using OperatorId = Id<struct OperatorTag>;    // index in Run::operators
using TensorId = Id<struct TensorTag>;        // index in Run::tensors
using FrameId = Id<struct FrameTag>;          // index in Run::frames
using StackId = Id<struct StackTag>;          // index in Run::stacks
using SignatureId = Id<struct SignatureTag>;  // index in Run::signatures
using KernelId = Id<struct KernelTag>;        // index in Run::kernels
using DeviceId = Id<struct DeviceTag>;        // index in Run::devices
using InputsId = Id<struct InputsTag>;        // index in Run::inputs

// What a step of the run does. A run without a stated unit does "step"s, one for each.
struct Work {
  std::string unit = "step";
  double per_step = 1;
  bool operator==(const Work&) const = default;
};

// What the run was. What is unknown is empty.
struct Manifest {
  std::string label;  // what people call it: the script's name, or --label
  std::string command;
  std::string device;  // "NVIDIA H200", "AMD EPYC, 2 cores"
  std::string device_uuid;
  std::string framework;  // "torch 2.11.0"
  Work work;
  std::string pair;  // shared by the two files of a pair; empty if recorded apart
  std::string side;  // "a" or "b" within the pair
  std::map<std::string, std::string> facts;  // driver, cuda, python, host, joulediff, ...
};

// A device that the program used.
struct Device {
  std::string uuid;  // "GPU-..." or "MIG-..."; what the channels of its sensors are called
  std::string name;
  bool operator==(const Device&) const = default;
};

// Shapes and dtypes of what a step was given: "float32[8,1024]". Steps with equal inputs do the
// same work.
struct Inputs {
  std::string text;
};

// A switch of a framework or library as the program left it: "torch.backends.cudnn.benchmark".
struct Setting {
  std::string key;
  std::string value;
  bool operator==(const Setting&) const = default;
};

struct Frame {
  std::string file;
  std::uint32_t line = 0;
  std::string function;
  bool operator==(const Frame&) const = default;
};

// A call path, innermost frame at the leaf: a prefix tree, so that a path is one number.
struct StackNode {
  StackId caller;  // none for the outermost frame
  FrameId frame;
};

enum class Role : std::uint8_t { computed = 0, input = 1, parameter = 2, constant = 3 };

// One value: a geometry over a version of a storage.
struct Tensor {
  std::uint64_t storage = 0;
  std::uint64_t version = 0;
  std::int64_t offset = 0;
  Role role = Role::computed;
  std::vector<std::int64_t> shape;  // same length as stride
  std::vector<std::int64_t> stride;
  value::Fingerprint fingerprint;
  std::vector<float> sample;  // empty: none taken; else value::sample over the squeezed shape
};

// Of memory that it takes; an expanded axis (stride 0) takes none.
double bytes(const Tensor& tensor);

enum class Phase : std::uint8_t { forward = 0, backward = 1, optimizer = 2 };

// One call of a framework operation in the recorded step, in the order of execution.
struct Operator {
  std::string name;               // "aten.addmm.default", "triton.layer_norm_kernel"
  std::vector<TensorId> inputs;   // every tensor read, in the order of the arguments
  std::vector<TensorId> outputs;  // every tensor written or made, new versions of in-place ones too
  SignatureId signature;
  StackId stack;       // none where unknown
  OperatorId forward;  // of a backward operator: the forward one it belongs to
  Phase phase = Phase::forward;
  bool view = false;      // moves no data: outputs alias inputs
  std::string module;     // "transformer.h.0.mlp.act"
  std::string arguments;  // the arguments that are not tensors, as JSON
};

// name(shapes, strides, dtypes, arguments): what is replayed once for all its calls.
struct Signature {
  std::string text;
};

enum class KernelKind : std::uint8_t { kernel = 0, copy = 1, set = 2 };

// A kernel as recognised: name and launch shape.
struct Kernel {
  std::string name;
  std::array<std::uint32_t, 3> grid{};
  std::array<std::uint32_t, 3> block{};
  KernelKind kind = KernelKind::kernel;
  bool operator==(const Kernel&) const = default;
};

enum class Pass : std::uint8_t { warmup = 0, values = 1, order = 2, trace = 3, replay = 4 };

struct Step {
  Pass pass = Pass::warmup;
  std::uint32_t index = 0;
  Nanoseconds begin = 0;
  Nanoseconds end = 0;
  InputsId inputs{};  // none where unknown
};

// Executions on the device in order of their start, as columns of equal length; `device` and
// `stack` may be empty instead, where nothing is known.
struct KernelSeries {
  std::vector<KernelId> kernel;
  std::vector<Nanoseconds> start;
  std::vector<Nanoseconds> duration;
  std::vector<std::uint32_t> stream;
  std::vector<OperatorId> op;       // order pass: the operator that launched it; trace: none
  std::vector<std::uint32_t> step;  // order pass: its step; trace: 0
  std::vector<DeviceId> device{};   // none: the run's only device
  std::vector<StackId> stack{};     // order pass: the native call path of the launch
  std::size_t size() const { return kernel.size(); }
  DeviceId device_of(std::size_t i) const { return device.empty() ? DeviceId() : device[i]; }
  StackId stack_of(std::size_t i) const { return stack.empty() ? StackId() : stack[i]; }
};

// Host waits for the device in order of their start, as columns of equal length.
enum class SynchronisationKind : std::uint8_t {
  other = 0,
  event = 1,         // the host waits for an event
  stream_event = 2,  // a stream waits for an event; the host does not
  stream = 3,        // the host waits for a stream
  context = 4        // the host waits for the whole device
};
struct Synchronisations {
  std::vector<SynchronisationKind> kind;
  std::vector<Nanoseconds> start;
  std::vector<Nanoseconds> duration;
  std::vector<std::uint32_t> stream;
  std::size_t size() const { return kind.size(); }
};

// Host time of operators in the order pass, as columns of equal length.
struct OperatorTimes {
  std::vector<OperatorId> op;
  std::vector<std::uint32_t> step;
  std::vector<Nanoseconds> begin;
  std::vector<Nanoseconds> end;
  std::size_t size() const { return op.size(); }
};

// `count` executions back to back. Static and idle windows have no signature. Cold: no execution
// finds what the one before left in the cache. Executions in bursts with pauses, at the program's
// clock, are a replay for each burst.
enum class ReplayKind : std::uint8_t { op = 0, static_power = 1, idle = 2, cold = 3 };
constexpr bool is_of_operator(ReplayKind kind) {
  return kind == ReplayKind::op || kind == ReplayKind::cold;
}
struct Replay {
  ReplayKind kind = ReplayKind::op;
  SignatureId signature;
  Nanoseconds begin = 0;
  Nanoseconds end = 0;
  std::uint64_t count = 0;
};

// A raw series of one sensor; the unit is in its source's definition.
enum class Source : std::uint8_t {
  nvml_energy = 0,  // mJ since driver load; time = middle of the read that first saw the value
  nvml_power_samples = 1,  // mW, the driver's 20 ms ring
  nvml_power_instant = 2,  // mW
  nvml_power_average = 3,  // mW
  nvml_power_memory = 4,   // mW
  nvml_sm_clock = 5,       // MHz
  nvml_memory_clock = 6,   // MHz
  nvml_temperature = 7,    // degrees C
  nvml_throttle = 8,       // bits of nvmlClocksEventReasons
  nvml_power_limit = 9,    // mW
  host_cpu = 10,           // ns of processor time of the process tree since its start
  rapl_package = 11,       // uJ, unwrapped
  nvml_power_module = 12,  // mW: board, processor and memory of a superchip
  rapl_dram = 13,          // uJ, unwrapped
  rapl_psys = 14,          // uJ, unwrapped: the whole platform, packages included
  hwmon_power = 15,        // uW
  hwmon_energy = 16,       // uJ, unwrapped
  amd_energy = 17,         // uJ
  amd_power = 18,          // mW
  amd_sm_clock = 19,       // MHz
  amd_memory_clock = 20,   // MHz
  amd_temperature = 21,    // degrees C
  external_power = 22,     // mW, of a meter outside
  host_load = 23,          // ns of processor time of the whole machine, all cores
};
// Joules that only grow.
constexpr bool is_energy_counter(Source source) {
  return source == Source::nvml_energy || source == Source::rapl_package ||
         source == Source::rapl_dram || source == Source::rapl_psys ||
         source == Source::hwmon_energy || source == Source::amd_energy;
}

struct Series {
  Source source = Source::nvml_energy;
  std::vector<Nanoseconds> time;
  std::vector<std::int64_t> value;
  std::vector<Nanoseconds> uncertainty;  // of time, half width; empty: none stated
  std::string channel{};  // what the meter calls what it reads: a board's UUID, "package-0"
};

// One process of the recording. Blocks of the same order are the ranks of one launch, and the first
// of them on each host has the series of its meters: no joule is there twice.
struct Block {
  std::uint32_t order = 0;  // its launch's place among those of the pair, both sides counted
  std::uint32_t pid = 0;
  Nanoseconds begin = 0;
  Nanoseconds end = 0;
  std::int32_t exit_status = 0;
  std::vector<Step> steps;
  KernelSeries order_kernels;
  KernelSeries trace_kernels;
  OperatorTimes operator_times;
  Synchronisations synchronisations;  // of the order and trace passes
  std::vector<Replay> replays;
  std::vector<Series> series;
  std::uint64_t dropped_kernels = 0;
  std::uint32_t rank = 0;
  std::string host;  // empty: the manifest's
};

struct Run {
  Manifest manifest;
  std::vector<Setting> settings;  // sorted by key
  std::vector<Frame> frames;
  std::vector<StackNode> stacks;
  std::vector<Signature> signatures;
  std::vector<Tensor> tensors;
  std::vector<Operator> operators;
  std::vector<Kernel> kernels;
  std::vector<Device> devices;
  std::vector<Inputs> inputs;
  std::vector<Block> blocks;
  Diagnostics diagnostics;
};

// The call path of `stack`, innermost frame first.
std::vector<FrameId> call_path(const Run& run, StackId stack);

}  // namespace joulediff::run
