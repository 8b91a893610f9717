// Spreadsheets and loggers differ in what stands between the columns, in the mark of decimals and
// in units. What stands between is read off the first line, and is one for the file. A comma within
// a number is the mark of decimals where all numbers of the file have it so: a number with a point
// beside one with a comma may mean thousands, so neither is guessed at. A unit that is not known,
// or a header that names no time and no power, refuses the file.
#include "device/meter_file.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

#include <fmt/format.h>

#include "base/file.h"
#include "base/format.h"
#include "device/meter_text.h"

namespace joulediff::device {
namespace {

constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 30;
constexpr const char* kWhatToName =
    "name its columns `time [s]`, `power [W]` and perhaps `channel` (units s, ms, us, ns; W, kW, "
    "mW)";

using Fields = std::vector<std::string_view>;

// A separator within quotes separates nothing.
Fields split(std::string_view line, char separator) {
  Fields fields;
  bool quoted = false;
  std::size_t begin = 0;
  for (std::size_t i = 0; i <= line.size(); ++i) {
    if (i < line.size() && line[i] == '"') quoted = !quoted;
    if (i < line.size() && (quoted || line[i] != separator)) continue;
    fields.push_back(trimmed(line.substr(begin, i - begin)));
    begin = i + 1;
  }
  return fields;
}

char separator_of(std::string_view line) {
  for (const char candidate : {';', '\t'})
    if (split(line, candidate).size() > 1) return candidate;
  return ',';
}

std::string lower(std::string_view text) {
  std::string out(text);
  std::ranges::transform(out, out.begin(), [](unsigned char c) { return std::tolower(c); });
  return out;
}

struct Columns {
  std::size_t time = 0, power = 1, channel = 2;
  Nanoseconds time_unit = 0;  // as unix_time takes it
  double power_unit = 1;
  std::size_t count = 0;  // of a header; 0: there is none
};

// A column's name and unit: "Power (kW)", "power_kw", "power/kW", "kilowatts".
struct Heading {
  std::string name, unit;
  bool in_brackets = false;
};

Heading heading(std::string_view field) {
  if (const std::size_t open = field.find_first_of("[("); open != std::string_view::npos) {
    const std::string_view unit =
        field.substr(open + 1, field.find_first_of("])", open) - open - 1);
    return {lower(trimmed(field.substr(0, open))), std::string(trimmed(unit)), true};
  }
  const std::size_t last = field.find_last_of(" _/");
  if (last == std::string_view::npos) return {lower(field), std::string(field), false};
  return {lower(trimmed(field.substr(0, last))), std::string(field.substr(last + 1)), false};
}

bool begins_with_one_of(const std::string& name, std::initializer_list<std::string_view> words) {
  const std::string first = name.substr(0, name.find_first_of(" _./"));
  return std::ranges::find(words, first) != words.end();
}

// Nanoseconds.
std::optional<Nanoseconds> time_unit(const std::string& text) {
  const std::string unit = lower(text);
  const auto is = [&](std::initializer_list<std::string_view> names) {
    return std::ranges::find(names, unit) != names.end();
  };
  if (is({"s", "sec", "second", "seconds"})) return 1'000'000'000;
  if (is({"ms", "msec", "millisecond", "milliseconds"})) return 1'000'000;
  if (is({"us", "\xc2\xb5s", "\xce\xbcs", "usec", "microsecond", "microseconds"})) return 1'000;
  if (is({"ns", "nsec", "nanosecond", "nanoseconds"})) return 1;
  return std::nullopt;
}

// Watts. M is mega and m is milli, but who writes all in small letters means milli.
std::optional<double> power_unit(const std::string& text) {
  const std::string unit = lower(text);
  if (unit == "w" || unit == "watt" || unit == "watts") return 1;
  if (unit == "kw" || unit == "kilowatt" || unit == "kilowatts") return 1e3;
  if (text == "mW" || text == "mw" || unit == "milliwatt" || unit == "milliwatts") return 1e-3;
  return std::nullopt;
}

// As in "watt hours": what it heads is no power.
bool is_energy(const std::string& text) {
  const std::string unit = lower(text);
  return unit == "h" || unit == "hours" || unit.ends_with("wh") || unit == "joules";
}

Result<Columns> columns_of(const Fields& header, const std::string& where) {
  std::optional<std::size_t> time, power, channel;
  Columns columns;
  for (std::size_t i = 0; i < header.size(); ++i) {
    const Heading heading = device::heading(header[i]);
    const auto refuse = [&] {
      return fail(ExitCode::bad_input,
                  fmt::format("{}: the unit of its column \"{}\" is not known; {}", where,
                              printable(header[i]), kWhatToName));
    };
    const auto as_time = time_unit(heading.unit);
    const auto as_power = power_unit(heading.unit);
    if (is_energy(heading.unit)) continue;
    const bool alone = heading.name == lower(heading.unit);
    if (!time && (begins_with_one_of(heading.name, {"time", "timestamp", "unix", "epoch", "t"}) ||
                  (alone && as_time))) {
      if (heading.in_brackets && !as_time) return refuse();
      time = i;
      columns.time_unit = as_time.value_or(0);
    } else if (!power && (begins_with_one_of(heading.name, {"power", "watts", "watt", "p"}) ||
                          (alone && as_power))) {
      if (heading.in_brackets && !as_power) return refuse();
      power = i;
      columns.power_unit = as_power.value_or(1);
    } else if (!channel &&
               begins_with_one_of(heading.name, {"channel", "name", "sensor", "outlet"})) {
      channel = i;
    }
  }
  if (!time || !power)
    return fail(ExitCode::bad_input,
                fmt::format("{}: it holds no readings, as its first line is none and names no "
                            "column of time and of power; {}",
                            where, kWhatToName));
  columns.time = *time;
  columns.power = *power;
  columns.channel = channel.value_or(header.size());
  columns.count = header.size();
  return columns;
}

// The lines of the file that say something, with their numbers.
struct Line {
  std::uint64_t number = 0;
  Fields fields;
};

std::vector<Line> lines_of(std::string_view text) {
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  std::vector<Line> lines;
  char separator = 0;
  for (std::uint64_t number = 1; !text.empty(); ++number) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    if (trimmed(line).empty() || line.starts_with('#')) continue;
    if (separator == 0) separator = separator_of(line);
    lines.push_back({number, split(line, separator)});
  }
  return lines;
}

class Reader {
 public:
  Reader(const Columns& columns, bool decimal_commas)
      : columns_(columns), decimal_commas_(decimal_commas) {}

