// The GPU: what it draws while kernels run and while none does, how warm it gets, and how a power
// limit takes its clock down. It keeps the books of every joule as it spends it: these are the
// truth that the estimators are held against.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "simulate/waveform.h"

namespace joulediff::simulate {

struct BoardModel {
  std::string name = "board";
  double idle_watts = 78;      // no context
  double context_watts = 128;  // a context, boost clocks, nothing running
  double static_watts = 130;   // awake, doing next to nothing, at `reference_celsius`
  double sleep_after = 0;      // seconds without work until the board sleeps; 0: never
  double asleep_watts = 0;     // then
  double leakage = 0.002;      // of the three, relative, for each kelvin
  double reference_celsius = 45;
  double boost_mhz = 1980, lowest_mhz = 345;
  double energy_exponent = 0.75;  // joules of the same work go with this power of the clock
  double static_exponent = 0.3;   // and static power
  double cap_watts = 700;
  double cap_seconds = 0.06;  // over which the limit takes its mean
  double hot_celsius = 87;
  double ambient_celsius = 30;
  double kelvin_per_watt = 0.05;
  double thermal_seconds = 25;
  double ramp = 0.001;   // time constant of the board's capacitors
  double overlap = 0.0;  // of the dynamic power of kernels side by side: relative, signed
};

// A kernel as it begins.
struct Launch {
  double seconds = 0;
  double watts = 0;  // dynamic
  std::size_t op = kNone;
  bool communicates = false;
  static constexpr std::size_t kNone = static_cast<std::size_t>(-1);
};

// Where the joules of a time went. The lines are the ledger's: operators, static, launch_gap,
// waiting, idle, overlap.
enum class Line { operators, static_busy, launch_gap, waiting, idle, overlap };
constexpr std::size_t kLines = 6;
struct Books {
  explicit Books(std::size_t operators) : dynamic(operators), total(operators) {}
  std::array<double, kLines> lines{};
  std::vector<double> dynamic;  // joules, by operator
  std::vector<double> total;    // with static power over its share of busy time
  double busy = 0;              // seconds
};

// What the board's sensors of state would say from `time` on.
struct State {
  Nanoseconds time = 0;
  double mhz = 0;
  double celsius = 0;
  bool capped = false;
  bool hot = false;
};

class Board {
 public:
  Board(BoardModel model, Nanoseconds begin);

  void open_context() { context_ = true; }

  // What the same work takes and draws at the clock of now: factors on time and joules.
  double stretch(double compute_bound) const;
  double energy_factor() const;

  // From now on, beside what runs already.
  void launch(const Launch& launch);
  void advance(Nanoseconds to);
  // Until nothing runs.
  void drain();

  Nanoseconds now() const { return now_; }
  Nanoseconds busy_until() const;

  // Joules are written into `books` from now on; null ends it.
  void keep(Books* books);

  const BoardModel& model() const { return model_; }
  const Waveform& waveform() const { return waveform_; }
  const std::vector<State>& states() const { return states_; }

 private:
  struct Running {
    Nanoseconds end = 0;
    Launch what;
  };
  double floor_watts() const;
  bool asleep() const;
  void spend(Nanoseconds to);
  void control();
  void close_gap(Nanoseconds next_start);

  BoardModel model_;
  Nanoseconds now_;
  Nanoseconds control_at_;
  Nanoseconds last_end_;
  bool context_ = false;
  bool sleeping_ = false;  // as the controller last saw it
  double mhz_, celsius_, smoothed_ = 0;
  std::vector<Running> running_;
  Waveform waveform_;
  std::vector<State> states_;
  Books* books_ = nullptr;
  double gap_joules_ = 0;  // since the last kernel ended
};

}  // namespace joulediff::simulate
