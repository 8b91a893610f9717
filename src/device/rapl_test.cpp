#include "device/rapl.h"

#include <filesystem>
#include <fstream>
#include <unistd.h>

#include <gmock/gmock.h>

namespace joulediff::device {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr Nanoseconds kS = 1'000'000'000;

class RaplFolder : public testing::Test {
 protected:
  void TearDown() override { std::filesystem::remove_all(root_); }
  void domain(const std::string& folder, const std::string& name, std::int64_t energy,
              std::int64_t range = 65'532'610'987) {
    std::filesystem::create_directories(root_ / folder);
    std::ofstream(root_ / folder / "name") << name << "\n";
    std::ofstream(root_ / folder / "max_energy_range_uj") << range << "\n";
    energy_of(folder, energy);
  }
  void energy_of(const std::string& folder, std::int64_t energy) {
    std::ofstream(root_ / folder / "energy_uj") << energy << "\n";
  }
  // Root reads everything, so what may not be read is a folder in the file's place.
  void forbid(const std::string& folder) {
    std::filesystem::remove(root_ / folder / "energy_uj");
    std::filesystem::create_directory(root_ / folder / "energy_uj");
  }
  void allow(const std::string& folder, std::int64_t energy) {
    std::filesystem::remove(root_ / folder / "energy_uj");
    energy_of(folder, energy);
  }
  static std::vector<std::string> channels(Rapl& rapl) {
    std::vector<std::string> names;
    for (const auto& reading : rapl.read(0)) names.push_back(reading.domain.channel);
    return names;
  }
  std::filesystem::path root_ =
      std::filesystem::temp_directory_path() / ("rapl" + std::to_string(getpid()));
};

TEST_F(RaplFolder, EveryDomainIsAChannelAndWhatAPackageHoldsIsNone) {
  domain("intel-rapl:0", "package-0", 1000);
  domain("intel-rapl:0:0", "core", 500);
  domain("intel-rapl:0:1", "dram", 300);
  domain("intel-rapl:1", "package-1", 2000);
  domain("intel-rapl:1:1", "dram", 400);
  domain("intel-rapl:2", "psys", 9000);
  domain("intel-rapl-mmio:0", "package-0", 1010);  // the same register by another way
  Rapl rapl = Rapl::open(root_);
  EXPECT_THAT(channels(rapl),
              ElementsAre("package-0", "package-0 dram", "package-1", "package-1 dram", "psys"));
  EXPECT_EQ(rapl.read(kS)[1].domain.kind, Rapl::Kind::dram);
  EXPECT_EQ(rapl.read(kS)[4].domain.kind, Rapl::Kind::platform);
  EXPECT_THAT(rapl.notes(), IsEmpty());
}

TEST_F(RaplFolder, TwoDiesThatShowOneCounterAreReadOnce) {
  domain("intel-rapl:0", "package-0-die-0", 40'000'000'000);
  domain("intel-rapl:1", "package-0-die-1", 40'000'100'000);
  domain("intel-rapl:2", "package-1-die-0", 43'000'000'000);
  Rapl rapl = Rapl::open(root_);
  EXPECT_THAT(channels(rapl), ElementsAre("package-0-die-0", "package-1-die-0"));
  ASSERT_EQ(rapl.notes().size(), 1u);
  EXPECT_EQ(rapl.notes()[0].rule, "record.same_counter");
}

TEST_F(RaplFolder, CounterWrap) {
  domain("intel-rapl:0", "package-0", 65'532'000'000);
  Rapl rapl = Rapl::open(root_);
  rapl.read(0);
  energy_of("intel-rapl:0", 9'389'013);
  const auto reading = rapl.read(kS / 10);
  ASSERT_EQ(reading.size(), 1u);
  EXPECT_FALSE(reading[0].microjoules.breaks);
  EXPECT_EQ(reading[0].microjoules.value, 65'532'610'987 + 9'389'013);
}

TEST_F(RaplFolder, WrappingTwiceInAWindowIsUnknown) {
  domain("intel-rapl:0", "package-0", 1'000'000'000);
  Rapl rapl = Rapl::open(root_);
  rapl.read(0);
  energy_of("intel-rapl:0", 2'000'000'000);  // a minute later: perhaps two ranges and a bit
  EXPECT_TRUE(rapl.read(60 * kS)[0].microjoules.breaks);
  energy_of("intel-rapl:0", 2'010'000'000);
  EXPECT_FALSE(rapl.read(60 * kS + kS / 10)[0].microjoules.breaks);
}

TEST_F(RaplFolder, PermissionArrivingMidRun) {
  domain("intel-rapl:0", "package-0", 0);
  forbid("intel-rapl:0");
  Rapl rapl = Rapl::open(root_);
  EXPECT_FALSE(rapl.empty());
  EXPECT_THAT(rapl.read(0), IsEmpty());
  EXPECT_THAT(rapl.read(2 * kS), IsEmpty());
  const Diagnostics notes = rapl.notes();
  ASSERT_EQ(notes.size(), 1u) << "once, not with every read";
  EXPECT_EQ(notes[0].rule, "record.rapl_permission");
  EXPECT_THAT(notes[0].remedy, HasSubstr("chmod a+r"));
  allow("intel-rapl:0", 50'000'000'000);
  EXPECT_THAT(rapl.read(2 * kS + 1), IsEmpty()) << "tried once a second";
  const auto first = rapl.read(4 * kS);
  ASSERT_EQ(first.size(), 1u);
  EXPECT_EQ(first[0].microjoules.value, 50'000'000'000) << "where it begins, not what was drawn";
  energy_of("intel-rapl:0", 50'090'000'000);
  EXPECT_FALSE(rapl.read(5 * kS)[0].microjoules.breaks);
  EXPECT_THAT(rapl.notes(), IsEmpty());
}

TEST_F(RaplFolder, NothingWhereThereIsNoMeter) {
  Rapl rapl = Rapl::open(root_ / "missing");
  EXPECT_TRUE(rapl.empty());
  EXPECT_THAT(rapl.notes(), IsEmpty());
}

}  // namespace
}  // namespace joulediff::device
