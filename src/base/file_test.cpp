#include "base/file.h"

#include <csignal>
#include <filesystem>
#include <fstream>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace joulediff {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class FileTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "joulediff-file-XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { fs::remove_all(folder_); }
  std::string at(const std::string& name) const { return (folder_ / name).string(); }
  std::size_t entries() const {
    return static_cast<std::size_t>(
        std::distance(fs::directory_iterator(folder_), fs::directory_iterator{}));
  }
  fs::path folder_;
};

TEST_F(FileTest, WritesAndReadsBack) {
  const std::string bytes("a\0b\xff", 4);
  ASSERT_TRUE(write_file_atomically(at("x"), bytes));
  EXPECT_EQ(read_file(at("x"), 4).value(), bytes);
  ASSERT_TRUE(write_file_atomically(at("x"), ""));
  EXPECT_EQ(read_file(at("x"), 4).value(), "");
  EXPECT_EQ(entries(), 1u);
}

TEST_F(FileTest, ModeIsThatOfAnOrdinaryFile) {
  const mode_t mask = ::umask(022);
  ASSERT_TRUE(write_file_atomically(at("x"), "1"));
  ::umask(mask);
  struct stat info{};
  ASSERT_EQ(::stat(at("x").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0644u);
}

TEST_F(FileTest, ReadingSaysWhatIsWrong) {
  EXPECT_EQ(read_file(at("none"), 10).error().message,
            "cannot read " + at("none") + ": No such file or directory");
  EXPECT_THAT(read_file(folder_.string(), 10).error().message, HasSubstr("it is a directory"));
  EXPECT_THAT(read_file("/dev/null", 10).error().message, HasSubstr("not a regular file"));
  ASSERT_TRUE(write_file_atomically(at("x"), "12345"));
  EXPECT_THAT(read_file(at("x"), 4).error().message, HasSubstr("larger than the limit of 4"));
  EXPECT_EQ(read_file(at("x"), 4).error().code, ExitCode::bad_input);
  // Files of /proc state no size.
  EXPECT_FALSE(read_file("/proc/self/status", 1 << 20).value().empty());
}

TEST_F(FileTest, WritingSaysWhatIsWrong) {
  const auto missing = write_file_atomically(at("no/such/x"), "1");
  EXPECT_THAT(missing.error().message, HasSubstr("make the folder first"));
  EXPECT_EQ(missing.error().code, ExitCode::environment);
  EXPECT_THAT(write_file_atomically(folder_.string(), "1").error().message,
              HasSubstr("Is a directory"));
  EXPECT_THAT(write_file_atomically("/dev/null", "1").error().message,
              HasSubstr("not a regular file"));
  EXPECT_EQ(write_file_atomically("/proc/joulediff-x", "1").error().code, ExitCode::environment);
}

TEST_F(FileTest, LinksAreFollowedNotReplaced) {
  ASSERT_TRUE(write_file_atomically(at("target"), "old"));
  fs::create_symlink(at("target"), at("link"));
  ASSERT_TRUE(write_file_atomically(at("link"), "new"));
  EXPECT_TRUE(fs::is_symlink(at("link")));
  EXPECT_EQ(read_file(at("target"), 10).value(), "new");
}

TEST_F(FileTest, AFullDiskLosesNothingAndLeavesNothing) {
  ASSERT_TRUE(write_file_atomically(at("x"), "old"));
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  rlimit small = before;
  small.rlim_cur = 1000;
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  const Status status = write_file_atomically(at("x"), std::string(5000, 'n'));
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  std::signal(SIGXFSZ, handler);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ExitCode::environment);
  EXPECT_THAT(status.error().message, HasSubstr("File too large"));
  EXPECT_EQ(read_file(at("x"), 10).value(), "old");
  EXPECT_EQ(entries(), 1u);
}

TEST_F(FileTest, AWriteProtectedFileIsNotReplaced) {
  if (::geteuid() == 0) GTEST_SKIP() << "root may write everywhere";
  ASSERT_TRUE(write_file_atomically(at("x"), "old"));
  fs::permissions(at("x"), fs::perms::owner_read);
  EXPECT_THAT(write_file_atomically(at("x"), "new").error().message,
              HasSubstr("choose a place that you may write to"));
  EXPECT_EQ(read_file(at("x"), 10).value(), "old");
}

}  // namespace
}  // namespace joulediff
