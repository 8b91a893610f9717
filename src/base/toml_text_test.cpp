#include "base/toml_text.h"

#include <gtest/gtest.h>

namespace joulediff {
namespace {

std::size_t fault(std::string_view text) {
  const auto found = toml_fault(text);
  return found ? found->line : 0;
}

TEST(TomlText, HeadersHaveNames) {
  EXPECT_EQ(fault("a = 1\n[b]\n[[ c ]]\n[\"d\"]\n"), 0u);
  EXPECT_EQ(fault("a = 1\n [.a]\n"), 2u);
  for (const char* text : {"[]", "[[[a]]]", "[ [a]]", "[[ ]]", "["})
    EXPECT_EQ(fault(text), 1u) << text;
  EXPECT_EQ(fault("x = [1,\n2]\n"), 0u);
}

TEST(TomlText, WhatIsNotAsciiStandsInStringsAndComments) {
  EXPECT_EQ(fault("\xEF\xBB\xBF"
                  "a = \"µ\" # µ\nb = 'µ'\nc = \"\"\"µ\n\\\"µ\"\"\"\n"),
            0u);
  EXPECT_EQ(fault("a = 1\n\nb = \xEF\xBF\xB2\n"), 3u);
  EXPECT_EQ(fault("c = '''\n'''µ"), 2u);
  EXPECT_EQ(fault("a = \"open\nµ = 1"), 2u);
  EXPECT_EQ(fault("a=6t@\"µ\""), 1u) << "no string begins there";
  EXPECT_EQ(fault("a=6t=\"µ\""), 1u);
  EXPECT_EQ(fault("a = {b=\"µ\", c='µ'}\n\"µ\".\"é\" = [\"µ\"]\n"), 0u);
}

TEST(TomlText, EndsWhereTheTextEnds) {
  for (const char* text : {"", "\"", "'''", "\"\\", "#", "a = \"\"\"x\\"})
    EXPECT_EQ(fault(text), 0u);
}

}  // namespace
}  // namespace joulediff
