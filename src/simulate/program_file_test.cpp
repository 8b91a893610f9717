#include "simulate/program_file.h"

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

namespace joulediff::simulate {
namespace {

class ProgramFile : public testing::Test {
 protected:
  Result<Simulation> read(const std::string& text) {
    std::ofstream(path_) << text;
    return read_program(path_);
  }
  // What is wrong with it, after the file's name.
  std::string fault(const std::string& text) {
    const auto result = read(text);
    if (result) return "nothing";
    EXPECT_EQ(result.error().code, ExitCode::bad_input);
    EXPECT_TRUE(result.error().message.starts_with(path_)) << result.error().message;
    return result.error().message.substr(path_.size());
  }
  void TearDown() override { std::filesystem::remove(path_); }

  const std::string path_ =
      testing::TempDir() + testing::UnitTest::GetInstance()->current_test_info()->name() + ".toml";
};

TEST_F(ProgramFile, SaysAProgramItsBoardAndItsSensors) {
  const auto result = read(R"(
preset = "a100"
name = "two operators"
layers = 3
pause = 1e-3
seconds = 2

[[operators]]
name = "matmul"
seconds = 400e-6
watts = 300
kernels = 2

[[operators]]
name = "norm"
seconds = 1e-4
joules = 0.01
cold = 0.05

[board]
cap_watts = 250

[counter]
step = 0
gain = 0.9
resets = [3, 4.5]
freezes = [{at = 2, length = 1, forgets = true}]

[average]
window = 1

[passes]
replay = 1.5
)");
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(result->board_key, "a100");
  EXPECT_EQ(result->program.name, "two operators");
  EXPECT_EQ(result->program.layers, 3);
  ASSERT_EQ(result->program.operators.size(), 2u);
  EXPECT_NEAR(result->program.operators[0].joules, 0.12, 1e-12);
  EXPECT_EQ(result->program.operators[0].kernels, 2);
  EXPECT_EQ(result->program.operators[1].cold, 0.05);
  EXPECT_EQ(result->board.cap_watts, 250);
  EXPECT_EQ(result->sensors.counter->step, 0);
  EXPECT_EQ(result->sensors.counter->gain, 0.9);
  EXPECT_EQ(result->sensors.counter->resets, (std::vector<double>{3, 4.5}));
  ASSERT_EQ(result->sensors.counter->freezes.size(), 1u);
  EXPECT_TRUE(result->sensors.counter->freezes[0].forgets);
  ASSERT_EQ(result->sensors.powers.size(), 2u) << "the board's instant power, and the average";
  EXPECT_EQ(result->passes.replay, 1.5);
}

TEST_F(ProgramFile, WhatIsWrongIsOneLineWithItsPlace) {
  const std::string op = "[[operators]]\nname = \"a\"\nseconds = 1e-3\n";
  EXPECT_EQ(fault("preset = \"abacus\"\n").substr(0, 29), ":1: there is no board abacus;");
  EXPECT_EQ(fault("seconds = \"long\"\n" + op), ":1: seconds is not a number between 0.1 and 600");
  EXPECT_EQ(fault("seconds = nan\n" + op), ":1: seconds is not a number between 0.1 and 600");
  EXPECT_EQ(fault(op + "jules = 3\n").substr(0, 25), ":4: there is no key jules");
  EXPECT_EQ(fault(op + "joules = 1\nwatts = 3\n"), ":5: an operator has either joules or watts");
  EXPECT_EQ(fault(op + "kernels = -2\n"), ":4: kernels is not a whole number from 1 to 100000");
  EXPECT_EQ(fault(op + "kernels = 0\n"), ":4: kernels is not a whole number from 1 to 100000");
  EXPECT_EQ(fault("[[operators]]\nname = \"a\"\nwatts = 400\n"),
            ":1: seconds is missing: how long a call takes");
  EXPECT_EQ(fault(op + op).substr(0, 29), ":4: operator a is there twice");
  EXPECT_EQ(fault(op + "[board]\ncontext_watts = 1e9\n"),
            ":5: context_watts is not a number between 0 and 100000");
  EXPECT_EQ(fault(op + "[board]\nstatic_watts = 1e5\n").substr(0, 32),
            ":4: static power of 100000 W, wi");
  EXPECT_EQ(fault("name = \"empty\"\n"), ": the program has no operators");
  EXPECT_EQ(fault("operators = 3\n"), ":1: operators is not a list of tables: [[operators]]");
  EXPECT_EQ(fault(op + "[counter]\nstep = 1e-9\n").substr(0, 30), ":4: a counter with steps has a");
  EXPECT_NE(fault("[[operators]\n").find(":1: "), std::string::npos);
  EXPECT_NE(fault("\xff\xfe").find(":1: "), std::string::npos);
  EXPECT_FALSE(read_program("/nowhere/p.toml"));
}

}  // namespace
}  // namespace joulediff::simulate
