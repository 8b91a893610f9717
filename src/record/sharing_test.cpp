// Another tool wants CUPTI in the same process.

#include <gmock/gmock.h>

#include "joulediff/record.h"
#include "record/fake_device.h"

extern "C" int InitializeInjection(void);

namespace joulediff::record {
namespace {

using spool::Type;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

TEST(Sharing, WhoWasThereFirstIsNamedAndLeftAlone) {
  const auto r = recorded(
      [] {
        JD_REQUIRE(FAKE(fake_cupti_rival_subscribes)("CUPTI for Kineto"));
        FAKE(fake_cupti_rival_registers)();
        InitializeInjection();
        JD_REQUIRE(jd_kernels(JD_ORDER) == 0);
        JD_REQUIRE(jd_kernels(JD_TRACE) == 0);
        JD_REQUIRE(FAKE(fake_cupti_enabled)() == 0);
        JD_REQUIRE(FAKE(fake_cupti_subscribed)());
        JD_REQUIRE(jd_active() == JD_ABI);
      },
      kFake);
  EXPECT_EQ(r.status, 0) << r.err;
  EXPECT_THAT(r.facts("diagnostic"), ElementsAre(AllOf(HasSubstr("record.other_subscriber"),
                                                       HasSubstr("CUPTI for Kineto"))));
  EXPECT_THAT(r.payloads(Type::clock), SizeIs(testing::Ge(3u)));
}

TEST(Sharing, ATracePassLeavesTheSubscriptionFree) {
  const auto r = recorded(
      [] {
        jd_kernels(JD_ORDER);
        JD_REQUIRE(FAKE(fake_cupti_watched)() > 0);
        JD_REQUIRE(!FAKE(fake_cupti_rival_subscribes)("too early"));
        jd_kernels(JD_TRACE);
        JD_REQUIRE(!FAKE(fake_cupti_subscribed)());
        kernel(10, 5);
        jd_kernels(JD_WARMUP);
        JD_REQUIRE(FAKE(fake_cupti_rival_subscribes)("CUPTI for Kineto"));
      },
      kFake);
  EXPECT_EQ(r.status, 0) << r.err;
  EXPECT_THAT(r.kernels(), SizeIs(1));
}

TEST(Sharing, WhoComesDuringTheTraceIsSeenAndNotDisturbed) {
  const auto r = recorded(
      [] {
        jd_kernels(JD_TRACE);
        for (std::uint64_t i = 1; i <= 6000; ++i) kernel(i, 1);  // the first buffer is full
        JD_REQUIRE(FAKE(fake_cupti_rival_subscribes)("CUPTI for Kineto"));
        FAKE(fake_cupti_rival_registers)();
        kernel(7000, 5);
        JD_REQUIRE(jd_kernels(JD_WARMUP) == 0);
        JD_REQUIRE(FAKE(fake_cupti_enabled)() == kKernelsOnly);  // the rival needs them
        JD_REQUIRE(FAKE(fake_cupti_rival_buffers)() == 0);       // and flushes when it wants
        JD_REQUIRE(jd_kernels(JD_TRACE) == 0);
      },
      kFake);
  EXPECT_EQ(r.status, 0) << r.err;
  EXPECT_THAT(r.kernels(), SizeIs(testing::Gt(1000u)));
  EXPECT_THAT(r.facts("diagnostic"), ElementsAre(HasSubstr("record.other_subscriber")));
}

// It took our callbacks' place and is gone by the end: only what is missing tells.
TEST(Sharing, WhoCameAndWentIsSeenByTheBuffersThatNeverCameBack) {
  const auto r = recorded(
      [] {
        jd_kernels(JD_TRACE);
        kernel(10, 5);
        FAKE(fake_cupti_rival_registers)();
        FAKE(fake_cupti_rival_leaves)();
      },
      kFake);
  EXPECT_EQ(r.status, 0) << r.err;
  EXPECT_THAT(r.facts("diagnostic"), ElementsAre(HasSubstr("record.other_subscriber")));
}

TEST(Sharing, APassInWhichNothingRanBlamesNobody) {
  const auto r = recorded(
      [] {
        jd_kernels(JD_ORDER);
        jd_kernels(JD_TRACE);
        kernel(10, 5);
        jd_flush();
        jd_kernels(JD_WARMUP);
      },
      kFake);
  EXPECT_EQ(r.status, 0) << r.err;
  EXPECT_THAT(r.facts("diagnostic"), IsEmpty());
}

TEST(Sharing, ARefusalIsUnderstoodWhereverItComes) {
  const auto r =
      recorded([] { JD_REQUIRE(jd_kernels(JD_TRACE) == 0); }, fake_with("FAKE_CUPTI_ERROR", "39"));
  EXPECT_EQ(r.status, 0) << r.err;
  EXPECT_THAT(r.facts("diagnostic"), ElementsAre(HasSubstr("record.other_subscriber")));
}

}  // namespace
}  // namespace joulediff::record
