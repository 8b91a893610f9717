#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string_view>
#include <tuple>
#include <unordered_set>

#include <fmt/format.h>

#include "base/format.h"
#include "run/checks.h"
#include "run/run_file.h"

namespace joulediff::run {

namespace {

// Elements of a tensor; leaves room for what sample grids multiply.
constexpr std::int64_t kSizeLimit = std::int64_t{1} << 52;
constexpr std::size_t kMaxDims = 32;

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

}  // namespace

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

namespace {

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

Status check(const Run& run) {
  JD_TRY(check_manifest(run.manifest));
  JD_TRY(check_names(run));
  JD_TRY(check_stacks(run));
  JD_TRY(check_tensors(run));
  JD_TRY(check_operators(run));
  return check_blocks(run);
}

}  // namespace

Status validate(const Run& run) {
  Status status = check(run);
  if (!status) status.error().message += "; record or import the run again";
  return status;
}

}  // namespace joulediff::run
