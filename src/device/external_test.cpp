#include "device/external.h"

#include <filesystem>
#include <fstream>
#include <signal.h>
#include <unistd.h>

#include <gmock/gmock.h>

namespace joulediff::device {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

constexpr Nanoseconds kS = 1'000'000'000;

// What `command` prints until it has printed `count` readings or ended.
std::vector<MeterSample> take(MeterProgram& meter, std::size_t count) {
  std::vector<MeterSample> all;
  for (int i = 0; i < 100 && all.size() < count && !meter.ended(); ++i)
    for (MeterSample& sample : meter.read(kS)) all.push_back(std::move(sample));
  return all;
}

TEST(MeterLine, IsTimeWattsAndPerhapsAChannel) {
  const auto plain = meter_line("1700000000.25 231.5");
  ASSERT_TRUE(plain);
  EXPECT_EQ(plain->realtime, 1'700'000'000'250'000'000);
  EXPECT_EQ(plain->milliwatts, 231'500);
  EXPECT_EQ(plain->channel, "");
  EXPECT_EQ(meter_line("1700000000 0\t rack 4, outlet 2\r")->channel, "rack 4, outlet 2");
  for (const char* wrong : {"", "1700000000", "watts 12", "1700000000 nan", "1700000000 -3",
                            "1700000000 1e30", "-5 100", "1700000000 12W", "1e300 5"})
    EXPECT_FALSE(meter_line(wrong)) << wrong;
}

TEST(MeterProgram, IsReadWhileItPrintsAndEndedWithItsGroup) {
  auto meter = MeterProgram::start(
      "sleep 100 & echo $! >&1; while :; do echo 1700000000.5 100 wall; sleep 0.01; done");
  ASSERT_TRUE(meter);
  const auto samples = take(*meter, 3);
  ASSERT_GE(samples.size(), 3u);
  EXPECT_EQ(samples[0].milliwatts, 100'000);
  EXPECT_EQ(samples[0].channel, "wall");
  meter->stop();
  const Diagnostics notes = meter->notes();
  ASSERT_THAT(notes, SizeIs(1)) << "the line that is the sleeper's pid";
  const std::string& message = notes[0].message;
  const std::size_t quote = message.rfind('"', message.size() - 2);
  const pid_t sleeper = std::stoi(message.substr(quote + 1));
  // It is gone, or a zombie that its new parent has not yet taken.
  for (int i = 0; i < 200 && kill(sleeper, 0) == 0; ++i) usleep(5000);
  std::ifstream stat("/proc/" + std::to_string(sleeper) + "/stat");
  std::string pid, name, state = "Z";
  stat >> pid >> name >> state;
  EXPECT_EQ(state, "Z");
}

TEST(MeterProgram, OneThatDiesIsSaidAndKeepsWhatItGave) {
  auto meter = MeterProgram::start("echo 1700000000 50; exit 7");
  ASSERT_TRUE(meter);
  EXPECT_THAT(take(*meter, 2), SizeIs(1));
  meter->stop();
  const Diagnostics notes = meter->notes();
  ASSERT_THAT(notes, SizeIs(1));
  EXPECT_EQ(notes[0].rule, "record.meter_died");
  EXPECT_THAT(notes[0].message, HasSubstr("exit status 7"));
}

TEST(MeterProgram, GarbageIsCountedAndTheRestRead) {
  auto meter = MeterProgram::start(
      "echo hello; echo 1700000000 60; echo; echo '# comment'; printf '1 2 3\\n1700000001 x\\n'; "
      "head -c 9000 /dev/zero | tr '\\0' a; echo; printf 1700000002; sleep 0.1; "
      "echo ' 61'; sleep 100");
  ASSERT_TRUE(meter);
  const auto samples = take(*meter, 3);
  ASSERT_THAT(samples, SizeIs(3)) << "one of 1970, and the one that came in two pieces";
  EXPECT_EQ(samples[2].milliwatts, 61'000);
  meter->stop();
  const Diagnostics notes = meter->notes();
  ASSERT_THAT(notes, SizeIs(1));
  EXPECT_EQ(notes[0].rule, "record.meter_garbage");
  EXPECT_GE(notes[0].count, 3u);
  EXPECT_THAT(notes[0].message, HasSubstr("\"hello\""));
}

TEST(MeterProgram, OneThatSaysNothingIsNot0W) {
  auto meter = MeterProgram::start("sleep 100");
  ASSERT_TRUE(meter);
  EXPECT_THAT(meter->read(1'000'000), IsEmpty());
  EXPECT_THAT(meter->stop(), IsEmpty());
  ASSERT_THAT(meter->notes(), SizeIs(1));
  EXPECT_EQ(meter->notes()[0].rule, "record.meter_silent");
}

TEST(MeterProgram, AChildInASessionOfItsOwnIsEndedToo) {
  for (const char* end : {"exit", "while :; do sleep 0.01; done"}) {
    auto meter = MeterProgram::start("setsid sleep 100 & sleep 0.1; echo 1700000000 $!; " +
                                     std::string(end));
    ASSERT_TRUE(meter);
    const auto samples = take(*meter, 1);
    ASSERT_THAT(samples, SizeIs(1));
    const auto sleeper = static_cast<pid_t>(samples[0].milliwatts / 1000);
    meter->stop();
    for (int i = 0; i < 200 && kill(sleeper, 0) == 0; ++i) usleep(5000);
    std::ifstream stat("/proc/" + std::to_string(sleeper) + "/stat");
    std::string pid, name, state = "Z";
    stat >> pid >> name >> state;
    EXPECT_EQ(state, "Z") << end;
  }
}

TEST(MeterProgram, OneThatDoesNotStopIsKilled) {
  auto meter = MeterProgram::start("trap '' TERM; echo 1700000000 1; while :; do sleep 0.01; done");
  ASSERT_TRUE(meter);
  EXPECT_THAT(take(*meter, 1), SizeIs(1));
  meter->stop();
  EXPECT_THAT(meter->notes(), IsEmpty());
}

}  // namespace
}  // namespace joulediff::device
