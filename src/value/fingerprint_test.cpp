#include "value/fingerprint.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>
#include <fstream>
#include <numeric>
#include <string>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>
#include <rapidcheck/gtest.h>

namespace joulediff::value {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::ElementsAreArray;

std::uint64_t from_hex(const std::string& text) {
  std::uint64_t x = 0;
  std::from_chars(text.data(), text.data() + text.size(), x, 16);
  return x;
}

std::size_t part_bytes(DType dtype) {
  switch (dtype) {
    case DType::float64:
    case DType::int64:
    case DType::complex128: return 8;
    case DType::float32:
    case DType::int32:
    case DType::complex64: return 4;
    case DType::float16:
    case DType::bfloat16:
    case DType::int16: return 2;
    default: return 1;
  }
}

// The elements of a case, as tools/fingerprint_vectors.py defines them.
std::vector<std::byte> elements(const json& test, DType dtype) {
  const std::size_t size = part_bytes(dtype);
  std::size_t count = class_of(dtype) == DTypeClass::complex ? 2 : 1;
  for (const auto& n : test["shape"]) count *= n.get<std::size_t>();
  const std::uint64_t keep = from_hex(test["and"]), force = from_hex(test["or"]);
  auto x = test["seed"].get<std::uint32_t>();
  const auto next = [&] { return x = 1664525u * x + 1013904223u; };
  std::vector<std::byte> bytes(count * size);
  const auto store = [&](std::size_t i, std::uint64_t bits) {
    std::memcpy(bytes.data() + i * size, &bits, size);
  };
  for (std::size_t i = 0; i < count; ++i) {
    std::uint64_t bits = next();
    if (size == 8)
      bits |= std::uint64_t{next()} << 32;
    else
      bits >>= 32 - 8 * size;
    store(i, (bits & keep) | force);
  }
  for (const auto& replacement : test["set"])
    store(replacement[0].get<std::size_t>(), from_hex(replacement[1]));
  return bytes;
}

TEST(Fingerprint, ReproducesTheTestVectors) {
  std::ifstream file(JOULEDIFF_SOURCE_DIR "/tests/golden/fingerprints.json");
  const json golden = json::parse(file);
  ASSERT_GE(golden["cases"].size(), 30u);
  for (const json& test : golden["cases"]) {
    SCOPED_TRACE(test["name"].get<std::string>());
    const json& want = test["expected"];
    const auto dtype = static_cast<DType>(test["code"].get<int>());
    const auto bytes = elements(test, dtype);
    const Fingerprint f = fingerprint(dtype, bytes);
    EXPECT_EQ(f.dtype, dtype);
    EXPECT_EQ(f.count, want["count"]);
    EXPECT_EQ(f.nan, want["nan"]);
    EXPECT_EQ(f.positive_infinity, want["positive_infinity"]);
    EXPECT_EQ(f.negative_infinity, want["negative_infinity"]);
    EXPECT_EQ(f.distinct, want["distinct"]);
    EXPECT_EQ(f.own, want["own"].get<Lanes>());
    EXPECT_EQ(f.bf16, want["bf16"].get<Lanes>());
    EXPECT_EQ(f.fp16, want["fp16"].get<Lanes>());
    const auto rms = want["rms"].get<double>();
    const auto near = [&](double got, const char* key, double scale) {
      EXPECT_NEAR(got, want[key].get<double>(), 1e-12 * scale) << key;
    };
    near(f.mean, "mean", rms);
    near(f.mean_abs, "mean_abs", rms);
    near(f.rms, "rms", rms);
    near(f.l4, "l4", want["l4"].get<double>());
    near(f.m3, "m3", std::pow(want["l4"].get<double>(), 3));
    EXPECT_EQ(f.min, want["min"].get<double>());
    EXPECT_EQ(f.max, want["max"].get<double>());

    std::vector<std::uint32_t> want_bits, got_bits;
    for (const json& bits : want["sample"])
      want_bits.push_back(static_cast<std::uint32_t>(from_hex(bits)));
    for (const float x : sample(dtype, bytes, test["shape"].get<std::vector<std::int64_t>>()))
      got_bits.push_back(std::isnan(x) ? 0x7FC00000u : std::bit_cast<std::uint32_t>(x));
    EXPECT_EQ(got_bits, want_bits);
  }
}

std::span<const std::byte> bytes_of(const auto& values) {
  return std::as_bytes(std::span(values));
}

TEST(Fingerprint, OfAnUnknownTypeSaysNothing) {
  const std::vector<float> x{1, 2};
  EXPECT_EQ(fingerprint(DType::other, bytes_of(x)), Fingerprint{});
  const std::vector<std::int64_t> shape{2};
  EXPECT_TRUE(sample(DType::other, bytes_of(x), shape).empty());
}

TEST(Fingerprint, NarrowAndWideFormsOfTheSameValuesAgree) {
  const std::vector<std::uint16_t> narrow{0x3F80, 0xC000, 0x0001, 0xFF80};  // bfloat16
  std::vector<float> wide;
  for (const auto x : narrow) wide.push_back(std::bit_cast<float>(std::uint32_t{x} << 16));
  Fingerprint f = fingerprint(DType::bfloat16, bytes_of(narrow));
  f.dtype = DType::float32;
  EXPECT_EQ(f, fingerprint(DType::float32, bytes_of(wide)));
}

RC_GTEST_PROP(Fingerprint, HashesDoNotDependOnTheOrder, (std::vector<std::uint32_t> words)) {
  const Fingerprint a = fingerprint(DType::float32, bytes_of(words));
  std::reverse(words.begin(), words.end());
  const Fingerprint b = fingerprint(DType::float32, bytes_of(words));
  RC_ASSERT(a.own == b.own);
  RC_ASSERT(a.bf16 == b.bf16);
  RC_ASSERT(a.fp16 == b.fp16);
  RC_ASSERT(a.distinct == b.distinct);
}

RC_GTEST_PROP(Fingerprint, OneChangedElementChangesTheHash, ()) {
  auto words = *rc::gen::nonEmpty(rc::gen::arbitrary<std::vector<std::int32_t>>());
  const auto where = *rc::gen::inRange<std::size_t>(0, words.size());
  const auto before = fingerprint(DType::int32, bytes_of(words)).own;
  words[where] ^= 1 << *rc::gen::inRange(0, 31);
  RC_ASSERT(fingerprint(DType::int32, bytes_of(words)).own != before);
}

std::vector<std::int64_t> any_shape() {
  auto shape =
      *rc::gen::container<std::vector<std::int64_t>>(rc::gen::inRange<std::int64_t>(2, 40));
  shape.resize(std::min<std::size_t>(shape.size(), 3));
  return shape;
}

RC_GTEST_PROP(SampleGrid, IsAscendingInRangeAndSmall, ()) {
  const auto shape = any_shape();
  const auto grid = sample_grid(shape);
  std::size_t product = 1;
  for (std::size_t axis = 0; axis < shape.size(); ++axis) {
    product *= grid[axis].size();
    RC_ASSERT(std::is_sorted(grid[axis].begin(), grid[axis].end()));
    RC_ASSERT(std::adjacent_find(grid[axis].begin(), grid[axis].end()) == grid[axis].end());
    RC_ASSERT(grid[axis].back() < static_cast<std::uint64_t>(shape[axis]));
  }
  RC_ASSERT(product <= kSampleLimit);
}

// The point of the grid: the sample of a transposed tensor is the transposed sample.
RC_GTEST_PROP(SampleGrid, FollowsATransposition, ()) {
  auto shape = any_shape();
  shape.resize(2, 37);
  const auto rows = static_cast<std::size_t>(shape[0]),
             columns = static_cast<std::size_t>(shape[1]);
  std::vector<float> x(rows * columns), y(rows * columns);
  std::iota(x.begin(), x.end(), 0.0f);
  for (std::size_t i = 0; i < rows; ++i)
    for (std::size_t j = 0; j < columns; ++j) y[j * rows + i] = x[i * columns + j];
  const std::vector<std::int64_t> turned{shape[1], shape[0]};
  const auto a = sample(DType::float32, bytes_of(x), shape);
  const auto b = sample(DType::float32, bytes_of(y), turned);
  RC_ASSERT(a.size() == b.size());
  const std::size_t k = sample_grid(shape)[0].size(), l = a.size() / k;
  for (std::size_t i = 0; i < k; ++i)
    for (std::size_t j = 0; j < l; ++j) RC_ASSERT(a[i * l + j] == b[j * k + i]);
}

TEST(SampleGrid, OfEmptyAndScalarShapes) {
  EXPECT_TRUE(sample_grid({}).empty());
  const std::vector<std::int64_t> empty{0, 3};
  EXPECT_THAT(sample_grid(empty), ElementsAre(testing::IsEmpty(), testing::SizeIs(3)));
  EXPECT_TRUE(sample(DType::float32, {}, empty).empty());
  const std::vector<float> one{2.5f};
  EXPECT_THAT(sample(DType::float32, bytes_of(one), {}), ElementsAre(2.5f));
}

}  // namespace
}  // namespace joulediff::value
