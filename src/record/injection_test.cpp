// A program that CUDA loads the recorder into.

#include <chrono>
#include <cstdlib>
#include <thread>
#include <unistd.h>

#include <gmock/gmock.h>

#include "joulediff/record.h"
#include "record/fake_device.h"

extern "C" int InitializeInjection(void);

namespace joulediff::record {
namespace {

using spool::Type;
using testing::Each;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

std::vector<std::uint32_t> passes(const Recorded& r) {
  std::vector<std::uint32_t> found;
  for (const auto& k : r.kernels()) found.push_back(k.pass);
  return found;
}

// Waits for what another thread does; a test that waits in vain ends at its own limit.
void until(auto condition) {
  while (!condition()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

constexpr std::uint32_t kStretch = 1000;
const Environment kByCount{{"JOULEDIFF_CUPTI", JOULEDIFF_FAKE_CUPTI},
                           {"JOULEDIFF_ORDER_LAUNCHES", "1000"},
                           {"JOULEDIFF_ORDER_SECONDS", "100000"}};

TEST(Injection, RecordsAProgramThatNobodyAttends) {
  const auto r = recorded(
      [] {
        JD_REQUIRE(InitializeInjection() == 1);
        JD_REQUIRE(FAKE(fake_cupti_enabled)() == kWithWaits);
        JD_REQUIRE(FAKE(fake_cupti_subscribed)());
        kernel(10, 5);
      },
      kByCount);
  EXPECT_EQ(r.status, 0) << r.err;
  EXPECT_THAT(passes(r), ElementsAre(JD_ORDER));
  EXPECT_THAT(r.all<spool::LaunchStack>(Type::launch_stack), SizeIs(1));
}

// Switched while the program launches: each launch is of one pass, and none is lost.
TEST(Injection, GoesOverToATraceWhenEnoughWasLaunched) {
  const auto r = recorded(
      [] {
        InitializeInjection();
        for (std::uint32_t i = 1; i <= kStretch; ++i) kernel(i, 1);
        until([] { return FAKE(fake_cupti_enabled)() == kKernelsOnly; });
        until([] { return !FAKE(fake_cupti_subscribed)(); });
        for (std::uint32_t i = 1; i <= 1000; ++i) kernel(kStretch + i, 1);
      },
      kByCount);
  EXPECT_EQ(r.status, 0) << r.err;
  EXPECT_THAT(r.facts("diagnostic"), IsEmpty());
  const auto kernels = r.kernels();
  ASSERT_THAT(kernels, SizeIs(kStretch + 1000));
  for (const auto& k : kernels)
    ASSERT_EQ(k.pass, k.start_ns <= kStretch ? std::uint32_t{JD_ORDER} : std::uint32_t{JD_TRACE});
  EXPECT_THAT(r.all<spool::LaunchStack>(Type::launch_stack), SizeIs(kStretch));
  EXPECT_THAT(r.payloads(Type::clock), SizeIs(testing::Ge(3u)));  // begin, switch, end
}

TEST(Injection, GoesOverToATraceAWhileAfterTheFirstKernel) {
  const auto r = recorded(
      [] {
        InitializeInjection();
        kernel(10, 1);
        until([] { return !FAKE(fake_cupti_subscribed)(); });
        kernel(20, 1);
      },
      fake_with("JOULEDIFF_ORDER_SECONDS", "0"));
  EXPECT_EQ(r.status, 0) << r.err;
  EXPECT_THAT(passes(r), ElementsAre(JD_ORDER, JD_TRACE));
}

TEST(Injection, MakesThePassesThatAreWanted) {
  const auto with = [](const char* passes_wanted, std::uint64_t kinds) {
    const auto r = recorded(
        [kinds] {
          InitializeInjection();
          JD_REQUIRE(FAKE(fake_cupti_enabled)() == kinds);
          kernel(10, 1);
        },
        [&] {
          Environment environment = kByCount;
          environment["JOULEDIFF_PASSES"] = passes_wanted;
          return environment;
        }());
    EXPECT_EQ(r.status, 0) << passes_wanted << r.err;
    return passes(r);
  };
  EXPECT_THAT(with("values,trace", kKernelsOnly), ElementsAre(JD_TRACE));
  EXPECT_THAT(with("order", kWithWaits), ElementsAre(JD_ORDER));
  EXPECT_THAT(with("values,replay", 0), IsEmpty());
}

TEST(Injection, OfAnOrderPassAloneEndsWithIt) {
  Environment order_alone = kByCount;
  order_alone["JOULEDIFF_PASSES"] = "order";
  const auto r = recorded(
      [] {
        InitializeInjection();
        for (std::uint32_t i = 1; i <= kStretch; ++i) kernel(i, 1);
        until([] { return FAKE(fake_cupti_enabled)() == 0; });
        kernel(kStretch + 1, 1);
      },
      order_alone);
  EXPECT_EQ(r.status, 0) << r.err;
  // The last one was still to be launched when records went off.
  EXPECT_THAT(passes(r), SizeIs(testing::AnyOf(kStretch - 1, kStretch)));
  EXPECT_THAT(passes(r), Each(JD_ORDER));
}

// Kernel records are on before the program instantiates a graph, and mean nothing yet.
TEST(Injection, LeavesThePassesToAPlugIn) {
  const auto r = recorded(
      [] {
        JD_REQUIRE(jd_active() == JD_ABI);
        jd_kernels(JD_WARMUP);  // what a plug-in says first
        JD_REQUIRE(InitializeInjection() == 1);
        JD_REQUIRE(FAKE(fake_cupti_enabled)() == kKernelsOnly);
        JD_REQUIRE(!FAKE(fake_cupti_subscribed)());
        kernel(10, 5);
        jd_kernels(JD_WARMUP);
        JD_REQUIRE(FAKE(fake_cupti_enabled)() == kKernelsOnly);
        JD_REQUIRE(jd_kernels(JD_TRACE) == 1);
        kernel(20, 5);
        JD_REQUIRE(jd_kernels(JD_WARMUP) == 0);
        JD_REQUIRE(FAKE(fake_cupti_enabled)() == 0);
      },
      kFake);
  EXPECT_EQ(r.status, 0) << r.err;
  const auto kernels = r.kernels();
  ASSERT_THAT(kernels, SizeIs(1));
  EXPECT_EQ(kernels[0].start_ns, 20u);
}

TEST(Injection, GivesWayToAPlugInThatComesLate) {
  const auto r = recorded(
      [] {
        InitializeInjection();
        kernel(10, 5);
        JD_REQUIRE(jd_kernels(JD_ORDER) == 1);
        JD_REQUIRE(FAKE(fake_cupti_enabled)() == kWithWaits);
        jd_operator_begin(2, 0, "op");
        kernel(20, 5);
        jd_operator_end();
        jd_kernels(JD_TRACE);
        kernel(30, 5);
      },
      kByCount);
  EXPECT_EQ(r.status, 0) << r.err;
  EXPECT_THAT(passes(r), ElementsAre(JD_ORDER, JD_ORDER, JD_TRACE));
  EXPECT_THAT(r.all<spool::Correlation>(Type::correlation), SizeIs(1));
}

}  // namespace
}  // namespace joulediff::record
