#include "facility/providers.h"

#include <algorithm>
#include <array>
#include <span>

#include <fmt/format.h>

#include "base/format.h"

namespace joulediff::facility {

namespace {

// A pound is 0.45359237 kg by definition, so 1 lb/MWh is 0.45359237 g/kWh.
constexpr double kPound = 0.45359237;

struct Provider {
  std::string_view name;
  Content content;
  std::string_view time;   // the column's name begins so
  std::string_view value;  // the column's name begins so
  std::string_view unit;
  std::string_view zone;  // of its stamps; empty: the plan's
  DateOrder order;
  bool stamps_end;
  std::string_view kind;
};

// In the order in which they are tried. Where a file has several columns that fit, the first line
// that matches wins: life cycle before direct, consumed before generated.
constexpr std::array kProviders{
    Provider{"Electricity Maps", Content::carbon, "datetime (utc)",
             "carbon intensity gco₂eq/kwh (life cycle)", "g/kWh", "UTC", DateOrder::unknown, false,
             "average"},
    Provider{"Electricity Maps", Content::carbon, "datetime (utc)",
             "carbon intensity gco₂eq/kwh (lca)", "g/kWh", "UTC", DateOrder::unknown, false,
             "average"},
    Provider{"Electricity Maps", Content::carbon, "datetime (utc)",
             "carbon intensity gco₂eq/kwh (direct)", "g/kWh", "UTC", DateOrder::unknown, false,
             "average"},
    Provider{"WattTime", Content::carbon, "timestamp", "moer", "lb/MWh", "UTC", DateOrder::unknown,
             false, "marginal"},
    Provider{"WattTime", Content::carbon, "point_time", "moer", "lb/MWh", "UTC", DateOrder::unknown,
             false, "marginal"},
    Provider{"WattTime", Content::carbon, "point_time", "value", "lb/MWh", "UTC",
             DateOrder::unknown, false, "marginal"},
    Provider{"WattTime", Content::carbon, "timestamp", "value", "lb/MWh", "UTC", DateOrder::unknown,
             false, "marginal"},
    Provider{"EIA", Content::carbon, "utc time", "co2 emissions intensity for consumed electricity",
             "lb/kWh", "UTC", DateOrder::month_first, true, "average"},
    Provider{"EIA", Content::carbon, "utc time",
             "co2 emissions intensity for generated electricity", "lb/kWh", "UTC",
             DateOrder::month_first, true, "average"},
    Provider{"ENTSO-E", Content::price, "mtu (utc)", "day-ahead price", "", "UTC",
             DateOrder::day_first, false, ""},
    Provider{"ENTSO-E", Content::price, "mtu (cet/cest)", "day-ahead price", "", "Europe/Brussels",
             DateOrder::day_first, false, ""},
};

struct Unit {
  Content content;
  std::string_view name;
  double factor;
};

constexpr std::array kUnits{
    Unit{Content::carbon, "g/kwh", 1},       Unit{Content::carbon, "kg/mwh", 1},
    Unit{Content::carbon, "kg/kwh", 1000},   Unit{Content::carbon, "t/mwh", 1000},
    Unit{Content::carbon, "lb/mwh", kPound}, Unit{Content::carbon, "lb/kwh", 1000 * kPound},
    Unit{Content::price, "/kwh", 1},         Unit{Content::price, "/mwh", 0.001},
};

bool begins(std::string_view column, std::string_view with) {
  return lower(column).starts_with(with);
}

std::optional<std::size_t> beginning_with(const Csv& csv, std::string_view prefix) {
  for (std::size_t i = 0; i < csv.header.size(); ++i)
    if (begins(csv.header[i], prefix)) return i;
  return std::nullopt;
}

std::string header_of(const Csv& csv) {
  constexpr std::size_t kShown = 8;
  std::string out;
  for (std::size_t i = 0; i < csv.header.size() && i < kShown; ++i)
    out += (i == 0 ? "" : ", ") + truncated(printable(csv.header[i]), 50);
  return csv.header.size() > kShown ? out + ", …" : out;
}

// What stands before the slash of a price is the tariff's currency, or its hundredth part.
Result<double> part_of(std::string_view money, std::string_view unit, std::string_view currency) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 3> kSigns{
      std::pair{"€", "eur"}, {"$", "usd"}, {"£", "gbp"}};
  const std::string wanted = lower(trimmed(currency));
  std::string name(money);
  if (wanted == "gbp" && (name == "p" || name == "pence")) return 0.01;
  for (const auto& [sign, code] : kSigns)
    if (const std::size_t at = name.find(sign); at != std::string::npos)
      name.replace(at, sign.size(), code);
  double part = 1;
  for (const std::string_view cent : {"cents", "cent", "ct", "¢", "c"})
    if (name.ends_with(cent)) {
      name.resize(name.size() - cent.size());
      part = 0.01;
      break;
    }
  if (wanted.empty() || name == wanted || (name.empty() && part != 1)) return part;
  return fail(ExitCode::bad_input,
              fmt::format("its prices are in {}, and the tariff's currency is {}; convert them",
                          printable(unit), printable(currency)));
}

// "EUR/MWh", "ct/kWh", "gCO2eq/kWh".
Result<double> factor_of(std::string_view unit, Content content, std::string_view currency) {
  std::string name = lower(trimmed(unit));
  for (const std::string_view noise : {"co₂eq", "co2eq", "co₂e", "co2e", "co₂", "co2", "lbs"}) {
    const std::size_t at = name.find(noise);
    if (at != std::string::npos) name.replace(at, noise.size(), noise == "lbs" ? "lb" : "");
  }
  std::erase(name, ' ');
  std::string known;
  for (const Unit& one : kUnits) {
    if (one.content != content) continue;
    if (content == Content::price ? name.size() > one.name.size() && name.ends_with(one.name)
                                  : name == one.name) {
      if (content != Content::price) return one.factor;
      JD_ASSIGN(const double part,
                part_of(name.substr(0, name.size() - one.name.size()), unit, currency));
      return part * one.factor;
    }
    known += (known.empty() ? "" : ", ") +
             (content == Content::price ? "EUR" + std::string(one.name) : std::string(one.name));
  }
  return fail(ExitCode::bad_input, fmt::format("unit {} is not known here; give one such as {}",
                                               printable(unit), known));
}

// "Day-ahead Price [EUR/MWh]": what the brackets hold.
std::string bracketed(const std::string& column) {
  const std::size_t open = column.find_first_of("[(");
  const std::size_t close = column.find_last_of("])");
  if (open == std::string::npos || close == std::string::npos || close <= open) return "";
  return column.substr(open + 1, close - open - 1);
}

Result<std::size_t> named(const Csv& csv, const std::string& name) {
  if (const auto column = csv.column(name)) return *column;
  return fail(ExitCode::bad_input, fmt::format("there is no column {}; the header has: {}",
                                               printable(name), header_of(csv)));
}

// A column that is called "value" says nothing of its provider where the plan says what it holds.
const Provider* provider_of(const Csv& csv, Content content, const SeriesSource& source) {
  const bool said = source.value || source.unit;
  for (const Provider& one : kProviders)
    if (one.content == content && beginning_with(csv, one.time) && beginning_with(csv, one.value) &&
        !(one.value == "value" && said))
      return &one;
  return nullptr;
}

}  // namespace

