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

// Settings are recorded under their full names; plug-ins differ in how full.
bool names(std::string_view key, std::string_view setting) {
  return key.ends_with(setting);
}

bool is_on(std::string_view value) {
  return value == "True" || value == "true" || value == "1";
}

int precision(const run::Setting& setting, bool has_device) {
  if (names(setting.key, "float32_matmul_precision") ||
      names(setting.key, "matmul.fp32_precision")) {
    if (setting.value == "high" || setting.value == "tf32") return kTensorFloat32;
    if (setting.value == "medium" || setting.value == "bf16") return kBFloat16;
  }
  // On by default, and of no effect without a device.
  if (has_device &&
      (names(setting.key, "matmul.allow_tf32") || names(setting.key, "cudnn.allow_tf32")) &&
      is_on(setting.value)) {
    return kTensorFloat32;
  }
  if (names(setting.key, "NVIDIA_TF32_OVERRIDE") && is_on(setting.value)) return kTensorFloat32;
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

}  // namespace joulediff::match
