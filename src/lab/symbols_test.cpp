#include "lab/symbols.h"

#include <dlfcn.h>
#include <fstream>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lab/stack_tree.h"

namespace joulediff::lab {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

// The executable mappings of this process, as a recorder writes them.
std::vector<SpoolModule> own_modules() {
  std::vector<SpoolModule> modules;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    std::istringstream in(line);
    SpoolModule module;
    std::string rights, device, inode;
    char dash = 0;
    in >> std::hex >> module.begin >> dash >> module.end >> rights >> module.file_offset >>
        device >> inode >> module.path;
    if (rights.size() > 2 && rights[2] == 'x' && module.path.starts_with("/"))
      modules.push_back(module);
  }
  return modules;
}

// Where a call returns to, found without backtrace(): sanitizers put a function of theirs there.
[[gnu::noinline]] std::uint64_t returns_to() {
  return reinterpret_cast<std::uint64_t>(__builtin_return_address(0));
}

struct Here {
  std::vector<std::uint64_t> addresses;
  std::uint32_t line = 0;
};

[[gnu::noinline]] Here here() {
  Here result;
  result.addresses.push_back(returns_to());
  result.line = __LINE__ - 1;
  result.addresses.push_back(reinterpret_cast<std::uint64_t>(__builtin_return_address(0)));
  return result;
}

TEST(Symbols, NamesTheCallInItsSource) {
  const Here place = here();
  Symbols symbols(own_modules());
  const run::Frame frame = symbols.frame(place.addresses[0]);
  EXPECT_THAT(frame.file, EndsWith("symbols_test.cpp"));
  EXPECT_EQ(frame.line, place.line);
  EXPECT_THAT(frame.function, HasSubstr("here"));
  const auto path = symbols.call_path(place.addresses);
  ASSERT_EQ(path.size(), place.addresses.size());
  EXPECT_THAT(path[1].function, HasSubstr("NamesTheCallInItsSource"));
}

// A library without debugging information has its exported names.
TEST(Symbols, ALibraryWithoutDebuggingInformation) {
  Symbols symbols(own_modules());
  const auto address = reinterpret_cast<std::uint64_t>(dlsym(RTLD_DEFAULT, "hcreate"));
  const run::Frame frame = symbols.frame(address + 1);
  EXPECT_THAT(frame.function, StartsWith("hcreate"));
}

TEST(Symbols, WhatCannotBeNamedIsAnOffset) {
  std::vector<SpoolModule> modules = own_modules();
  const Here place = here();
  for (SpoolModule& module : modules) module.build_id = "00ff";  // another build since
  EXPECT_THAT(Symbols(modules).frame(place.addresses[0]).function, StartsWith("+0x"));
  for (SpoolModule& module : modules) module.path += ".gone", module.build_id.clear();
  EXPECT_THAT(Symbols(modules).frame(place.addresses[0]).function, StartsWith("+0x"));
  EXPECT_EQ(Symbols({}).frame(place.addresses[0]).file, "?");
}

TEST(Symbols, TheDriversOwnFramesAreLeftOut) {
  const std::vector<SpoolModule> modules{{0x1000, 0x2000, 0, "/x/libjoulediff-record.so", ""},
                                         {0x3000, 0x4000, 0, "/x/libcupti.so.13", ""},
                                         {0x5000, 0x6000, 0, "/x/libcudart.so.13", ""},
                                         {0x7000, 0x8000, 0, "/x/engine", ""}};
  const auto path = Symbols(modules).call_path({0x1100, 0x3100, 0x5101, 0x7101});
  ASSERT_EQ(path.size(), 2u);
  EXPECT_EQ(path[0], (run::Frame{"libcudart.so.13", 0, "+0x100"}));
  EXPECT_EQ(path[1].file, "engine");
}

TEST(StackTree, KnowsWhatTheRunHas) {
  run::Run run;
  const run::Frame a{"a", 1, "f"}, b{"b", 2, "g"}, c{"c", 3, "h"};
  const run::StackId inner = StackTree(run).find({a, b});
  StackTree tree(run);
  EXPECT_EQ(tree.find({a, b}), inner);
  EXPECT_FALSE(tree.find({}).valid());
  const run::StackId other = tree.find({c, b});
  EXPECT_EQ(run.stacks[other.index()].caller, run.stacks[inner.index()].caller);
  EXPECT_EQ(run.frames.size(), 3u);
}

}  // namespace
}  // namespace joulediff::lab
