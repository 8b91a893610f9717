#include "attribute/walk.h"

#include <chrono>
#include <string_view>

#include <gmock/gmock.h>
#include <rapidcheck/gtest.h>

namespace joulediff::attribute {
namespace {

using testing::ElementsAre;

// One letter for each kernel; upper case is the same name in another shape.
std::vector<Symbol> symbols(std::string_view text) {
  std::vector<Symbol> result;
  for (const char c : text)
    result.push_back({static_cast<std::uint32_t>(c),
                      static_cast<std::uint32_t>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c)});
  return result;
}

std::vector<std::int64_t> positions(std::string_view pattern, std::string_view stream) {
  return walk(symbols(pattern), symbols(stream));
}

constexpr std::int64_t kNone = kUnmatched;

TEST(Walk, ExactRepetitionsAreFollowed) {
  EXPECT_THAT(positions("abc", "abcabca"), ElementsAre(0, 1, 2, 3, 4, 5, 6));
}

TEST(Walk, AnInsertedKernelIsLeftOut) {
  EXPECT_THAT(positions("abcd", "ab?cdabcd"), ElementsAre(0, 1, kNone, 2, 3, 4, 5, 6, 7));
}

TEST(Walk, AMissingKernelIsSteppedOver) {
  EXPECT_THAT(positions("abcdef", "abdefabcdef"), ElementsAre(0, 1, 3, 4, 5, 6, 7, 8, 9, 10, 11));
}

TEST(Walk, AnotherShapeOfTheSameNameIsTheSameOperator) {
  EXPECT_THAT(positions("abcdef", "abcdefaBcdefabcDEf"),
              ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17));
}

TEST(Walk, AnotherKernelInTheSamePlaceIsNot) {
  EXPECT_THAT(positions("abcdef", "a?cdef"), ElementsAre(0, kNone, 2, 3, 4, 5));
}

TEST(Walk, ALostBufferIsLeaptOver) {
  // 8 of 16 lost, more than the near search reaches.
  EXPECT_THAT(positions("abcdefghijklmnop", "abcdmnopabcdefgh"),
              ElementsAre(0, 1, 2, 3, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23));
}

TEST(Walk, AForeignStretchKeepsTheCountOfSteps) {
  std::string stream = "abcdefgh";
  stream += std::string(16, '?');  // two steps of something else
  stream += "abcdefgh";
  EXPECT_EQ(positions("abcdefgh", stream).back(), 31);
}

TEST(Walk, ABeginInTheMiddleIsFound) {
  EXPECT_THAT(positions("abcdefghij", "efghijabc"), ElementsAre(4, 5, 6, 7, 8, 9, 10, 11, 12));
}

TEST(Walk, NothingMatchesNothing) {
  EXPECT_THAT(positions("", "ab"), ElementsAre(kNone, kNone));
  EXPECT_THAT(positions("ab", "??"), ElementsAre(kNone, kNone));
  EXPECT_TRUE(positions("ab", "").empty());
}

// Damage anywhere: positions rise, and what matches by name is where the pattern says it is.
RC_GTEST_PROP(Walk, PositionsRiseAndAgreeWithThePattern, ()) {
  const auto letters = rc::gen::container<std::string>(rc::gen::inRange('a', 'f'));
  const std::string pattern = *rc::gen::nonEmpty(letters);
  std::string stream;
  for (int lap = 0; lap < 5; ++lap) stream += pattern;
  const int faults = *rc::gen::inRange(0, 6);
  for (int i = 0; i < faults && !stream.empty(); ++i) {
    const auto where = *rc::gen::inRange<std::size_t>(0, stream.size());
    if (*rc::gen::arbitrary<bool>())
      stream.erase(where, *rc::gen::inRange<std::size_t>(1, 9));
    else
      stream.insert(where, *letters);
  }
  const auto found = positions(pattern, stream);
  RC_ASSERT(found.size() == stream.size());
  std::int64_t last = -1;
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (found[i] == kUnmatched) continue;
    RC_ASSERT(found[i] > last);
    last = found[i];
    RC_ASSERT(pattern[static_cast<std::size_t>(last) % pattern.size()] == stream[i]);
  }
  if (faults == 0) RC_ASSERT(last == static_cast<std::int64_t>(stream.size()) - 1);
}

// A stream that is damaged everywhere costs a bounded amount for each kernel.
TEST(Walk, IsLinearInADamagedStream) {
  std::vector<Symbol> pattern, stream;
  for (std::uint32_t i = 0; i < 1000; ++i) pattern.push_back({i % 37, i % 37});
  for (std::uint32_t i = 0; i < 100'000; ++i)
    stream.push_back(i % 5 == 0 ? Symbol{99, 99} : pattern[i % 1000]);
  const auto begin = std::chrono::steady_clock::now();
  walk(pattern, stream);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  EXPECT_LT(took.count(), 2.0);  // 20 to 50 ms in an optimised build
}

}  // namespace
}  // namespace joulediff::attribute
