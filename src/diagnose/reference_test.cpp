#include "diagnose/reference.h"

#include <gtest/gtest.h>

#include "diagnose/work.h"

namespace joulediff::diagnose {
namespace {

using value::DType;

// A step of one operator on tensors of these shapes; the outputs come last.
struct Step {
  run::Run run;
  std::size_t outputs = 1;

  Step(const std::string& name, std::vector<std::vector<std::int64_t>> shapes,
       DType dtype = DType::float32, const std::string& arguments = "") {
    run.manifest.device = "NVIDIA H200";
    run::Operator op;
    op.name = name;
    op.arguments = arguments;
    for (std::size_t i = 0; i < shapes.size(); ++i) {
      run::Tensor tensor;
      tensor.storage = i;
      tensor.shape = shapes[i];
      tensor.stride.resize(shapes[i].size());
      std::int64_t stride = 1;
      for (std::size_t axis = shapes[i].size(); axis-- > 0; stride *= shapes[i][axis])
        tensor.stride[axis] = stride;
      tensor.fingerprint.dtype = dtype;
      run.tensors.push_back(tensor);
      (i + 1 < shapes.size() ? op.inputs : op.outputs).push_back(run::TensorId(i));
    }
    run.operators.push_back(op);
  }
  WorkOf work() const { return *work_of(run, run.operators[0]); }
  std::optional<Reference> at(double seconds, double busy = 1, double step = 1) const {
    attribute::Attribution costs;
    costs.operators.resize(1);
    costs.operators[0].seconds = Seconds(seconds);
    costs.ledger.busy_time = Seconds(busy);
    costs.ledger.step_time = Seconds(step);
    const run::OperatorId all[] = {run::OperatorId(0)};
    return reference(run, costs, all);
  }
};

TEST(Work, OfMatrixProducts) {
  const WorkOf mm = Step("aten.mm.default", {{128, 64}, {64, 32}, {128, 32}}).work();
  EXPECT_EQ(mm.matrix, 2. * 128 * 64 * 32);
  EXPECT_EQ(mm.bytes, 4. * (128 * 64 + 64 * 32 + 128 * 32));
  EXPECT_EQ(mm.vector, 0);
  EXPECT_EQ(Step("aten.addmm.default", {{32}, {128, 64}, {64, 32}, {128, 32}}).work().matrix,
            2. * 128 * 64 * 32);
  EXPECT_EQ(Step("aten.bmm.default", {{8, 16, 64}, {8, 64, 24}, {8, 16, 24}}).work().matrix,
            2. * 8 * 16 * 64 * 24);
}

TEST(Work, OfConvolutions) {
  // 64 filters of 3 x 7 x 7 over 112 x 112 places of two images.
  const double each = 2. * (2 * 64 * 112 * 112) * (3 * 7 * 7);
  EXPECT_EQ(
      Step("aten.convolution.default", {{2, 3, 224, 224}, {64, 3, 7, 7}, {64}, {2, 64, 112, 112}})
          .work()
          .matrix,
      each);
  // From 4 x 4 to 8 x 8: each input element meets 16 filters of 3 x 3.
  EXPECT_EQ(Step("aten.convolution.default", {{1, 8, 4, 4}, {8, 16, 3, 3}, {1, 16, 8, 8}},
                 DType::float32, R"({"transposed": true})")
                .work()
                .matrix,
            2. * (8 * 4 * 4) * (16 * 3 * 3));
}

TEST(Work, OfAttention) {
  const std::vector<std::vector<std::int64_t>> shapes = {
      {8, 12, 1024, 64}, {8, 12, 512, 64}, {8, 12, 512, 32}, {8, 12, 1024, 32}};
  const char* const name = "aten._scaled_dot_product_flash_attention.default";
  const double whole = 2. * 8 * 12 * 1024 * 512 * (64 + 32);
  EXPECT_EQ(Step(name, shapes).work().matrix, whole);
  EXPECT_EQ(Step(name, shapes, DType::bfloat16, R"({"is_causal": true})").work().matrix, whole / 2);
}

TEST(Work, CountsEachByteOnce) {
  Step square("aten.mul.Tensor", {{1000}, {1000}, {1000}});
  square.run.operators[0].inputs = {run::TensorId(0), run::TensorId(0)};
  EXPECT_EQ(square.work().bytes, 8000) << "x * x reads x once";
  EXPECT_EQ(square.work().vector, 1000);
  Step expanded("aten.add.Tensor", {{64, 1000}, {64, 1000}, {64, 1000}}, DType::bfloat16);
  expanded.run.tensors[1].stride[0] = 0;
  EXPECT_EQ(expanded.work().bytes, 2 * (64000 + 1000 + 64000));
  // Eight rows of a table of 50,257.
  Step table("aten.embedding.default", {{50257, 768}, {8}, {8, 768}});
  table.run.tensors[1].fingerprint.dtype = DType::int64;
  EXPECT_EQ(table.work().bytes, 8 * 8 + 2 * 4 * 8 * 768);
}

TEST(Work, IsUnknownWithoutTensors) {
  Step nothing("aten.mm.default", {{1}});
  nothing.run.operators[0].outputs.clear();
  EXPECT_FALSE(work_of(nothing.run, nothing.run.operators[0]));
}

TEST(Reference, IsBoundByWhatTakesLongest) {
  // 8192 x 768 x 3072: 38.65 GFLOP, 0.578 ms on the vector units of an H200.
  Step product("aten.mm.default", {{8192, 768}, {768, 3072}, {8192, 3072}});
  const auto vector = product.at(1.156e-3);
  ASSERT_TRUE(vector);
  EXPECT_EQ(vector->bound, Bound::vector);
  EXPECT_NEAR(vector->distance, 2, 0.01);
  product.run.settings = {{"torch.backends.cuda.matmul.allow_tf32", "True"}};
  const auto matrix = product.at(156.3e-6);
  EXPECT_EQ(matrix->bound, Bound::matrix);
  EXPECT_NEAR(matrix->distance, 2, 0.01);
  // A GiB read and a GiB written at 4.8 TB/s.
  const auto copy = Step("aten.clone.default", {{1 << 28}, {1 << 28}}).at(2 * 2147483648 / 4.8e12);
  EXPECT_EQ(copy->bound, Bound::hbm);
  EXPECT_NEAR(copy->distance, 2, 1e-6);
  EXPECT_EQ(Step("aten.add.Tensor", {{8}, {8}}).at(3e-6)->bound, Bound::launch);
}

TEST(Reference, IsTheHostWhereTheDeviceMostlyWaits) {
  const Step copy("aten.clone.default", {{1 << 28}, {1 << 28}});
  EXPECT_EQ(copy.at(1e-3, 0.4, 1)->bound, Bound::host);
  EXPECT_EQ(copy.at(1e-3, 0.6, 1)->bound, Bound::hbm);
}

TEST(Reference, IsNoneWhereNothingIsKnown) {
  Step copy("aten.clone.default", {{1 << 20}, {1 << 20}});
  EXPECT_FALSE(copy.at(0)) << "it took no time";
  copy.run.manifest.device = "Voodoo 3";
  EXPECT_FALSE(copy.at(1e-3));
}

TEST(Reference, KnowsBoardsByTheDriversNames) {
  EXPECT_EQ(hardware_of("NVIDIA H100 PCIe")->hbm, 2.0e12);
  EXPECT_EQ(hardware_of("NVIDIA H100 80GB HBM3")->hbm, 3.35e12);
  EXPECT_EQ(hardware_of("NVIDIA GH200 480GB")->hbm, 4.0e12);
  EXPECT_EQ(hardware_of("NVIDIA A100-SXM4-40GB")->hbm, 1.555e12);
  EXPECT_EQ(hardware_of("NVIDIA A100-SXM4-80GB")->matrix_16, 312e12);
  EXPECT_EQ(hardware_of("NVIDIA A10")->vector_32, 31.2e12);
  EXPECT_EQ(hardware_of("NVIDIA GB200"), hardware_of("NVIDIA B200"));
}

}  // namespace
}  // namespace joulediff::diagnose
