#include "spool/kernels.h"

#include <cstring>

#include <gmock/gmock.h>
#include <rapidcheck/gtest.h>

namespace joulediff::spool {
namespace {

std::vector<Kernel> kernels_of(std::string_view batch) {
  std::vector<Kernel> kernels;
  EXPECT_TRUE(read_kernels(batch, kernels));
  return kernels;
}

bool same(const std::vector<Kernel>& a, const std::vector<Kernel>& b) {
  return a.size() == b.size() &&
         (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(Kernel)) == 0);
}

// Any kernel, of values small and large, in any order of time.
Kernel any_kernel() {
  Kernel kernel{};
  kernel.start_ns = *rc::gen::arbitrary<std::uint64_t>();
  kernel.end_ns = *rc::gen::arbitrary<std::uint64_t>();
  for (std::uint32_t* field : {&kernel.name, &kernel.correlation, &kernel.pass, &kernel.stream,
                               &kernel.grid[0], &kernel.grid[2], &kernel.block[1], &kernel.device})
    *field = *rc::gen::element(0u, 1u, 127u, 128u, 0x80000000u, 0xFFFFFFFFu);
  return kernel;
}

RC_GTEST_PROP(KernelBatch, GivesBackWhatWasAdded, ()) {
  std::vector<Kernel> kernels(*rc::gen::inRange<std::size_t>(0, 30));
  KernelBatch batch;
  for (Kernel& kernel : kernels) {
    kernel = any_kernel();
    batch.add(kernel);
  }
  RC_ASSERT(batch.count() == kernels.size());
  RC_ASSERT(same(kernels_of(batch.bytes()), kernels));
  const std::string first(batch.bytes());
  batch.clear();
  for (const Kernel& kernel : kernels) batch.add(kernel);
  RC_ASSERT(batch.bytes() == first);  // nothing of the batch before is in it
}

TEST(KernelBatch, TakesTenBytesForOneOfAFewShapes) {
  KernelBatch batch;
  for (std::uint32_t i = 0; i < 4096; ++i) {
    const std::uint64_t start = 1'000'000'000'000 + std::uint64_t{20'000} * i;
    batch.add({start, start + 15'000, i % 50, 3 * i, 3, 7, {i % 50, 1, 1}, {256, 1, 1}, 0, 0});
  }
  EXPECT_LT(batch.bytes().size(), std::size_t{10} * 4096);
}

TEST(KernelBatch, RefusesWhatIsCutOrWrong) {
  KernelBatch batch;
  batch.add({10, 20, 1, 2, 3, 4, {5, 6, 7}, {8, 9, 10}, 11, 0});
  const std::string whole(batch.bytes());
  std::vector<Kernel> kernels;
  for (std::size_t size = 1; size < whole.size(); ++size)
    EXPECT_FALSE(read_kernels(std::string_view(whole).substr(0, size), kernels)) << size;
  EXPECT_FALSE(read_kernels("\x05", kernels));                   // a shape that nothing named
  EXPECT_FALSE(read_kernels(std::string(20, '\xFF'), kernels));  // a number without an end
  EXPECT_TRUE(kernels.empty());
}

RC_GTEST_PROP(KernelBatch, AnyBytesCanBeRead, (const std::string& bytes)) {
  std::vector<Kernel> kernels;
  read_kernels(bytes, kernels);
  RC_ASSERT(kernels.size() <= bytes.size());
}

}  // namespace
}  // namespace joulediff::spool
