// The recorder with a libcupti in it that has no device: tests/fakes/cupti.

#include <atomic>
#include <cstdlib>
#include <dlfcn.h>
#include <map>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

#include <gmock/gmock.h>

#include "fake_cupti.h"
#include "joulediff/record.h"
#include "record/clock.h"
#include "record/cupti_abi.h"
#include "record/recorded.h"

extern "C" int InitializeInjection(void);

namespace joulediff::record {
namespace {

using spool::Type;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

const Environment kFake{{"JOULEDIFF_CUPTI", JOULEDIFF_FAKE_CUPTI}};
Environment fake_with(const std::string& key, const std::string& value) {
  Environment environment = kFake;
  environment[key] = value;
  return environment;
}

template <class Function>
Function* control(const char* name) {
  static void* const library = dlopen(JOULEDIFF_FAKE_CUPTI, RTLD_NOW);
  return reinterpret_cast<Function*>(dlsym(library, name));
}
std::uint32_t call(const FakeLaunch* launch) {
  return control<decltype(fake_cupti_call)>("fake_cupti_call")(launch);
}
std::uint64_t enabled() {
  return control<decltype(fake_cupti_enabled)>("fake_cupti_enabled")();
}
constexpr std::uint64_t bits(auto... kinds) {
  return ((std::uint64_t{1} << kinds) | ...);
}
constexpr std::uint64_t kKernelsOnly =
    bits(cupti::kConcurrentKernel, cupti::kMemcpy, cupti::kMemset);

// A kernel that runs from `start` for `ns`.
std::uint32_t kernel(std::uint64_t start, std::uint64_t ns, const char* name = "_Z3addPfi") {
  const FakeLaunch launch{cupti::kConcurrentKernel, name, start, start + ns, 7, 128, 256, 0, 0};
  return call(&launch);
}

std::map<std::uint32_t, spool::Correlation> correlations(const Recorded& r) {
  std::map<std::uint32_t, spool::Correlation> found;
  for (const auto& c : r.all<spool::Correlation>(Type::correlation)) found[c.correlation] = c;
  return found;
}

TEST(Kernels, OfTheOrderPassCarryTheirOperators) {
  const auto r = recorded(
      [] {
        JD_REQUIRE(jd_kernels(JD_ORDER) == 1);
        JD_REQUIRE(enabled() == (kKernelsOnly | bits(cupti::kExternalCorrelation, cupti::kRuntime,
                                                     cupti::kDriver)));
        for (std::uint32_t step = 2; step < 4; ++step) {
          kernel(50, 1);  // outside of every operator
          jd_operator_begin(step, 0, "outer");
          kernel(100, 1000);
          jd_operator_begin(step, 1, "inner");
          call(nullptr);  // an API call that launches nothing
          kernel(2000, 300);
          kernel(3000, 500 * step);
          jd_operator_end();
          kernel(9000, 40);
          jd_operator_end();
          jd_operator_begin(step, 2, "without kernels");
          jd_operator_end();
        }
        JD_REQUIRE(jd_kernels(JD_TRACE) == 1);
        JD_REQUIRE(enabled() == kKernelsOnly);
        const auto near = [](double x, double y) { return x > y - 1e-12 && x < y + 1e-12; };
        JD_REQUIRE(near(jd_operator_seconds(0), 1040e-9));
        JD_REQUIRE(near(jd_operator_seconds(1), 1550e-9));
        JD_REQUIRE(jd_operator_seconds(2) == 0);
        JD_REQUIRE(jd_operator_seconds(3) < 0);
      },
      kFake);
  EXPECT_EQ(r.status, 0) << r.err;
  EXPECT_EQ(r.out + r.err, "");
  EXPECT_THAT(r.facts("diagnostic"), IsEmpty());
  const auto kernels = r.all<spool::Kernel>(Type::kernel);
  ASSERT_THAT(kernels, SizeIs(10));
  const auto charged = correlations(r);
  EXPECT_THAT(charged, SizeIs(8));
  for (const auto& k : kernels) {
    EXPECT_EQ(k.pass, std::uint32_t{JD_ORDER});
    EXPECT_EQ(k.stream, 7u);
    EXPECT_THAT(k.grid, ElementsAre(128u, 1u, 1u));
    EXPECT_THAT(k.block, ElementsAre(256u, 1u, 1u));
    const auto owner = charged.find(k.correlation);
    if (k.start_ns == 50) {
      EXPECT_EQ(owner, charged.end());
    } else {
      ASSERT_NE(owner, charged.end());
      EXPECT_EQ(owner->second.index, k.start_ns == 2000 || k.start_ns == 3000 ? 1u : 0u);
    }
  }
  EXPECT_THAT(r.kernel_names(), ElementsAre(testing::Pair(0, "add(float*, int)")));
}

TEST(Kernels, OfTheTracePassComeAloneWithCopiesAndSets) {
  const auto r = recorded(
      [] {
        JD_REQUIRE(jd_kernels(JD_TRACE) == 1);
        JD_REQUIRE(enabled() == kKernelsOnly);
        jd_operator_begin(9, 9, "ignored");
        kernel(10, 5);
        kernel(20, 5, "plain_c_name");
        jd_operator_end();
        const FakeLaunch copy{cupti::kMemcpy, nullptr, 30, 36, 1, 0, 0, 1, 5'000'000'000};
        const FakeLaunch set{cupti::kMemset, nullptr, 40, 41, 1, 0, 0, 0, 64};
        call(&copy);
        call(&set);
        JD_REQUIRE(jd_kernels(JD_WARMUP) == 0);
        JD_REQUIRE(enabled() == 0);
        kernel(50, 5);  // not recorded
      },
      kFake);
  EXPECT_EQ(r.status, 0) << r.err;
  const auto kernels = r.all<spool::Kernel>(Type::kernel);
  ASSERT_THAT(kernels, SizeIs(4));
  const auto names = r.kernel_names();
  EXPECT_EQ(names.at(kernels[0].name), "add(float*, int)");
  EXPECT_EQ(names.at(kernels[1].name), "plain_c_name");
  EXPECT_EQ(names.at(kernels[2].name), "memcpy HtoD");
  EXPECT_EQ(names.at(kernels[3].name), "memset");
  EXPECT_EQ(kernels[0].pass, std::uint32_t{JD_TRACE});
  EXPECT_EQ(kernels[2].kind, static_cast<std::uint32_t>(spool::KernelKind::copy));
  EXPECT_EQ(kernels[2].grid[0] + (std::uint64_t{kernels[2].grid[1]} << 32), 5'000'000'000u);
  EXPECT_EQ(kernels[3].kind, static_cast<std::uint32_t>(spool::KernelKind::set));
  EXPECT_THAT(correlations(r), IsEmpty());
}

TEST(Kernels, OfCuda12AreReadToo) {
  const auto r = recorded(
      [] {
        JD_REQUIRE(jd_kernels(JD_TRACE) == 1);
        for (std::uint64_t i = 1; i <= 50'000; ++i) kernel(10 * i, 3);  // more than one buffer
      },
      fake_with("FAKE_CUPTI_VERSION", "24"));
  EXPECT_EQ(r.status, 0) << r.err;
  const auto kernels = r.all<spool::Kernel>(Type::kernel);
  ASSERT_THAT(kernels, SizeIs(50'000));
  for (std::size_t i = 0; i < kernels.size(); ++i) ASSERT_EQ(kernels[i].start_ns, 10 * (i + 1));
}

TEST(Kernels, OfAnUnknownCuptiAreNotGuessed) {
  const auto r = recorded([] { JD_REQUIRE(jd_kernels(JD_TRACE) == 0); },
                          fake_with("FAKE_CUPTI_VERSION", "150000"));
  EXPECT_EQ(r.status, 0) << r.err;
  EXPECT_THAT(r.facts("diagnostic"), ElementsAre(HasSubstr("150000")));
}

TEST(Kernels, AreSaidToBeMissingWhereTheDeviceRefuses) {
  const auto r = recorded(
      [] {
        JD_REQUIRE(jd_kernels(JD_ORDER) == 0);
        JD_REQUIRE(jd_kernels(JD_TRACE) == 0);
        JD_REQUIRE(enabled() == 0);
        JD_REQUIRE(jd_active() == JD_ABI);
      },
      fake_with("FAKE_CUPTI_ERROR", "35"));
  EXPECT_EQ(r.status, 0) << r.err;
  EXPECT_THAT(r.facts("diagnostic"), ElementsAre(HasSubstr("FAKE_ERROR")));
}

TEST(Kernels, ThatWereLostAreCounted) {
  const auto r = recorded(
      [] {
        JD_REQUIRE(jd_kernels(JD_TRACE) == 1);
        kernel(10, 5);
        kernel(0, 5);  // its record was taken before it had begun
        jd_flush();    // leaves what is incomplete
        control<decltype(fake_cupti_drop)>("fake_cupti_drop")(41);
        kernel(20, 5);
      },
      kFake);
  EXPECT_EQ(r.status, 0) << r.err;
  EXPECT_THAT(r.all<spool::Kernel>(Type::kernel), SizeIs(2));
  EXPECT_THAT(r.all<std::uint64_t>(Type::dropped), ElementsAre(41u));
  EXPECT_THAT(r.facts("diagnostic"), ElementsAre(HasSubstr("record.incomplete_kernels")));
}

TEST(Kernels, AreStampedWithTheMonotonicClock) {
  const auto r = recorded(
      [] {
        JD_REQUIRE(jd_kernels(JD_TRACE) == 1);
        const std::uint64_t before = jd_now();
        usleep(2000);
        kernel(clock_ns(CLOCK_REALTIME), 1000);
        usleep(2000);
        jd_step(JD_TRACE, 0, before, jd_now(), nullptr);
      },
      fake_with("FAKE_CUPTI_NO_CLOCK", "1"));
  EXPECT_EQ(r.status, 0) << r.err;
  const auto kernels = r.all<spool::Kernel>(Type::kernel);
  const auto steps = r.all<spool::Step>(Type::step);
  ASSERT_THAT(kernels, SizeIs(1));
  ASSERT_THAT(steps, SizeIs(1));
  EXPECT_GT(kernels[0].start_ns, steps[0].begin_ns);
  EXPECT_LT(kernels[0].end_ns, steps[0].end_ns);
  EXPECT_NEAR(static_cast<double>(kernels[0].end_ns - kernels[0].start_ns), 1000, 50);
}

TEST(Kernels, OfSeveralThreadsFindTheirOwnOperators) {
  constexpr std::uint32_t kThreads = 3, kEach = 400;
  const auto r = recorded(
      [] {
        JD_REQUIRE(jd_kernels(JD_ORDER) == 1);
        {
          std::vector<std::jthread> threads;
          for (std::uint32_t t = 0; t < kThreads; ++t)
            threads.emplace_back([t] {
              for (std::uint32_t i = 0; i < kEach; ++i) {
                const std::uint32_t index = t * kEach + i;
                jd_operator_begin(2, index, "op");
                kernel(1000 + index, 10);
                jd_operator_end();
                if (i % 100 == 0) jd_flush();
              }
            });
        }
        jd_kernels(JD_WARMUP);
      },
      kFake);
  EXPECT_EQ(r.status, 0) << r.err;
  const auto kernels = r.all<spool::Kernel>(Type::kernel);
  ASSERT_THAT(kernels, SizeIs(kThreads * kEach));
  const auto charged = correlations(r);
  for (const auto& k : kernels) {
    const auto owner = charged.find(k.correlation);
    ASSERT_NE(owner, charged.end());
    EXPECT_EQ(owner->second.index, k.start_ns - 1000);
  }
}

TEST(Kernels, AreNotRecordedInAForkedChild) {
  const auto r = recorded(
      [] {
        JD_REQUIRE(jd_kernels(JD_TRACE) == 1);
        kernel(10, 5);
        const pid_t pid = fork();
        if (pid == 0) {
          JD_REQUIRE(jd_kernels(JD_TRACE) == 0);
          jd_flush();
          jd_fact("who", "\"child\"");
          std::exit(0);
        }
        int status = 0;
        waitpid(pid, &status, 0);
        JD_REQUIRE(status == 0);
        kernel(20, 5);
      },
      kFake);
  EXPECT_EQ(r.status, 0) << r.err;
  EXPECT_FALSE(r.torn);
  EXPECT_THAT(r.all<spool::Kernel>(Type::kernel), SizeIs(2));
  EXPECT_THAT(r.facts("who"), SizeIs(1));
}

TEST(Injection, TracesAProgramThatNobodyAttends) {
  const auto r = recorded(
      [] {
        JD_REQUIRE(InitializeInjection() == 1);
        JD_REQUIRE(enabled() == kKernelsOnly);
        kernel(10, 5);
      },
      kFake);
  EXPECT_EQ(r.status, 0) << r.err;
  EXPECT_THAT(r.all<spool::Kernel>(Type::kernel), SizeIs(1));
}

TEST(Injection, LeavesThePassesToAPlugIn) {
  const auto r = recorded(
      [] {
        JD_REQUIRE(jd_active() == JD_ABI);
        JD_REQUIRE(InitializeInjection() == 1);
        JD_REQUIRE(enabled() == 0);
      },
      kFake);
  EXPECT_EQ(r.status, 0) << r.err;
  EXPECT_THAT(r.records, IsEmpty());
}

}  // namespace
}  // namespace joulediff::record
