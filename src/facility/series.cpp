#include "facility/series.h"

#include <algorithm>
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
  double value = 0;
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
    find_step();
    if (columns_.stamps_end)
      for (Point& point : points_) point.begin -= step_;
    Series series;
    series.provider = columns_.provider;
    series.kind = columns_.kind;
    series.column = csv.header[columns_.value];
    series.step = static_cast<double>(step_);
    series.by_hour = over_hours();
    JD_TRY(bridge(series.by_hour));
    JD_TRY(plausible(series.by_hour));
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
    Tally short_rows, stamps, values, never;
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
      const auto value = number(row.cells[columns_.value], decimal_comma);
      if (!value) {
        values.add(row.line, row.cells[columns_.value]);
        continue;
      }
      points_.push_back({*begin, *value * columns_.factor, row.line});
    }
    if (stamps.count * 100 > csv.rows.size() || points_.empty())
      return no_points(stamps, values, short_rows);
    if (short_rows.count > 0)
      note(Severity::warning, "short_rows",
           fmt::format("{} rows have too few cells, first in line {}; they are left out",
                       short_rows.count, short_rows.line),
           short_rows.count);
    if (stamps.count > 0)
      note(
          Severity::warning, "unreadable_times",
          fmt::format("{} rows have no readable time, first in line {} (\"{}\"); they are left out",
                      stamps.count, stamps.line, printable(stamps.cell)),
          stamps.count);
    if (values.count > 0)
      note(Severity::warning, "unreadable_values",
           fmt::format("{} rows have no number, first in line {} (\"{}\"); they are left out",
                       values.count, values.line, printable(values.cell)),
           values.count);
    if (never.count > 0)
      note(Severity::warning, "times_that_never_were",
           fmt::format("{} rows have a time that {} never had, first in line {} (\"{}\"), as the "
                       "clocks went forward; they are left out",
                       never.count, columns_.zone.name(), never.line, printable(never.cell)),
           never.count);
    return {};
  }

  Status no_points(const Tally& stamps, const Tally& values, const Tally& short_rows) const {
    if (stamps.count > 0)
      return fail(ExitCode::bad_input,
                  fmt::format("line {}: \"{}\" is no time that can be read; write it as "
                              "2024-03-31T02:00:00Z",
                              stamps.line, printable(stamps.cell)));
    if (values.count > 0)
      return fail(ExitCode::bad_input,
                  fmt::format("line {}: \"{}\" is no number", values.line, printable(values.cell)));
    if (short_rows.count > 0)
      return fail(ExitCode::bad_input,
                  fmt::format("line {}: the row has fewer cells than the header", short_rows.line));
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
      repeated.add(point.line);
      most = std::max(most, std::fabs(point.value - unique.back().value));
    }
    if (repeated.count > 0)
      note(Severity::warning, "duplicates",
           fmt::format("{} times come more than once, first in line {}, with values up to {:.6g} "
                       "apart; the first of each counts",
                       repeated.count, repeated.line, most / columns_.factor),
           repeated.count);
    points_ = std::move(unique);
  }

  void find_step() {
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
    for (const auto& [distance, count] : distances) closer += distance < step_ ? count : 0;
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
           fmt::format("{} rows follow after less than the usual {}; each counts until the next",
                       closer, format(Seconds(static_cast<double>(step_)))),
           closer);
  }

  // NaN where no row covers any of the hour.
  std::vector<double> over_hours() {
    std::vector<double> values(hours_.size(), std::nan(""));
    const double per = content_ == Content::demand ? static_cast<double>(step_) : 1;
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
        const auto overlap =
            static_cast<double>(std::min(end, end_of(i)) - std::max(begin, points_[i].begin));
        sum += points_[i].value / per * overlap;
        covered += overlap;
      }
      if (covered > 0) values[h] = sum / covered;
      if (covered > 0 && covered < hours_[h].seconds && partial++ == 0) first_partial = h;
    }
    if (partial > 0)
      note(
          Severity::warning, "partial_hours",
          fmt::format("{} hours lack some of their rows, the first at {}; what is there stands for "
                      "the hour",
                      partial, facility::text(hours_[first_partial].local)),
          partial);
    return values;
  }

  Instant end_of(std::size_t i) const {
    const Instant end = points_[i].begin + step_;
    return i + 1 < points_.size() ? std::min(end, points_[i + 1].begin) : end;
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
           fmt::format("{} hours have no row, the first at {}; they are filled from both sides",
                       filled, facility::text(hours_[first].local)),
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

  Status plausible(const std::vector<double>& values) {
    const auto [least, most] = std::minmax_element(values.begin(), values.end());
    if (content_ == Content::demand && *least < 0)
      return fail(ExitCode::bad_input, "an hour has less than 0 units; arrivals are counts");
    if (content_ == Content::pue && (*least < 1 || *most > 10))
      return fail(ExitCode::bad_input, fmt::format("a PUE of {:.3g} is none: it is 1 or more",
                                                   *least < 1 ? *least : *most));
    if (content_ == Content::carbon && *least < 0)
      note(Severity::warning, "negative_carbon",
           fmt::format("intensities fall to {:.3g} g/kWh; is that meant?", *least));
    if (content_ == Content::carbon && *most > 3000)
      return fail(
          ExitCode::bad_input,
          fmt::format("{:.4g} g/kWh is more than any power station emits; is the unit of {} "
                      "right?",
                      *most, columns_.provider.empty() ? "the column" : columns_.provider));
    return {};
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
