#include "lab/align.h"

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace joulediff::lab {
namespace {

using Names = std::vector<std::string_view>;
using testing::ElementsAre;

TEST(Align, EqualSequencesArePartnersInOrder) {
  EXPECT_THAT(align(Names{"a", "b", "a"}, Names{"a", "b", "a"}), ElementsAre(0, 1, 2));
}

TEST(Align, WhatIsMoreOrLessHasNoPartner) {
  EXPECT_THAT(align(Names{"a", "b", "c"}, Names{"a", "x", "b", "c"}),
              ElementsAre(0, kNoPartner, 1, 2));
  EXPECT_THAT(align(Names{"a", "b", "c"}, Names{"a", "c"}), ElementsAre(0, 2));
  EXPECT_THAT(align(Names{}, Names{"a"}), ElementsAre(kNoPartner));
}

RC_GTEST_PROP(Align, PartnersAscendHaveTheSameNameAndAreAsManyAsCanBe, ()) {
  const auto letters = rc::gen::elementOf(std::string("abc"));
  const auto a = *rc::gen::container<std::string>(letters);
  const auto b = *rc::gen::container<std::string>(letters);
  Names reference, names;
  for (const char& c : a) reference.emplace_back(&c, 1);
  for (const char& c : b) names.emplace_back(&c, 1);
  const auto partners = align(reference, names);
  std::int64_t last = -1;
  std::size_t pairs = 0;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (partners[i] == kNoPartner) continue;
    RC_ASSERT(std::int64_t{partners[i]} > last);
    RC_ASSERT(reference[partners[i]] == names[i]);
    last = partners[i];
    ++pairs;
  }
  std::vector<std::vector<std::size_t>> best(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i < a.size(); ++i)
    for (std::size_t j = 0; j < b.size(); ++j)
      best[i + 1][j + 1] = a[i] == b[j] ? best[i][j] + 1 : std::max(best[i][j + 1], best[i + 1][j]);
  RC_ASSERT(pairs == best[a.size()][b.size()]);
}

}  // namespace
}  // namespace joulediff::lab
