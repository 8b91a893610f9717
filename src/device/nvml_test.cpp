#include "device/nvml.h"

#include <cstddef>
#include <dlfcn.h>
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
static_assert(abi::kGpuIsLost == NVML_ERROR_GPU_IS_LOST);
static_assert(abi::kVersionMismatch == NVML_ERROR_LIB_RM_VERSION_MISMATCH);
static_assert(abi::kDriverNotLoaded == NVML_ERROR_DRIVER_NOT_LOADED);
static_assert(abi::kScopeModule == NVML_POWER_SCOPE_MODULE);
static_assert(sizeof(abi::ProcessInfo) == sizeof(nvmlProcessInfo_t));
JD_SAME_PLACE(abi::ProcessInfo, memory, nvmlProcessInfo_t, usedGpuMemory);
static_assert(abi::kUnsignedLongLong == NVML_VALUE_TYPE_UNSIGNED_LONG_LONG);
#endif

namespace joulediff::device {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

class FakeBoard : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    const auto folder = std::filesystem::read_symlink("/proc/self/exe").parent_path();
    const std::string path = folder / "../lib/fakes/libnvidia-ml.so.1";
    setenv("JOULEDIFF_NVML", path.c_str(), 1);
    library_ = dlopen(path.c_str(), RTLD_NOW);
    ASSERT_TRUE(library_) << dlerror();
  }
  void TearDown() override { reinterpret_cast<void (*)()>(dlsym(library_, "fake_nvml_reset"))(); }
  static void fake(const std::string& name, long long value) {
    reinterpret_cast<void (*)(const char*, long long)>(dlsym(library_, "fake_nvml_set"))(
        ("FAKE_NVML_" + name).c_str(), value);
  }
  static Board open() {
    Boards found = Boards::open(nullptr);
    EXPECT_THAT(found.notes, IsEmpty());
    return found.boards.at(0);
  }
  // The boards that a list shows, by the last digit of the UUID's first part.
  static std::string shown(const char* visible_devices, const char* order = nullptr) {
    std::string digits;
    for (const Board& board : Boards::open(visible_devices, order).boards)
      digits += board.info().uuid[11];
    return digits;
  }
  static std::vector<std::string> rules(const char* visible_devices, const char* order = nullptr) {
    std::vector<std::string> all;
    for (const Diagnostic& note : Boards::open(visible_devices, order).notes)
      all.push_back(note.rule);
    return all;
  }

 private:
  static inline void* library_ = nullptr;
};

TEST_F(FakeBoard, SaysWhatItIs) {
  const Board board = open();
  EXPECT_EQ(board.info().name, "Fake H200");
  EXPECT_EQ(board.info().uuid, "GPU-fa4e0000-0000-0000-0000-000000000000");
  EXPECT_EQ(board.info().driver, "580.159");
}

TEST_F(FakeBoard, VisibleDevicesByIndexAndByUuid) {
  fake("BOARDS", 3);
  EXPECT_EQ(shown(nullptr), "012");
  EXPECT_EQ(shown("2,0"), "20");
  EXPECT_EQ(shown("GPU-fa4e0001"), "1");
  EXPECT_EQ(shown("GPU-fa4e0002-0000-0000-0000-000000000000, 1,2"), "21");
  EXPECT_THAT(rules("2,GPU-fa4e0001"), IsEmpty());
}

TEST_F(FakeBoard, NoneWhereTheProgramSeesNone) {
  fake("BOARDS", 3);
  for (const char* hidden : {"", "-1", "NoDevFiles"}) {
    EXPECT_EQ(shown(hidden), "") << hidden;
    EXPECT_THAT(rules(hidden), IsEmpty()) << hidden;
  }
  EXPECT_EQ(shown("1,-1,2"), "1");
}

TEST_F(FakeBoard, ABoardThatIsNotThereIsANoteAndEndsTheList) {
  fake("BOARDS", 3);
  for (const char* wrong : {"0,7,1", "0,GPU-0000,1", "0,x,1", "0,GPU-fa4e,1"}) {
    EXPECT_EQ(shown(wrong), "0") << wrong;
    EXPECT_THAT(rules(wrong), ElementsAre("record.no_such_board")) << wrong;
  }
}

TEST_F(FakeBoard, MigIdsOfBothForms) {
  for (const char* id : {"MIG-fa4e0000-0000-0000-0000-000000000000",
                         "MIG-GPU-fa4e0000-0000-0000-0000-000000000000/1/0"}) {
    const Boards found = Boards::open(id);
    EXPECT_THAT(found.boards, IsEmpty()) << id;
    ASSERT_THAT(found.notes, SizeIs(1)) << id;
    EXPECT_EQ(found.notes[0].rule, "record.mig");
    EXPECT_THAT(found.notes[0].remedy, HasSubstr("record on a board without MIG"));
  }
}

TEST_F(FakeBoard, OneThatIsCutUpOrSharedIsRefusedAndTheOthersRead) {
  fake("BOARDS", 3);
  fake("MIG", 1);
  fake("VGPU", 2);
  EXPECT_EQ(shown(nullptr), "2");
  EXPECT_THAT(rules(nullptr), ElementsAre("record.board_unmetered", "record.board_unmetered"));
  EXPECT_THAT(Boards::open("0").notes[0].message, HasSubstr("MIG"));
  EXPECT_THAT(Boards::open("1").notes[0].message, HasSubstr("vGPU"));
}

