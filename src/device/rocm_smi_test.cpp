#include "device/rocm_smi.h"

#include <filesystem>

#include <gmock/gmock.h>

namespace joulediff::device {
namespace {

using testing::IsEmpty;
using testing::SizeIs;

constexpr Nanoseconds kS = 1'000'000'000;

class FakeAmd : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    const auto folder = std::filesystem::read_symlink("/proc/self/exe").parent_path();
    setenv("JOULEDIFF_ROCM_SMI", (folder / "../lib/fakes/librocm_smi64.so").c_str(), 1);
  }
  void TearDown() override {
    for (const char* name :
         {"FAKE_ROCM_BOARDS", "FAKE_ROCM_VERSION", "FAKE_ROCM_INIT", "FAKE_ROCM_SECOND_DIE"})
      unsetenv(name);
  }
};

TEST_F(FakeAmd, ReadsItsSensors) {
  for (const char* version : {"5", "7"}) {  // the layout of the clocks changed between them
    setenv("FAKE_ROCM_VERSION", version, 1);
    const AmdBoards found = AmdBoards::open(nullptr, nullptr);
    ASSERT_THAT(found.boards, SizeIs(1));
    const AmdBoard& board = found.boards[0];
    EXPECT_EQ(board.name(), "Fake MI300X");
    EXPECT_EQ(board.id(), "GPU-fa4e000000000000");
    EXPECT_EQ(board.power(), 200'000);
    EXPECT_EQ(board.sm_clock(), 2100);
    EXPECT_EQ(board.memory_clock(), 1300);
    EXPECT_EQ(board.temperature(), 51);
    EXPECT_GT(*board.energy(), 0);
  }
}

TEST_F(FakeAmd, VisibleDevicesAreNested) {
  setenv("FAKE_ROCM_BOARDS", "4", 1);
  const AmdBoards found = AmdBoards::open("3,GPU-fa4e000000000001,0", "1");
  ASSERT_THAT(found.boards, SizeIs(1));
  EXPECT_EQ(found.boards[0].id(), "GPU-fa4e000000000001");
}

TEST_F(FakeAmd, ZeroWattsOfASecondDieAreUnknown) {
  setenv("FAKE_ROCM_BOARDS", "2", 1);
  setenv("FAKE_ROCM_SECOND_DIE", "1", 1);
  const AmdBoards found = AmdBoards::open(nullptr, nullptr);
  ASSERT_THAT(found.boards, SizeIs(2));
  EXPECT_TRUE(found.boards[0].power());
  EXPECT_FALSE(found.boards[1].power());
  EXPECT_FALSE(found.boards[1].energy());
}

TEST_F(FakeAmd, ALibraryThatDoesNotStartIsANote) {
  setenv("FAKE_ROCM_INIT", "8", 1);
  const AmdBoards found = AmdBoards::open(nullptr, nullptr);
  EXPECT_THAT(found.boards, IsEmpty());
  ASSERT_THAT(found.notes, SizeIs(1));
  EXPECT_EQ(found.notes[0].rule, "record.driver");
}

// A counter that counts `factor` times what 200 W are, read every 50 ms from `begin` to `end`.
std::size_t feed(CheckedCounter& counter, Nanoseconds begin, Nanoseconds end, double factor,
                 std::vector<CheckedCounter::Reading>* out = nullptr, bool power = true) {
  std::size_t given = 0;
  for (Nanoseconds t = begin; t < end; t += kS / 20) {
    const auto energy = static_cast<std::int64_t>(1e9 + factor * 200e6 * to_seconds(t).value);
    const auto readings =
        counter.next(t, energy, power ? std::optional<std::int64_t>(200'000) : std::nullopt);
    given += readings.size();
    if (out) out->insert(out->end(), readings.begin(), readings.end());
  }
  return given;
}

TEST(CheckedCounter, GivesEachReadingOnceWhereItAgreesWithPower) {
  CheckedCounter counter;
  std::vector<CheckedCounter::Reading> readings;
  feed(counter, 0, 10 * kS, 1, &readings);
  EXPECT_GE(readings.size(), 180u);
  for (std::size_t i = 1; i < readings.size(); ++i) {
    EXPECT_EQ(readings[i].time - readings[i - 1].time, kS / 20);
    EXPECT_FALSE(readings[i].breaks);
  }
}

TEST(CheckedCounter, FrozenIsUnknown) {
  CheckedCounter counter;
  EXPECT_EQ(feed(counter, 0, 10 * kS, 0), 0u);
  EXPECT_GE(counter.frozen(), 8u);
}

TEST(CheckedCounter, ImpossibleIsUnknown) {
  CheckedCounter counter;
  EXPECT_EQ(feed(counter, 0, 10 * kS, 15.3), 0u);
  EXPECT_GE(counter.impossible(), 8u);
}

TEST(CheckedCounter, WithoutPowerNothingIsBelieved) {
  CheckedCounter counter;
  EXPECT_EQ(feed(counter, 0, 10 * kS, 1, nullptr, false), 0u);
  EXPECT_EQ(counter.frozen() + counter.impossible(), 0u);
  EXPECT_GE(counter.unchecked(), 8u);
}

TEST(CheckedCounter, AStretchThatIsNotBelievedIsABreak) {
  CheckedCounter counter;
  std::vector<CheckedCounter::Reading> readings;
  feed(counter, 0, 3 * kS, 1, &readings);
  counter.next(3 * kS, 900'000'000'000, 200'000);  // leaps by 899 kJ
  for (Nanoseconds t = 3 * kS + kS / 20; t < 9 * kS; t += kS / 20)
    for (const auto& reading :
         counter.next(t, 900'000'000'000 + 200 * (t - 3 * kS) / 1000, 200'000))
      readings.push_back(reading);
  EXPECT_EQ(std::ranges::count_if(readings, [](const auto& r) { return r.breaks; }), 1);
  EXPECT_EQ(counter.impossible(), 1u);
}

}  // namespace
}  // namespace joulediff::device
