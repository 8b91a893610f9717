#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "diagnose/test_pair.h"

namespace joulediff::diagnose {
namespace {

using testing::Call;
using ::testing::HasSubstr;
using ::testing::Not;
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

// Three products where one over the joined weights does: the calls are counted and the operand that
// was cut is shown, not the activations, which are the same.
TEST(OperatorsCause, ThreeProductsAgainstOneOverJoinedWeights) {
  const std::string file = "/home/user/attention.py";
  const auto product = [&](std::int64_t width, std::uint32_t line) {
    Call call{"aten.addmm.default", 4, 1e-3, {64, width}};
    call.file = file;
    call.line = line;
    return call;
  };
  auto a = program({product(768, 20), product(768, 21), product(768, 22)});
  auto b = program({product(2304, 30)});
  for (auto* side : {&a, &b})
    for (run::Operator& op : side->run.operators) {
      const std::int64_t width = side->run.tensors[op.outputs[0].index()].shape[1];
      op.inputs.clear();
      for (const std::vector<std::int64_t>& shape :
           std::vector<std::vector<std::int64_t>>{{width}, {64, 768}, {768, width}}) {
        run::Tensor tensor;
        tensor.shape = shape;
        op.inputs.emplace_back(side->run.tensors.size());
        side->run.tensors.push_back(tensor);
      }
    }
  const Answer answer = find_cause(question(a, b));
  EXPECT_EQ(answer.cause.key, "operators:aten.addmm");
  EXPECT_EQ(answer.cause.message,
            "A calls aten.addmm 3 times where B calls it once ([768,768] 3 times against "
            "[768,2304])");
  EXPECT_EQ(answer.advice,
            "join the 3 calls of aten.addmm at attention.py:20, attention.py:21, attention.py:22 "
            "into one over [768,2304], as B does at attention.py:30");
}

TEST(OperatorsCause, InPiecesBesideOtherOperators) {
  const auto a = program({Call{"aten.mm", 4}, Call{"aten.mm", 4}, Call{"aten.tanh", 1}});
  const auto b = program({Call{"aten.mm", 4}, Call{"aten.silu", 1}});
  EXPECT_EQ(find_cause(question(a, b)).cause.message,
            "A calls aten.mm twice where B calls it once; A also runs aten.tanh; B also runs "
            "aten.silu");
}

// The other way around: the cheap side has more calls.
TEST(OperatorsCause, OneCallAgainstMoreSmallerOnes) {
  const auto a = program({Call{"aten.mm", 9, 1e-3, {8, 8}}});
  const auto b = program({Call{"aten.mm", 1, 1e-3, {4, 8}}, Call{"aten.mm", 1, 1e-3, {4, 8}}});
  const Answer answer = find_cause(question(a, b));
  EXPECT_THAT(answer.cause.message + answer.advice, Not(HasSubstr("fewer")));
  EXPECT_EQ(answer.cause.message,
            "A calls aten.mm once where B calls it twice ([8,8] against [4,8] twice)");
  EXPECT_THAT(answer.advice, HasSubstr("split the call of aten.mm at model.py:10 into 2"));
}

TEST(OperatorsCause, TheCheapSideRunsOneMore) {
  const auto a = program({Call{"aten.mm", 9}});
  const auto b = program({Call{"aten.mm", 4}, Call{"aten.pack", 1}});
  const Answer answer = find_cause(question(a, b));
  EXPECT_EQ(answer.cause.message, "A's aten.mm costs more than that of B with aten.pack");
  EXPECT_THAT(answer.advice, HasSubstr("run aten.pack with aten.mm at model.py:10, as B does"));
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

// Operators that go together stand at several lines: all are named.
TEST(OperatorsCause, NamesEveryLineOfWhatIsReplaced) {
  std::vector<Call> chain{{"aten.mul.Tensor", 1}, {"aten.tanh.default", 1}};
  chain[1].line = 11;
  const auto a = program(chain);
  const auto b = program({Call{"aten.gelu.default", 0.5}});
  EXPECT_THAT(find_cause(question(a, b)).advice,
              HasSubstr("at model.py:10, model.py:11 by aten.gelu"));
}

}  // namespace
}  // namespace joulediff::diagnose
