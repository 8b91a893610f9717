// Buffers that the CUPTI of an H200 filled (tests/fakes/cupti/h200), through the fake to the
// recorder.

#include <algorithm>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <set>

#include <gmock/gmock.h>

#include "joulediff/record.h"
#include "record/fake_device.h"

namespace joulediff::record {
namespace {

using spool::Type;
using testing::Ge;
using testing::HasSubstr;
using testing::SizeIs;

const std::string kFolder = JOULEDIFF_SOURCE_DIR "/tests/fakes/cupti/h200/";

// When the order's buffer was filled, CUPTI was asked for external correlation, too: which call was
// made while which number was pushed.
struct ExternalCorrelation {
  std::int32_t kind, external_kind;
  std::uint64_t number;
  std::uint32_t correlation, reserved;
};
constexpr int kExternalCorrelation = 39;

// The calls that led to what lies in the buffer, each made by the operator that made it.
void make_calls(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string bytes(std::istreambuf_iterator<char>(file), {});
  for (std::size_t at = 0; at < bytes.size();) {
    ExternalCorrelation call{};
    std::memcpy(&call, bytes.data() + at, std::min(sizeof call, bytes.size() - at));
    at += FAKE(fake_cupti_record_bytes)(call.kind, 130001);
    if (call.kind != kExternalCorrelation) continue;
    jd_operator_begin(static_cast<std::uint32_t>(call.number >> 32),
                      static_cast<std::uint32_t>(call.number), "captured");
    FAKE(fake_cupti_call_as)(call.correlation);
    jd_operator_end();
  }
}

Recorded played(const std::string& buffer, std::uint32_t pass) {
  return recorded(
      [&] {
        JD_REQUIRE(jd_kernels(pass) == 1);
        make_calls(kFolder + buffer);
        jd_kernels(JD_WARMUP);
      },
      fake_with("FAKE_CUPTI_PLAY", kFolder + buffer));
}

// How often each kind of the program's device work is there, by a part of its name.
std::map<std::string, int> counts(const Recorded& r) {
  const auto names = r.kernel_names();
  std::map<std::string, int> found;
  for (const spool::Kernel& kernel : r.kernels()) {
    std::string kind = names.at(kernel.name);
    for (const char* part : {"gemm", "Gelu", "FillFunctor", "FunctorOnSelf_add", "clamp", "reduce"})
      if (kind.find(part) != std::string::npos) kind = part;
    ++found[kind];
  }
  return found;
}

TEST(Captured, ATraceHasEveryKernelAndCopyOfItsThreeSteps) {
  const auto r = played("trace.v130001.buf", JD_TRACE);
  EXPECT_EQ(r.status, 0) << r.err;
  EXPECT_EQ(counts(r), (std::map<std::string, int>{{"gemm", 6},
                                                   {"Gelu", 6},
                                                   {"FillFunctor", 3},
                                                   {"FunctorOnSelf_add", 3},
                                                   {"clamp", 3},
                                                   {"reduce", 3},
                                                   {"memcpy HtoD", 3},
                                                   {"memcpy DtoH", 3}}));
  EXPECT_THAT(r.facts("manifest"), testing::Contains(HasSubstr(R"("graph_kernels":"6")")));
  std::set<std::uint32_t> streams;
  const auto names = r.kernel_names();
  for (const spool::Kernel& kernel : r.kernels()) {
    streams.insert(kernel.stream);
    EXPECT_EQ(kernel.device, 0u);
    EXPECT_LT(kernel.start_ns, kernel.end_ns);
    EXPECT_LT(kernel.end_ns - kernel.start_ns, 100'000u);
    if (names.at(kernel.name) == "memcpy HtoD") {
      EXPECT_EQ(kernel.grid[0], 8u * 64 * 4);  // bytes
    }
    if (names.at(kernel.name) == "memcpy DtoH") {
      EXPECT_EQ(kernel.grid[0], 4u);
    }
    if (kernel.kind == static_cast<std::uint32_t>(spool::KernelKind::kernel)) {
      EXPECT_GE(kernel.block[0], 32u);
    }
  }
  EXPECT_THAT(streams, SizeIs(2));
  EXPECT_THAT(r.payloads(Type::dropped), testing::IsEmpty());
}

TEST(Captured, AnOrderPassJoinsKernelsWithTheOperatorsThatLaunchedThem) {
  const auto r = played("order.v130001.buf", JD_ORDER);
  EXPECT_EQ(r.status, 0) << r.err;
  const auto seen = counts(r);
  EXPECT_EQ(seen.at("gemm"), 6);
  EXPECT_EQ(seen.at("reduce"), 3);
  std::map<std::uint32_t, std::uint32_t> operator_of;
  for (const auto& join : r.all<spool::Correlation>(Type::correlation))
    operator_of[join.correlation] = join.index;
  const auto names = r.kernel_names();
  std::map<std::string, std::set<std::uint32_t>> operators;
  for (const spool::Kernel& kernel : r.kernels()) {
    ASSERT_TRUE(operator_of.contains(kernel.correlation)) << names.at(kernel.name);
    operators[names.at(kernel.name)].insert(operator_of[kernel.correlation]);
  }
  // Product and GELU are launched twice in a step: each by its operator, both by the graph's
  // replay.
  std::set<std::uint32_t> graph;
  for (const auto& [name, indices] : operators) {
    const bool twice =
        name.find("gemm") != std::string::npos || name.find("Gelu") != std::string::npos;
    EXPECT_THAT(indices, SizeIs(twice ? 2 : 1)) << name;
    if (twice) graph.insert(*indices.rbegin());
  }
  EXPECT_THAT(graph, SizeIs(1));
  // item() waits for its copy in each step, and more.
  const auto waits = r.all<spool::Synchronisation>(Type::synchronisation);
  EXPECT_THAT(waits, SizeIs(Ge(3u)));
  for (const auto& wait : waits) EXPECT_LE(wait.start_ns, wait.end_ns);
}

}  // namespace
}  // namespace joulediff::record
