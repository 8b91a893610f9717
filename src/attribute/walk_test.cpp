#include "attribute/walk.h"

#include <string_view>

#include <gmock/gmock.h>
#include <rapidcheck/gtest.h>

namespace joulediff::attribute {
namespace {

using testing::ElementsAre;

// One letter for each kernel; upper case is the same name in another shape.
Pattern symbols(std::string_view text) {
  Pattern result;
  for (const char c : text)
    result.push_back({static_cast<std::uint32_t>(c),
                      static_cast<std::uint32_t>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c)});
  return result;
}

constexpr int kNone = -1;

// In the endless repetition of a single pattern.
std::vector<int> positions(std::string_view pattern, std::string_view stream) {
  const std::vector<Pattern> one = {symbols(pattern)};
  std::vector<int> result;
  for (const Place& place : walk(one, symbols(stream)).places)
    result.push_back(place.found() ? static_cast<int>(place.lap * pattern.size() + place.place)
                                   : kNone);
  return result;
}

// "1a2 1b0": lap, the pattern's letter, place; "-" where none.
std::string places(const std::vector<std::string>& patterns, std::string_view stream,
                   const Likely& likely = {}) {
  std::vector<Pattern> all;
  for (const std::string& pattern : patterns) all.push_back(symbols(pattern));
  std::string result;
  for (const Place& place : walk(all, symbols(stream), likely).places) {
    if (!result.empty()) result += ' ';
    result += place.found() ? std::to_string(place.lap) + static_cast<char>('a' + place.pattern) +
                                  std::to_string(place.place)
                            : "-";
  }
  return result;
}

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

TEST(Walk, ALoopThatGoesRoundOftenerIsFollowed) {
  // Twice in the pattern, four times in the stream, then the next step.
  EXPECT_THAT(
      positions("xabcdefghabcdefghy", "xabcdefghabcdefghabcdefghabcdefghyxab"),
      ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16,  //
                  9, 10, 11, 12, 13, 14, 15, 16, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20));
}

TEST(Walk, ALoopThatGoesRoundLessOftenIsFollowed) {
  EXPECT_THAT(positions("xabcdabcdabcdy", "xabcdyxabcdabcdy"),
              ElementsAre(0, 1, 2, 3, 4, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 27));
}

TEST(Walk, AShortLoopIsFollowed) {
  EXPECT_THAT(positions("xaby", "xabababyxaby"), ElementsAre(0, 1, 2, 1, 2, 1, 2, 3, 4, 5, 6, 7));
  EXPECT_THAT(positions("xayz", "xaaaayz"), ElementsAre(0, 1, 1, 1, 1, 2, 3));
}

TEST(Walk, ALoopAtTheEndOfAStepIsNoNewStep) {
  EXPECT_EQ(places({"opqrstuabcdefg"}, "opqrstuabcdefgabcdefgopqr"),
            "0a0 0a1 0a2 0a3 0a4 0a5 0a6 0a7 0a8 0a9 0a10 0a11 0a12 0a13 "
            "0a7 0a8 0a9 0a10 0a11 0a12 0a13 1a0 1a1 1a2 1a3");
}

TEST(Walk, KernelsThatChangedPlacesAreTheirOwn) {
  EXPECT_THAT(positions("abcdefgh", "acbdefghabcd"),
              ElementsAre(0, 2, 1, 3, 4, 5, 6, 7, 8, 9, 10, 11));
}

TEST(Walk, AStepInAnUnseenShapeIsFollowedByName) {
  EXPECT_THAT(positions("abcdef", "abcdefABCDEFabcdef"),
              ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17));
  EXPECT_THAT(positions("abcdef", "ABC?DEF"), ElementsAre(0, 1, 2, kNone, 3, 4, 5));
}

TEST(Walk, EachStepFollowsThePatternThatFits) {
  EXPECT_EQ(places({"abc", "xyz"}, "abcxyzxyzabc"),
            "0a0 0a1 0a2 1b0 1b1 1b2 2b0 2b1 2b2 3a0 3a1 3a2");
  // Equal names: the shape decides, and where no shape is known, what came before.
  EXPECT_EQ(places({"abc", "aBC"}, "aBCabc"), "0b0 0b1 0b2 1a0 1a1 1a2");
}

TEST(Walk, WhatIsLikelyBreaksTies) {
  const std::vector<std::uint32_t> first = {0}, second = {1};
  const Likely likely = [&](std::size_t symbol) {
    return std::span<const std::uint32_t>(symbol == 3 ? second : first);
  };
  EXPECT_EQ(places({"abc", "abc"}, "abcabcabc", likely), "0a0 0a1 0a2 1b0 1b1 1b2 2a0 2a1 2a2");
  EXPECT_EQ(places({"abc", "xyz"}, "abcabc", likely), "0a0 0a1 0a2 1a0 1a1 1a2");
}

TEST(Walk, AVariantIsFollowedFromWhereItPartsOn) {
  EXPECT_EQ(places({"abcdef", "abcdpqrstuvw"}, "abcdefabcdpqrstuvwabcdef"),
            "0a0 0a1 0a2 0a3 0a4 0a5 1b0 1b1 1b2 1b3 1b4 1b5 1b6 1b7 1b8 1b9 1b10 1b11 "
            "2a0 2a1 2a2 2a3 2a4 2a5");
}

// Damage anywhere: laps rise, each place is taken once a lap but for loops, and what matches by
// name is where the pattern says it is.
RC_GTEST_PROP(Walk, PlacesAgreeWithThePattern, ()) {
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
  for (std::size_t i = 0; i < found.size(); ++i)
    if (found[i] != kNone)
      RC_ASSERT(pattern[static_cast<std::size_t>(found[i]) % pattern.size()] == stream[i]);
  if (faults == 0) RC_ASSERT(found.back() == static_cast<int>(stream.size()) - 1);
}

// A stream that is damaged everywhere costs a bounded amount for each kernel.
TEST(Walk, IsLinearInADamagedStream) {
  const auto comparisons = [](std::uint32_t length, std::uint32_t patterns) {
    std::vector<Pattern> all(patterns);
    Pattern stream;
    for (std::uint32_t p = 0; p < patterns; ++p)
      for (std::uint32_t i = 0; i < 1000; ++i) all[p].push_back({i % 37 + 100 * p, i % 37});
    for (std::uint32_t i = 0; i < length; ++i)
      stream.push_back(i % 5 == 0 ? Symbol{99, 99} : all[i / 1000 % patterns][i % 1000]);
    return walk(all, stream).comparisons;
  };
  for (const std::uint32_t patterns : {1u, 40u}) {
    EXPECT_LT(comparisons(50'000, patterns), 100u * 50'000) << patterns;
    EXPECT_LT(comparisons(200'000, patterns), 41 * comparisons(50'000, patterns) / 10) << patterns;
  }
}

}  // namespace
}  // namespace joulediff::attribute
