#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "diagnose/test_pair.h"

namespace joulediff::diagnose {
namespace {

using testing::Call;
using ::testing::HasSubstr;
using testing::program;
using testing::question;

TEST(LayoutCause, ConvolutionOnOtherStrides) {
  const auto a = program({Call{"aten.convolution.default", 9, 1e-3, {2, 3, 4, 5}, {60, 20, 5, 1}}});
  const auto b = program({Call{"aten.convolution.default", 4, 1e-3, {2, 3, 4, 5}, {60, 1, 15, 3}}});
  const Answer answer = find_cause(question(a, b));
  EXPECT_EQ(answer.cause.kind, CauseKind::layout);
  EXPECT_EQ(answer.cause.key, "layout:convolution");
  EXPECT_THAT(answer.cause.message, HasSubstr("strides (60, 1, 15, 3)"));
}

// The softmax on permuted logits, beside other operators that cost little.
TEST(LayoutCause, TheOperatorInCommonThatHoldsTheExcess) {
  const auto a = program({Call{"aten._log_softmax", 70, 1e-3, {2, 50, 8}, {400, 1, 50}},
                          Call{"aten.nll_loss2d_forward", 1}});
  const auto b = program(
      {Call{"aten._log_softmax", 2, 1e-3, {2, 8, 50}, {400, 50, 1}}, Call{"aten.gather", 1}});
  EXPECT_EQ(find_cause(question(a, b)).cause.key, "layout:_log_softmax");
}

TEST(LayoutCause, AxesOfLengthOneDoNotLie) {
  const auto a = program({Call{"aten.mul", 9, 1e-3, {1, 8}, {8, 1}}});
  const auto b = program({Call{"aten.mul", 4, 1e-3, {1, 8}, {1, 1}}});
  EXPECT_NE(find_cause(question(a, b)).cause.kind, CauseKind::layout);
}

TEST(LayoutCause, AGapBetweenRowsCounts) {
  const auto a = program({Call{"aten.mul", 9, 1e-3, {8, 8}, {64, 1}}});
  const auto b = program({Call{"aten.mul", 4, 1e-3, {8, 8}, {8, 1}}});
  EXPECT_EQ(find_cause(question(a, b)).cause.kind, CauseKind::layout);
}

}  // namespace
}  // namespace joulediff::diagnose
