#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "diagnose/test_pair.h"

namespace joulediff::diagnose {
namespace {

using testing::Call;
using ::testing::HasSubstr;
using testing::Program;
using testing::program;
using testing::question;

Program products(const std::string& op, double joules, const std::string& kernel,
                 std::vector<run::Setting> settings, value::DType dtype = value::DType::float32) {
  Program p = program({Call{op, joules, 1e-3, {8, 8}, {8, 1}, dtype, "{}", kernel}});
  p.run.settings = std::move(settings);
  return p;
}

Answer cause(const Program& a, const Program& b) {
  return find_cause(question(a, b));
}

TEST(SettingCause, MatmulPrecision) {
  const auto a = products("aten.addmm.default", 9, "sgemm",
                          {{"torch.backends.cuda.matmul.allow_tf32", "False"},
                           {"torch.float32_matmul_precision", "highest"}});
  const auto b = products("aten.addmm.default", 3, "tf32gemm",
                          {{"torch.backends.cuda.matmul.allow_tf32", "True"},
                           {"torch.float32_matmul_precision", "high"}});
  const Answer answer = cause(a, b);
  EXPECT_EQ(answer.cause.kind, CauseKind::setting);
  EXPECT_EQ(answer.cause.key, "setting:float32_matmul_precision");
  EXPECT_EQ(answer.cause.standing, CauseStanding::likely);
  EXPECT_THAT(answer.advice, HasSubstr("torch.set_float32_matmul_precision('high')"));
  EXPECT_THAT(answer.advice, HasSubstr("'highest'"));
}

TEST(SettingCause, AllowTf32Alone) {
  const auto a =
      products("aten.mm.default", 9, "sgemm", {{"torch.backends.cuda.matmul.allow_tf32", "False"}});
  const auto b = products("aten.mm.default", 3, "tf32gemm",
                          {{"torch.backends.cuda.matmul.allow_tf32", "True"}});
  EXPECT_EQ(cause(a, b).cause.key, "setting:torch.backends.cuda.matmul.allow_tf32");
}

TEST(SettingCause, OpenWhereKernelsAreNotKnown) {
  const auto a = products("aten.mm", 9, "", {{"torch.float32_matmul_precision", "highest"}});
  const auto b = products("aten.mm", 3, "", {{"torch.float32_matmul_precision", "high"}});
  EXPECT_EQ(cause(a, b).cause.standing, CauseStanding::open);
}

TEST(SettingCause, ASwitchIsNotBlamedForWhatItCannotTouch) {
  const std::vector<run::Setting> highest{{"torch.float32_matmul_precision", "highest"}};
  const std::vector<run::Setting> high{{"torch.float32_matmul_precision", "high"}};
  EXPECT_NE(
      cause(products("aten.gelu", 9, "x", highest), products("aten.gelu", 3, "y", high)).cause.kind,
      CauseKind::setting);
  const auto half = value::DType::bfloat16;
  EXPECT_NE(
      cause(products("aten.mm", 9, "x", highest, half), products("aten.mm", 3, "y", high, half))
          .cause.kind,
      CauseKind::setting);
  EXPECT_NE(cause(products("aten.mm", 9, "x", {{"torch.backends.cudnn.benchmark", "True"}}),
                  products("aten.mm", 3, "y", {{"torch.backends.cudnn.benchmark", "False"}}))
                .cause.kind,
            CauseKind::setting);
}

TEST(SettingCause, ConvolutionsFollowCudnn) {
  const auto a =
      products("aten.convolution", 9, "x", {{"torch.backends.cudnn.deterministic", "True"}});
  const auto b =
      products("aten.convolution", 3, "y", {{"torch.backends.cudnn.deterministic", "False"}});
  EXPECT_EQ(cause(a, b).cause.key, "setting:torch.backends.cudnn.deterministic");
}

// One switch acts at many lines: it is one finding.
TEST(SettingCause, OneFindingWhereverItActs) {
  auto a = program({Call{"aten.mm", 9, 1e-3, {8, 8}, {8, 1}, value::DType::float32, "{}", "s1"},
                    Call{"aten.bmm",
                         9,
                         1e-3,
                         {8, 8},
                         {8, 1},
                         value::DType::float32,
                         "{}",
                         "s2",
                         "/home/user/other.py",
                         99}});
  auto b = program({Call{"aten.mm", 3, 1e-3, {8, 8}, {8, 1}, value::DType::float32, "{}", "t1"},
                    Call{"aten.bmm",
                         3,
                         1e-3,
                         {8, 8},
                         {8, 1},
                         value::DType::float32,
                         "{}",
                         "t2",
                         "/home/user/other.py",
                         99}});
  a.run.settings = {{"torch.float32_matmul_precision", "highest"}};
  b.run.settings = {{"torch.float32_matmul_precision", "high"}};
  const Comparison c = testing::compare(a, b, testing::regions({{1, 1}, {1, 1}}));
  ASSERT_EQ(c.findings.size(), 1u);
  EXPECT_EQ(c.findings[0].regions.size(), 2u);
  EXPECT_NEAR(c.findings[0].saving.joules.value, 12, 1e-6);
}

}  // namespace
}  // namespace joulediff::diagnose
