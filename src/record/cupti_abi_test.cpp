// Our declaration of CUPTI's binary interface against the real one, where its headers are.

#include "record/cupti_abi.h"

#include <gtest/gtest.h>

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
  JD_SAME(KernelActivity, name, theirs, name)

#define JD_SAME_TRANSFER(ours, theirs)           \
  static_assert(sizeof(ours) <= sizeof(theirs)); \
  JD_SAME(ours, kind, theirs, kind);             \
  JD_SAME(ours, bytes, theirs, bytes);           \
  JD_SAME(ours, start, theirs, start);           \
  JD_SAME(ours, end, theirs, end);               \
  JD_SAME(ours, device, theirs, deviceId);       \
  JD_SAME(ours, stream, theirs, streamId);       \
  JD_SAME(ours, correlation, theirs, correlationId)

JD_SAME_KERNEL(CUpti_ActivityKernel9);
#if CUPTI_API_VERSION >= 130000
JD_SAME_KERNEL(CUpti_ActivityKernel10);
JD_SAME_TRANSFER(MemcpyActivity, CUpti_ActivityMemcpy6);
JD_SAME(MemcpyActivity, copy_kind, CUpti_ActivityMemcpy6, copyKind);
#endif
JD_SAME_TRANSFER(MemcpyActivity, CUpti_ActivityMemcpy5);
JD_SAME(MemcpyActivity, copy_kind, CUpti_ActivityMemcpy5, copyKind);
JD_SAME_TRANSFER(MemsetActivity, CUpti_ActivityMemset4);

static_assert(sizeof(ExternalCorrelationActivity) == sizeof(CUpti_ActivityExternalCorrelation));
JD_SAME(ExternalCorrelationActivity, external_kind, CUpti_ActivityExternalCorrelation,
        externalKind);
JD_SAME(ExternalCorrelationActivity, external_id, CUpti_ActivityExternalCorrelation, externalId);
JD_SAME(ExternalCorrelationActivity, correlation, CUpti_ActivityExternalCorrelation, correlationId);

static_assert(int{kMemcpy} == CUPTI_ACTIVITY_KIND_MEMCPY);
static_assert(int{kMemset} == CUPTI_ACTIVITY_KIND_MEMSET);
static_assert(int{kDriver} == CUPTI_ACTIVITY_KIND_DRIVER);
static_assert(int{kRuntime} == CUPTI_ACTIVITY_KIND_RUNTIME);
static_assert(int{kConcurrentKernel} == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
static_assert(int{kExternalCorrelation} == CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION);
static_assert(kCustom0 == CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0);
static_assert(kForced == CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);

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
