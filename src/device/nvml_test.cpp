#include "device/nvml.h"

#include <cstddef>
#include <filesystem>
#include <time.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "device/nvml_abi.h"

#if __has_include(<nvml.h>)
#include <nvml.h>
#endif
#ifdef NVML_FI_DEV_POWER_INSTANT  // headers before CUDA 12.2 know neither the fields nor scopes
#define JD_SAME_PLACE(ours, our_member, theirs, their_member)                   \
  static_assert(offsetof(ours, our_member) == offsetof(theirs, their_member) && \
                sizeof(ours::our_member) == sizeof(theirs::their_member))
namespace abi = joulediff::device::abi;
static_assert(sizeof(abi::Value) == sizeof(nvmlValue_t));
static_assert(sizeof(abi::Sample) == sizeof(nvmlSample_t));
JD_SAME_PLACE(abi::Sample, time_us, nvmlSample_t, timeStamp);
JD_SAME_PLACE(abi::Sample, value, nvmlSample_t, sampleValue);
static_assert(sizeof(abi::FieldValue) == sizeof(nvmlFieldValue_t));
JD_SAME_PLACE(abi::FieldValue, field, nvmlFieldValue_t, fieldId);
JD_SAME_PLACE(abi::FieldValue, scope, nvmlFieldValue_t, scopeId);
JD_SAME_PLACE(abi::FieldValue, time_us, nvmlFieldValue_t, timestamp);
JD_SAME_PLACE(abi::FieldValue, latency_us, nvmlFieldValue_t, latencyUsec);
JD_SAME_PLACE(abi::FieldValue, value_type, nvmlFieldValue_t, valueType);
JD_SAME_PLACE(abi::FieldValue, result, nvmlFieldValue_t, nvmlReturn);
JD_SAME_PLACE(abi::FieldValue, value, nvmlFieldValue_t, value);
static_assert(abi::kTotalPowerSamples == NVML_TOTAL_POWER_SAMPLES);
static_assert(abi::kFieldPowerAverage == NVML_FI_DEV_POWER_AVERAGE);
static_assert(abi::kFieldPowerInstant == NVML_FI_DEV_POWER_INSTANT);
static_assert(abi::kClockSm == NVML_CLOCK_SM && abi::kClockMemory == NVML_CLOCK_MEM);
static_assert(abi::kNotSupported == NVML_ERROR_NOT_SUPPORTED);
static_assert(abi::kInsufficientSize == NVML_ERROR_INSUFFICIENT_SIZE);
static_assert(abi::kUnsignedLongLong == NVML_VALUE_TYPE_UNSIGNED_LONG_LONG);
#endif

namespace joulediff::device {
namespace {

class FakeBoard : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    const auto folder = std::filesystem::read_symlink("/proc/self/exe").parent_path();
    setenv("JOULEDIFF_NVML", (folder / "../lib/fakes/libnvidia-ml.so.1").c_str(), 1);
  }
  void TearDown() override {
    for (const char* name : {"FAKE_NVML_BOARDS", "FAKE_NVML_MIG", "FAKE_NVML_OLD"}) unsetenv(name);
  }
  static std::optional<Board> open(const char* visible_devices) {
    auto board = Board::open(visible_devices);
    EXPECT_TRUE(board) << board.error().message;
    return board ? *board : std::nullopt;
  }
};

TEST_F(FakeBoard, SaysWhatItIs) {
  const auto board = open(nullptr);
  EXPECT_EQ(board->info().name, "Fake H200");
  EXPECT_EQ(board->info().uuid, "GPU-fa4e0000-0000-0000-0000-000000000000");
  EXPECT_EQ(board->info().driver, "580.159");
}

TEST_F(FakeBoard, FirstVisibleDeviceIsTheBoard) {
  setenv("FAKE_NVML_BOARDS", "3", 1);
  EXPECT_EQ(open("2,0")->info().uuid.substr(0, 12), "GPU-fa4e0002");
  EXPECT_EQ(open("GPU-fa4e0001")->info().uuid.substr(0, 12), "GPU-fa4e0001");
}

TEST_F(FakeBoard, NoneWhereTheProgramSeesNone) {
  for (const char* hidden : {"", "-1"}) {
    const auto board = Board::open(hidden);
    ASSERT_TRUE(board) << hidden;
    EXPECT_FALSE(*board) << hidden;
  }
}

TEST_F(FakeBoard, RefusesABoardThatIsNotThere) {
  for (const char* wrong : {"7", "GPU-0000", "x"}) {
    const auto board = Board::open(wrong);
    ASSERT_FALSE(board) << wrong;
    EXPECT_EQ(board.error().code, ExitCode::environment);
  }
}

TEST_F(FakeBoard, RefusesMig) {
  EXPECT_THAT(Board::open("MIG-fa4e0000").error().message, testing::HasSubstr("MIG"));
  setenv("FAKE_NVML_MIG", "1", 1);
  EXPECT_THAT(Board::open(nullptr).error().message, testing::HasSubstr("whole board"));
}

TEST_F(FakeBoard, ReadsItsSensors) {
  const auto board = open(nullptr);
  const Board::Power power = board->power();
  EXPECT_EQ(power.instant, 100'000);
  EXPECT_NEAR(static_cast<double>(*power.average), 100'000, 2);
  EXPECT_EQ(power.memory, 41'000);
  EXPECT_EQ(board->sm_clock(), 1980);
  EXPECT_EQ(board->memory_clock(), 3201);
  EXPECT_EQ(board->temperature(), 45);
  EXPECT_EQ(board->throttle(), 0);
  EXPECT_EQ(board->power_limit(), 700'000);
  const auto first = board->energy();
  usleep(250'000);
  EXPECT_NEAR(static_cast<double>(*board->energy() - *first), 25'000, 10'500);
}

TEST_F(FakeBoard, RingComesInOrderAndOnlyNewSamples) {
  const auto board = open(nullptr);
  const auto ring = board->ring(0);
  ASSERT_EQ(ring.size(), 119u);
  for (std::size_t i = 1; i < ring.size(); ++i) EXPECT_GT(ring[i].time_us, ring[i - 1].time_us);
  EXPECT_EQ(ring.back().milliwatts, 100'000);
  EXPECT_LE(board->ring(ring[100].time_us).size(), 20u);
}

TEST_F(FakeBoard, WhatTheBoardLacksReadsAsNothing) {
  setenv("FAKE_NVML_OLD", "1", 1);
  const auto board = open(nullptr);
  EXPECT_FALSE(board->energy());
  EXPECT_FALSE(board->power().instant);
  EXPECT_FALSE(board->power().memory);
  EXPECT_TRUE(board->power().average);  // through nvmlDeviceGetPowerUsage
}

}  // namespace
}  // namespace joulediff::device
