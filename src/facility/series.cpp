#include "facility/series.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <set>

#include <fmt/format.h>

#include "base/format.h"
#include "facility/csv.h"
#include "facility/providers.h"
#include "facility/timestamp.h"

namespace joulediff::facility {

namespace {

struct Point {
  Instant begin = 0;
  double value = 0;  // NaN: the row has a time and no number
  std::size_t line = 0;
};

// Something that happened to rows: how often, and where first.
struct Tally {
  std::uint64_t count = 0;
  std::size_t line = 0;
  std::string cell;
  void add(std::size_t at, std::string_view what = {}) {
    if (count++ != 0) return;
    line = at;
    cell = what;
  }
};

constexpr Instant kHour = 3600, kDay = 24 * kHour;
constexpr double kHuge = 1e18;  // what is beyond is no value: meters say 9.91e37 for "none"

// "1 row has", "2 rows have".
std::string counted(std::uint64_t count, std::string_view what, std::string_view one,
                    std::string_view many) {
  return fmt::format("{} {}{} {}", count, what, count == 1 ? "" : "s", count == 1 ? one : many);
}

// "12,345": twelve thousand, or twelve and a third? "0,345", "12,5" and "1234,567" have a decimal.
enum class Comma { none, decimal, either };
Comma comma_of(std::string_view cell) {
  if (cell.starts_with('-') || cell.starts_with('+')) cell.remove_prefix(1);
  const std::size_t at = cell.find(',');
  if (at == std::string_view::npos || cell.find(',', at + 1) != std::string_view::npos)
    return Comma::none;
  const std::string_view whole = cell.substr(0, at), rest = cell.substr(at + 1);
  const auto digits = [](std::string_view text) {
    return std::ranges::all_of(text, [](unsigned char c) { return std::isdigit(c) != 0; });
  };
  if (!digits(whole) || !digits(rest)) return Comma::none;
  const bool either = rest.size() == 3 && !whole.empty() && whole.size() <= 3 && whole[0] != '0';
  return either ? Comma::either : Comma::decimal;
}

class SeriesReader {
 public:
  SeriesReader(const SeriesSource& source, Content content, const std::vector<Hour>& hours,
               const Zone& zone, Diagnostics& diagnostics)
      : source_(source), content_(content), hours_(hours), zone_(zone), diagnostics_(diagnostics) {}

  Result<Series> read(std::string_view bytes) {
    JD_ASSIGN(const Csv csv, read_csv(bytes));
    JD_ASSIGN(columns_, choose_columns(csv, source_, content_, zone_));
    JD_TRY(read_points(csv));
    order();
    JD_TRY(find_step());
    if (columns_.stamps_end) begin_earlier();
    Series series;
    series.provider = columns_.provider;
    series.kind = columns_.kind;
    series.column = csv.header[columns_.value];
    series.step = static_cast<double>(step_);
    series.by_hour = over_hours();
    JD_TRY(bridge(series.by_hour));
    return series;
  }

 private:
  void note(Severity severity, std::string_view rule, const std::string& message,
            std::uint64_t count = 1) {
    diagnostics_.push_back({severity, fmt::format("facility.{}", rule),
                            printable(source_.path) + ": " + message, count});
  }

  Result<std::vector<std::pair<std::size_t, std::string>>> filters(const Csv& csv) const {
    std::vector<std::pair<std::size_t, std::string>> wanted;
    for (const auto& [name, cell] : source_.where) {
      const auto column = csv.column(name);
      if (!column)
        return fail(ExitCode::bad_input,
                    fmt::format("where: there is no column {}", printable(name)));
      wanted.emplace_back(*column, cell);
    }
    return wanted;
  }

