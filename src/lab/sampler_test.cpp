// The sampler against faults of its meters. No test waits for a time: each waits for what it needs.
#include "lab/sampler.h"

#include <dlfcn.h>
#include <filesystem>
#include <fstream>
#include <map>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gmock/gmock.h>

#include "device/external.h"
#include "lab/clock.h"

namespace joulediff::lab {
namespace {

using run::Source;
using testing::HasSubstr;
using testing::IsEmpty;

const std::string kFirst = "GPU-fa4e0000-0000-0000-0000-000000000000";
const std::string kSecondBoard = "GPU-fa4e0001-0000-0000-0000-000000000000";

class FaultyMeters : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    const auto bin = std::filesystem::read_symlink("/proc/self/exe").parent_path();
    const std::string path = bin / "../lib/fakes/libnvidia-ml.so.1";
    setenv("JOULEDIFF_NVML", path.c_str(), 1);
    setenv("JOULEDIFF_ROCM_SMI", (bin / "../lib/fakes/librocm_smi64.so").c_str(), 1);
    library_ = dlopen(path.c_str(), RTLD_NOW);
    ASSERT_TRUE(library_) << dlerror();
  }
  void SetUp() override { std::filesystem::create_directories(root_); }
  void TearDown() override {
    reinterpret_cast<void (*)()>(dlsym(library_, "fake_nvml_reset"))();
    std::filesystem::remove_all(root_);
  }
  static void fake(const std::string& name, long long value) {
    reinterpret_cast<void (*)(const char*, long long)>(dlsym(library_, "fake_nvml_set"))(
        ("FAKE_NVML_" + name).c_str(), value);
  }
  Meters boards(unsigned count = 1) {
    fake("BOARDS", count);
    Meters meters = nothing();
    meters.boards = device::Boards::open(nullptr).boards;
    EXPECT_EQ(meters.boards.size(), count);
    return meters;
  }
  Meters nothing() const {
    Meters meters;
    meters.powercap = root_ / "powercap";
    meters.hwmon = root_ / "hwmon";
    return meters;
  }
  void write(const std::string& file, const std::string& text) const {
    std::filesystem::create_directories((root_ / file).parent_path());
    std::ofstream(root_ / file) << text << "\n";
  }

