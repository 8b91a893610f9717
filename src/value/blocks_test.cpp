// A block of elements is the sum of its elements, whatever instructions gathered it.
#include "value/blocks.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace joulediff::value {

void gather_plain(const float* x, std::size_t n, Gathered& result);

namespace {

// Any bits: subnormals, infinities, NaNs and both zeros among them.
std::vector<float> any_bits(std::size_t n, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<float> x(n);
  for (float& one : x) {
    auto bits = static_cast<std::uint32_t>(random());
    switch (random() % 8) {
      case 0: bits = (bits & 0x80000000u) | 0x7F800000u; break;  // infinity
      case 1: bits &= 0x80000000u; break;                        // zero
      case 2: bits &= 0x807FFFFFu; break;                        // subnormal
      case 3: bits = (bits & 0x8FFFFFFFu) | 0x30000000u; break;  // subnormal in fp16
      case 4: bits = (bits & 0x8001FFFFu) | 0x47000000u; break;  // near its greatest
      case 5:
        bits = (bits & 0xFFFF0000u) | (static_cast<std::uint32_t>(random() % 2) << 15);
        break;  // ties
      default: break;
    }
    std::memcpy(&one, &bits, sizeof one);
  }
  return x;
}

void expect_same(const Gathered& one, const Gathered& other) {
  EXPECT_EQ(one.nan, other.nan);
  EXPECT_EQ(one.positive_infinity, other.positive_infinity);
  EXPECT_EQ(one.negative_infinity, other.negative_infinity);
  EXPECT_EQ(one.own, other.own);
  EXPECT_EQ(one.bf16, other.bf16);
  EXPECT_EQ(one.fp16, other.fp16);
  EXPECT_EQ(one.low, other.low);
  EXPECT_EQ(one.high, other.high);
  EXPECT_EQ(one.third, other.third);
  for (std::size_t k = 0; k < 5; ++k)
    EXPECT_NEAR(one.sum[k], other.sum[k], 1e-12 * std::abs(one.sum[k])) << k;
}

TEST(Gathered, ABlockIsTheSumOfItsElements) {
  for (const std::size_t n : {0, 1, 2, 15, 16, 17, 31, 33, 1000, 4096}) {
    const std::vector<float> x = any_bits(n, static_cast<unsigned>(n));
    Gathered block, single, plain;
    block.add(x.data(), n);
    for (const float& one : x) single.add(&one, 1);
    expect_same(block, single);
    if (n % 16 != 0) continue;
    gather_plain(x.data(), n, plain);
    expect_same(block, plain);
  }
}

TEST(Gathered, KnowsAThirdValueFromTwoThatComeOften) {
  const auto third = [](const std::vector<float>& x) {
    Gathered g;
    for (std::size_t at = 0; at < x.size(); at += 16)
      g.add(x.data() + at, std::min<std::size_t>(16, x.size() - at));
    return g.third;
  };
  std::vector<float> x(40, 1.0F);
  EXPECT_FALSE(third(x));
  x[20] = 2;
  EXPECT_FALSE(third(x));
  x[39] = 2;
  EXPECT_FALSE(third(x));
  x[3] = 3;
  EXPECT_TRUE(third(x)) << "1, 2 and 3, of which no block has all";
  std::vector<float> zeros(32, 0.0F);
  zeros[5] = -0.0F;
  zeros[17] = 1;
  EXPECT_FALSE(third(zeros)) << "there is one zero";
}

}  // namespace
}  // namespace joulediff::value
