// Each table of the file is a list of keys and the members that they set, with the range that each
// may have: what is not in a list is a mistake of the person, and told with its line.
#include "simulate/program_file.h"

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <limits>

#include <fmt/format.h>

#include "base/file.h"
#include "base/format.h"
#include "base/toml.h"
#include "simulate/boards.h"

namespace joulediff::simulate {
namespace {

constexpr std::size_t kMostBytes = 1 << 20;
constexpr double kAny = 1e9, kWatts = 1e5, kPeriod = 1e-3, kLong = 600;

template <class T>
struct Number {
  const char* key;
  double T::* member;
  double low, high;
};

// What stands behind the file's name.
tl::unexpected<Error> fault(const TomlNode& at, std::string message) {
  return fail(ExitCode::bad_input, fmt::format(":{}: {}", at.line, message));
}

class Reader {
 public:
  explicit Reader(const TomlNode& table) : table_(table) {}

  template <class T>
  Status numbers(T& into, std::initializer_list<Number<T>> keys) {
    for (const Number<T>& one : keys) {
      const TomlNode* node = take(one.key);
      if (!node) continue;
      const double* value = node->number();
      if (!value || !(*value >= one.low && *value <= one.high))
        return fault(*node, fmt::format("{} is not a number between {:g} and {:g}", one.key,
                                        one.low, one.high));
      into.*one.member = *value;
    }
    return {};
  }

  template <class T>
  Status whole(const char* key, T& into, std::int64_t low, std::int64_t high) {
    const TomlNode* node = take(key);
    if (!node) return {};
    const double* value = node->number();
    if (!value || *value != std::floor(*value) || *value < static_cast<double>(low) ||
        *value > static_cast<double>(high))
      return fault(*node, fmt::format("{} is not a whole number from {} to {}", key, low, high));
    into = static_cast<T>(*value);
    return {};
  }

  Status text(const char* key, std::string& into) {
    const TomlNode* node = take(key);
    if (!node) return {};
    if (!node->text()) return fault(*node, fmt::format("{} is not a text in quotes", key));
    into = *node->text();
    return {};
  }

  // Null: not there.
  Result<const TomlNode*> table(const char* key) {
    const TomlNode* node = take(key);
    if (node && !node->table())
      return fault(*node, fmt::format("{} is not a table: [{}]", key, key));
    return node;
  }

  Result<const TomlArray*> tables(const char* key) {
    const TomlNode* node = take(key);
    if (!node) return nullptr;
    const TomlArray* list = node->array();
    if (!list || !std::ranges::all_of(*list, [](const TomlNode& one) { return one.table(); }))
      return fault(*node, fmt::format("{} is not a list of tables: [[{}]]", key, key));
    return list;
  }

  const TomlNode* take(const char* key) {
    known_.emplace_back(key);
    return table_.find(key);
  }

  // What nobody asked for is a mistake.
  Status rest() const {
    for (const auto& [key, node] : *table_.table())
      if (std::ranges::find(known_, key) == known_.end()) {
        std::string known;
        for (const std::string& one : known_) known += (known.empty() ? "" : ", ") + one;
        return fault(node,
                     fmt::format("there is no key {} here; there are {}", printable(key), known));
      }
    return {};
  }