  Status read_points(const Csv& csv) {
    JD_ASSIGN(const auto wanted, filters(csv));
    const std::size_t least = std::max(columns_.time, columns_.value) + 1;
    const bool decimal_comma = csv.separator != ',';
    const auto stamp_of = [&](const CsvRow& row) {
      return columns_.time < row.cells.size() ? read_stamp(row.cells[columns_.time], columns_.order)
                                              : std::nullopt;
    };
    const auto first = stamp_of(csv.rows.front());
    const auto last = stamp_of(csv.rows.back());
    backwards_ = first && last && last->local < first->local;
    Tally short_rows, stamps, values, never, either;
    bool decimals = false;
    std::size_t readable = 0;
    for (const CsvRow& row : csv.rows) {
      if (!std::all_of(wanted.begin(), wanted.end(), [&](const auto& one) {
            return one.first < row.cells.size() && row.cells[one.first] == one.second;
          }))
        continue;
      if (row.cells.size() < least) {
        short_rows.add(row.line);
        continue;
      }
      const std::string& cell = row.cells[columns_.time];
      const auto stamp = read_stamp(cell, columns_.order);
      if (!stamp) {
        stamps.add(row.line, cell);
        continue;
      }
      const auto begin = instant(*stamp);
      if (!begin) {
        never.add(row.line, cell);
        continue;
      }
      const std::string& said = row.cells[columns_.value];
      auto value = number(said, decimal_comma);
      if (value && !(std::fabs(*value * columns_.factor) <= kHuge)) value.reset();
      if (!value) values.add(row.line, said);
      if (value) ++readable;
      if (const Comma comma = comma_of(said); decimal_comma && comma == Comma::either)
        either.add(row.line, said);
      else
        decimals = decimals || comma == Comma::decimal;
      points_.push_back({*begin, value ? *value * columns_.factor : std::nan(""), row.line});
    }
    const auto many = [&](const Tally& rows) { return rows.count * 100 > csv.rows.size(); };
    if (many(stamps) || many(values) || many(short_rows) || readable == 0)
      return no_points(stamps, values, short_rows);
    if (either.count > 0 && !decimals)
      return fail(ExitCode::bad_input,
                  fmt::format("line {}: \"{}\" may be {} or a decimal; write it with a point, or "
                              "without a comma",
                              either.line, printable(either.cell), without_comma(either.cell)));
    if (short_rows.count > 0)
      note(Severity::warning, "short_rows",
           fmt::format("{} too few cells, first in line {}; left out",
                       counted(short_rows.count, "row", "has", "have"), short_rows.line),
           short_rows.count);
    if (stamps.count > 0)
      note(Severity::warning, "unreadable_times",
           fmt::format("{} no readable time, first in line {} (\"{}\"); left out",
                       counted(stamps.count, "row", "has", "have"), stamps.line,
                       printable(stamps.cell)),
           stamps.count);
    if (values.count > 0)
      note(Severity::warning, "unreadable_values",
           fmt::format("{} no number, first in line {} (\"{}\"); left out",
                       counted(values.count, "row", "has", "have"), values.line,
                       printable(values.cell)),
           values.count);
    if (never.count > 0)
      note(Severity::warning, "times_that_never_were",
           fmt::format("{} a time that {} never had, first in line {} (\"{}\"), as the clocks went "
                       "forward; left out",
                       counted(never.count, "row", "has", "have"), columns_.zone.name(), never.line,
                       printable(never.cell)),
           never.count);
    return {};
  }

  static std::string without_comma(std::string cell) {
    std::erase(cell, ',');
    return printable(cell);
  }

  // The kind of which there are most.
  Status no_points(const Tally& stamps, const Tally& values, const Tally& short_rows) const {
    const auto others = [](const Tally& rows) {
      return rows.count > 1 ? fmt::format(" ({} rows)", rows.count) : std::string();
    };
    if (stamps.count > 0 && stamps.count >= std::max(values.count, short_rows.count))
      return fail(ExitCode::bad_input,
                  fmt::format("line {}: \"{}\" is no time that can be read{}; write it as "
                              "2024-03-31T02:00:00Z",
                              stamps.line, printable(stamps.cell), others(stamps)));
    if (values.count > 0 && values.count >= short_rows.count)
      return fail(ExitCode::bad_input, fmt::format("line {}: \"{}\" is no number{}", values.line,
                                                   printable(values.cell), others(values)));
    if (short_rows.count > 0)
      return fail(ExitCode::bad_input,
                  fmt::format("line {}: the row has fewer cells than the header{}", short_rows.line,
                              others(short_rows)));
    return fail(ExitCode::bad_input, "no row has what where = asks for");
  }

