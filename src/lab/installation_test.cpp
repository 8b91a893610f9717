#include "lab/installation.h"

#include <cstdlib>
#include <fstream>
#include <string>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace joulediff::lab {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class Installed : public testing::Test {
 protected:
  Installed() { fs::create_directories(prefix_); }
  ~Installed() override { fs::remove_all(prefix_); }

  void put(const std::string& file) const {
    fs::create_directories((prefix_ / file).parent_path());
    std::ofstream(prefix_ / file) << "here";
  }
  void put_package(const std::string& folder, const std::string& version) const {
    put(folder + "joulediff/lib/libjoulediff-record.so");
    put(folder + "joulediff/inject/sitecustomize.py");
    put(folder + "joulediff-" + version + ".dist-info/METADATA");
  }
  Result<Installation> find() const { return installation_of(prefix_ / "bin/joulediff"); }

  const fs::path prefix_ = fs::temp_directory_path() / ("installed" + std::to_string(getpid()));
};

TEST_F(Installed, BesideTheProgram) {
  put("lib/libjoulediff-record.so");
  put("python/joulediff/inject/sitecustomize.py");
  const auto found = find();
  ASSERT_TRUE(found);
  EXPECT_EQ(found->recorder, prefix_ / "lib/libjoulediff-record.so");
  EXPECT_EQ(found->inject, prefix_ / "python/joulediff/inject");
}

TEST_F(Installed, WherePipPutsThePackage) {
  for (const std::string folder :
       {"", "lib/python3.11/site-packages/", "lib64/python3.9/site-packages/",
        "lib/python3.13/dist-packages/"}) {
    put_package(folder, JOULEDIFF_VERSION);
    const auto found = find();
    ASSERT_TRUE(found) << folder;
    EXPECT_EQ(found->recorder, prefix_ / (folder + "joulediff/lib/libjoulediff-record.so"));
    EXPECT_EQ(found->inject, prefix_ / (folder + "joulediff/inject"));
    fs::remove_all(prefix_);
  }
}

TEST_F(Installed, NotThePackageOfAnotherVersion) {
  put_package("lib/python3.10/site-packages/", "0.0.9");
  put_package("lib/python3.11/site-packages/", JOULEDIFF_VERSION);
  put_package("lib/python3.12/site-packages/", "99.0");
  const auto found = find();
  ASSERT_TRUE(found);
  EXPECT_EQ(found->inject, prefix_ / "lib/python3.11/site-packages/joulediff/inject");
}

TEST_F(Installed, WhatIsMissingIsNamed) {
  put_package("lib/python3.11/site-packages/", JOULEDIFF_VERSION);
  fs::remove_all(prefix_ / "lib/python3.11/site-packages/joulediff/inject");
  const auto found = find();
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().code, ExitCode::environment);
  EXPECT_THAT(found.error().message, HasSubstr("python3.11/site-packages/joulediff/inject"));
  EXPECT_THAT(found.error().message, HasSubstr("JOULEDIFF_HOME"));
}

TEST_F(Installed, InThisBuildTree) {
  EXPECT_TRUE(find_installation());
}

TEST_F(Installed, HomeComesFirst) {
  setenv("JOULEDIFF_HOME", prefix_.c_str(), 1);
  const auto empty = find_installation();
  put("lib/libjoulediff-record.so");
  put("python/joulediff/inject/sitecustomize.py");
  const auto whole = find_installation();
  unsetenv("JOULEDIFF_HOME");
  EXPECT_FALSE(empty);
  ASSERT_TRUE(whole);
  EXPECT_EQ(whole->recorder, prefix_ / "lib/libjoulediff-record.so");
}

}  // namespace
}  // namespace joulediff::lab
