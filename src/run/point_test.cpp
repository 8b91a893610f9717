#include "run/point.h"

#include <gmock/gmock.h>

namespace joulediff::run {
namespace {

using testing::HasSubstr;

TEST(Point, WhatIsNotSaidIsUnknown) {
  const auto point = read_point_text("p.toml", "label = \"x\"\n[energy]\njoules = 12\n");
  ASSERT_TRUE(point.has_value());
  EXPECT_EQ(point->label, "x");
  EXPECT_EQ(point->energy.joules, 12);
  EXPECT_FALSE(point->work.count.has_value());
  EXPECT_FALSE(point->per_unit().has_value());
  EXPECT_FALSE(point->phases.load.has_value());
  EXPECT_TRUE(point->boundary.kind.empty());
}

TEST(Point, EveryFactHasAPlaceInAFile) {
  std::size_t count = 0;
  Point point;
  facts([&count](const char*, const char*, auto&) { ++count; }, point);
  EXPECT_GT(count, 120U);
  const auto read = read_point_text(
      "p.toml",
      "schema = \"joulediff.point/1\"\nclaim = \"software\"\n[work]\nunit = \"token\"\n"
      "count = 1e6\nvalid = true\n[quality]\nprecision = [\"fp8\", \"bf16\"]\n"
      "[meter]\nreference_change = -0.02\n[repeats]\njoules = [1, 2.5]\n");
  ASSERT_TRUE(read.has_value()) << read.error().message;
  EXPECT_EQ(read->work.count, 1e6);
  EXPECT_EQ(read->work.valid, true);
  EXPECT_EQ(read->quality.precision.size(), 2U);
  EXPECT_EQ(read->meter.reference_change, -0.02);
  EXPECT_EQ(read->repeats.joules, (std::vector<double>{1, 2.5}));
}

TEST(Point, MistakesAreOneLineWithTheirPlace) {
  const std::pair<const char*, const char*> mistakes[] = {
      {"", "p.toml: it states nothing"},
      {"# nothing\n", "p.toml: it states nothing"},
      {"[work]\nunits = \"a\"\n", "p.toml:2: work.units is no fact; did you mean unit?"},
      {"knid = \"tiny\"\n", "knid is no fact; did you mean kind?"},
      {"kind = \"infernce\"\n", "p.toml:1: kind is none of: inference, training, tiny"},
      {"claim = \"hardwear\"\n", "claim is none of: hardware, software"},
      {"[boundary]\nkind = \"wall\"\n", "boundary.kind is none of: rail, board"},
      {"[idle]\ntreatment = \"included\"\n", "idle.treatment is none of: include"},
      {"[repeats]\norder = \"ABBA\"\n", "repeats.order is none of: interleaved"},
      {"[scenario]\nslo_percentile = 0.99\n", "is a percentile from 1 to 100"},
      {"[scenario]\nconfidence = 99\n", "is a share from 0 to 1"},
      {"[boundary]\nestimated_share = 26\n", "is a share from 0 to 1"},
      {"[works]\nunit = \"a\"\n", "p.toml:1: [works] is no part"},
      {"labels = 3\n", "labels is no fact"},
      {"[work]\ncount = \"3\"\n", "p.toml:2: work.count is no number"},
      {"[work]\nunit = 3\n", "work.unit is no text"},
      {"[work]\nvalid = 1\n", "neither true nor false"},
      {"[work]\ncount = -1\n", "makes no sense"},
      {"[work]\ncount = nan\n", "makes no sense"},
      {"[work]\ncount = inf\n", "makes no sense"},
      {"[quality]\nprecision = \"fp8\"\n", "no list of texts"},
      {"[repeats]\njoules = [1, 0]\n", "not above 0"},
      {"[repeats]\njoules = [1, \"a\"]\n", "no list of numbers"},
      {"schema = \"joulediff.point/9\"\n", "schema is not"},
      {"[work\n", "p.toml:1"},
      {"[.work]\n", "p.toml:1: "},
      {"a = [1,\n", "p.toml"},
      {"[label]\nx = 1\n", "is no part"}};
  for (const auto& [text, says] : mistakes) {
    const auto point = read_point_text("p.toml", text);
    ASSERT_FALSE(point.has_value()) << text;
    EXPECT_EQ(point.error().code, ExitCode::bad_input);
    EXPECT_THAT(point.error().message, HasSubstr(says));
    EXPECT_EQ(point.error().message.find('\n'), std::string::npos);
  }
}

}  // namespace
}  // namespace joulediff::run
