#include "match/tolerance.h"

#include <gtest/gtest.h>

namespace joulediff::match {
namespace {

run::Run run_of(std::vector<value::DType> dtypes, std::vector<run::Setting> settings = {},
                bool kernels = false) {
  run::Run run;
  for (const value::DType dtype : dtypes) {
    run.tensors.emplace_back();
    run.tensors.back().fingerprint.dtype = dtype;
  }
  run.settings = std::move(settings);
  if (kernels) run.kernels.emplace_back();
  return run;
}

TEST(Tolerance, FollowsTheCoarsestFormatOfEitherRun) {
  using value::DType;
  const run::Run fp32 = run_of({DType::float32, DType::int64}), fp64 = run_of({DType::float64});
  const run::Run fp16 = run_of({DType::float32, DType::float16});
  const run::Run bf16 = run_of({DType::bfloat16}), fp8 = run_of({DType::float8_e4m3});
  EXPECT_DOUBLE_EQ(tolerance(fp32, fp64), 1e-5);
  EXPECT_DOUBLE_EQ(tolerance(fp32, fp16), 32.0 / 2048);
  EXPECT_DOUBLE_EQ(tolerance(fp16, fp32), 32.0 / 2048);
  EXPECT_DOUBLE_EQ(tolerance(bf16, fp16), 0.1);
  EXPECT_DOUBLE_EQ(tolerance(fp8, fp32), 0.1);
}

TEST(Tolerance, KnowsTheSettingsThatLetFloat32BeMultipliedCoarsely) {
  using value::DType;
  const run::Run plain = run_of({DType::float32});
  const auto with = [&](const char* key, const char* value, bool kernels = true) {
    return tolerance(plain, run_of({DType::float32}, {{key, value}}, kernels));
  };
  EXPECT_DOUBLE_EQ(with("torch.get_float32_matmul_precision", "highest"), 1e-5);
  EXPECT_DOUBLE_EQ(with("torch.get_float32_matmul_precision", "high"), 32.0 / 2048);
  EXPECT_DOUBLE_EQ(with("torch.get_float32_matmul_precision", "medium"), 0.1);
  EXPECT_DOUBLE_EQ(with("torch.backends.cuda.matmul.allow_tf32", "True"), 32.0 / 2048);
  EXPECT_DOUBLE_EQ(with("torch.backends.cuda.matmul.allow_tf32", "False"), 1e-5);
  EXPECT_DOUBLE_EQ(with("torch.backends.mkldnn.matmul.fp32_precision", "bf16", false), 0.1);
  EXPECT_DOUBLE_EQ(with("torch.backends.cuda.matmul.fp32_precision", "tf32"), 32.0 / 2048);
  EXPECT_DOUBLE_EQ(with("jax_default_matmul_precision", "tensorfloat32"), 32.0 / 2048);
  EXPECT_DOUBLE_EQ(with("env.NVIDIA_TF32_OVERRIDE", "1", false), 1e-5);
  EXPECT_DOUBLE_EQ(with("torch.backends.cudnn.allow_tf32", "True"), 32.0 / 2048);
  EXPECT_DOUBLE_EQ(with("torch.backends.cudnn.allow_tf32", "True", false), 1e-5);
}

TEST(Tolerance, ElementsMayDifferByWhatTheFinerRunAllows) {
  using value::DType;
  const run::Run fp32 = run_of({DType::float32}), bf16 = run_of({DType::bfloat16});
  EXPECT_DOUBLE_EQ(element_tolerance(fp32, bf16), 0.01);
  EXPECT_DOUBLE_EQ(element_tolerance(bf16, bf16), 16.0 / 256);
  EXPECT_DOUBLE_EQ(element_tolerance(fp32, fp32), 0.01);
}

}  // namespace
}  // namespace joulediff::match
