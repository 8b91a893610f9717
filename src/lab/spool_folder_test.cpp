#include "lab/spool_folder.h"

#include <fstream>
#include <unistd.h>

#include <gmock/gmock.h>

namespace joulediff::lab {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class AFolder : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() / ("spools" + std::to_string(getpid()));
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::filesystem::path folder_;
};

TEST_F(AFolder, IsLockedWhileItIsRecordedInto) {
  namespace fs = std::filesystem;
  const std::string output = (folder_ / "a.jd").string();
  const auto write = [](const fs::path& path) { std::ofstream(path) << "x"; };
  fs::path left;
  {
    Result<SpoolFolder> folder = SpoolFolder::make(output);
    ASSERT_TRUE(folder);
    left = folder->path();
    for (const unsigned order : {0u, 10u, 2u}) {
      ASSERT_TRUE(folder->make_block(order));
      write(left / std::to_string(order) / "7.spool");
    }
    const auto other = other_recording_of(output);
    ASSERT_TRUE(other);
    EXPECT_TRUE(other->running);
    EXPECT_EQ(SpoolFolder::make(output).error().code, ExitCode::usage);
    EXPECT_THAT(SpoolFolder::open(left).error().message, HasSubstr("still recorded"));
    folder->keep();
  }
  const auto other = other_recording_of(output);
  ASSERT_TRUE(other);
  EXPECT_EQ(other->folder, left.string());
  EXPECT_FALSE(other->running);
  EXPECT_FALSE(other_recording_of((folder_ / "other.jd").string()));
  Result<SpoolFolder> again = SpoolFolder::open(left);
  ASSERT_TRUE(again);
  std::vector<unsigned> orders;
  for (const auto& [order, path] : again->blocks()) orders.push_back(order);
  EXPECT_THAT(orders, ElementsAre(0, 2, 10));
  EXPECT_TRUE(again->remove());
  EXPECT_FALSE(fs::exists(left));
}

TEST_F(AFolder, LosesOnlyWhatRecordersWrote) {
  namespace fs = std::filesystem;
  const auto write = [this](const std::string& path) {
    fs::create_directories((folder_ / path).parent_path());
    std::ofstream(folder_ / path) << "x";
  };
  for (const char* path : {"d/0/7.spool", "d/0/7.2.spool", "d/0/launcher.spool", "d/0/replay.lock",
                           "d/0/notes", "d/junk", "d/abc/thesis", "d/99999999999/8.spool"})
    write(path);
  fs::create_symlink(folder_ / "d/junk", folder_ / "d/0/9.spool");
  Result<SpoolFolder> recording = SpoolFolder::open((folder_ / "d").string());
  ASSERT_TRUE(recording);
  EXPECT_THAT(recording->strangers(), ElementsAre("99999999999"));
  EXPECT_FALSE(recording->remove());
  for (const char* path :
       {"d/0/notes", "d/0/9.spool", "d/junk", "d/abc/thesis", "d/99999999999/8.spool"})
    EXPECT_TRUE(fs::exists(folder_ / path)) << path;
  EXPECT_FALSE(fs::exists(folder_ / "d/0/7.spool"));
  EXPECT_FALSE(fs::exists(folder_ / "d/0/launcher.spool"));

  for (const char* path : {"alone/7.spool", "alone/src/thesis", "alone/2024/notes"}) write(path);
  Result<SpoolFolder> alone = SpoolFolder::open((folder_ / "alone").string());
  ASSERT_TRUE(alone);
  EXPECT_TRUE(alone->is_spools_alone());
  EXPECT_FALSE(alone->remove());
  EXPECT_FALSE(fs::exists(folder_ / "alone/7.spool"));
  EXPECT_TRUE(fs::exists(folder_ / "alone/src/thesis"));
  EXPECT_TRUE(fs::exists(folder_ / "alone/2024/notes"));
  EXPECT_FALSE(SpoolFolder::open((folder_ / "alone").string()));
}

}  // namespace
}  // namespace joulediff::lab
