#include "base/format.h"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "base/progress.h"
#include "base/text_table.h"

namespace joulediff {
namespace {

TEST(Format, QuantitiesHaveThreeDigitsAndAPrefix) {
  EXPECT_EQ(format_quantity(0.284, "J"), "284 mJ");
  EXPECT_EQ(format_quantity(1.5, "J"), "1.50 J");
  EXPECT_EQ(format_quantity(28.42, "W"), "28.4 W");
  EXPECT_EQ(format_quantity(-1234, "W"), "-1.23 kW");
  EXPECT_EQ(format_quantity(999.9, "J"), "1.00 kJ");
  EXPECT_EQ(format_quantity(0.9999, "J"), "1.00 J");
  EXPECT_EQ(format_quantity(0, "J"), "0 J");
  EXPECT_EQ(format_quantity(3e-6, "s"), "3.00 µs");
  EXPECT_EQ(format_quantity(std::nan(""), "J"), "unknown");
  EXPECT_EQ(format_quantity(-std::numeric_limits<double>::infinity(), "J"), "-infinite J");
  EXPECT_EQ(format_quantity(1e-30, "J"), "0.00 pJ");
}

TEST(Format, LongTimesAreMinutesAndHours) {
  EXPECT_EQ(format(Seconds(0.0032)), "3.20 ms");
  EXPECT_EQ(format(Seconds(119)), "119 s");
  EXPECT_EQ(format(Seconds(125.2)), "2 min 5 s");
  EXPECT_EQ(format(Seconds(3720)), "1 h 2 min");
}

TEST(Format, EnergyShowsItsInterval) {
  EXPECT_EQ(format(Energy::around(Joules(0.284), Joules(0.00852), Standing::measured)),
            "284 mJ ±3 %");
  EXPECT_EQ(format(Energy::exact(Joules(2), Standing::measured)), "2.00 J");
  EXPECT_EQ(format(Energy{Joules(1), Joules(0.5), Joules(3), Standing::measured}),
            "1.00 J (500 mJ to 3.00 J)");
  EXPECT_EQ(format(Energy::around(Joules(1), Joules(2), Standing::measured)),
            "1.00 J (-1.00 J to 3.00 J)");
  EXPECT_EQ(format(Energy::around(Joules(-2), Joules(0.02), Standing::measured)), "-2.00 J ±1 %");
  EXPECT_EQ(format(Energy::exact(Joules(std::nan("")), Standing::measured)), "unknown");
}

TEST(Format, CountsAndPercents) {
  EXPECT_EQ(format_count(999), "999");
  EXPECT_EQ(format_count(9999), "9,999");
  EXPECT_EQ(format_count(1005), "1,005");
  EXPECT_EQ(format_count(1234567), "1.23 M");
  EXPECT_EQ(format_percent(0.12), "12 %");
  EXPECT_EQ(format_percent(0.004), "0.4 %");
  EXPECT_EQ(format_percent(-0.031), "-3.1 %");
  EXPECT_EQ(format_percent(0.0000123), "0.001 %");
  EXPECT_EQ(format_percent(0), "0 %");
}

TEST(Format, PrintableTextCannotMoveTheCursor) {
  EXPECT_EQ(printable("a\x1b[2Jb\n"), "a?[2Jb?");
  EXPECT_EQ(printable("µ…é"), "µ…é");
  EXPECT_EQ(printable("\xff\xc3"), "??");
  EXPECT_EQ(printable("\xc2\x9b"), "?");  // C1 control sequence introducer
  EXPECT_EQ(printable("a\xe2\x80\xae"
                      "b"),
            "a?b");                             // right-to-left override
  EXPECT_EQ(printable("\xed\xa0\x80"), "???");  // surrogate
  EXPECT_EQ(printable("\xf0\x9f\x94\xa5"), "\xf0\x9f\x94\xa5");
  EXPECT_EQ(printable(std::string_view("\0", 1)), "?");
}

TEST(Format, TruncationCountsColumnsAndKeepsCharactersWhole) {
  EXPECT_EQ(truncated("abcdef", 6), "abcdef");
  EXPECT_EQ(truncated("abcdef", 4), "abc…");
  EXPECT_EQ(truncated("abcdef", 4, Cut::begin), "…def");
  EXPECT_EQ(truncated("ééééé", 3), "éé…");
  EXPECT_EQ(truncated("ééééé", 3, Cut::begin), "…éé");
  EXPECT_EQ(truncated("abc", 1), "…");
  EXPECT_EQ(truncated("abc", 0), "");
}

TEST(Format, WideCharactersTakeTwoColumns) {
  EXPECT_EQ(width_of("矩阵"), 4u);
  EXPECT_EQ(width_of("e\u0301"), 1u);
  EXPECT_EQ(width_of("ｆ"), 2u);
  EXPECT_EQ(truncated("矩阵乘法", 5), "矩阵…");
  EXPECT_EQ(truncated("矩阵乘法", 4, Cut::begin), "…法");
}

TEST(Format, WhatHidesInTextIsShown) {
  EXPECT_EQ(printable("a\u202Eb\u200Bc\uFEFFd\u2066e"), "a?b?c?d?e");
}

TEST(Format, NoNumberIsLong) {
  EXPECT_EQ(format(Joules(1e308)), "1.00e+296 TJ");
  EXPECT_EQ(format(Joules(5e15)), "5000 TJ");
}

TEST(TextTable, AlignsColumns) {
  TextTable table({{"region"}, {"energy", Align::right}});
  table.add({"gelu", "1.50 J"});
  table.add({"attention", "284 mJ"});
  EXPECT_EQ(table.text(),
            "region     energy\n"
            "gelu       1.50 J\n"
            "attention  284 mJ\n");
  EXPECT_EQ(table.rows(), 2u);
}

TEST(TextTable, CutsTheWidestTextAndNeverANumber) {
  TextTable table({{"", Align::left, 4}, {"", Align::left, 4, Cut::begin}, {"", Align::right}}, 24);
  table.add({"short", "/a/long/path/to/file.py", "123456789"});
  EXPECT_EQ(table.text(), "short  …le.py  123456789\n");
}

TEST(TextTable, IndentCountsAndMissingCellsAreEmpty) {
  TextTable table({{"a"}, {"b"}}, 20);
  table.add({"x"});
  table.add({std::string(50, 'y'), "z"});
  const std::string text = table.text("  ");
  EXPECT_EQ(text,
            "  a                b\n"
            "  x\n"
            "  yyyyyyyyyyyyyy…  z\n");
}

TEST(Progress, LineSaysShareAndTimeLeft) {
  EXPECT_EQ(progress_line("recording", 0.25, Seconds(10), 80),
            "recording  [███░░░░░░░░░]   25 %  30 s left");
  EXPECT_EQ(progress_line("recording", 0, Seconds(10), 80), "recording  [░░░░░░░░░░░░]    0 %");
  EXPECT_EQ(progress_line("recording", 1, Seconds(10), 80), "recording  [████████████]  100 %");
  EXPECT_EQ(progress_line("recording", std::nan(""), Seconds(10), 80),
            "recording  [░░░░░░░░░░░░]    0 %");
  EXPECT_EQ(progress_line("recording", 0.1, Seconds(100), 80),
            "recording  [█░░░░░░░░░░░]   10 %  15 min 0 s left");
  EXPECT_EQ(width_of(progress_line("a very long label indeed", 0.5, Seconds(10), 40)), 40u);
  EXPECT_LE(width_of(progress_line("a very long label indeed", 0.5, Seconds(10), 5)), 5u);
}

TEST(Progress, SilentWhenQuiet) {
  Progress progress(/*quiet=*/true);
  EXPECT_FALSE(progress.shown());
  testing::internal::CaptureStderr();
  progress.update("x", 0.5);
  progress.finish();
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

TEST(Progress, SilentWithoutATerminal) {
  testing::internal::CaptureStderr();
  Progress progress;
  progress.update("x", 0.5);
  progress.finish();
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

}  // namespace
}  // namespace joulediff
