#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "diagnose/test_pair.h"

namespace joulediff::diagnose {
namespace {

using testing::Call;
using ::testing::HasSubstr;
using testing::program;
using testing::question;

// A chain without a head: the one operator that does it all names the difference.
TEST(OperatorsCause, GeluInPiecesAgainstGelu) {
  std::vector<Call> chain;
  for (const char* name : {"mul", "pow", "mul", "add", "mul", "tanh", "add", "mul"})
    chain.push_back({"aten." + std::string(name) + ".Tensor", 1});
  const auto a = program(chain);
  const auto b = program({Call{"aten.gelu.default", 1.2}});
  const Answer answer = find_cause(question(a, b));
  EXPECT_EQ(answer.cause.kind, CauseKind::operators);
  EXPECT_EQ(answer.cause.key, "operators:aten.gelu");
  EXPECT_EQ(answer.cause.standing, CauseStanding::likely);
  EXPECT_THAT(answer.cause.message, HasSubstr("aten.mul (x4)"));
  EXPECT_THAT(answer.advice, HasSubstr("by aten.gelu"));
}

TEST(OperatorsCause, AConfigurationThatDiffersIsTheAdvice) {
  auto a = program({Call{"aten.pow", 3}, Call{"aten.tanh", 3}});
  auto b = program({Call{"aten.gelu", 1}});
  a.run.settings = {{"model.config.activation_function", "gelu_new"}};
  b.run.settings = {{"model.config.activation_function", "gelu_pytorch_tanh"}};
  EXPECT_THAT(find_cause(question(a, b)).advice,
              HasSubstr("set activation_function=gelu_pytorch_tanh in A"));
  // With a second difference nobody knows which of them chose.
  a.run.settings.push_back({"model.config.use_cache", "True"});
  b.run.settings.push_back({"model.config.use_cache", "False"});
  EXPECT_THAT(find_cause(question(a, b)).advice, HasSubstr("replace"));
}

// A dear operator names itself, and a copy that prepares it never does.
TEST(OperatorsCause, LayerNormAndCopyAgainstOneKernel) {
  const auto a =
      program({Call{"aten.native_layer_norm.default", 4}, Call{"aten.clone.default", 5}});
  const auto b = program({Call{"triton.channels_first", 3}});
  const Answer answer = find_cause(question(a, b));
  EXPECT_EQ(answer.cause.kind, CauseKind::operators);
  EXPECT_EQ(answer.cause.key, "operators:aten.native_layer_norm");
}

TEST(OperatorsCause, FusedAgainstSeparate) {
  const auto a = program({Call{"aten.addmm.default", 10}});
  const auto b = program({Call{"aten.mm.default", 7}, Call{"aten.add.Tensor", 1}});
  EXPECT_EQ(find_cause(question(a, b)).cause.key, "operators:aten.addmm");
}

TEST(OperatorsCause, TheSameOperatorCutIntoMoreCallsIsNotRedundant) {
  const auto a = program({Call{"aten.mm", 4, 1e-3, {8, 4}}, Call{"aten.mm", 4, 1e-3, {8, 4}}});
  const auto b = program({Call{"aten.mm", 5, 1e-3, {8, 8}}});
  const Answer answer = find_cause(question(a, b));
  EXPECT_EQ(answer.cause.kind, CauseKind::operators);
  EXPECT_EQ(answer.cause.key, "operators:aten.mm");
}

TEST(OperatorsCause, NamesTheLine) {
  const auto a = program({Call{"aten.eig",
                               9,
                               1e-3,
                               {8, 8},
                               {8, 1},
                               value::DType::float32,
                               "{}",
                               "",
                               "/home/user/solve.py",
                               77}});
  const auto b = program({Call{"aten.eigh", 1}});
  const Answer answer = find_cause(question(a, b));
  ASSERT_TRUE(answer.cause.where);
  EXPECT_EQ(answer.cause.where->line, 77u);
  EXPECT_THAT(answer.advice, HasSubstr("solve.py:77"));
}

}  // namespace
}  // namespace joulediff::diagnose