  // A local time that the clocks showed twice is the first such hour, and the second where it comes
  // again; the other way round where the newest row comes first.
  std::optional<Instant> instant(const Stamp& stamp) {
    if (stamp.offset)
      return Zone::utc().instant(stamp.local).first - static_cast<Instant>(*stamp.offset);
    const Occurrence when = columns_.zone.instant(stamp.local);
    switch (when.kind) {
      case Occurrence::Kind::once: return when.first;
      case Occurrence::Kind::never: return std::nullopt;
      case Occurrence::Kind::twice: break;
    }
    const bool again = !seen_.insert(stamp.local).second;
    return again == backwards_ ? when.first : when.second;
  }

  void order() {
    // At one time, in the order of the file.
    const auto earlier = [](const Point& a, const Point& b) {
      return std::pair(a.begin, a.line) < std::pair(b.begin, b.line);
    };
    const auto wrong = std::is_sorted_until(points_.begin(), points_.end(), earlier);
    if (wrong != points_.end()) {
      note(Severity::warning, "unsorted",
           fmt::format("rows are not in the order of time, first in line {}; they are sorted",
                       wrong->line));
      std::sort(points_.begin(), points_.end(), earlier);
    }
    Tally repeated;
    double most = 0;
    std::vector<Point> unique;
    for (const Point& point : points_) {
      if (unique.empty() || unique.back().begin != point.begin) {
        unique.push_back(point);
        continue;
      }
      if (std::isnan(unique.back().value)) {
        unique.back() = point;
        continue;
      }
      repeated.add(point.line);
      most = std::max(most, std::fabs(point.value - unique.back().value));
    }
    if (repeated.count > 0)
      note(Severity::warning, "duplicates",
           fmt::format("{} more than once, first in line {}, with values up to {:.6g} apart; the "
                       "first of each counts",
                       counted(repeated.count, "time", "comes", "come"), repeated.line,
                       most / columns_.factor),
           repeated.count);
    points_ = std::move(unique);
  }

  Status find_step() {
    std::map<Instant, std::size_t> distances;
    for (std::size_t i = 1; i < points_.size(); ++i)
      ++distances[points_[i].begin - points_[i - 1].begin];
    std::size_t most = 0;
    std::size_t closer = 0;
    for (const auto& [distance, count] : distances) {
      if (count <= most) continue;
      most = count;
      step_ = distance;
    }
    const Instant least = ordinary(step_);
    for (const auto& [distance, count] : distances) closer += distance < least ? count : 0;
    constexpr Instant kMonth = 31 * kDay;
    if (step_ > kMonth)
      return fail(ExitCode::bad_input,
                  fmt::format("its rows are {:.0f} days apart, and none speaks of more than a "
                              "month; a level of the year is a number",
                              static_cast<double>(step_) / kDay));
    if (step_ < 3600)
      note(Severity::note, "steps",
           fmt::format("its rows are {} apart; hours are their mean by time",
                       format(Seconds(static_cast<double>(step_)))));
    if (step_ > 3600)
      note(Severity::warning, "coarse",
           fmt::format("its rows are {} apart, so hours within that do not differ; hourly data "
                       "would tell",
                       format(Seconds(static_cast<double>(step_)))));
    if (closer > 0)
      note(Severity::warning, "mixed_steps",
           fmt::format("{} after less than the usual {}; each counts until the next",
                       counted(closer, "row", "follows", "follow"),
                       format(Seconds(static_cast<double>(step_)))),
           closer);
    return {};
  }

  // The nearest that steps come by the calendar alone: months of 28 days, days of 23 hours.
  static Instant ordinary(Instant step) {
    if (step >= 28 * kDay) return 28 * kDay - kHour;
    return step >= kDay ? step - kHour : step;
  }

  // A stamp of an end: its row begins where the one before ended, or a step earlier.
  void begin_earlier() {
    for (std::size_t i = points_.size(); i-- > 0;) {
      const Instant end = points_[i].begin;
      points_[i].begin = end - step_;
      if (i > 0 && points_[i - 1].begin > points_[i].begin) points_[i].begin = points_[i - 1].begin;
    }
  }

