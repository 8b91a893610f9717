// Native call paths at kernel launches.

#include <algorithm>
#include <map>

#include <gmock/gmock.h>

#include "joulediff/record.h"
#include "record/fake_device.h"

namespace joulediff::record {
namespace {

using spool::Type;
using testing::SizeIs;

using Stacks = std::map<std::uint32_t, std::vector<std::uint64_t>>;
Stacks stacks(const Recorded& r) {
  Stacks found;
  for (const auto payload : r.payloads(Type::native_stack)) {
    spool::Unpacker in(payload);
    std::uint32_t id = 0, zero = 1;
    EXPECT_TRUE(in.get(id) && in.get(zero));
    EXPECT_EQ(zero, 0u);
    for (std::uint64_t pc = 0; in.get(pc);) found[id].push_back(pc);
  }
  return found;
}

[[gnu::noinline]] void here() {
  kernel(10, 5);
  asm volatile("");
}
[[gnu::noinline]] void there() {
  here();
  asm volatile("");
}

TEST(Stacks, OfLaunchesAreKeptOnceForEachPath) {
  const auto r = recorded(
      [] {
        jd_kernels(JD_ORDER);
        for (int i = 0; i < 100; ++i) here();
        there();
        jd_kernels(JD_TRACE);
        here();  // the trace pass takes none
      },
      kFake);
  EXPECT_EQ(r.status, 0) << r.err;
  const auto launches = r.all<spool::LaunchStack>(Type::launch_stack);
  ASSERT_THAT(launches, SizeIs(101));
  const Stacks found = stacks(r);
  ASSERT_THAT(found, SizeIs(2));
  for (const auto& launched : launches)
    EXPECT_EQ(launched.stack, launched.correlation == launches.back().correlation
                                  ? launches.back().stack
                                  : launches.front().stack);
  EXPECT_NE(launches.front().stack, launches.back().stack);
  EXPECT_EQ(found.at(launches.back().stack).size(), found.at(launches.front().stack).size() + 1);
}

// Every address lies in a module that was written, so that it can be named later.
TEST(Stacks, LieInModulesThatAreKnown) {
  const auto r = recorded(
      [] {
        jd_kernels(JD_ORDER);
        there();
      },
      kFake);
  EXPECT_EQ(r.status, 0) << r.err;
  struct Module {
    std::uint64_t begin, end, file_offset;
    std::string path, build_id;
  };
  std::vector<Module> modules;
  for (const auto payload : r.payloads(Type::module)) {
    spool::Unpacker in(payload);
    Module module{};
    std::string_view path, build_id;
    ASSERT_TRUE(in.get(module.begin) && in.get(module.end) && in.get(module.file_offset) &&
                in.get(path) && in.get(build_id));
    module.path = path;
    module.build_id = build_id;
    modules.push_back(module);
  }
  const Stacks found = stacks(r);
  ASSERT_THAT(found, SizeIs(1));
  const auto& frames = found.begin()->second;
  ASSERT_GT(frames.size(), 4u);
  bool in_this_program = false;
  for (const std::uint64_t pc : frames) {
    const auto module = std::find_if(modules.begin(), modules.end(),
                                     [&](const Module& m) { return m.begin <= pc && pc < m.end; });
    ASSERT_NE(module, modules.end());
    in_this_program |= module->path.ends_with("/record_test");
  }
  EXPECT_TRUE(in_this_program);
  const auto libc = std::find_if(modules.begin(), modules.end(), [](const Module& m) {
    return m.path.find("/libc.so") != std::string::npos;
  });
  ASSERT_NE(libc, modules.end());
  EXPECT_EQ(libc->build_id.size(), 40u);
  EXPECT_EQ(libc->build_id.find_first_not_of("0123456789abcdef"), std::string::npos);
}

}  // namespace
}  // namespace joulediff::record
