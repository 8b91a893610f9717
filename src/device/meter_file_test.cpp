#include "device/meter_file.h"

#include <filesystem>
#include <fstream>
#include <map>
#include <sys/stat.h>
#include <unistd.h>

#include <gmock/gmock.h>

namespace joulediff::device {
namespace {

using testing::HasSubstr;
using testing::SizeIs;

class MeterCsv : public testing::Test {
 protected:
  void TearDown() override { std::filesystem::remove(path_); }
  Result<MeterFile> read(const std::string& text) {
    std::ofstream(path_) << text;
    return read_meter_file(path_);
  }
  std::string path_ = std::filesystem::temp_directory_path() / ("m" + std::to_string(getpid()));
};

TEST_F(MeterCsv, ColumnsAreFoundByName) {
  const auto file = read("Channel;Volts;Power (W);Timestamp\nA;230;12.5;1700000000.5\nB;1;2;x\n");
  ASSERT_TRUE(file);
  ASSERT_THAT(file->samples, SizeIs(1));
  EXPECT_EQ(file->samples[0].realtime, 1'700'000'000'500'000'000);
  EXPECT_EQ(file->samples[0].milliwatts, 12'500);
  EXPECT_EQ(file->samples[0].channel, "A");
  EXPECT_EQ(file->garbage, 1u);
}

TEST_F(MeterCsv, WithoutAHeaderTheOrderIsTimeWattsChannel) {
  const auto file = read("1700000000,12.5\n1700000001,13,wall\n");
  ASSERT_TRUE(file);
  ASSERT_THAT(file->samples, SizeIs(2));
  EXPECT_EQ(file->samples[1].channel, "wall");
}

TEST_F(MeterCsv, LargeTimesAreMillisecondsAndLess) {
  for (const char* time : {"1700000000500", "1700000000500000", "1700000000500000000"}) {
    const auto file = read(std::string(time) + ",12\n");
    ASSERT_TRUE(file) << time;
    EXPECT_EQ(file->samples[0].realtime, 1'700'000'000'500'000'000) << time;
  }
}

TEST_F(MeterCsv, ACommaMayBeTheMarkOfDecimals) {
  const auto german = read("time;watts;channel\n1796115318,25;100,0;a\n1796115319,5;99,5;a\n");
  ASSERT_TRUE(german);
  ASSERT_THAT(german->samples, SizeIs(2));
  EXPECT_EQ(german->samples[0].realtime, 1'796'115'318'250'000'000);
  EXPECT_EQ(german->samples[0].milliwatts, 100'000);
  EXPECT_EQ(german->samples[1].milliwatts, 99'500);
  EXPECT_EQ(german->samples[0].channel, "a");
  const auto quoted = read("\"1796115318,5\",\"100,25\",\"rack, left\"\n");
  ASSERT_TRUE(quoted);
  EXPECT_EQ(quoted->samples[0].milliwatts, 100'250);
  EXPECT_EQ(quoted->samples[0].channel, "rack, left");
  // Thousands in one of two ways, or a number in two columns: nobody can tell.
  for (const char* doubtful : {"time;watts\n1796115318,5;100,0\n1796115319,5;1.100\n",
                               "time,watts\n1796115319.5,100\n1796115318,5,100,0\n",
                               "1796115319.5,100\n1796115318,5,100,0\n"}) {
    const auto file = read(doubtful);
    ASSERT_TRUE(file) << doubtful;
    EXPECT_THAT(file->samples, SizeIs(1)) << doubtful;
    EXPECT_EQ(file->garbage, 1u) << doubtful;
  }
}

TEST_F(MeterCsv, UnitsOfTheHeaderAreHonoured) {
  const std::map<std::string, std::int64_t> headers{
      {"timestamp [s],power [kW]", 100'000}, {"time,milliwatts", 0},         {"time,power_mw", 0},
      {"Time (s),Power (W)", 100},           {"time_s,power_kw", 100'000},   {"t,W", 100},
      {"unix_seconds,kilowatts", 100'000},   {"\xef\xbb\xbftime,watts", 100}};
  for (const auto& [header, milliwatts] : headers) {
    const auto file = read(header + "\n1700000000.5,0.1\n1700000001,4000\n");
    ASSERT_TRUE(file) << header << ": " << file.error().message;
    ASSERT_THAT(file->samples, SizeIs(2)) << header;
    EXPECT_EQ(file->samples[0].realtime, 1'700'000'000'500'000'000) << header;
    EXPECT_EQ(file->samples[0].milliwatts, milliwatts) << header;
  }
  EXPECT_EQ(read("time,mW\n1700000000,1500\n")->samples[0].milliwatts, 1500);
  EXPECT_EQ(read("time [ms],watts\n1500,1\n")->samples[0].realtime, 1'500'000'000);
  for (const char* header : {"time [d],watts", "time,power [hp]", "time,power [MW]",
                             "time,horsepower", "time,watt_hours", "time [s],voltage [V]"}) {
    const auto file = read(std::string(header) + "\n1700000000,1\n");
    ASSERT_FALSE(file) << header;
    EXPECT_THAT(file.error().message, HasSubstr("name its columns")) << header;
  }
}

TEST_F(MeterCsv, TheFirstLineThatIsNoneIsNamed) {
  const auto file = read("# of the rack\ntime,watts\n1700000000,1\nx,1\n1700000001,x\n");
  ASSERT_TRUE(file);
  EXPECT_EQ(file->garbage, 2u);
  EXPECT_EQ(file->first_garbage, 4u);
}

TEST_F(MeterCsv, WithoutReadingsItIsAnError) {
  EXPECT_THAT(read("a,b\nc,d\n").error().message, HasSubstr("no readings"));
  EXPECT_THAT(read("").error().message, HasSubstr("no readings"));
  EXPECT_THAT(read("time,watts\nc,d\n").error().message, HasSubstr("line 2"));
  EXPECT_THAT(read_meter_file("/no/such.csv").error().message, HasSubstr("No such file"));
}

TEST_F(MeterCsv, OnlyARegularFileIsRead) {
  ASSERT_EQ(mkfifo(path_.c_str(), 0600), 0);
  EXPECT_THAT(read_meter_file(path_).error().message, HasSubstr("not a regular file"));
  EXPECT_THAT(read_meter_file("/dev/zero").error().message, HasSubstr("not a regular file"));
  EXPECT_THAT(read_meter_file("/").error().message, HasSubstr("directory"));
}

}  // namespace
}  // namespace joulediff::device
