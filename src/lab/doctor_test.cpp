#include "lab/doctor.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace joulediff::lab {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class Doctor : public testing::Test {
 protected:
  Doctor() {
    const auto bin = fs::read_symlink("/proc/self/exe").parent_path();
    setenv("JOULEDIFF_NVML", (bin / "../lib/fakes/libnvidia-ml.so.1").c_str(), 1);
    setenv("JOULEDIFF_ROCM_SMI", (bin / "../lib/fakes/librocm_smi64.so").c_str(), 1);
    setenv("ROCR_VISIBLE_DEVICES", "-1", 1);
    fs::create_directories(root_ / "powercap");
    fs::create_directories(root_ / "hwmon");
    write("proc/loadavg", "0.10 0.10 0.10 1/100 1");
  }
  ~Doctor() override {
    fs::remove_all(root_);
    for (const char* name :
         {"JOULEDIFF_NVML", "ROCR_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES", "JOULEDIFF_CUPTI"})
      unsetenv(name);
  }
  void write(const std::string& file, const std::string& text) {
    fs::create_directories((root_ / file).parent_path());
    std::ofstream(root_ / file) << text << "\n";
  }
  Check check(const std::string& what) {
    for (const Check& one : examine({root_ / "powercap", root_ / "hwmon", root_ / "proc", driver_}))
      if (one.what == what) return one;
    ADD_FAILURE() << "no check " << what;
    return {};
  }

  std::string driver_ = "/dev/null";
  const fs::path root_ = fs::temp_directory_path() / ("doctor" + std::to_string(getpid()));
};

TEST_F(Doctor, ABoardIsSaidByItsSensors) {
  EXPECT_EQ(check("board energy").health, Health::good);
  EXPECT_THAT(check("board energy").says, HasSubstr("energy counter"));
}

TEST_F(Doctor, AMachineWithoutMetersHasAModel) {
  setenv("CUDA_VISIBLE_DEVICES", "-1", 1);
  const Check board = check("board energy"), host = check("host energy");
  EXPECT_EQ(board.health, Health::missing);
  EXPECT_FALSE(board.remedy.empty());
  EXPECT_EQ(host.health, Health::partly);
  EXPECT_THAT(host.says, HasSubstr("modelled"));
  EXPECT_THAT(host.remedy, HasSubstr("--meter"));
}

TEST_F(Doctor, RaplIsSaidByItsDomains) {
  write("powercap/intel-rapl:0/name", "package-0");
  write("powercap/intel-rapl:0/max_energy_range_uj", "262143328850");
  write("powercap/intel-rapl:0/energy_uj", "5");
  EXPECT_EQ(check("host energy").health, Health::good);
  EXPECT_THAT(check("host energy").says, HasSubstr("package-0"));
}

TEST_F(Doctor, WhatMayNotBeReadHasTheCommandThatAllowsIt) {
  write("powercap/intel-rapl:0/name", "package-0");
  write("powercap/intel-rapl:0/max_energy_range_uj", "262143328850");
  write("powercap/intel-rapl:0/energy_uj", "none of yours");
  const Check host = check("host energy");
  EXPECT_EQ(host.health, Health::partly);
  EXPECT_THAT(host.says, HasSubstr("package-0"));
  EXPECT_THAT(host.says, HasSubstr("modelled"));
  EXPECT_EQ(host.remedy, "sudo chmod a+r /sys/class/powercap/*/energy_uj");
}

// What is missing, why, and the command, each in its place.
TEST_F(Doctor, ADriverThatIsNotLoadedHasItsCommand) {
  setenv("FAKE_NVML_INIT", "9", 1);
  const Check board = check("board energy");
  unsetenv("FAKE_NVML_INIT");
  EXPECT_EQ(board.health, Health::missing);
  EXPECT_EQ(board.says, "the NVIDIA driver is not loaded: no board energy");
  EXPECT_EQ(board.remedy, "sudo modprobe nvidia");
}

TEST_F(Doctor, RailsAreSaid) {
  write("hwmon/hwmon0/name", "ina3221");
  write("hwmon/hwmon0/in1_label", "VDD_GPU");
  write("hwmon/hwmon0/in1_input", "5000");
  write("hwmon/hwmon0/curr1_input", "1500");
  EXPECT_THAT(check("rails").says, HasSubstr("ina3221 VDD_GPU"));
}

TEST_F(Doctor, ALibcuptiThatIsNoneIsSaid) {
  setenv("JOULEDIFF_CUPTI", "/nowhere/libcupti.so", 1);
  EXPECT_EQ(check("kernels").health, Health::missing);
  EXPECT_THAT(check("kernels").remedy, HasSubstr("JOULEDIFF_CUPTI"));
}

// A libcupti that can be loaded records nothing where there is no device.
TEST_F(Doctor, WithoutAGpuThereAreNoKernels) {
  driver_ = "/nowhere";
  EXPECT_EQ(check("kernels").health, Health::partly);
  EXPECT_EQ(check("kernels").says, "no NVIDIA GPU here, so no kernels; operators are recorded");
}

TEST_F(Doctor, PtraceThatIsForbiddenHasACommand) {
  write("proc/sys/kernel/yama/ptrace_scope", "3");
  EXPECT_EQ(check("stepping").health, Health::missing);
  EXPECT_THAT(check("stepping").remedy, HasSubstr("sysctl"));
  write("proc/sys/kernel/yama/ptrace_scope", "1");
  EXPECT_EQ(check("stepping").health, Health::good);
}

TEST_F(Doctor, ABusyHostIsSaid) {
  write("proc/loadavg", "999.00 999.00 999.00 1/100 1");
  EXPECT_EQ(check("a quiet host").health, Health::partly);
}

TEST_F(Doctor, ALoadThatCannotBeReadIsUnknown) {
  fs::remove(root_ / "proc/loadavg");
  EXPECT_EQ(check("a quiet host").health, Health::partly);
  EXPECT_THAT(check("a quiet host").says, HasSubstr("unknown"));
  write("proc/loadavg", "");
  EXPECT_THAT(check("a quiet host").says, HasSubstr("unknown"));
  write("proc/loadavg", "0.00 0.00 0.00 1/100 1");
  EXPECT_EQ(check("a quiet host").health, Health::good);
}

}  // namespace
}  // namespace joulediff::lab
