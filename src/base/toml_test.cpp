#include "base/toml.h"

#include <gmock/gmock.h>

namespace joulediff {
namespace {

using testing::HasSubstr;

std::string fault(const std::string& text) {
  const auto read = read_toml(text, "f");
  if (read) return "nothing";
  EXPECT_EQ(read.error().code, ExitCode::bad_input);
  EXPECT_EQ(read.error().message.find('\n'), std::string::npos);
  return read.error().message;
}

TEST(Toml, IsATreeThatKnowsItsLines) {
  const auto root = read_toml(
      "\xEF\xBB\xBFt = \"µ\" # µ\nn = 1_000\nx = 1.5\n[a.b]\nflag = true\n[[c]]\nd = [1, 'two']\n"
      "when = 2024-02-29\n",
      "f");
  ASSERT_TRUE(root) << root.error().message;
  EXPECT_EQ(*root->find("t")->text(), "µ");
  EXPECT_EQ(*root->find("n")->number(), 1000);
  EXPECT_EQ(*root->find("x")->number(), 1.5);
  const TomlNode* b = root->find("a")->find("b");
  EXPECT_EQ(b->line, 4u);
  EXPECT_TRUE(*b->find("flag")->flag());
  EXPECT_EQ(b->find("flag")->path, "a.b.flag");
  const TomlNode& c = root->find("c")->array()->front();
  EXPECT_EQ(c.path, "c[1]");
  EXPECT_EQ(*c.find("d")->array()->at(1).text(), "two");
  EXPECT_EQ(c.find("d")->line, 7u);
  EXPECT_EQ(c.find("when")->value.index(), 0u) << "dates are not read";
  EXPECT_EQ(root->find("none"), nullptr);
  EXPECT_EQ(root->find("n")->find("none"), nullptr);
}

TEST(Toml, MistakesAreOneLineWithTheirPlace) {
  EXPECT_THAT(fault("a = 1\na = 2\n"), HasSubstr("f:2: "));
  EXPECT_THAT(fault("a = 1\n\nb = \"open\n"), HasSubstr("f:3: "));
  EXPECT_THAT(fault("[work\n"), HasSubstr("f:1: "));
  EXPECT_THAT(fault("a = \"\xC3\x28\"\n"), HasSubstr("f:1: "));
  EXPECT_THAT(fault(std::string("\0\1\2", 3)), HasSubstr("f:1: "));
}

// Each ended toml++ 3.3 in an assertion, or in a debug build only.
TEST(Toml, WhatTheLibraryAssertsIsAMistakeOfTheFile) {
  EXPECT_THAT(fault("a = 1\nb = 2024-01-01 1\n"), HasSubstr("f:2: "));
  EXPECT_THAT(fault("a = 1\n [.a]\nb = 2\n"), HasSubstr("f:2: "));
  EXPECT_THAT(fault("[[ ]]"), HasSubstr("f:1: "));
  EXPECT_THAT(fault("a = 1\n\nb = \xEF\xBF\xB2\n"), HasSubstr("f:3: "));
  EXPECT_THAT(fault("a=6t@\"µ\""), HasSubstr("f:1: "));
  for (const char* text : {"a = 1µ\n", "µ = 1\n", "a = ɚ8\n", "a = {b = 1 Ӓ}\n", "\u3000a = 1\n"})
    EXPECT_THAT(fault(text), HasSubstr("f:1: ")) << text;
}

std::string times(std::size_t count, std::string_view what) {
  std::string out;
  for (std::size_t i = 0; i < count; ++i) out += what;
  return out;
}

TEST(Toml, NestingIsBounded) {
  EXPECT_THAT(fault("x = 1\n" + times(500'000, "a.") + "a = 1\n"), HasSubstr("f:2: keys of more"));
  EXPECT_THAT(fault("[" + times(500'000, "a.") + "a]\n"), HasSubstr("f:1: keys of more"));
  EXPECT_THAT(fault(times(500'000, "\",\".") + "a = 1\n"), HasSubstr("f:1: keys of more"));
  EXPECT_THAT(fault("a = " + times(500'000, "[")), HasSubstr("nest"));
  EXPECT_THAT(fault("a = " + times(500'000, "{a=")), HasSubstr("nest"));
  EXPECT_EQ(fault("# " + times(1000, ".") + "\na = [" + times(1000, "0.5, ") + "]\n"), "nothing");
  // The deepest that is read is also taken apart again.
  const std::string key = times(200, "a.") + "a";
  std::string deepest = "[" + key + "]\n" + key + " = ";
  for (int i = 0; i < 7; ++i) deepest += "[\n{" + key + " = ";
  deepest += "1";
  for (int i = 0; i < 7; ++i) deepest += "}]";
  EXPECT_EQ(fault(deepest + "\n"), "nothing");
}

TEST(Nearest, IsNearEnough) {
  const std::set<std::string, std::less<>> words = {"unit", "count", "valid"};
  EXPECT_EQ(nearest("units", words), "unit");
  EXPECT_EQ(nearest("cuont", words), "count");
  EXPECT_EQ(nearest("temperature", words), std::nullopt);
  EXPECT_EQ(nearest("peu", {"pue", "redundancy"}), "pue");
  EXPECT_EQ(nearest("idle_wats", {"idle_watts", "peak_watts"}), "idle_watts");
}

}  // namespace
}  // namespace joulediff
