#include "diagnose/place.h"

#include <gtest/gtest.h>

namespace joulediff::diagnose {
namespace {

TEST(Place, WhoseCode) {
  EXPECT_EQ(origin("/v/lib/python3.11/site-packages/torch/nn/modules/linear.py"), Origin::runtime);
  EXPECT_EQ(origin("/usr/lib/python3/dist-packages/jax/_src/core.py"), Origin::runtime);
  EXPECT_EQ(origin("/v/lib/python3.11/site-packages/triton/runtime/jit.py"), Origin::runtime);
  EXPECT_EQ(origin("/usr/lib/python3.12/contextlib.py"), Origin::runtime);
  EXPECT_EQ(origin("<frozen runpy>"), Origin::runtime);
  EXPECT_EQ(origin("/src/python/joulediff/torch.py"), Origin::runtime);
  EXPECT_EQ(origin("/v/lib/python3.11/site-packages/transformers/activations.py"), Origin::library);
  EXPECT_EQ(origin("/v/lib/python3.11/site-packages/timm/layers/norm.py"), Origin::library);
  EXPECT_EQ(origin("/home/user/torch/train.py"), Origin::user);
  EXPECT_EQ(origin("train.py"), Origin::user);
  EXPECT_EQ(origin("<stdin>"), Origin::user);
}

// A run names files from the package's, the library's or the program's folder on.
TEST(Place, WhoseCodeByTheNamesOfARun) {
  EXPECT_EQ(origin("site-packages/torch/nn/modules/linear.py"), Origin::runtime);
  EXPECT_EQ(origin("dist-packages/triton/runtime/jit.py"), Origin::runtime);
  EXPECT_EQ(origin("site-packages/transformers/activations.py"), Origin::library);
  EXPECT_EQ(origin("lib/python3.12/contextlib.py"), Origin::runtime);
  EXPECT_EQ(origin("python/joulediff/torch.py"), Origin::runtime);
  EXPECT_EQ(origin("cases/vit/models.py"), Origin::user);
  EXPECT_EQ(origin("my-site-packages/torch/model.py"), Origin::user);
  EXPECT_EQ(origin("mylib/python3/train.py"), Origin::user);
  EXPECT_EQ(origin("ipython/joulediff/train.py"), Origin::user);
}

TEST(Place, WithinPackages) {
  EXPECT_EQ(within_packages("site-packages/timm/layers/norm.py"), "timm/layers/norm.py");
  EXPECT_EQ(within_packages("/v/lib/python3.11/site-packages/timm/norm.py"), "timm/norm.py");
  EXPECT_EQ(within_packages("/x/dist-packages/a/site-packages/b.py"), "b.py");
  EXPECT_EQ(within_packages("cases/vit/models.py"), "cases/vit/models.py");
  EXPECT_EQ(within_packages(""), "");
}

run::Run call(const std::vector<run::Frame>& innermost_first) {
  run::Run run;
  run::StackId caller;
  for (auto frame = innermost_first.rbegin(); frame != innermost_first.rend(); ++frame) {
    run.frames.push_back(*frame);
    run.stacks.push_back({caller, run::FrameId(run.frames.size() - 1)});
    caller = run::StackId(run.stacks.size() - 1);
  }
  run::Operator op;
  op.stack = caller;
  run.operators = {op};
  return run;
}

const std::string kPackages = "/v/lib/python3.11/site-packages/";

TEST(Place, InnermostOutsideTheRuntimes) {
  const Places at = places(call({{kPackages + "torch/functional.py", 1, "gelu"},
                                 {kPackages + "transformers/activations.py", 52, "forward"},
                                 {kPackages + "torch/module.py", 9, "__call__"},
                                 {"/home/user/train.py", 3, "main"},
                                 {"/home/user/train.py", 8, "<module>"}}),
                           run::OperatorId(0));
  ASSERT_TRUE(at.where && at.called_from);
  EXPECT_EQ(at.where->line, 52u);
  EXPECT_EQ(at.called_from->line, 3u);
}

TEST(Place, NoneInsideTheRuntimesAlone) {
  const Places at =
      places(call({{kPackages + "torch/functional.py", 1, "gelu"}}), run::OperatorId(0));
  EXPECT_FALSE(at.where);
  EXPECT_FALSE(at.called_from);
}

TEST(Place, BackwardTakesTheForwardPlace) {
  run::Run run = call({{"/home/user/net.py", 7, "forward"}});
  run::Operator backward;
  backward.phase = run::Phase::backward;
  backward.forward = run::OperatorId(0);
  run.operators.push_back(backward);
  ASSERT_TRUE(places(run, run::OperatorId(1)).where);
  EXPECT_EQ(places(run, run::OperatorId(1)).where->line, 7u);
}

}  // namespace
}  // namespace joulediff::diagnose