 private:
  const TomlNode& table_;  // a table
  std::vector<std::string> known_;
};

Status read_operator(const TomlNode& table, Program& program) {
  Reader reader(table);
  Operator op;
  double watts = std::numeric_limits<double>::quiet_NaN();
  JD_TRY(reader.text("name", op.name));
  JD_TRY(reader.numbers<Operator>(op, {{"seconds", &Operator::seconds, 1e-7, 10},
                                       {"joules", &Operator::joules, 0, 1e5},
                                       {"compute_bound", &Operator::compute_bound, 0, 1},
                                       {"cold", &Operator::cold, 0, 10},
                                       {"cold_time", &Operator::cold_time, 0, 10},
                                       {"operand_spread", &Operator::operand_spread, 0, 1}}));
  JD_TRY(reader.whole("kernels", op.kernels, 1, 100'000));
  JD_TRY(reader.whole("calls", op.calls, 1, 10'000));
  JD_TRY(reader.whole("stream", op.stream, 0, 100));
  if (const TomlNode* node = reader.take("watts")) {
    watts = node->number() ? *node->number() : -1;
    if (!(watts >= 0 && watts <= kWatts))
      return fault(*node, "watts is not a number between 0 and 1e5");
    if (table.find("joules")) return fault(*node, "an operator has either joules or watts");
    op.joules = watts * op.seconds;
  }
  JD_TRY(reader.rest());
  if (op.name.empty()) return fault(table, "an operator has no name");
  if (!table.find("seconds")) return fault(table, "seconds is missing: how long a call takes");
  if (std::ranges::count(program.operators, op.name, &Operator::name) > 0)
    return fault(table, "operator " + printable(op.name) +
                            " is there twice; say `calls`, or give another name");
  program.operators.push_back(std::move(op));
  return {};
}

Status read_board(const TomlNode& table, BoardModel& board) {
  using B = BoardModel;
  Reader reader(table);
  JD_TRY(reader.numbers<B>(board, {{"idle_watts", &B::idle_watts, 0, kWatts},
                                   {"context_watts", &B::context_watts, 0, kWatts},
                                   {"static_watts", &B::static_watts, 0, kWatts},
                                   {"sleep_after", &B::sleep_after, 0, kAny},
                                   {"asleep_watts", &B::asleep_watts, 0, kWatts},
                                   {"leakage", &B::leakage, 0, 0.1},
                                   {"reference_celsius", &B::reference_celsius, -50, 150},
                                   {"boost_mhz", &B::boost_mhz, 1, 1e5},
                                   {"lowest_mhz", &B::lowest_mhz, 1, 1e5},
                                   {"energy_exponent", &B::energy_exponent, 0, 5},
                                   {"static_exponent", &B::static_exponent, 0, 5},
                                   {"cap_watts", &B::cap_watts, 1, kWatts},
                                   {"cap_seconds", &B::cap_seconds, 1e-4, kLong},
                                   {"hot_celsius", &B::hot_celsius, 0, 200},
                                   {"ambient_celsius", &B::ambient_celsius, -50, 100},
                                   {"kelvin_per_watt", &B::kelvin_per_watt, 0, 10},
                                   {"thermal_seconds", &B::thermal_seconds, 0.01, 1e5},
                                   {"ramp", &B::ramp, 0, 10},
                                   {"overlap", &B::overlap, -1, 10}}));
  JD_TRY(reader.rest());
  if (board.lowest_mhz > board.boost_mhz) return fault(table, "lowest_mhz is above boost_mhz");
  // Static power heats the board, which raises static power: up to some temperature, or without
  // end.
  const double floor =
      std::max({board.idle_watts, board.context_watts, board.static_watts, board.asleep_watts});
  if (floor * board.leakage * board.kelvin_per_watt >= 1)
    return fault(table,
                 fmt::format("static power of {:g} W, with this leakage and kelvin_per_watt, "
                             "would heat the board without end",
                             floor));
  return {};
}

Status read_counter(const TomlNode& table, CounterModel& counter) {
  using C = CounterModel;
  Reader reader(table);
  JD_TRY(reader.numbers<C>(counter, {{"period", &C::period, kPeriod, kLong},
                                     {"jitter", &C::jitter, 0, kLong},
                                     {"step", &C::step, 0, kLong},
                                     {"window", &C::window, 0, kLong},
                                     {"uneven", &C::uneven, 0, kLong},
                                     {"lag", &C::lag, 0, kLong},
                                     {"quantum", &C::quantum, 1e-6, kAny},
                                     {"gain", &C::gain, 0, 100},
                                     {"offset", &C::offset, -kAny, kAny},
                                     {"begin", &C::begin, 0, kAny},
                                     {"wraps_at", &C::wraps_at, 0, kAny},
                                     {"read_median", &C::read_median, 1e-5, 10},
                                     {"read_longest", &C::read_longest, 1e-5, 10},
                                     {"read_at", &C::read_at, 0, 1}}));
  if (const TomlNode* node = reader.take("resets")) {
    const TomlArray* list = node->array();
    if (!list) return fault(*node, "resets is not a list of seconds");
    for (const TomlNode& one : *list) {
      const double at = one.number() ? *one.number() : -1;
      if (!(at >= 0 && at <= kAny)) return fault(one, "a reset is not at a second");
      counter.resets.push_back(at);
    }
  }
  JD_ASSIGN(const TomlArray* freezes, reader.tables("freezes"));
  for (std::size_t i = 0; freezes && i < freezes->size(); ++i) {
    Reader inner((*freezes)[i]);
    Freeze freeze;
    JD_TRY(inner.numbers<Freeze>(
        freeze, {{"at", &Freeze::at, 0, kAny}, {"length", &Freeze::length, 0, kAny}}));
    if (const TomlNode* node = inner.take("forgets")) {
      if (!node->flag()) return fault(*node, "forgets is neither true nor false");
      freeze.forgets = *node->flag();
    }
    JD_TRY(inner.rest());
    counter.freezes.push_back(freeze);
  }
  JD_TRY(reader.rest());
  const bool sampled = counter.step > 0;
  if (sampled && (counter.step < kPeriod || counter.window <= 0 || counter.uneven > counter.step))
    return fault(table,
                 "a counter with steps has a step of at least 1e-3, a window, and is uneven by "
                 "less than a step");
  if (counter.jitter > counter.period)
    return fault(table, "the counter's jitter is above its period");
  return {};
}

Status read_power(const TomlNode& table, PowerModel& power) {
  using P = PowerModel;
  Reader reader(table);
  JD_TRY(reader.numbers<P>(power, {{"period", &P::period, kPeriod, kLong},
                                   {"jitter", &P::jitter, 0, kLong},
                                   {"window", &P::window, 0, kLong},
                                   {"delay", &P::delay, 0, kLong},
                                   {"lag", &P::lag, 0, kLong},
                                   {"quantum", &P::quantum, 1e-6, kAny},
                                   {"gain", &P::gain, 0, 100},
                                   {"offset", &P::offset, -kWatts, kWatts},
                                   {"noise", &P::noise, 0, kWatts}}));
  return reader.rest();
}

Status read_sensors(Reader& file, Sensors& sensors) {
  JD_ASSIGN(const TomlNode* counter, file.table("counter"));
  if (counter) {
    if (!sensors.counter) sensors.counter = CounterModel{};
    JD_TRY(read_counter(*counter, *sensors.counter));
  }
  const std::pair<const char*, run::Source> kPowers[] = {
      {"instant", run::Source::nvml_power_instant}, {"average", run::Source::nvml_power_average}};
  for (const auto& [key, source] : kPowers) {
    JD_ASSIGN(const TomlNode* power, file.table(key));
    if (!power) continue;
    auto found = std::ranges::find(sensors.powers, source, &PowerModel::source);
    if (found == sensors.powers.end()) {
      PowerModel fresh;
      fresh.source = source;
      found = sensors.powers.insert(found, fresh);
    }
    JD_TRY(read_power(*power, *found));
  }
  return {};
}

Status read_passes(const TomlNode& table, Passes& passes) {
  using P = Passes;
  Reader reader(table);
  JD_TRY(reader.whole("order_steps", passes.order_steps, 0, 100));
  JD_TRY(reader.numbers<P>(passes, {{"static_window", &P::static_window, 0, 60},
                                    {"idle_window", &P::idle_window, 0, 60},
                                    {"replay", &P::replay, 0, 60},
                                    {"replayed_share", &P::replayed_share, 0, 1},
                                    {"replay_gap", &P::replay_gap, 0, 1}}));
  return reader.rest();
}

Result<Simulation> read(const TomlNode& file) {
  Simulation result;
  Reader reader(file);
  result.board_key = "h200";
  const TomlNode* preset = reader.take("preset");
  if (preset) result.board_key = preset->text() ? *preset->text() : "";
  const NamedBoard* board = find_board(result.board_key);
  if (!board)
    return fault(*preset, fmt::format("there is no board {}; there are {}",
                                      printable(result.board_key), board_keys()));
  result.source = board->source;
  result.board = board->board;
  result.sensors = board->sensors;
  Program& program = result.program;
  JD_TRY(reader.text("name", program.name));
  JD_TRY(reader.whole("layers", program.layers, 1, 1000));
  JD_TRY(reader.numbers<Program>(program, {{"launch_gap", &Program::launch_gap, 0, 1},
                                           {"gap_spread", &Program::gap_spread, 0, 3},
                                           {"pause", &Program::pause, 0, 60},
                                           {"pause_jitter", &Program::pause_jitter, 0, 1},
                                           {"seconds", &Program::seconds, 0.1, kLong}}));
  JD_ASSIGN(const TomlArray* operators, reader.tables("operators"));
  for (std::size_t i = 0; operators && i < operators->size(); ++i)
    JD_TRY(read_operator((*operators)[i], program));
  JD_ASSIGN(const TomlNode* of_board, reader.table("board"));
  if (of_board) {
    JD_TRY(read_board(*of_board, result.board));
    result.source += "; changed by the program's file";
  }
  JD_TRY(read_sensors(reader, result.sensors));
  JD_ASSIGN(const TomlNode* passes, reader.table("passes"));
  if (passes) JD_TRY(read_passes(*passes, result.passes));
  JD_TRY(reader.rest());
  JD_TRY(check(program));
  return result;
}

}  // namespace

Result<Simulation> read_program(const std::string& path) {
  JD_ASSIGN(const std::string text, read_file(path, kMostBytes));
  JD_ASSIGN(const TomlNode table, read_toml(text, path));
  Result<Simulation> result = read(table);
  if (result) return result;
  Error error = std::move(result).error();
  error.message = printable(path) + (error.message.starts_with(':') ? "" : ": ") + error.message;
  return fail(std::move(error));
}

}  // namespace joulediff::simulate