  // NaN where no row covers any of the hour.
  std::vector<double> over_hours() {
    std::vector<double> values(hours_.size(), std::nan(""));
    std::size_t at = 0;
    std::uint64_t partial = 0;
    std::size_t first_partial = 0;
    for (std::size_t h = 0; h < hours_.size(); ++h) {
      const Instant begin = hours_[h].begin;
      const Instant end = begin + static_cast<Instant>(hours_[h].seconds);
      while (at < points_.size() && end_of(at) <= begin) ++at;
      double sum = 0;
      double covered = 0;
      for (std::size_t i = at; i < points_.size() && points_[i].begin < end; ++i) {
        if (std::isnan(points_[i].value)) continue;
        const double per =
            content_ == Content::demand ? static_cast<double>(end_of(i) - points_[i].begin) : 1;
        const auto overlap =
            static_cast<double>(std::min(end, end_of(i)) - std::max(begin, points_[i].begin));
        sum += points_[i].value / per * overlap;
        covered += overlap;
      }
      if (covered > 0) values[h] = sum / covered;
      if (covered > 0 && covered < hours_[h].seconds && partial++ == 0) first_partial = h;
    }
    if (partial > 0)
      note(Severity::warning, "partial_hours",
           fmt::format("{} some of {} rows, the first at {}; what is there stands for the hour",
                       counted(partial, "hour", "lacks", "lack"), partial == 1 ? "its" : "their",
                       facility::text(hours_[first_partial].local)),
           partial);
    return values;
  }

  Instant end_of(std::size_t i) const {
    const Instant end = points_[i].begin + step_;
    if (i + 1 == points_.size()) return end;
    const Instant next = points_[i + 1].begin;
    const bool long_day = step_ >= kDay && next > end && next - end <= kHour;  // of 25 hours
    return long_day ? next : std::min(end, next);
  }

  Status bridge(std::vector<double>& values) {
    std::uint64_t filled = 0;
    std::size_t first = 0;
    for (std::size_t begin = 0; begin < values.size(); ++begin) {
      if (!std::isnan(values[begin])) continue;
      std::size_t end = begin;
      while (end < values.size() && std::isnan(values[end])) ++end;
      const std::size_t length = end - begin;
      if (length > kBridged) return too_long(begin, end);
      const double before = begin > 0 ? values[begin - 1] : values[end];
      const double after = end < values.size() ? values[end] : before;
      for (std::size_t i = begin; i < end; ++i)
        values[i] = before + (after - before) * static_cast<double>(i - begin + 1) /
                                 static_cast<double>(length + 1);
      if (filled == 0) first = begin;
      filled += length;
      begin = end;
    }
    if (filled > 0)
      note(Severity::warning, "gaps",
           fmt::format("{} no row, the first at {}; filled from both sides",
                       counted(filled, "hour", "has", "have"), facility::text(hours_[first].local)),
           filled);
    return {};
  }

  Status too_long(std::size_t begin, std::size_t end) const {
    if (end - begin == hours_.size())
      return fail(
          ExitCode::bad_input,
          fmt::format("no row is of the plan's year {}: the rows are from {} to {}",
                      hours_.front().local.year, facility::text(zone_.local(points_.front().begin)),
                      facility::text(zone_.local(points_.back().begin))));
    return fail(ExitCode::bad_input,
                fmt::format("no rows from {} on for {} hours; up to {} hours are filled, so give "
                            "the rows that are missing",
                            facility::text(hours_[begin].local), end - begin, kBridged));
  }

  const SeriesSource& source_;
  Content content_;
  const std::vector<Hour>& hours_;
  const Zone& zone_;
  Diagnostics& diagnostics_;
  Columns columns_;
  std::vector<Point> points_;
  std::set<Civil> seen_;    // local times that were there twice
  bool backwards_ = false;  // the newest row comes first
  Instant step_ = 3600;
};

}  // namespace

Result<Series> read_series(std::string_view bytes, const SeriesSource& source, Content content,
                           const std::vector<Hour>& hours, const Zone& zone,
                           Diagnostics& diagnostics) {
  Result<Series> series = SeriesReader(source, content, hours, zone, diagnostics).read(bytes);
  if (!series) return fail(std::move(series).error().within(printable(source.path)));
  return series;
}

}  // namespace joulediff::facility
