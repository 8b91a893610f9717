// Time passes from event to event: a kernel's end, a turn of the power limit's controller, a
// launch. Between two of them everything is constant but the temperature, which follows the power
// by its closed form, and static power follows the temperature from one event to the next.
//
// The power limit looks at a mean over some tens of milliseconds. So a sustained load is held at
// the limit with the clock down, while bursts with pauses run at full clock, above the limit while
// they last, and cost more joules for the same work: as measured on an H200 (docs/simulate.md).
#include "simulate/board.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace joulediff::simulate {
namespace {

constexpr Nanoseconds kControl = 5'000'000;
constexpr Nanoseconds kLaunchGap = 1'000'000;  // a longer pause is idleness

}  // namespace

Board::Board(BoardModel model, Nanoseconds begin)
    : model_(std::move(model)),
      now_(begin),
      control_at_(begin + kControl),
      last_end_(begin),
      mhz_(model_.boost_mhz),
      celsius_(model_.ambient_celsius + model_.kelvin_per_watt * model_.idle_watts),
      waveform_(begin) {
  smoothed_ = model_.idle_watts;
  states_.push_back({begin, mhz_, celsius_, false, false});
}

double Board::stretch(double compute_bound) const {
  return compute_bound * model_.boost_mhz / mhz_ + 1 - compute_bound;
}

double Board::energy_factor() const {
  return std::pow(mhz_ / model_.boost_mhz, model_.energy_exponent);
}

bool Board::asleep() const {
  return model_.sleep_after > 0 && running_.empty() &&
         to_seconds(now_ - last_end_).value >= model_.sleep_after;
}

double Board::floor_watts() const {
  const double warm = 1 + model_.leakage * (celsius_ - model_.reference_celsius);
  if (!context_) return model_.idle_watts * warm;
  if (asleep()) return model_.asleep_watts * warm;
  const double clock = std::pow(mhz_ / model_.boost_mhz, model_.static_exponent);
  return (running_.empty() ? model_.context_watts : model_.static_watts) * warm * clock;
}

void Board::keep(Books* books) {
  close_gap(now_ + 2 * kLaunchGap);
  books_ = books;
}

void Board::close_gap(Nanoseconds next_start) {
  const Line line = next_start - last_end_ <= kLaunchGap ? Line::launch_gap : Line::idle;
  if (books_) books_->lines[static_cast<std::size_t>(line)] += gap_joules_;
  gap_joules_ = 0;
}

void Board::launch(const Launch& launch) {
  if (running_.empty()) close_gap(now_);
  const auto length = std::max<Nanoseconds>(1, std::llround(1e9 * launch.seconds));
  running_.push_back({now_ + length, launch});
}

Nanoseconds Board::busy_until() const {
  Nanoseconds latest = now_;
  for (const Running& one : running_) latest = std::max(latest, one.end);
  return latest;
}

void Board::drain() {
  advance(busy_until());
}

void Board::advance(Nanoseconds to) {
  while (now_ < to) {
    Nanoseconds next = std::min(to, control_at_);
    for (const Running& one : running_) next = std::min(next, one.end);
    spend(next);
    const bool ran = !running_.empty();
    std::erase_if(running_, [&](const Running& one) { return one.end <= now_; });
    if (ran && running_.empty()) last_end_ = now_;
    if (now_ == control_at_) control();
  }
}

void Board::spend(Nanoseconds to) {
  const double seconds = to_seconds(to - now_).value;
  const double floor = floor_watts();
  double dynamic = 0;
  bool waiting = true;
  for (const Running& one : running_) {
    dynamic += one.what.watts;
    waiting = waiting && one.what.communicates;
  }
  const double beside = running_.size() > 1 ? model_.overlap * dynamic : 0;
  const double watts = floor + dynamic + beside;
  waveform_.add(to, watts);
  if (running_.empty()) {
    gap_joules_ += floor * seconds;
  } else if (books_) {
    const auto charge = [&](Line line, double joules) {
      books_->lines[static_cast<std::size_t>(line)] += joules;
    };
    charge(waiting ? Line::waiting : Line::static_busy, floor * seconds);
    charge(Line::operators, dynamic * seconds);
    charge(Line::overlap, beside * seconds);
    books_->busy += seconds;
    const double share = floor * seconds / static_cast<double>(running_.size());
    for (const Running& one : running_) {
      if (one.what.op == Launch::kNone) continue;
      books_->dynamic[one.what.op] += one.what.watts * seconds;
      books_->total[one.what.op] += one.what.watts * seconds + share;
    }
  }
  // Towards where this power would bring it.
  const double limit = model_.ambient_celsius + model_.kelvin_per_watt * watts;
  celsius_ = limit + (celsius_ - limit) * std::exp(-seconds / model_.thermal_seconds);
  smoothed_ = watts + (smoothed_ - watts) * std::exp(-seconds / model_.cap_seconds);
  now_ = to;
}

void Board::control() {
  // So slow that the mean, which comes late, does not make it swing.
  constexpr double kTurn = 0.05, kBelow = 0.99, kStep = 15;  // MHz
  control_at_ += kControl;
  const bool hot = celsius_ > model_.hot_celsius;
  if (asleep()) {
    mhz_ = model_.lowest_mhz;
    sleeping_ = true;
  } else if (std::exchange(sleeping_, false)) {
    mhz_ = model_.boost_mhz;
  } else if (hot) {
    mhz_ -= kStep;
  } else {
    // Power goes with the clock to the power of one and the exponent.
    mhz_ *= std::pow(kBelow * model_.cap_watts / smoothed_, kTurn / (1 + model_.energy_exponent));
  }
  mhz_ = std::clamp(mhz_, model_.lowest_mhz, model_.boost_mhz);
  const State& last = states_.back();
  const State state{now_, mhz_, celsius_, mhz_ < model_.boost_mhz && !hot && !sleeping_, hot};
  if (state.mhz != last.mhz || state.capped != last.capped || state.hot != last.hot ||
      std::abs(state.celsius - last.celsius) > 0.2)
    states_.push_back(state);
}

}  // namespace joulediff::simulate
