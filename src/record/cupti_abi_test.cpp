// Our declaration of CUPTI's binary interface against the real one, where its headers are.

#include "record/cupti_abi.h"

#include <gtest/gtest.h>

#include "record/fake_device.h"
#include "spool/spool.h"

#if __has_include(<cupti.h>)
#include <cupti.h>

namespace joulediff::record::cupti {
namespace {

#define JD_SAME(ours, our_field, theirs, their_field)                        \
  static_assert(offsetof(ours, our_field) == offsetof(theirs, their_field)); \
  static_assert(sizeof(ours::our_field) == sizeof(theirs::their_field))

#define JD_SAME_KERNEL(theirs)                                 \
  static_assert(sizeof(KernelActivity) <= sizeof(theirs));     \
  JD_SAME(KernelActivity, kind, theirs, kind);                 \
  JD_SAME(KernelActivity, start, theirs, start);               \
  JD_SAME(KernelActivity, end, theirs, end);                   \
  JD_SAME(KernelActivity, device, theirs, deviceId);           \
  JD_SAME(KernelActivity, context, theirs, contextId);         \
  JD_SAME(KernelActivity, stream, theirs, streamId);           \
  JD_SAME(KernelActivity, grid[0], theirs, gridX);             \
  JD_SAME(KernelActivity, grid[2], theirs, gridZ);             \
  JD_SAME(KernelActivity, block[0], theirs, blockX);           \
  JD_SAME(KernelActivity, block[2], theirs, blockZ);           \
  JD_SAME(KernelActivity, correlation, theirs, correlationId); \
  JD_SAME(KernelActivity, name, theirs, name);                 \
  JD_SAME(KernelActivity, graph_node, theirs, graphNodeId)

#define JD_SAME_TRANSFER(ours, theirs)           \
  static_assert(sizeof(ours) <= sizeof(theirs)); \
  JD_SAME(ours, kind, theirs, kind);             \
  JD_SAME(ours, bytes, theirs, bytes);           \
  JD_SAME(ours, start, theirs, start);           \
  JD_SAME(ours, end, theirs, end);               \
  JD_SAME(ours, device, theirs, deviceId);       \
  JD_SAME(ours, context, theirs, contextId);     \
  JD_SAME(ours, stream, theirs, streamId);       \
  JD_SAME(ours, correlation, theirs, correlationId)

JD_SAME_KERNEL(CUpti_ActivityKernel8);
JD_SAME_KERNEL(CUpti_ActivityKernel9);
#define JD_SAME_SYNCHRONIZATION(theirs)                                 \
  static_assert(sizeof(SynchronizationActivity) <= sizeof(theirs));     \
  JD_SAME(SynchronizationActivity, kind, theirs, kind);                 \
  JD_SAME(SynchronizationActivity, type, theirs, type);                 \
  JD_SAME(SynchronizationActivity, start, theirs, start);               \
  JD_SAME(SynchronizationActivity, end, theirs, end);                   \
  JD_SAME(SynchronizationActivity, correlation, theirs, correlationId); \
  JD_SAME(SynchronizationActivity, context, theirs, contextId);         \
  JD_SAME(SynchronizationActivity, stream, theirs, streamId)

JD_SAME_SYNCHRONIZATION(CUpti_ActivitySynchronization);
#if CUPTI_API_VERSION >= 130000
JD_SAME_SYNCHRONIZATION(CUpti_ActivitySynchronization2);
JD_SAME_KERNEL(CUpti_ActivityKernel10);
JD_SAME_TRANSFER(MemcpyActivity, CUpti_ActivityMemcpy6);
JD_SAME(MemcpyActivity, copy_kind, CUpti_ActivityMemcpy6, copyKind);
#endif
JD_SAME_TRANSFER(MemcpyActivity, CUpti_ActivityMemcpy5);
JD_SAME(MemcpyActivity, copy_kind, CUpti_ActivityMemcpy5, copyKind);
JD_SAME_TRANSFER(MemsetActivity, CUpti_ActivityMemset4);
JD_SAME_TRANSFER(MemcpyPtoPActivity, CUpti_ActivityMemcpyPtoP4);
JD_SAME(MemcpyPtoPActivity, copy_kind, CUpti_ActivityMemcpyPtoP4, copyKind);

static_assert(int{kMemcpy} == CUPTI_ACTIVITY_KIND_MEMCPY);
static_assert(int{kMemset} == CUPTI_ACTIVITY_KIND_MEMSET);
static_assert(int{kConcurrentKernel} == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
static_assert(kForced == CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);

static_assert(int{kMemcpy2} == CUPTI_ACTIVITY_KIND_MEMCPY2);
static_assert(int{kSynchronization} == CUPTI_ACTIVITY_KIND_SYNCHRONIZATION);
static_assert(kMultipleSubscribers == CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED);
static_assert(static_cast<int>(spool::SynchronisationKind::event) ==
              CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_EVENT_SYNCHRONIZE);

JD_SAME(CallbackData, site, CUpti_CallbackData, callbackSite);
JD_SAME(CallbackData, correlation_data, CUpti_CallbackData, correlationData);
JD_SAME(CallbackData, correlation, CUpti_CallbackData, correlationId);
static_assert(kApiEnter == CUPTI_API_ENTER);
static_assert(kDriverDomain == CUPTI_CB_DOMAIN_DRIVER_API);
static_assert(kRuntimeDomain == CUPTI_CB_DOMAIN_RUNTIME_API);
static_assert(kDriverLaunches[0] == CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel);
static_assert(kDriverLaunches[1] == CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel_ptsz);
static_assert(kDriverLaunches[2] == CUPTI_DRIVER_TRACE_CBID_cuLaunchCooperativeKernel);
static_assert(kDriverLaunches[3] == CUPTI_DRIVER_TRACE_CBID_cuLaunchCooperativeKernel_ptsz);
static_assert(kDriverLaunches[4] == CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch);
static_assert(kDriverLaunches[5] == CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch_ptsz);
static_assert(kDriverLaunches[6] == CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx);
static_assert(kDriverLaunches[7] == CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx_ptsz);
static_assert(kRuntimeLaunches[0] == CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000);
static_assert(kRuntimeLaunches[1] == CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_ptsz_v7000);
static_assert(kRuntimeLaunches[2] == CUPTI_RUNTIME_TRACE_CBID_cudaLaunchCooperativeKernel_v9000);
static_assert(kRuntimeLaunches[3] ==
              CUPTI_RUNTIME_TRACE_CBID_cudaLaunchCooperativeKernel_ptsz_v9000);
static_assert(kRuntimeLaunches[4] == CUPTI_RUNTIME_TRACE_CBID_cudaGraphLaunch_v10000);
static_assert(kRuntimeLaunches[5] == CUPTI_RUNTIME_TRACE_CBID_cudaGraphLaunch_ptsz_v10000);
static_assert(kRuntimeLaunches[6] == CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernelExC_v11060);
static_assert(kRuntimeLaunches[7] == CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernelExC_ptsz_v11060);

#if CUPTI_API_VERSION >= 130000
static_assert(sizeof(SubscriberParams) == sizeof(CUpti_SubscriberParams));
JD_SAME(SubscriberParams, name, CUpti_SubscriberParams, subscriberName);
JD_SAME(SubscriberParams, old_name, CUpti_SubscriberParams, oldSubscriberName);
JD_SAME(SubscriberParams, old_name_size, CUpti_SubscriberParams, oldSubscriberSize);
#endif

// The fake's records have the sizes of the real ones, or it could not play real buffers.
TEST(CuptiAbi, TheFakesRecordsHaveTheirSizes) {
  const auto is = [](int kind, std::uint32_t version, std::size_t size) {
    EXPECT_EQ(FAKE(fake_cupti_record_bytes)(kind, version), size)
        << kind << " of version " << version;
  };
  is(kConcurrentKernel, 24, sizeof(CUpti_ActivityKernel9));
  is(kMemcpy, 24, sizeof(CUpti_ActivityMemcpy5));
  is(kSynchronization, 24, sizeof(CUpti_ActivitySynchronization));
#if CUPTI_API_VERSION >= 130000
  is(kConcurrentKernel, 130001, sizeof(CUpti_ActivityKernel10));
  is(kMemcpy, 130001, sizeof(CUpti_ActivityMemcpy6));
  is(kSynchronization, 130001, sizeof(CUpti_ActivitySynchronization2));
#endif
  for (const std::uint32_t version : {24u, 130001u}) {
    is(kMemcpy2, version, sizeof(CUpti_ActivityMemcpyPtoP4));
    is(kMemset, version, sizeof(CUpti_ActivityMemset4));
    is(CUPTI_ACTIVITY_KIND_RUNTIME, version, sizeof(CUpti_ActivityAPI));
    is(CUPTI_ACTIVITY_KIND_DRIVER, version, sizeof(CUpti_ActivityAPI));
  }
}

TEST(CuptiAbi, IsThatOfTheHeaders) {
  SUCCEED() << "checked by the compiler";
}

}  // namespace
}  // namespace joulediff::record::cupti

#else

TEST(CuptiAbi, IsThatOfTheHeaders) {
  GTEST_SKIP() << "no CUPTI headers here";
}

#endif
