#include "run/model.h"

namespace joulediff::run {
namespace {

double bytes_each(value::DType dtype) {
  using enum value::DType;
  switch (dtype) {
    case int8:
    case uint8:
    case boolean:
    case float8_e4m3:
    case float8_e5m2: return 1;
    case float16:
    case bfloat16:
    case int16: return 2;
    case float64:
    case int64:
    case complex64: return 8;
    case complex128: return 16;
    default: return 4;
  }
}

}  // namespace

double bytes(const Tensor& tensor) {
  double all = bytes_each(tensor.fingerprint.dtype);
  for (std::size_t axis = 0; axis < tensor.shape.size(); ++axis)
    if (tensor.stride[axis] != 0) all *= static_cast<double>(tensor.shape[axis]);
  return all;
}

std::vector<FrameId> call_path(const Run& run, StackId stack) {
  std::vector<FrameId> path;
  // A caller comes before what it calls (validate), so that this ends.
  for (StackId id = stack; id.valid(); id = run.stacks[id.index()].caller) {
    path.push_back(run.stacks[id.index()].frame);
  }
  return path;
}

}  // namespace joulediff::run
