#include "facility/series.h"

#include <cmath>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "facility/csv.h"
#include "facility/timestamp.h"

namespace joulediff::facility {
namespace {

using testing::Contains;
using testing::Field;
using testing::HasSubstr;
using testing::IsEmpty;

Zone berlin() {
  return Zone::named("Europe/Berlin").value();
}

struct Outcome {
  Result<Series> series;
  Diagnostics diagnostics;
};

Outcome read(const std::string& bytes, const SeriesSource& source, Content content,
             const Zone& zone, int year = 2024) {
  Diagnostics diagnostics;
  auto series = read_series(bytes, source, content, hours_of_year(zone, year), zone, diagnostics);
  return {std::move(series), std::move(diagnostics)};
}

SeriesSource plain(const std::string& unit = "g/kWh") {
  SeriesSource source;
  source.path = "x.csv";
  source.time = "time";
  source.value = "value";
  source.unit = unit;
  return source;
}

std::string utc(Instant at) {
  const Civil c = Zone::utc().local(at);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:00Z", c.year, c.month, c.day, c.hour, c.minute);
}

// Rows of the whole year, each with the number of its step as value.
std::string numbered(const Zone& zone, int year, Instant step, const auto& keep) {
  const auto hours = hours_of_year(zone, year);
  const Instant end = hours.back().begin + static_cast<Instant>(hours.back().seconds);
  std::string out = "time,value\n";
  int number = 0;
  for (Instant at = hours.front().begin; at < end; at += step, ++number)
    if (keep(number)) out += fmt::format("{},{}\n", utc(at), number);
  return out;
}
constexpr auto kAll = [](int) { return true; };

auto rule(const char* name) {
  return Contains(Field(&Diagnostic::rule, std::string("facility.") + name));
}

TEST(Csv, QuotesSeparatorsAndMarks) {
  const auto csv =
      read_csv("\xEF\xBB\xBF\"a;1\";b\r\n\"x\"\"y\";\"two\nlines\"\r\n\r\n 3 ;4").value();
  EXPECT_EQ(csv.separator, ';');
  EXPECT_THAT(csv.header, testing::ElementsAre("a;1", "b"));
  ASSERT_EQ(csv.rows.size(), 2u);
  EXPECT_THAT(csv.rows[0].cells, testing::ElementsAre("x\"y", "two\nlines"));
  EXPECT_THAT(csv.rows[1].cells, testing::ElementsAre("3", "4"));
  EXPECT_EQ(csv.rows[1].line, 5u);
}

TEST(Csv, OpenQuoteNamesItsLine) {
  const auto csv = read_csv("a,b\n1,\"2\n3,4\n");
  ASSERT_FALSE(csv);
  EXPECT_THAT(csv.error().message, HasSubstr("line 2"));
}

TEST(Csv, Numbers) {
  EXPECT_EQ(number(" 1.5 "), 1.5);
  EXPECT_EQ(number("-5,25", true), -5.25);
  for (const char* bad : {"", "N/A", "1.5x", "nan", "inf", "1,5"}) EXPECT_FALSE(number(bad)) << bad;
}

TEST(Timestamp, Forms) {
  const Civil wanted{2024, 3, 31, 14, 30, 0};
  for (const char* text : {"2024-03-31T14:30:00", "2024-03-31 14:30", "2024-03-31 14:30:00.000",
                           "31.03.2024 14:30 - 31.03.2024 15:30"})
    EXPECT_EQ(read_stamp(text, DateOrder::unknown)->local, wanted) << text;
  EXPECT_EQ(read_stamp("31/03/2024 14:30:00", DateOrder::day_first)->local, wanted);
  EXPECT_EQ(read_stamp("3/31/2024 2:30:00 PM", DateOrder::month_first)->local, wanted);
  EXPECT_EQ(read_stamp("3/31/2024 12:00:00 AM", DateOrder::month_first)->local.hour, 0);
  EXPECT_EQ(read_stamp("2024-03-31T14:30:00+05:30", DateOrder::unknown)->offset, 19800);
  EXPECT_EQ(read_stamp("2024-03-31T14:30:00-0800", DateOrder::unknown)->offset, -28800);
  EXPECT_EQ(
      read_stamp("27/10/2024 02:45:00 (CEST) - 27/10/2024 02:00:00 (CET)", DateOrder::day_first)
          ->offset,
      7200);
  for (const char* text : {"03/04/2024 00:00", "2024-02-30 00:00", "24-03-31", "now", "",
                           "2024-03-31 14:30 home", "2024-03-31T25:00"})
    EXPECT_FALSE(read_stamp(text, DateOrder::unknown)) << text;
}

TEST(Series, EveryHourOfALeapYear) {
  const auto [series, diagnostics] =
      read(numbered(berlin(), 2024, 3600, kAll), plain("EUR/kWh"), Content::price, berlin());
  ASSERT_TRUE(series) << series.error().message;
  ASSERT_EQ(series->by_hour.size(), 8784u);
  EXPECT_EQ(series->by_hour[0], 0);  // at 23:00 UTC of 31 December, the local year's first hour
  EXPECT_EQ(series->by_hour[8783], 8783);
  EXPECT_THAT(diagnostics, IsEmpty());
}

// Four rows in an hour: hour h is the mean of 4h .. 4h + 3, which is 4h + 1.5. The values stay
// below what any power station emits.
TEST(Series, QuartersBecomeHours) {
  SeriesSource source = plain("EUR/MWh");
  const auto [series, diagnostics] =
      read(numbered(berlin(), 2024, 900, kAll), source, Content::price, berlin());
  ASSERT_TRUE(series) << series.error().message;
  EXPECT_EQ(series->step, 900);
  EXPECT_DOUBLE_EQ(series->by_hour[100], 401.5 / 1000);
  EXPECT_THAT(diagnostics, rule("steps"));
}

// An hour that begins at a quarter past: three quarters of one row and one of the next.
TEST(Series, HoursThatBeginAtAQuarterPast) {
  const Zone nepal = Zone::named("Asia/Kathmandu").value();  // 5:45 ahead
  std::string bytes = "time,value\n";
  int number = 0;
  for (Instant at = hours_of_year(nepal, 2024).front().begin - 900; number < 8785; at += 3600)
    bytes += fmt::format("{},{}\n", utc(at), number++ % 24);
  const auto [series, diagnostics] = read(bytes, plain(), Content::carbon, nepal);
  ASSERT_TRUE(series) << series.error().message;
  EXPECT_DOUBLE_EQ(series->by_hour[0], 0.75 * 0 + 0.25 * 1);
  EXPECT_DOUBLE_EQ(series->by_hour[23], 0.75 * 23 + 0.25 * 0);
}

TEST(Series, ShortGapsAreBridgedAndSaid) {
  const auto keep = [](int i) { return i < 10 || i > 12; };
  const auto [series, diagnostics] =
      read(numbered(berlin(), 2023, 3600, keep), plain("EUR/kWh"), Content::price, berlin(), 2023);
  ASSERT_TRUE(series) << series.error().message;
  EXPECT_DOUBLE_EQ(series->by_hour[10], 10);  // 9 + (13 - 9) / 4
  EXPECT_DOUBLE_EQ(series->by_hour[12], 12);
  ASSERT_THAT(diagnostics, rule("gaps"));
  EXPECT_EQ(diagnostics[0].count, 3u);
  EXPECT_THAT(diagnostics[0].message, HasSubstr("2023-01-01 10:00"));
}

TEST(Series, LongGapsAreRefused) {
  const auto keep = [](int i) { return i < 100 || i > 106; };
  const auto [series, diagnostics] =
      read(numbered(berlin(), 2023, 3600, keep), plain("EUR/kWh"), Content::price, berlin(), 2023);
  ASSERT_FALSE(series);
  EXPECT_EQ(series.error().code, ExitCode::bad_input);
  EXPECT_THAT(series.error().message, HasSubstr("x.csv: no rows from 2023-01-05 04:00 on for 7"));
}

TEST(Series, AnotherYearIsRefused) {
  const auto [series, diagnostics] =
      read(numbered(berlin(), 2022, 3600, kAll), plain("EUR/kWh"), Content::price, berlin(), 2024);
  ASSERT_FALSE(series);
  EXPECT_THAT(series.error().message, HasSubstr("no row is of the plan's year 2024"));
}

TEST(Series, UnsortedAndRepeatedRows) {
  std::string bytes = numbered(berlin(), 2023, 3600, kAll);
  const std::string first = bytes.substr(11, bytes.find('\n', 11) - 10);
  bytes += first;                                      // again, at the end
  bytes += first.substr(0, first.size() - 2) + "7\n";  // and with another value
  const auto [series, diagnostics] = read(bytes, plain("EUR/kWh"), Content::price, berlin(), 2023);
  ASSERT_TRUE(series) << series.error().message;
  EXPECT_EQ(series->by_hour[0], 0);
  EXPECT_THAT(diagnostics, rule("unsorted"));
  ASSERT_THAT(diagnostics, rule("duplicates"));
  EXPECT_THAT(diagnostics[1].message, HasSubstr("2 times come more than once"));
  EXPECT_THAT(diagnostics[1].message, HasSubstr("up to 7 apart"));
}

// Local stamps without a zone: each local hour in turn, as an ENTSO-E export has them. The hour
// from 02:00 of 27 October comes twice and belongs to two slots; that of 31 March never.
std::string entsoe(bool newest_first) {
  std::vector<std::string> rows;
  int number = 0;
  for (const Hour& hour : hours_of_year(berlin(), 2024))
    rows.push_back(fmt::format("\"{:02}.{:02}.{} {:02}:00 - x\",{},EUR\n", hour.local.day,
                               hour.local.month, hour.local.year, hour.local.hour, number++));
  if (newest_first) std::reverse(rows.begin(), rows.end());
  std::string out = "\"MTU (CET/CEST)\",\"Day-ahead Price [EUR/MWh]\",\"Currency\"\n";
  for (const std::string& row : rows) out += row;
  return out;
}

TEST(Series, LocalStampsOverBothChanges) {
  for (const bool newest_first : {false, true}) {
    SeriesSource source;
    source.path = "prices.csv";
    const auto [series, diagnostics] = read(entsoe(newest_first), source, Content::price, berlin());
    ASSERT_TRUE(series) << series.error().message;
    EXPECT_EQ(series->provider, "ENTSO-E");
    for (std::size_t h = 0; h < 8784; ++h)
      ASSERT_DOUBLE_EQ(series->by_hour[h], static_cast<double>(h) / 1000) << h;
    EXPECT_EQ(diagnostics.size(), newest_first ? 1u : 0u);  // unsorted
  }
}

TEST(Series, ATimeThatNeverWasIsLeftOut) {
  std::string bytes = entsoe(false) + "\"31.03.2024 02:00 - x\",5,EUR\n";
  SeriesSource source;
  source.path = "prices.csv";
  const auto [series, diagnostics] = read(bytes, source, Content::price, berlin());
  ASSERT_TRUE(series) << series.error().message;
  EXPECT_THAT(diagnostics, rule("times_that_never_were"));
}

std::string year_of(const std::string& header, const auto& row) {
  std::string out = header + "\n";
  for (const Hour& hour : hours_of_year(Zone::utc(), 2023)) out += row(hour.begin) + "\n";
  return out;
}

TEST(Series, ElectricityMapsTakesLifeCycleByItself) {
  const std::string bytes = year_of(
      "Datetime (UTC),Country,Zone name,Zone id,Carbon intensity gCO₂eq/kWh (direct),Carbon "
      "intensity gCO₂eq/kWh (Life cycle),Carbon-free energy percentage (CFE%),Renewable "
      "energy percentage (RE%),Data source,Data estimated,Data estimation method",
      [](Instant at) {
        std::string time = utc(at);
        time[10] = ' ';
        time.pop_back();
        return time + ",Sweden,Sweden,SE,2.5,30,99.4,60.1,entsoe,false,";
      });
  SeriesSource source;
  source.path = "SE.csv";
  auto got = read(bytes, source, Content::carbon, Zone::utc(), 2023);
  ASSERT_TRUE(got.series) << got.series.error().message;
  EXPECT_EQ(got.series->provider, "Electricity Maps");
  EXPECT_EQ(got.series->kind, "average");
  EXPECT_EQ(got.series->by_hour[0], 30);
  source.value = "carbon intensity gCO₂eq/kWh (direct)";
  EXPECT_EQ(read(bytes, source, Content::carbon, Zone::utc(), 2023).series->by_hour[0], 2.5);
}

// 1000 lb/MWh is 453.59237 kg/MWh.
TEST(Series, WattTimeIsMarginalAndInPounds) {
  const std::string bytes = year_of("timestamp,MOER,MOER version,frequency",
                                    [](Instant at) { return utc(at) + ",1000,3.0,3600"; });
  SeriesSource source;
  source.path = "moer.csv";
  const auto got = read(bytes, source, Content::carbon, Zone::utc(), 2023);
  ASSERT_TRUE(got.series) << got.series.error().message;
  EXPECT_EQ(got.series->kind, "marginal");
  EXPECT_DOUBLE_EQ(got.series->by_hour[5], 453.59237);
}

// EIA's times are of the end of an hour: the first of 2023 is stamped 01:00. 0.7 lb/kWh.
TEST(Series, EiaStampsTheEnd) {
  const std::string bytes = year_of(
      "BA,UTC time,CO2 Emissions Intensity for Generated Electricity,CO2 Emissions Intensity "
      "for Consumed Electricity",
      [](Instant at) {
        const Civil c = Zone::utc().local(at + 3600);
        return fmt::format("ERCO,{}/{}/{} {}:00,0.9,{}", c.month, c.day, c.year, c.hour,
                           at == 1672531200 ? 0.7 : 0.5);  // 2023-01-01 00:00 UTC
      });
  SeriesSource source;
  source.path = "ERCO.csv";
  const auto got = read(bytes, source, Content::carbon, Zone::utc(), 2023);
  ASSERT_TRUE(got.series) << got.series.error().message;
  EXPECT_DOUBLE_EQ(got.series->by_hour[0], 700 * 0.45359237);
  EXPECT_DOUBLE_EQ(got.series->by_hour[1], 500 * 0.45359237);
  EXPECT_THAT(got.diagnostics, IsEmpty());
}

// 900 arrivals in each quarter of an hour are 1 a second.
TEST(Series, ArrivalsAreCountsOfTheirStep) {
  SeriesSource source = plain();
  source.unit.reset();
  std::string bytes = numbered(berlin(), 2023, 900, kAll);
  std::string out = "time,value\n";
  for (std::size_t at = 11; at < bytes.size();) {
    const std::size_t comma = bytes.find(',', at);
    out += bytes.substr(at, comma - at) + ",900\n";
    at = bytes.find('\n', comma) + 1;
  }
  const auto got = read(out, source, Content::demand, berlin(), 2023);
  ASSERT_TRUE(got.series) << got.series.error().message;
  EXPECT_DOUBLE_EQ(got.series->by_hour[4000], 1);
}

TEST(Series, RowsMayBeChosen) {
  std::string bytes = "area,time,value\n";
  for (const Hour& hour : hours_of_year(Zone::utc(), 2023))
    bytes += "A," + utc(hour.begin) + ",1\nB," + utc(hour.begin) + ",2\n";
  SeriesSource source = plain();
  source.where["area"] = "B";
  const auto got = read(bytes, source, Content::carbon, Zone::utc(), 2023);
  ASSERT_TRUE(got.series) << got.series.error().message;
  EXPECT_EQ(got.series->by_hour[0], 2);
  EXPECT_THAT(got.diagnostics, IsEmpty());
}

TEST(Series, BadFilesSayWhatAndWhere) {
  const auto message = [](const std::string& bytes, const SeriesSource& source, Content content) {
    return read(bytes, source, content, Zone::utc(), 2023).series.error().message;
  };
  SeriesSource bare;
  bare.path = "x.csv";
  EXPECT_THAT(message("a,b\n1,2\n", bare, Content::carbon),
              HasSubstr("x.csv: its columns are those of no provider"));
  EXPECT_THAT(message("", bare, Content::carbon), HasSubstr("no row of data"));
  EXPECT_THAT(message("a,value\n1,2\n", plain(), Content::carbon), HasSubstr("no column time"));
  EXPECT_THAT(message("time,value\nsoon,2\n", plain(), Content::carbon),
              HasSubstr("line 2: \"soon\" is no time"));
  EXPECT_THAT(message("time,value\n2023-01-01,x\n", plain(), Content::carbon),
              HasSubstr("line 2: \"x\" is no number"));
  EXPECT_THAT(message("time,value\n2023-01-01\n2023-01-02\n", plain(), Content::carbon),
              HasSubstr("line 2: the row has fewer cells than the header"));
  EXPECT_THAT(message("time,value\n2023-01-01,1\n", plain("stone"), Content::carbon),
              HasSubstr("unit stone is not known"));
}

}  // namespace
}  // namespace joulediff::facility
