#include "diagnose/least_energy.h"

#include <gtest/gtest.h>

namespace joulediff::diagnose {
namespace {

using value::DType;

constexpr double kFlop = 0.5e-12, kHbm = 60e-12, kVector = 2e-12;

meter::Coefficient coefficient(const char* what, const char* per, double joules) {
  return {what,
          per,
          {joules, 0.7 * joules, 1.1 * joules, {}},
          {{"zeros", {0.75 * joules, 0.7 * joules, 0.8 * joules, {}}},
           {"random", {joules, 0.9 * joules, 1.1 * joules, {}}}}};
}

// A product of 1,024 x 512 by 512 x 256 that costs so much, on a board with a profile.
struct Program {
  run::Run run;
  attribute::Attribution costs;

  explicit Program(DType dtype = DType::bfloat16, const char* name = "aten.mm.default") {
    run.manifest.device_uuid = "1";
    meter::Profile profile{"NVIDIA H200", "GPU-1", "580", "2026-12-01", {}, {}, {}, {}};
    profile.coefficients = {coefficient("matmul dtype=bfloat16 unit=matrix", "flop", kFlop),
                            coefficient("copy level=hbm", "byte", kHbm),
                            coefficient("vector dtype=float32 unit=vector", "flop", kVector)};
    run.manifest.facts[meter::profile_fact("GPU-1")] = meter::to_json({profile});
    run::Operator op;
    op.name = name;
    for (const std::vector<std::int64_t>& shape :
         {std::vector<std::int64_t>{1024, 512}, {512, 256}, {1024, 256}}) {
      run::Tensor tensor;
      tensor.storage = run.tensors.size();
      tensor.shape = shape;
      tensor.stride = {shape[1], 1};
      tensor.fingerprint.dtype = dtype;
      run.tensors.push_back(tensor);
    }
    op.inputs = {run::TensorId(0), run::TensorId(1)};
    op.outputs = {run::TensorId(2)};
    run.operators = {op};
    costs.operators.resize(1);
    costs.operators[0].known = true;
    costs.operators[0].seconds = Seconds(1e-5);
    costs.operators[0].dynamic = Energy::around(Joules(1e-3), Joules(2e-5), Standing::replayed);
  }
  std::optional<LeastEnergy> least() const {
    const run::OperatorId all[] = {run::OperatorId(0)};
    return least_energy(run, costs, all);
  }
};

constexpr double kFlops = 2. * 1024 * 512 * 256;
constexpr double kBytes = 2. * (1024 * 512 + 512 * 256 + 1024 * 256);

TEST(LeastEnergy, IsTheArithmeticAndTheBytes) {
  const auto least = Program().least();
  ASSERT_TRUE(least);
  EXPECT_NEAR(least->joules.joules.value, kFlops * kFlop + kBytes * kHbm, 1e-12);
  EXPECT_NEAR(least->joules.low.value, 0.7 * (kFlops * kFlop + kBytes * kHbm), 1e-12);
  EXPECT_EQ(least->joules.standing, Standing::modelled);
  const double distance = 1e-3 / (kFlops * kFlop + kBytes * kHbm);
  EXPECT_NEAR(least->distance, distance, 1e-9);
  EXPECT_LT(least->low, distance / 1.09);
  EXPECT_GT(least->high, distance / 0.71);
}

TEST(LeastEnergy, OfWhatIsNoProductIsThatOfVectorsAndBytes) {
  const auto least = Program(DType::bfloat16, "aten.add.Tensor").least();
  ASSERT_TRUE(least);
  EXPECT_NEAR(least->joules.joules.value, 1024. * 512 * kVector + kBytes * kHbm, 1e-12);
}

TEST(LeastEnergy, IsUnknownWhereAnythingIs) {
  EXPECT_FALSE(Program(DType::float64).least()) << "no cost of such products";
  EXPECT_FALSE(Program(DType::float8_e4m3).least());
  Program without;
  without.run.manifest.facts.clear();
  EXPECT_FALSE(without.least()) << "no profile";
  Program elsewhere;
  elsewhere.run.manifest.device_uuid = "2";
  EXPECT_FALSE(elsewhere.least()) << "the profile of another board";
  Program unmeasured;
  unmeasured.costs.operators[0].known = false;
  EXPECT_FALSE(unmeasured.least());
  Program host;
  host.costs.ledger.boundary = Boundary::host;
  EXPECT_FALSE(host.least());
  Program untensored;
  untensored.run.operators[0].inputs.clear();
  untensored.run.operators[0].outputs.clear();
  EXPECT_FALSE(untensored.least());
}

}  // namespace
}  // namespace joulediff::diagnose