  static bool wait_for(const std::function<bool()>& what) {
    for (int i = 0; i < 6000; ++i, usleep(10'000))
      if (what()) return true;
    return false;
  }
  static bool has(const Sampler& sampler, Source source, const std::string& channel,
                  std::size_t readings) {
    return wait_for(
        [&] { return sampler.samples().since(source, channel, 0).time.size() >= readings; });
  }
  static bool says(const Diagnostics& diagnostics, const std::string& rule) {
    return std::ranges::find(diagnostics, rule, &Diagnostic::rule) != diagnostics.end();
  }
  static std::vector<run::Series> of(const Sampler::Gathered& gathered, Source source) {
    std::vector<run::Series> all;
    for (const run::Series& series : gathered.series)
      if (series.source == source) all.push_back(series);
    return all;
  }

  static inline void* library_ = nullptr;
  std::filesystem::path root_ =
      std::filesystem::temp_directory_path() / ("sampler" + std::to_string(getpid()));
};

TEST_F(FaultyMeters, EveryBoardIsAChannel) {
  Sampler sampler(boards(3));
  EXPECT_TRUE(has(sampler, Source::nvml_energy, kFirst, 3));
  EXPECT_TRUE(has(sampler, Source::nvml_energy, kSecondBoard, 3));
  EXPECT_TRUE(has(sampler, Source::nvml_power_instant, kSecondBoard, 3));
  const auto gathered = sampler.stop();
  EXPECT_EQ(of(gathered, Source::nvml_energy).size(), 3u);
  EXPECT_THAT(gathered.diagnostics, IsEmpty());
}

// The calls that a real H200 answered, played to a sampler of a process of its own.
TEST(RealCalls, AreRecordedAsTheyWere) {
  std::map<std::string, std::vector<std::int64_t>> calls;
  std::ifstream file(JOULEDIFF_SOURCE_DIR "/tests/fakes/nvml/h200_calls.txt");
  for (std::string line; std::getline(file, line);) {
    std::istringstream in(line);
    std::int64_t ns = 0, result = 0, value = 0;
    std::string call;
    if (!(in >> ns >> call >> result)) continue;
    while (in >> value) continue;  // the last
    calls[call].push_back(value);
  }
  const auto bin = std::filesystem::read_symlink("/proc/self/exe").parent_path();
  setenv("JOULEDIFF_NVML", (bin / "../lib/fakes/libnvidia-ml.so.1").c_str(), 1);
  setenv("FAKE_NVML_PLAY", JOULEDIFF_SOURCE_DIR "/tests/fakes/nvml/h200_calls.txt", 1);
  Meters meters;
  meters.powercap = meters.hwmon = "/nowhere";
  meters.boards = device::Boards::open(nullptr).boards;
  Sampler sampler(meters);
  usleep(4'500'000);
  const auto gathered = sampler.stop();
  const auto of = [&](Source source) {
    std::vector<std::int64_t> values;
    for (const run::Series& series : gathered.series)
      if (series.source == source)
        values.insert(values.end(), series.value.begin(), series.value.end());
    return values;
  };
  EXPECT_EQ(of(Source::nvml_power_samples), calls["sample"]) << "each once, in order";
  const auto energy = of(Source::nvml_energy);
  EXPECT_THAT(energy, testing::SizeIs(testing::Ge(30u)));
  EXPECT_TRUE(std::ranges::includes(calls["energy"], energy)) << "as it was, and none twice";
  EXPECT_EQ(energy.back(), calls["energy"].back());
  EXPECT_THAT(of(Source::nvml_power_memory), testing::Each(testing::Gt(50'000)));
  EXPECT_THAT(of(Source::nvml_power_module), IsEmpty()) << "refused, hence unknown and not 0";
  EXPECT_THAT(of(Source::nvml_throttle), testing::Each(4)) << "the power cap";
  EXPECT_THAT(of(Source::nvml_power_limit), testing::Each(700'000));
  unsetenv("FAKE_NVML_PLAY");
}

TEST_F(FaultyMeters, HungNvml) {
  const Meters meters = boards(2);
  fake("HANG", 2);
  Sampler sampler(meters);
  EXPECT_TRUE(has(sampler, Source::nvml_energy, kFirst, 3)) << "the other board goes on";
  const auto gathered = sampler.stop();
  EXPECT_TRUE(says(gathered.diagnostics, "record.meter_hung"));
  EXPECT_THAT(gathered.diagnostics,
              testing::Contains(testing::Field(&Diagnostic::message, HasSubstr(kSecondBoard))));
  for (const run::Series& series : gathered.series) EXPECT_NE(series.channel, kSecondBoard);
}

TEST_F(FaultyMeters, LostDevice) {
  Sampler sampler(boards(2));
  EXPECT_TRUE(has(sampler, Source::nvml_energy, kFirst, 3));
  fake("LOST", 1);
  const auto lost = [&] { return says(sampler.samples().diagnostics(), "record.board_lost"); };
  EXPECT_TRUE(wait_for(lost));
  const Nanoseconds then = now();
  EXPECT_TRUE(wait_for([&] {
    return sampler.samples().since(Source::nvml_energy, kSecondBoard, then).time.size() >= 2;
  }));
  const auto gathered = sampler.stop();
  for (const run::Series& series : of(gathered, Source::nvml_power_instant))
    EXPECT_TRUE(std::ranges::all_of(series.value, [](auto mw) { return mw > 0; }))
        << "unknown, not 0 W";
}

TEST_F(FaultyMeters, CounterReset) {
  fake("OFFSET", 1'000'000'000'000);
  Sampler sampler(boards());
  EXPECT_TRUE(has(sampler, Source::nvml_energy, kFirst, 3));
  fake("OFFSET", 0);
  EXPECT_TRUE(wait_for([&] {
    const auto series = sampler.samples().since(Source::nvml_energy, kFirst, 0);
    return series.value.front() < 1'000'000'000'000 && series.value.size() >= 2;
  }));
  const auto gathered = sampler.stop();
  EXPECT_TRUE(says(gathered.diagnostics, "record.counter_broke"));
  const auto stretches = of(gathered, Source::nvml_energy);
  ASSERT_EQ(stretches.size(), 2u);
  for (const run::Series& stretch : stretches)
    EXPECT_TRUE(std::ranges::is_sorted(stretch.value)) << "a run file holds nothing that falls";
}

TEST_F(FaultyMeters, CounterWrap) {
  constexpr long long kRange = 1LL << 32;
  // 100 W: two seconds from now it reaches 2^32 mJ.
  fake("BITS", 32);
  fake("OFFSET", kRange - 1 - (now() / 10'000) % kRange - 200'000);
  Sampler sampler(boards());
  EXPECT_TRUE(wait_for([&] {
    const auto series = sampler.samples().since(Source::nvml_energy, kFirst, 0);
    return series.value.size() >= 3 && series.value.back() > kRange + 10'000;
  }));
  const auto gathered = sampler.stop();
  EXPECT_EQ(of(gathered, Source::nvml_energy).size(), 1u);
  EXPECT_FALSE(says(gathered.diagnostics, "record.counter_broke"));
}

TEST_F(FaultyMeters, FirstSampleAbsurd) {
  fake("ABSURD", 1);
  Sampler sampler(boards());
  EXPECT_TRUE(
      wait_for([&] { return says(sampler.samples().diagnostics(), "record.absurd_sample"); }));
  fake("ABSURD", 0);
  EXPECT_TRUE(has(sampler, Source::nvml_power_instant, kFirst, 1));
  for (const run::Series& series : of(sampler.stop(), Source::nvml_power_instant))
    EXPECT_LE(*std::ranges::max_element(series.value), 300'000);
}

TEST_F(FaultyMeters, ZeroWattsOfASecondDie) {
  fake("ZERO", 2);
  Sampler sampler(boards(2));
  EXPECT_TRUE(has(sampler, Source::nvml_energy, kFirst, 3));
  EXPECT_TRUE(has(sampler, Source::nvml_temperature, kSecondBoard, 3));
  for (const run::Series& series : sampler.stop().series) {
    if (series.channel != kSecondBoard) continue;
    EXPECT_NE(series.source, Source::nvml_energy);
    EXPECT_NE(series.source, Source::nvml_power_instant);
    EXPECT_NE(series.source, Source::nvml_power_average);
    EXPECT_NE(series.source, Source::nvml_power_samples);
  }
}

TEST_F(FaultyMeters, ABoardWithoutACounterIsSaidNotZero) {
  fake("OLD", 1);
  Sampler sampler(boards());
  EXPECT_TRUE(has(sampler, Source::nvml_power_average, kFirst, 2));
  const auto gathered = sampler.stop();
  EXPECT_TRUE(of(gathered, Source::nvml_energy).empty());
  EXPECT_TRUE(says(gathered.diagnostics, "record.no_counter"));
}

TEST_F(FaultyMeters, ModuleScope) {
  fake("MODULE", 1);
  Sampler sampler(boards());
  EXPECT_TRUE(has(sampler, Source::nvml_power_module, kFirst, 2));
  EXPECT_TRUE(says(sampler.stop().diagnostics, "record.module_energy"));
}

TEST_F(FaultyMeters, SharedBoard) {
  const pid_t stranger = fork();
  if (stranger == 0) {
    pause();
    _exit(0);
  }
  usleep(30'000);  // the kernel counts starts in ticks of 10 ms, and what began before is no orphan
  const pid_t ours = fork();
  if (ours == 0) {
    pause();
    _exit(0);
  }
  for (const pid_t user : {ours, stranger}) {
    Sampler sampler(boards());
    sampler.watch(ours);
    fake("PROCESS", user);
    EXPECT_TRUE(has(sampler, Source::nvml_power_samples, kFirst, 1)) << "a second has passed";
    sampler.unwatch();
    const auto gathered = sampler.stop();
    EXPECT_EQ(says(gathered.diagnostics, "record.shared_board"), user == stranger);
    if (user == stranger) {
      EXPECT_THAT(gathered.diagnostics.back().message,
                  HasSubstr("(process " + std::to_string(stranger) + ", 3.0 GiB)"));
    }
  }
  for (const pid_t pid : {ours, stranger}) {
    kill(pid, SIGKILL);
    waitpid(pid, nullptr, 0);
  }
}

TEST_F(FaultyMeters, PermissionArrivingMidRun) {
  write("powercap/intel-rapl:0/name", "package-0");
  write("powercap/intel-rapl:0/max_energy_range_uj", "262143328850");
  const std::string file = "powercap/intel-rapl:0/energy_uj";
  std::filesystem::create_directory(root_ / file);  // what even root cannot read
  Sampler sampler(nothing());
  EXPECT_TRUE(has(sampler, Source::host_load, "", 3));
  std::filesystem::remove(root_ / file);
  write(file, "200000000000");
  EXPECT_TRUE(has(sampler, Source::rapl_package, "package-0", 1));
  write(file, "200000500000");
  EXPECT_TRUE(has(sampler, Source::rapl_package, "package-0", 3));
  const auto packages = of(sampler.stop(), Source::rapl_package);
  ASSERT_EQ(packages.size(), 1u);
  EXPECT_EQ(packages[0].value.front(), 200'000'000'000);
  EXPECT_LE(packages[0].value.back(), 200'000'500'000);
}

TEST_F(FaultyMeters, RailsAreChannels) {
  write("hwmon/hwmon0/name", "ina3221");
  write("hwmon/hwmon0/in1_label", "VDD_GPU");
  write("hwmon/hwmon0/in1_input", "5000");
  write("hwmon/hwmon0/curr1_input", "1500");
  Sampler sampler(nothing());
  EXPECT_TRUE(has(sampler, Source::hwmon_power, "ina3221 VDD_GPU", 2));
  EXPECT_EQ(of(sampler.stop(), Source::hwmon_power).at(0).value.at(0), 7'500'000);
}

TEST_F(FaultyMeters, AmdCounterFrozenAndImpossible) {
  for (const std::string fault : {"", "FROZEN", "FACTOR"}) {
    if (!fault.empty()) setenv(("FAKE_ROCM_" + fault).c_str(), "20", 1);
    Meters meters = nothing();
    meters.amd_boards = device::AmdBoards::open(nullptr, nullptr).boards;
    ASSERT_EQ(meters.amd_boards.size(), 1u);
    Sampler sampler(meters);
    EXPECT_TRUE(has(sampler, Source::amd_power, "GPU-fa4e000000000000", 35)) << "a stretch";
    if (fault.empty()) {
      EXPECT_TRUE(has(sampler, Source::amd_energy, "GPU-fa4e000000000000", 10));
    }
    const auto gathered = sampler.stop();
    if (!fault.empty()) unsetenv(("FAKE_ROCM_" + fault).c_str());
    EXPECT_EQ(of(gathered, Source::amd_energy).empty(), !fault.empty()) << fault;
    EXPECT_EQ(says(gathered.diagnostics, "record.counter_doubted"), !fault.empty()) << fault;
  }
}

TEST_F(FaultyMeters, MeterCommandThatDies) {
  Meters meters = nothing();
  meters.outside = {"for i in 1 2 3; do echo $(date +%s.%N) 5$i wall; done; exit 3"};
  Sampler sampler(meters);
  EXPECT_TRUE(has(sampler, Source::external_power, "wall", 2));
  const auto gathered = sampler.stop();
  EXPECT_TRUE(says(gathered.diagnostics, "record.meter_died"));
  const auto wall = of(gathered, Source::external_power);
  ASSERT_EQ(wall.size(), 1u);
  EXPECT_GE(wall[0].value.front(), 51'000);
}

TEST_F(FaultyMeters, MeterFileIsReadAfterTheRun) {
  Meters meters = nothing();
  const std::string path = root_ / "wall.csv";
  meters.outside = {path};
  Sampler sampler(meters);
  const double today = 1e-9 * static_cast<double>(read_clock(CLOCK_REALTIME));
  std::ofstream(path) << std::fixed << "time,watts\n" << today << ",90\n" << today - 9999 << ",1\n";
  const auto wall = of(sampler.stop(), Source::external_power);
  ASSERT_EQ(wall.size(), 1u);
  EXPECT_THAT(wall[0].value, testing::ElementsAre(90'000));
}

}  // namespace
}  // namespace joulediff::lab