Result<Columns> choose_columns(const Csv& csv, const SeriesSource& source, Content content,
                               const Zone& zone) {
  Columns columns;
  columns.zone = zone;
  columns.stamps_end = source.stamps_end;
  const Provider* provider = provider_of(csv, content, source);
  if (provider == nullptr && (!source.time || !source.value))
    return fail(ExitCode::bad_input,
                fmt::format("its columns are those of no provider that is known; say which hold "
                            "what by time_column = and value_column =; the header has: {}",
                            header_of(csv)));
  std::string unit;
  if (provider != nullptr) {
    columns.time = *beginning_with(csv, provider->time);
    columns.value = *beginning_with(csv, provider->value);
    columns.order = provider->order;
    columns.provider = provider->name;
    columns.kind = provider->kind;
    columns.stamps_end = columns.stamps_end || provider->stamps_end;
    unit = provider->unit.empty() ? bracketed(csv.header[columns.value]) : provider->unit;
    if (!provider->zone.empty()) {
      JD_ASSIGN(columns.zone, Zone::named(std::string(provider->zone)));
    }
  }
  if (source.time) {
    JD_ASSIGN(columns.time, named(csv, *source.time));
  }
  if (source.value) {
    JD_ASSIGN(columns.value, named(csv, *source.value));
  }
  if (source.zone) {
    JD_ASSIGN(columns.zone, Zone::named(*source.zone));
  }
  if (source.unit) unit = *source.unit;
  if (content == Content::carbon || content == Content::price) {
    if (unit.empty())
      return fail(ExitCode::bad_input,
                  fmt::format("the unit of column {} is not known; say it by unit =, as in {}",
                              printable(csv.header[columns.value]),
                              content == Content::carbon ? "\"g/kWh\"" : "\"EUR/MWh\""));
    JD_ASSIGN(columns.factor, factor_of(unit, content, source.currency));
  }
  return columns;
}

}  // namespace joulediff::facility
