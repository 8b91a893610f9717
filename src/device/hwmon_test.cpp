#include "device/hwmon.h"

#include <filesystem>
#include <fstream>
#include <unistd.h>

#include <gmock/gmock.h>

namespace joulediff::device {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

class HwmonFolder : public testing::Test {
 protected:
  void TearDown() override { std::filesystem::remove_all(root_); }
  void write(const std::string& file, const std::string& text) {
    std::filesystem::create_directories((root_ / file).parent_path());
    std::ofstream(root_ / file) << text << "\n";
  }
  static std::vector<std::pair<std::string, std::int64_t>> values(Hwmon& hwmon) {
    std::vector<std::pair<std::string, std::int64_t>> all;
    for (const auto& reading : hwmon.read(0))
      all.emplace_back(reading.channel, reading.value.value);
    return all;
  }
  std::filesystem::path root_ =
      std::filesystem::temp_directory_path() / ("hwmon" + std::to_string(getpid()));
};

TEST_F(HwmonFolder, RailsOfAJetson) {
  write("hwmon3/name", "ina3221");
  write("hwmon3/in1_label", "VDD_GPU");
  write("hwmon3/in1_input", "19080");
  write("hwmon3/curr1_input", "320");
  write("hwmon3/in2_label", "VDD_CPU");
  write("hwmon3/in2_input", "19000");
  write("hwmon3/curr2_input", "-8");  // nothing drawn: the shunt's offset
  write("hwmon3/in7_label", "sum of shunt voltages");
  write("hwmon3/in7_input", "40");
  write("hwmon3/curr4_input", "600");
  Hwmon hwmon = Hwmon::open(root_);
  EXPECT_THAT(values(hwmon),
              ElementsAre(Pair("ina3221 VDD_GPU", 19080 * 320), Pair("ina3221 VDD_CPU", 0)));
}

TEST_F(HwmonFolder, PowerAndEnergyOfOtherChips) {
  write("hwmon0/name", "ina226");
  write("hwmon0/power1_input", "12500000");
  write("hwmon1/name", "power_meter");
  write("hwmon1/power1_average", "231000000");
  write("hwmon2/name", "amd_energy");
  write("hwmon2/energy1_label", "Ecore000");
  write("hwmon2/energy1_input", "17");
  write("hwmon2/energy2_label", "Esocket0");
  write("hwmon2/energy2_input", "5000000");
  write("hwmon3/name", "ina226");  // a second one of the kind
  write("hwmon3/power1_input", "8000000");
  write("hwmon4/name", "k10temp");
  write("hwmon4/temp1_input", "45000");
  Hwmon hwmon = Hwmon::open(root_);
  EXPECT_THAT(values(hwmon), ElementsAre(Pair("ina226 power1", 12'500'000),
                                         Pair("power_meter power1", 231'000'000),
                                         Pair("amd_energy Esocket0", 5'000'000),
                                         Pair("ina226 power1 (hwmon3)", 8'000'000)));
  EXPECT_EQ(hwmon.read(0)[2].kind, Hwmon::Kind::energy);
}

TEST_F(HwmonFolder, ASensorThatDoesNotAnswerAndASecondDieAreUnknown) {
  write("hwmon0/name", "ina219");
  write("hwmon0/power1_input", "");
  write("hwmon1/name", "amdgpu");
  write("hwmon1/power1_average", "0");
  write("hwmon2/name", "amdgpu");
  write("hwmon2/power1_average", "250000000");
  Hwmon hwmon = Hwmon::open(root_);
  EXPECT_THAT(values(hwmon), ElementsAre(Pair("amdgpu power1 (hwmon2)", 250'000'000)));
  EXPECT_TRUE(Hwmon::open(root_ / "missing").empty());
}

}  // namespace
}  // namespace joulediff::device
