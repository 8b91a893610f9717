// The recorder with a libcupti in it that has no device: tests/fakes/cupti.

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

#include <gmock/gmock.h>

#include "joulediff/record.h"
#include "record/clock.h"
#include "record/fake_device.h"

namespace joulediff::record {
namespace {

using spool::Type;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

std::map<std::uint32_t, spool::Correlation> correlations(const Recorded& r) {
  std::map<std::uint32_t, spool::Correlation> found;
  for (const auto& c : r.all<spool::Correlation>(Type::correlation)) found[c.correlation] = c;
  return found;
}

TEST(Kernels, OfTheOrderPassCarryTheirOperators) {
  const auto r = recorded(
      [] {
        JD_REQUIRE(jd_kernels(JD_ORDER) == 1);
        JD_REQUIRE(FAKE(fake_cupti_enabled)() == kWithWaits);
        for (std::uint32_t step = 2; step < 4; ++step) {
          kernel(50, 1);  // outside of every operator
          jd_operator_begin(step, 0, "outer");
          kernel(100, 1000);
          jd_operator_begin(step, 1, "inner");
          FAKE(fake_cupti_call)(nullptr);  // an API call that launches nothing
          kernel(2000, 300);
          kernel(3000, 500 * step);
          jd_operator_end();
          kernel(9000, 40);
          jd_operator_end();
          jd_operator_begin(step, 2, "without kernels");
          jd_operator_end();
          jd_operator_begin(step, 3, "a copy and a set");
          call(launch(cupti::kMemcpy, 10'000, 20));
          call(launch(cupti::kMemset, 10'100, 1));
          jd_operator_end();
        }
        JD_REQUIRE(jd_kernels(JD_TRACE) == 1);
        JD_REQUIRE(FAKE(fake_cupti_enabled)() == kWithoutSets);
        const auto near = [](double x, double y) { return x > y - 1e-12 && x < y + 1e-12; };
        JD_REQUIRE(near(jd_operator_seconds(0), 1040e-9));
        JD_REQUIRE(near(jd_operator_seconds(1), 1550e-9));
        JD_REQUIRE(jd_operator_seconds(2) == 0);
        JD_REQUIRE(near(jd_operator_seconds(3), 21e-9));
        JD_REQUIRE(jd_operator_seconds(4) < 0);
      },
      kFake);
  EXPECT_EQ(r.status, 0) << r.err;
  EXPECT_EQ(r.out + r.err, "");
  EXPECT_THAT(r.facts("diagnostic"), ElementsAre(HasSubstr("record.sets_untraced")));
  const auto kernels = r.kernels();
  ASSERT_THAT(kernels, SizeIs(14));
  const auto charged = correlations(r);
  EXPECT_THAT(charged, SizeIs(12));
  for (const auto& k : kernels) {
    EXPECT_EQ(k.pass, std::uint32_t{JD_ORDER});
    EXPECT_EQ(k.stream, 7u);
    const auto owner = charged.find(k.correlation);
    if (k.start_ns == 50) {
      EXPECT_EQ(owner, charged.end());
      continue;
    }
    ASSERT_NE(owner, charged.end());
    if (k.kind != static_cast<std::uint32_t>(spool::KernelKind::kernel)) {
      EXPECT_EQ(owner->second.index, 3u);
      continue;
    }
    EXPECT_THAT(k.grid, ElementsAre(128u, 1u, 1u));
    EXPECT_THAT(k.block, ElementsAre(256u, 1u, 1u));
    EXPECT_EQ(owner->second.index, k.start_ns == 2000 || k.start_ns == 3000 ? 1u : 0u);
  }
  EXPECT_THAT(r.kernel_names(), testing::Contains(testing::Pair(0, "add(float*, int)")));
}

// A program that stays on the processor where a libcupti is at hand: its operators' times are the
// host's, and 0 would say that they take none.
TEST(Kernels, ThatThereAreNoneOfLeaveTheHostsTimes) {
  const auto r = recorded(
      [] {
        JD_REQUIRE(jd_kernels(JD_ORDER) == 1);
        jd_operator_begin(2, 0, "op");
        usleep(1000);
        jd_operator_end();
        jd_kernels(JD_WARMUP);
        JD_REQUIRE(jd_operator_seconds(0) > 0.5e-3);
      },
      kFake);
  EXPECT_EQ(r.status, 0) << r.err;
}

// A libcupti that serves nobody with callbacks: kernels are recorded, and what is unknown is said.
TEST(Kernels, HaveNoOperatorsWhereNobodyTellsOfCalls) {
  const auto r = recorded(
      [] {
        JD_REQUIRE(jd_kernels(JD_ORDER) == 1);
        jd_operator_begin(2, 0, "op");
        kernel(100, 1000);
        jd_operator_end();
        jd_kernels(JD_TRACE);
      },
      fake_with("FAKE_CUPTI_NO_CALLBACKS", "1"));
  EXPECT_EQ(r.status, 0) << r.err;
  EXPECT_THAT(r.kernels(), SizeIs(1));
  EXPECT_THAT(correlations(r), IsEmpty());
  EXPECT_THAT(r.facts("diagnostic"), ElementsAre(HasSubstr("record.no_callbacks")));
}

TEST(Kernels, OfTheTracePassComeAloneWithCopiesAndSets) {
  const auto r = recorded(
      [] {
        JD_REQUIRE(jd_kernels(JD_TRACE) == 1);
        JD_REQUIRE(FAKE(fake_cupti_enabled)() == kKernelsOnly);
        jd_operator_begin(9, 9, "ignored");
        kernel(10, 5);
        kernel(20, 5, "f");  // a type to the demangler
        jd_operator_end();
        FakeLaunch copy = launch(cupti::kMemcpy, 30, 6);
        copy.copy_kind = 1;
        copy.bytes = 5'000'000'000;
        call(copy);
        FakeLaunch peer = launch(cupti::kMemcpy2, 37, 2);
        peer.copy_kind = 10;
        call(peer);
        call(launch(cupti::kMemset, 40, 1));
        JD_REQUIRE(jd_kernels(JD_WARMUP) == 0);
        JD_REQUIRE(FAKE(fake_cupti_enabled)() == 0);
        kernel(50, 5);  // not recorded
      },
      kFake);
  EXPECT_EQ(r.status, 0) << r.err;
  const auto kernels = r.kernels();
  ASSERT_THAT(kernels, SizeIs(5));
  const auto names = r.kernel_names();
  EXPECT_EQ(names.at(kernels[0].name), "add(float*, int)");
  EXPECT_EQ(names.at(kernels[1].name), "f");
  EXPECT_EQ(names.at(kernels[2].name), "memcpy HtoD");
  EXPECT_EQ(names.at(kernels[3].name), "memcpy PtoP");
  EXPECT_EQ(names.at(kernels[4].name), "memset");
  EXPECT_EQ(kernels[0].pass, std::uint32_t{JD_TRACE});
  EXPECT_EQ(kernels[2].kind, static_cast<std::uint32_t>(spool::KernelKind::copy));
  EXPECT_EQ(kernels[2].grid[0] + (std::uint64_t{kernels[2].grid[1]} << 32), 5'000'000'000u);
  EXPECT_EQ(kernels[3].kind, static_cast<std::uint32_t>(spool::KernelKind::copy));
  EXPECT_EQ(kernels[4].kind, static_cast<std::uint32_t>(spool::KernelKind::set));
  EXPECT_THAT(correlations(r), IsEmpty());
}

// What its record costs, a set that takes long is worth.
TEST(Kernels, SetsAreTracedWhereTheyTakeLong) {
  for (const std::uint64_t ns : {30, 5}) {
    const auto r = recorded(
        [ns] {
          JD_REQUIRE(jd_kernels(JD_ORDER) == 1);
          kernel(100, 1000);
          call(launch(cupti::kMemset, 2000, ns));
          JD_REQUIRE(jd_kernels(JD_WARMUP) == 0);
          JD_REQUIRE(jd_kernels(JD_TRACE) == 1);
          JD_REQUIRE(FAKE(fake_cupti_enabled)() == (ns >= 10 ? kKernelsOnly : kWithoutSets));
          JD_REQUIRE(jd_kernels(JD_ORDER) == 1);
          JD_REQUIRE(FAKE(fake_cupti_enabled)() == kWithWaits);
          JD_REQUIRE(jd_kernels(JD_TRACE) == 1);
        },
        kFake);
    EXPECT_EQ(r.status, 0) << r.err;
    EXPECT_THAT(r.facts("diagnostic"), SizeIs(ns >= 10 ? 0 : 1));
  }
}

TEST(Kernels, OfCuda12AreReadToo) {
  const auto r = recorded(
      [] {
        JD_REQUIRE(jd_kernels(JD_TRACE) == 1);
        for (std::uint64_t i = 1; i <= 50'000; ++i) kernel(10 * i, 3);  // more than one buffer
      },
      fake_with("FAKE_CUPTI_VERSION", "24"));
  EXPECT_EQ(r.status, 0) << r.err;
  const auto kernels = r.kernels();
  ASSERT_THAT(kernels, SizeIs(50'000));
  for (std::size_t i = 0; i < kernels.size(); ++i) ASSERT_EQ(kernels[i].start_ns, 10 * (i + 1));
}

TEST(Kernels, OfAnUnknownCuptiAreNotGuessed) {
  const auto r = recorded([] { JD_REQUIRE(jd_kernels(JD_TRACE) == 0); },
                          fake_with("FAKE_CUPTI_VERSION", "150000"));
  EXPECT_EQ(r.status, 0) << r.err;
  EXPECT_THAT(r.facts("diagnostic"),
              ElementsAre(AllOf(HasSubstr("150000"), HasSubstr("JOULEDIFF_CUPTI"))));
}

TEST(Kernels, AreSaidToBeMissingWhereTheDeviceRefuses) {
  const auto r = recorded(
      [] {
        JD_REQUIRE(jd_kernels(JD_ORDER) == 0);
        JD_REQUIRE(jd_kernels(JD_TRACE) == 0);
        JD_REQUIRE(FAKE(fake_cupti_enabled)() == 0);
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
        FAKE(fake_cupti_drop)(41);
        kernel(20, 5);
      },
      kFake);
  EXPECT_EQ(r.status, 0) << r.err;
  EXPECT_THAT(r.kernels(), SizeIs(2));
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
  const auto kernels = r.kernels();
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
  const auto kernels = r.kernels();
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
  EXPECT_THAT(r.kernels(), SizeIs(2));
  EXPECT_THAT(r.facts("who"), SizeIs(1));
}

TEST(Kernels, OfAPeerBetweenCuda12And13AreNotGuessed) {
  const auto r = recorded([] { JD_REQUIRE(jd_kernels(JD_TRACE) == 0); },
                          fake_with("FAKE_CUPTI_VERSION", "120900"));
  EXPECT_THAT(r.facts("diagnostic"), ElementsAre(HasSubstr("120900")));
}

TEST(Kernels, OfGraphsAreSaidToBe) {
  const auto r = recorded(
      [] {
        jd_kernels(JD_TRACE);
        FakeLaunch node = launch(cupti::kConcurrentKernel, 10, 5);
        node.name = "k";
        node.graph_node = 77;
        call(node);
        kernel(20, 5);
      },
      kFake);
  EXPECT_THAT(r.facts("manifest"), ElementsAre(R"({"graph_kernels":"1"})"));
}

TEST(Kernels, ComeWithTheWaitsOfTheHost) {
  const auto body = [] {
    jd_kernels(JD_ORDER);
    FakeLaunch work = launch(cupti::kConcurrentKernel, 10, 5);
    work.name = "k";
    work.context = 3;
    work.device = 1;
    call(work);
    jd_flush();
    FakeLaunch wait = launch(cupti::kSynchronization, 30, 6);
    wait.copy_kind = 3;  // for a stream
    wait.context = 3;
    call(wait);
    wait.context = 9;  // never seen
    call(wait);
    jd_kernels(JD_TRACE);
    call(wait);
  };
  const auto r = recorded(body, kFake);
  EXPECT_EQ(r.status, 0) << r.err;
  const auto waits = r.all<spool::Synchronisation>(Type::synchronisation);
  ASSERT_THAT(waits, SizeIs(2));  // the trace pass leaves them out
  EXPECT_EQ(waits[0].start_ns, 30u);
  EXPECT_EQ(waits[0].end_ns, 36u);
  EXPECT_EQ(waits[0].kind, static_cast<std::uint32_t>(spool::SynchronisationKind::stream));
  EXPECT_EQ(waits[0].stream, 7u);
  EXPECT_EQ(waits[0].pass, std::uint32_t{JD_ORDER});
  EXPECT_EQ(waits[0].device, 1u);
  EXPECT_EQ(waits[1].device, spool::kNone);
  const auto in_trace = recorded(body, fake_with("JOULEDIFF_TRACE_WAITS", "1"));
  EXPECT_THAT(in_trace.all<spool::Synchronisation>(Type::synchronisation), SizeIs(3));
}

std::vector<std::string> devices(const Recorded& r) {
  std::vector<std::string> found;
  for (const auto payload : r.payloads(Type::device)) {
    spool::Unpacker in(payload);
    std::uint32_t ordinal = 0;
    std::string_view uuid, name;
    EXPECT_TRUE(in.get(ordinal) && in.get(uuid) && in.get(name));
    found.push_back(std::to_string(ordinal) + " " + std::string(uuid) + " " + std::string(name));
  }
  return found;
}

TEST(Devices, AreNamedByTheirUuids) {
  const auto r = recorded(
      [] {
        JD_REQUIRE(dlopen(JOULEDIFF_FAKE_CUDA, RTLD_NOW) != nullptr);
        setenv("FAKE_CUDA_DOWN", "1", 1);
        jd_kernels(JD_ORDER);
        unsetenv("FAKE_CUDA_DOWN");
        jd_kernels(JD_TRACE);
        jd_kernels(JD_WARMUP);
      },
      kFake);
  EXPECT_EQ(r.status, 0) << r.err;
  EXPECT_THAT(devices(r),
              ElementsAre("0 GPU-00010203-0405-0607-0809-0a0b0c0d0e0f NVIDIA H200",
                          "1 MIG-10111213-1415-1617-1819-1a1b1c1d1e1f NVIDIA H100 80GB HBM3 MIG "
                          "1g.10gb"));
}

TEST(Devices, AreUnknownWhereTheProcessHasNoCuda) {
  const auto r = recorded([] { jd_kernels(JD_TRACE); }, kFake);
  EXPECT_EQ(r.status, 0) << r.err;
  EXPECT_THAT(devices(r), IsEmpty());
}

// A table that is full forgets, and what comes again is named again: no kernel is without a name.
TEST(Kernels, OfEndlesslyManyNamesKeepTheirNames) {
  constexpr std::uint64_t kNames = 17'000;
  const auto r = recorded(
      [] {
        jd_kernels(JD_TRACE);
        static auto& names = *new std::vector<std::string>;  // read when the process ends
        for (std::uint64_t i = 0; i < kNames; ++i) names.push_back("k" + std::to_string(i));
        for (std::uint64_t i = 0; i < kNames; ++i) kernel(i + 1, 1, names[i].c_str());
        kernel(kNames + 1, 1, names[0].c_str());
      },
      kFake);
  EXPECT_EQ(r.status, 0) << r.err;
  const auto names = r.kernel_names();
  const auto kernels = r.kernels();
  ASSERT_THAT(kernels, SizeIs(kNames + 1));
  for (const auto& k : kernels)
    ASSERT_EQ(names.at(k.name), "k" + std::to_string((k.start_ns - 1) % kNames));
}

// What a real libcupti filled can be kept, and played to a recorder elsewhere.
TEST(Buffers, CanBeKeptAndPlayedAgain) {
  char name[] = "/tmp/jd-raw-XXXXXX";
  const std::string folder = mkdtemp(name);
  Environment keeps = kFake;
  keeps["JOULEDIFF_CUPTI_RAW"] = folder;
  const auto first = recorded(
      [] {
        jd_kernels(JD_TRACE);
        kernel(10, 5, "_Z3addPfi");
        kernel(20, 5, "name with spaces");
        call(launch(cupti::kMemset, 30, 5));
      },
      keeps);
  EXPECT_EQ(first.status, 0) << first.err;
  std::vector<std::string> buffers;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    if (entry.path().extension() == ".buf") buffers.push_back(entry.path());
  ASSERT_THAT(buffers, ElementsAre(testing::EndsWith("-1.v130001.buf")));
  const auto again =
      recorded([] { jd_kernels(JD_TRACE); }, fake_with("FAKE_CUPTI_PLAY", buffers[0]));
  EXPECT_EQ(again.status, 0) << again.err;
  EXPECT_EQ(again.payloads(Type::kernel), first.payloads(Type::kernel));
  EXPECT_EQ(again.kernel_names(), first.kernel_names());
  EXPECT_THAT(again.kernel_names(), SizeIs(3));
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace joulediff::record
