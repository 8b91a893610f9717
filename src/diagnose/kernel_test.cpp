#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "diagnose/test_pair.h"

namespace joulediff::diagnose {
namespace {

using testing::Call;
using ::testing::HasSubstr;
using testing::program;
using testing::question;

Call run_by(const std::string& kernel, double joules) {
  return {"aten.convolution.default", joules, 1e-3,  {8, 8}, {8, 1},
          value::DType::float32,      "{}",   kernel};
}

TEST(KernelCause, NamesBothKernels) {
  const auto a = program({run_by("implicit_gemm", 9)});
  const auto b = program({run_by("winograd", 4)});
  const Answer answer = find_cause(question(a, b));
  EXPECT_EQ(answer.cause.kind, CauseKind::kernel);
  EXPECT_EQ(answer.cause.key, "kernel:convolution");
  EXPECT_EQ(answer.cause.standing, CauseStanding::open);
  EXPECT_THAT(answer.cause.message, HasSubstr("implicit_gemm on a grid of 1 x 1 x 1 in A"));
  EXPECT_THAT(answer.cause.message, HasSubstr("winograd"));
}

TEST(KernelCause, TheSameKernelsLeaveTheCauseOpen) {
  const auto a = program({run_by("winograd", 9)});
  const auto b = program({run_by("winograd", 4)});
  const Answer answer = find_cause(question(a, b));
  EXPECT_EQ(answer.cause.standing, CauseStanding::open);
  EXPECT_THAT(answer.cause.message, HasSubstr("nothing recorded tells them apart"));
}

}  // namespace
}  // namespace joulediff::diagnose
