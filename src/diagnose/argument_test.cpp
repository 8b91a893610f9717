#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "diagnose/test_pair.h"

namespace joulediff::diagnose {
namespace {

using testing::Call;
using ::testing::HasSubstr;
using testing::program;
using testing::question;

Call with(const std::string& arguments, double joules, value::DType dtype = value::DType::float32) {
  return {"engine.decode", joules, 1e-3, {8, 8}, {8, 1}, dtype, arguments};
}

TEST(ArgumentCause, NamesTheArgument) {
  const auto a = program({with(R"({"head": 3, "use_tensor_cores": false})", 9)});
  const auto b = program({with(R"({"head": 3, "use_tensor_cores": true})", 4)});
  const Answer answer = find_cause(question(a, b));
  EXPECT_EQ(answer.cause.kind, CauseKind::argument);
  EXPECT_EQ(answer.cause.key, "argument:use_tensor_cores");
  EXPECT_THAT(answer.advice, HasSubstr("as B does"));
}

TEST(ArgumentCause, AListHasNoNames) {
  const auto a = program({with("[1, false]", 9)});
  const auto b = program({with("[1, true]", 4)});
  EXPECT_EQ(find_cause(question(a, b)).cause.key, "argument:decode");
}

TEST(ArgumentCause, OtherDtypes) {
  const auto a = program({with("{}", 9, value::DType::float32)});
  const auto b = program({with("{}", 4, value::DType::bfloat16)});
  const Answer answer = find_cause(question(a, b));
  EXPECT_EQ(answer.cause.key, "argument:dtype:decode");
  EXPECT_THAT(answer.cause.message, HasSubstr("float32 in A and bfloat16 in B"));
}

TEST(ArgumentCause, EqualCallsHaveNone) {
  const auto a = program({with("[1]", 9)});
  const auto b = program({with("[1]", 4)});
  EXPECT_NE(find_cause(question(a, b)).cause.kind, CauseKind::argument);
}

}  // namespace
}  // namespace joulediff::diagnose