  std::optional<MeterSample> read(const Fields& fields) const {
    constexpr std::size_t kMostWithoutHeader = 3;
    if (columns_.count == 0 ? fields.size() > kMostWithoutHeader : fields.size() > columns_.count)
      return std::nullopt;
    const auto time = unix_time(number(fields, columns_.time), columns_.time_unit);
    const auto milliwatts = power(number(fields, columns_.power), columns_.power_unit);
    if (!time || !milliwatts) return std::nullopt;
    return MeterSample{*time, *milliwatts, std::string(field(fields, columns_.channel))};
  }

  static std::string_view field(const Fields& fields, std::size_t i) {
    return i < fields.size() ? fields[i] : std::string_view();
  }

 private:
  // Empty where its commas and points say different things.
  std::string number(const Fields& fields, std::size_t i) const {
    std::string text(field(fields, i));
    if (!decimal_commas_) return text;
    if (text.find('.') != std::string::npos) return "";
    std::ranges::replace(text, ',', '.');
    return text;
  }

  const Columns& columns_;
  const bool decimal_commas_;
};

}  // namespace

Result<MeterFile> read_meter_file(const std::string& path) {
  JD_ASSIGN(const std::string text, read_file(path, kMostBytes));
  std::vector<Line> lines = lines_of(text);
  Columns columns;
  const auto has_comma = [&](const Line& line) {
    return Reader::field(line.fields, columns.time).find(',') != std::string_view::npos ||
           Reader::field(line.fields, columns.power).find(',') != std::string_view::npos;
  };
  const bool headed =
      !lines.empty() && !Reader(columns, has_comma(lines.front())).read(lines.front().fields);
  if (headed) {
    JD_ASSIGN(columns, columns_of(lines.front().fields, "the meter's file " + printable(path)));
    lines.erase(lines.begin());
  }
  MeterFile result;
  const Reader reader(columns, std::ranges::any_of(lines, has_comma));
  for (const Line& line : lines) {
    if (auto reading = reader.read(line.fields))
      result.samples.push_back(std::move(*reading));
    else if (result.garbage++ == 0)
      result.first_garbage = line.number;
  }
  if (result.samples.empty())
    return fail(
        ExitCode::bad_input,
        fmt::format("the meter's file {} holds no readings: {}", printable(path),
                    lines.empty() ? "it has no lines of them"
                                  : fmt::format("its line {} is none", result.first_garbage)));
  return result;
}

}  // namespace joulediff::device
