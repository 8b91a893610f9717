#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "diagnose/test_pair.h"

namespace joulediff::diagnose {
namespace {

using testing::Call;
using ::testing::HasSubstr;
using testing::program;
using testing::question;

TEST(RedundantCause, AnExtraCopy) {
  const auto a = program({Call{"aten.bmm.default", 5}, Call{"aten.clone.default", 3}});
  const auto b = program({Call{"aten.bmm.default", 5}});
  const Answer answer = find_cause(question(a, b));
  EXPECT_EQ(answer.cause.kind, CauseKind::redundant);
  EXPECT_EQ(answer.cause.key, "operators:aten.clone");
  EXPECT_EQ(answer.cause.standing, CauseStanding::likely);
  EXPECT_THAT(answer.advice, HasSubstr("model.py:10"));
}

TEST(RedundantCause, ARegionWithNothingOnTheOtherSide) {
  const auto a = program({Call{"aten.cat.default", 3}});
  const auto b = program({});
  EXPECT_EQ(find_cause(question(a, b)).cause.key, "operators:aten.cat");
}

// A view of the right strides is not "without": to drop the copy alone would give another result.
TEST(RedundantCause, WhatIsDoneForNextToNothingIsNoReasonToDrop) {
  const auto a = program({Call{"aten.bmm", 5}, Call{"aten.clone", 3}});
  const auto b = program({Call{"aten.bmm", 5}, Call{"aten.as_strided_copy", 0.05}});
  const Answer answer = find_cause(question(a, b));
  EXPECT_EQ(answer.cause.key, "operators:aten.clone");
  EXPECT_THAT(answer.cause.message, HasSubstr("where B runs aten.as_strided_copy"));
  EXPECT_THAT(answer.advice, HasSubstr("replace aten.clone by aten.as_strided_copy"));
  EXPECT_THAT(answer.advice + answer.cause.message, ::testing::Not(HasSubstr("drop")));
  EXPECT_THAT(answer.cause.message, ::testing::Not(HasSubstr("without")));
}

// The head of a language model over all tokens, where the last one is used.
TEST(RedundantCause, MoreElementsThanAreUsed) {
  const auto a = program({Call{"aten.mm.default", 9, 1e-3, {1024, 50257}}});
  const auto b = program({Call{"aten.mm.default", 1, 1e-3, {1, 50257}}});
  const Answer answer = find_cause(question(a, b));
  EXPECT_EQ(answer.cause.kind, CauseKind::redundant);
  EXPECT_EQ(answer.cause.key, "operators:aten.mm");
}

TEST(RedundantCause, NotWhereTheOtherSideDoesSomethingElseInstead) {
  const auto a = program({Call{"aten.bmm", 5}, Call{"aten.clone", 3}});
  const auto b = program({Call{"aten.bmm", 5}, Call{"aten.copy_", 1}});
  EXPECT_EQ(find_cause(question(a, b)).cause.kind, CauseKind::operators);
}

}  // namespace
}  // namespace joulediff::diagnose
