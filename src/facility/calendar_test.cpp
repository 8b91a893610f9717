#include "facility/calendar.h"

#include <map>

#include <gmock/gmock.h>

namespace joulediff::facility {
namespace {

using testing::HasSubstr;

Zone berlin() {
  return Zone::named("Europe/Berlin").value();
}

int hours_on(const std::vector<Hour>& hours, int month, int day) {
  int count = 0;
  for (const Hour& hour : hours)
    count += hour.local.month == month && hour.local.day == day ? 1 : 0;
  return count;
}

int hours_at(const std::vector<Hour>& hours, int month, int day, int at) {
  int count = 0;
  for (const Hour& hour : hours)
    if (hour.local.month == month && hour.local.day == day && hour.local.hour == at) ++count;
  return count;
}

TEST(Calendar, LeapYearHas8784Hours) {
  EXPECT_EQ(hours_of_year(berlin(), 2023).size(), 8760u);
  EXPECT_EQ(hours_of_year(berlin(), 2024).size(), 8784u);
  EXPECT_EQ(hours_of_year(Zone::utc(), 2024).size(), 8784u);
  EXPECT_EQ(hours_of_year(Zone::utc(), 2100).size(), 8760u);  // no leap year: by 100, not by 400
}

// Berlin is an hour ahead of UTC in winter, so its year begins at 23:00 UTC of 31 December:
// 2024-01-01 00:00 UTC is 19723 days of 86400 s after 1970 (54 years x 365 + 13 leap days).
TEST(Calendar, FirstHourOfTheYear) {
  const Hour first = hours_of_year(berlin(), 2024).front();
  EXPECT_EQ(first.begin, 19723LL * 86400 - 3600);
  EXPECT_EQ(text(first.local), "2024-01-01 00:00");
  EXPECT_EQ(first.weekday, 0);  // a Monday
  const Hour last = hours_of_year(berlin(), 2024).back();
  EXPECT_EQ(text(last.local), "2024-12-31 23:00");
}

// In 2024 the clocks went forward on 31 March at 02:00 and back on 27 October at 03:00.
TEST(Calendar, DaysOfTheChange) {
  const auto hours = hours_of_year(berlin(), 2024);
  EXPECT_EQ(hours_on(hours, 3, 31), 23);
  EXPECT_EQ(hours_at(hours, 3, 31, 2), 0);
  EXPECT_EQ(hours_on(hours, 10, 27), 25);
  EXPECT_EQ(hours_at(hours, 10, 27, 2), 2);
  EXPECT_EQ(hours_on(hours, 2, 29), 24);
}

TEST(Calendar, LocalTimesThatExistTwiceOrNever) {
  const Occurrence twice = berlin().instant({2024, 10, 27, 2, 30});
  EXPECT_EQ(twice.kind, Occurrence::Kind::twice);
  EXPECT_EQ(twice.second - twice.first, 3600);
  const Occurrence never = berlin().instant({2024, 3, 31, 2, 30});
  EXPECT_EQ(never.kind, Occurrence::Kind::never);
  EXPECT_EQ(text(berlin().local(never.first)), "2024-03-31 03:00");
}

// The south turns the clock the other way round; Lord Howe by half an hour only; Kathmandu's hours
// begin at a quarter past those of UTC.
TEST(Calendar, OtherPlaces) {
  const auto sydney = hours_of_year(Zone::named("Australia/Sydney").value(), 2024);
  EXPECT_EQ(sydney.size(), 8784u);
  EXPECT_EQ(hours_on(sydney, 4, 7), 25);
  EXPECT_EQ(hours_on(sydney, 10, 6), 23);
  EXPECT_EQ(hours_of_year(Zone::named("Australia/Lord_Howe").value(), 2024).size(), 8784u);
  EXPECT_EQ(hours_of_year(Zone::named("Asia/Kathmandu").value(), 2024).front().begin % 3600, 900);
}

// North Korea's clocks went forward by half an hour, for good, on 5 May 2018: that year was half an
// hour shorter.
TEST(Calendar, YearThatIsNoWholeNumberOfHours) {
  const auto hours = hours_of_year(Zone::named("Asia/Pyongyang").value(), 2018);
  EXPECT_EQ(hours.size(), 8760u);
  EXPECT_EQ(hours.back().seconds, 1800);
}

TEST(Calendar, UnknownZones) {
  for (const char* name : {"Europe/Berlinn", "", "/etc/passwd", "../../../etc/passwd", "a\nb"}) {
    const auto zone = Zone::named(name);
    ASSERT_FALSE(zone) << name;
    EXPECT_EQ(zone.error().code, ExitCode::bad_input);
    EXPECT_THAT(zone.error().message, HasSubstr("IANA name"));
  }
}

TEST(Calendar, DatesThatDoNotExist) {
  EXPECT_TRUE(exists({2024, 2, 29}));
  EXPECT_FALSE(exists({2023, 2, 29}));
  EXPECT_FALSE(exists({2024, 13, 1}));
  EXPECT_FALSE(exists({2024, 1, 1, 24}));
}

}  // namespace
}  // namespace joulediff::facility