TEST_F(FakeBoard, UnlikeBoardsAreNumberedInTwoWays) {
  fake("BOARDS", 2);
  EXPECT_THAT(rules("1"), IsEmpty());
  fake("UNLIKE", 1);
  EXPECT_THAT(rules("1"), ElementsAre("record.device_order"));
  EXPECT_THAT(rules("1", "FASTEST_FIRST"), ElementsAre("record.device_order"));
  EXPECT_THAT(rules("1", "PCI_BUS_ID"), IsEmpty());
  EXPECT_THAT(rules("GPU-fa4e0001"), IsEmpty());
  EXPECT_THAT(rules(nullptr), IsEmpty());
}

TEST_F(FakeBoard, DriverAndLibraryMismatchIsANote) {
  fake("INIT", 18);
  const Boards found = Boards::open(nullptr);
  EXPECT_THAT(found.boards, IsEmpty());
  ASSERT_THAT(found.notes, SizeIs(1));
  EXPECT_EQ(found.notes[0].rule, "record.driver_mismatch");
  fake("INIT", 9);
  EXPECT_THAT(Boards::open(nullptr).notes[0].message, HasSubstr("not loaded"));
  EXPECT_EQ(Boards::open(nullptr).notes[0].remedy, "sudo modprobe nvidia");
  fake("INIT", 999);
  EXPECT_THAT(Boards::open(nullptr).notes[0].message, HasSubstr("999"));
}

TEST_F(FakeBoard, HungNvmlIsLeftAlone) {
  fake("HANG_INIT", 1);
  const Boards found = Boards::open(nullptr, nullptr, 20'000'000);
  EXPECT_THAT(found.boards, IsEmpty());
  ASSERT_THAT(found.notes, SizeIs(1));
  EXPECT_EQ(found.notes[0].rule, "record.meter_hung");
}

TEST_F(FakeBoard, LostDevice) {
  const Board board = open();
  EXPECT_FALSE(board.lost());
  fake("LOST", 1);
  EXPECT_TRUE(board.lost());
  EXPECT_FALSE(board.energy());
  EXPECT_FALSE(board.power().average);
  EXPECT_THAT(board.ring(0), IsEmpty());
  const Boards found = Boards::open(nullptr);
  EXPECT_THAT(found.boards, IsEmpty());
  ASSERT_THAT(found.notes, SizeIs(1));
  EXPECT_THAT(found.notes[0].message, HasSubstr("Xid"));
}

TEST_F(FakeBoard, ReadsItsSensors) {
  const Board board = open();
  const Board::Power power = board.power();
  EXPECT_EQ(power.instant, 100'000);
  EXPECT_NEAR(static_cast<double>(*power.average), 100'000, 2);
  EXPECT_EQ(power.memory, 41'000);
  EXPECT_FALSE(power.module);
  EXPECT_EQ(board.sm_clock(), 1980);
  EXPECT_EQ(board.memory_clock(), 3201);
  EXPECT_EQ(board.temperature(), 45);
  EXPECT_EQ(board.throttle(), 0);
  EXPECT_EQ(board.power_limit(), 700'000);
  const auto first = board.energy();
  usleep(250'000);
  EXPECT_GT(*board.energy(), *first);
}

TEST_F(FakeBoard, ModuleScope) {
  fake("MODULE", 1);
  EXPECT_EQ(open().power().module, 250'000);
}

TEST_F(FakeBoard, ZeroWattsOfASecondDieAreUnknown) {
  fake("ZERO", 1);
  const Board board = open();
  EXPECT_FALSE(board.energy());
  const Board::Power power = board.power();
  EXPECT_FALSE(power.instant || power.average || power.memory || power.module);
  EXPECT_THAT(board.ring(0), IsEmpty());
}

TEST_F(FakeBoard, NamesItsProcesses) {
  EXPECT_THAT(open().processes(), IsEmpty());
  fake("PROCESS", 4711);
  const auto processes = open().processes();
  ASSERT_THAT(processes, SizeIs(1));
  EXPECT_EQ(processes[0].pid, 4711u);
  EXPECT_EQ(processes[0].memory, 3ULL << 30);
}

TEST_F(FakeBoard, RingComesInOrderAndOnlyNewSamples) {
  const Board board = open();
  const auto ring = board.ring(0);
  ASSERT_EQ(ring.size(), 119u);
  for (std::size_t i = 1; i < ring.size(); ++i) EXPECT_GT(ring[i].time_us, ring[i - 1].time_us);
  EXPECT_EQ(ring.back().milliwatts, 100'000);
  for (const RingSample& sample : board.ring(ring[100].time_us))
    EXPECT_GT(sample.time_us, ring[100].time_us);
}

TEST_F(FakeBoard, WhatTheBoardLacksReadsAsNothing) {
  fake("OLD", 1);
  const Board board = open();
  EXPECT_FALSE(board.energy());
  EXPECT_FALSE(board.power().instant);
  EXPECT_FALSE(board.power().memory);
  EXPECT_TRUE(board.power().average);  // through nvmlDeviceGetPowerUsage
}

}  // namespace
}  // namespace joulediff::device
