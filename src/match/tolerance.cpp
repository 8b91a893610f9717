#include "match/tolerance.h"

#include <algorithm>
#include <cmath>
#include <string_view>

namespace joulediff::match {
namespace {

using value::DType;

constexpr int kFloat32 = 24, kTensorFloat32 = 11, kFloat16 = 11, kBFloat16 = 8;

// Bits of precision, the hidden one too.
int precision(DType dtype) {
  switch (dtype) {
    case DType::float16: return kFloat16;
    case DType::bfloat16: return kBFloat16;
    case DType::float8_e4m3: return 4;
    case DType::float8_e5m2: return 3;
    default: return kFloat32;
  }
}

bool is_on(std::string_view value) {
  return value == "True" || value == "true" || value == "1";
}

// Settings are recorded under their full names, which differ between frameworks and versions:
// torch.float32_matmul_precision, torch.backends.cuda.matmul.fp32_precision, allow_tf32, ...
int precision(const run::Setting& setting, bool has_device) {
  const std::string_view key = setting.key, value = setting.value;
  for (const std::string_view device : {"cuda", "cudnn", "NVIDIA"}) {
    if (key.find(device) != std::string_view::npos && !has_device) return kFloat32;
  }
  if (key.ends_with("allow_tf32") || key.ends_with("NVIDIA_TF32_OVERRIDE")) {
    return is_on(value) ? kTensorFloat32 : kFloat32;
  }
  if (!key.ends_with("matmul_precision") && !key.ends_with("fp32_precision")) return kFloat32;
  if (value == "high" || value == "tf32" || value == "tensorfloat32") return kTensorFloat32;
  if (value == "medium" || value == "bf16" || value == "bfloat16") return kBFloat16;
  return kFloat32;
}

int precision(const run::Run& run) {
  int bits = kFloat32;
  for (const run::Tensor& tensor : run.tensors) {
    bits = std::min(bits, precision(tensor.fingerprint.dtype));
  }
  for (const run::Setting& setting : run.settings) {
    bits = std::min(bits, precision(setting, !run.kernels.empty()));
  }
  return bits;
}

}  // namespace

double tolerance(const run::Run& a, const run::Run& b) {
  const double half_ulp = std::ldexp(1.0, -std::min(precision(a), precision(b)));
  return std::clamp(32 * half_ulp, 1e-5, 0.1);
}

double element_tolerance(const run::Run& a, const run::Run& b) {
  const double half_ulp = std::ldexp(1.0, -std::max(precision(a), precision(b)));
  return std::clamp(16 * half_ulp, 0.01, 0.1);
}

}  // namespace joulediff::match
