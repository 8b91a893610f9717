#include "facility/plan_inputs.h"

#include <algorithm>
#include <array>
#include <numeric>

#include <fmt/format.h>

#include "base/format.h"

namespace joulediff::facility {

namespace {

const std::vector<std::string> kStandings{"modelled", "estimated", "measured"};
constexpr std::array kStandingOf{Standing::modelled, Standing::estimated, Standing::measured};
constexpr std::array<std::string_view, 7> kDays{"mon", "tue", "wed", "thu", "fri", "sat", "sun"};

// When a period holds. Nothing said of months, days or hours means all of them.
struct Period {
  std::array<bool, 12> months{};
  std::array<bool, 7> days{};
  int from = 0;
  int to = 24;
  double value = 0;

  bool holds(const Hour& hour) const {
    const int h = hour.local.hour;
    const bool within = from < to ? h >= from && h < to : h >= from || h < to;
    return months[static_cast<std::size_t>(hour.local.month - 1)] &&
           days[static_cast<std::size_t>(hour.weekday)] && within;
  }
};

Result<std::array<bool, 12>> months_of(const TableReader& table) {
  std::array<bool, 12> months{};
  const Node* node = table.find("months");
  if (node == nullptr) {
    months.fill(true);
    return months;
  }
  if (node->array() == nullptr || node->array()->empty())
    return table.wrong(*node, "give a list of months, as in [11, 12, 1]");
  for (const Node& one : *node->array()) {
    const double month = one.number() == nullptr ? 0 : *one.number();
    if (!(month >= 1 && month <= 12 && month == static_cast<int>(month)))
      return table.wrong(*node, "months are numbers from 1 to 12");
    months[static_cast<std::size_t>(month - 1)] = true;
  }
  return months;
}

Result<std::array<bool, 7>> days_of(const TableReader& table) {
  std::array<bool, 7> days{};
  const Node* node = table.find("days");
  if (node == nullptr) {
    days.fill(true);
    return days;
  }
  if (node->array() == nullptr || node->array()->empty())
    return table.wrong(*node, "give a list of days, as in [\"sat\", \"sun\"]");
  for (const Node& one : *node->array()) {
    const auto found =
        one.text() == nullptr ? kDays.end() : std::find(kDays.begin(), kDays.end(), *one.text());
    if (found == kDays.end())
      return table.wrong(*node, "days are mon, tue, wed, thu, fri, sat, sun");
    days[static_cast<std::size_t>(found - kDays.begin())] = true;
  }
  return days;
}

Status hours_of(const TableReader& table, Period& period) {
  const Node* node = table.find("hours");
  if (node == nullptr) return {};
  const Array* array = node->array();
  const auto hour = [&](std::size_t i) {
    const double* number = (*array)[i].number();
    return number != nullptr && *number >= 0 && *number <= 24 &&
                   *number == static_cast<int>(*number)
               ? static_cast<int>(*number)
               : -1;
  };
  if (array == nullptr || array->size() != 2 || hour(0) < 0 || hour(1) < 0 || hour(0) == hour(1))
    return table.wrong(*node, "give the hour from which and the hour until which, as in [8, 20]");
  period.from = hour(0);
  period.to = hour(1);
  return {};
}

}  // namespace

InputId InputReader::add(Input input) {
  plan_.inputs.push_back(std::move(input));
  return InputId(plan_.inputs.size() - 1);
}

Result<Range> InputReader::range(const TableReader& table, const Kind& kind) const {
  Range range;
  const auto one = [&](const char* key, double& value) -> Status {
    JD_ASSIGN(const auto found, table.number(key, kind.least, kind.most));
    if (!found)
      return table.wrong(fmt::format("{} is missing; give low, base and high, or one number", key));
    value = *found;
    return {};
  };
  JD_TRY(one("low", range.low));
  JD_TRY(one("base", range.base));
  JD_TRY(one("high", range.high));
  if (!(range.low <= range.base && range.base <= range.high))
    return table.wrong("low, base and high are not in this order");
  return range;
}

Result<InputId> InputReader::input(const TableReader& table, std::string_view key,
                                   const std::string& prefix, const Kind& kind) {
  const Node* node = table.find(key);
  if (node == nullptr) return InputId();
  Input input;
  input.key = prefix + "." + std::string(key);
  input.unit = kind.unit;
  input.least = kind.least;
  input.most = kind.most;
  input.origin = table.origin(*node);
  if (node->table() == nullptr) {
    if (node->number() == nullptr)
      return table.wrong(*node, "give a number, or { low = …, base = …, high = … }");
    JD_ASSIGN(const auto value, table.number(key, kind.least, kind.most));
    input.range = {*value, *value, *value};
    return add(std::move(input));
  }
  const TableReader inner(*node, table.file());
  JD_ASSIGN(input.range, range(inner, kind));
  input.ranged = true;
  JD_ASSIGN(const std::size_t standing, inner.choice("standing", kStandings));
  input.standing = kStandingOf[standing];
  JD_ASSIGN(const auto source, inner.text("source"));
  if (source) input.origin = *source;
  JD_TRY(inner.finish());
  return add(std::move(input));
}

Result<InputId> InputReader::needed(const TableReader& table, std::string_view key,
                                    const std::string& prefix, const Kind& kind,
                                    std::string_view what) {
  JD_TRY(table.need(key, what));
  return input(table, key, prefix, kind);
}

Result<std::vector<double>> InputReader::numbers(const TableReader& table, std::string_view key,
                                                 std::size_t count, const Kind& kind) const {
  const Node* node = table.find(key);
  if (node == nullptr) return std::vector<double>();
  std::vector<double> values;
  if (node->array() != nullptr)
    for (const Node& one : *node->array()) {
      if (one.number() == nullptr || !(*one.number() >= kind.least && *one.number() <= kind.most))
        return table.wrong(one,
                           fmt::format("give a number from {:g} to {:g}", kind.least, kind.most));
      values.push_back(*one.number());
    }
  if (values.size() != count)
    return table.wrong(*node, fmt::format("give {} numbers; there are {}", count, values.size()));
  return values;
}

// by_hour, with weekend for Saturday and Sunday, or by_month; both multiply, as weights do.
Result<std::vector<double>> InputReader::by_clock(const TableReader& table,
                                                  const Kind& kind) const {
  JD_ASSIGN(const auto by_hour, numbers(table, "by_hour", 24, kind));
  JD_ASSIGN(const auto weekend, numbers(table, "weekend", 24, kind));
  JD_ASSIGN(const auto by_month, numbers(table, "by_month", 12, kind));
  if (by_hour.empty() && !weekend.empty())
    return table.wrong("weekend stands beside by_hour, which is missing");
  std::vector<double> values;
  if (by_hour.empty() && by_month.empty()) return values;
  for (const Hour& hour : plan_.hours) {
    const auto& day = hour.weekday >= 5 && !weekend.empty() ? weekend : by_hour;
    values.push_back(
        (by_hour.empty() ? 1 : day[static_cast<std::size_t>(hour.local.hour)]) *
        (by_month.empty() ? 1 : by_month[static_cast<std::size_t>(hour.local.month - 1)]));
  }
  return values;
}

// The first period that holds; outside them `value`.
Result<std::vector<double>> InputReader::periods(const TableReader& table, const Kind& kind) const {
  const Node* list = table.find("periods");
  JD_ASSIGN(const auto otherwise, table.number("value", kind.least, kind.most));
  if (list == nullptr && !otherwise) return std::vector<double>();
  if (list == nullptr || list->array() == nullptr || list->array()->empty())
    return table.wrong("value goes with [[periods]]; a single level is a number");
  if (!otherwise) return table.wrong("value is missing: what holds outside the periods");
  std::vector<Period> all;
  for (const Node& node : *list->array()) {
    if (node.table() == nullptr)
      return table.wrong(node, "give a table: months, days, hours, value");
    const TableReader inner(node, table.file());
    Period period;
    JD_ASSIGN(period.months, months_of(inner));
    JD_ASSIGN(period.days, days_of(inner));
    JD_TRY(hours_of(inner, period));
    JD_ASSIGN(const auto value, inner.number("value", kind.least, kind.most));
    if (!value) return inner.wrong("value is missing: what holds in the period");
    period.value = *value;
    JD_TRY(inner.finish());
    all.push_back(period);
  }
  std::vector<double> values;
  for (const Hour& hour : plan_.hours) {
    const auto found =
        std::find_if(all.begin(), all.end(), [&](const Period& one) { return one.holds(hour); });
    values.push_back(found == all.end() ? *otherwise : found->value);
  }
  return values;
}

Result<std::vector<double>> InputReader::file(const TableReader& table, const std::string& path,
                                              Content content, Signal& signal) {
  SeriesSource source;
  source.path = path;
  source.currency = plan_.currency;
  JD_ASSIGN(source.time, table.text("time_column"));
  JD_ASSIGN(source.value, table.text("value_column"));
  JD_ASSIGN(source.unit, table.text("unit"));
  JD_ASSIGN(source.zone, table.text("zone"));
  JD_ASSIGN(const std::size_t stamps, table.choice("stamps", {"begin", "end"}));
  source.stamps_end = stamps == 1;
  JD_ASSIGN(const auto where, table.table("where"));
  if (where)
    for (const auto& [column, cell] : *where->node().table()) {
      if (cell.text() == nullptr) return where->wrong(cell, "give the cell's text in quotes");
      source.where[column] = *cell.text();
    }
  const auto bytes = from_.read(path);
  if (!bytes) return table.wrong(*table.find("file"), bytes.error().message);
  Result<Series> series =
      read_series(*bytes, source, content, plan_.hours, plan_.zone, plan_.diagnostics);
  if (!series) return table.wrong(*table.find("file"), series.error().message);
  signal.provider = series->provider.empty()
                        ? path
                        : fmt::format("{}, {} ({})", path, series->column, series->provider);
  if (content == Content::carbon) carbon_kind_ = series->kind;
  return std::move(series->by_hour);
}

Result<Signal> InputReader::signal(const TableReader& table, std::string_view key,
                                   const std::string& prefix, const Kind& kind, Content content,
                                   double floor) {
  Signal signal;
  signal.floor = floor;
  const Node* node = table.find(key);
  if (node == nullptr) return signal;
  const Table* inner_table = node->table();
  if (inner_table == nullptr || inner_table->contains("base") || inner_table->contains("low") ||
      inner_table->contains("high")) {
    JD_ASSIGN(signal.level, input(table, key, prefix, kind));
    JD_TRY(plausible(table, *node, signal, content));
    return signal;
  }
  const TableReader inner(*node, table.file());
  JD_ASSIGN(const auto path, inner.text("file"));
  JD_ASSIGN(auto clock, by_clock(inner, kind));
  JD_ASSIGN(auto periodic, periods(inner, kind));
  const int ways = (path ? 1 : 0) + (clock.empty() ? 0 : 1) + (periodic.empty() ? 0 : 1);
  const bool product = inner.find("by_hour") != nullptr && inner.find("by_month") != nullptr;
  if (ways != 1 || product)
    return inner.wrong(
        "give one of: a number, { low, base, high }, by_hour, by_month, file, or "
        "value with periods");
  if (path) {
    JD_ASSIGN(signal.course, file(inner, *path, content, signal));
  } else {
    signal.course = clock.empty() ? std::move(periodic) : std::move(clock);
  }
  const std::string name = prefix + "." + std::string(key);
  constexpr double kMostScale = 100;
  const double least = content == Content::demand ? 1e-12 : 0;
  JD_ASSIGN(signal.level, input(inner, "scale", name, {"", least, kMostScale}));
  if (!signal.level.valid())
    signal.level = add({name + ".scale",
                        "",
                        {1, 1, 1},
                        false,
                        Standing::modelled,
                        table.origin(*node),
                        least,
                        kMostScale});
  JD_TRY(inner.finish());
  JD_TRY(plausible(table, *node, signal, content));
  return signal;
}

// The same is asked of a number, of hours, and of a file, over all that the scale or the range
// makes of it; and a turning point is sought no further than that.
Status InputReader::plausible(const TableReader& table, const Node& node, const Signal& signal,
                              Content content) {
  Input& level = plan_.inputs[signal.level.index()];
  double least = level.range.low, most = level.range.high, mean = level.range.base;
  double high = 1;
  if (signal.varies()) {
    const auto [lowest, highest] = std::minmax_element(signal.course.begin(), signal.course.end());
    const auto scaled = [&](double scale, double value) {
      return signal.floor + scale * (value - signal.floor);
    };
    least = std::min(scaled(level.range.low, *lowest), scaled(level.range.high, *lowest));
    most = std::max(scaled(level.range.low, *highest), scaled(level.range.high, *highest));
    mean = std::accumulate(signal.course.begin(), signal.course.end(), 0.0) /
           static_cast<double>(signal.course.size());
    high = *highest - signal.floor;
  }
  const auto limit = [&](double value) {
    if (signal.varies() && high > 0)
      level.most = std::min(level.most, std::max(level.range.high, (value - signal.floor) / high));
    if (!signal.varies()) level.most = std::min(level.most, value);
  };
  const auto note = [&](const char* rule, const std::string& message) {
    plan_.diagnostics.push_back({Severity::warning, fmt::format("facility.{}", rule), message, 1});
  };
  switch (content) {
    case Content::demand:
      if (least < 0) return table.wrong(node, "an hour has less than 0 units; arrivals are counts");
      if (!(most > 0)) return table.wrong(node, "no unit arrives in the whole year");
      break;
    case Content::pue:
      if (least < 1 || most > 10)
        return table.wrong(node, fmt::format("a PUE of {:.3g} is none: it is from 1 to 10",
                                             least < 1 ? least : most));
      limit(10);
      break;
    case Content::carbon:
      if (least < 0)
        note("negative_carbon",
             fmt::format("intensities fall to {:.3g} g/kWh; is that meant?", least));
      if (most > 3000)
        return table.wrong(
            node, fmt::format("{:.4g} g/kWh is more than any power station emits; is the unit "
                              "right?",
                              most));
      limit(3000);
      break;
    case Content::price:
      if (mean < 0)
        note("negative_price", fmt::format("the price of a kWh is {:.3g} {} on average; is that "
                                           "meant?",
                                           mean, printable(plan_.currency)));
      if (std::max(-least, most) > 1e6)
        return table.wrong(node, fmt::format("a price of {:.3g} {} a kWh is none; is the unit "
                                             "right?",
                                             most > 1e6 ? most : least, printable(plan_.currency)));
      limit(1e6);
      break;
  }
  return {};
}

Result<std::vector<double>> InputReader::weights(const TableReader& table, std::string_view key) {
  std::vector<double> values;
  JD_ASSIGN(const auto inner, table.table(key));
  if (inner) {
    JD_ASSIGN(values, by_clock(*inner, {"", 0, 1e12}));
    JD_TRY(inner->finish());
    if (values.empty()) return inner->wrong("give by_hour (24 numbers), by_month (12), or both");
  } else {
    for (const Hour& hour : plan_.hours) values.push_back(hour.seconds);
  }
  const double sum = std::accumulate(values.begin(), values.end(), 0.0);
  if (!(sum > 0)) return table.wrong(fmt::format("{} has no hour above 0", key));
  for (double& value : values) value /= sum;
  return values;
}

}  // namespace joulediff::facility
