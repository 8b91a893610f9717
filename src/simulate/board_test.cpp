#include "simulate/board.h"

#include <numeric>

#include <gtest/gtest.h>

namespace joulediff::simulate {
namespace {

constexpr Nanoseconds kMillisecond = 1'000'000;
constexpr Nanoseconds kSecond = 1'000'000'000;

double sum(const Books& books) {
  return std::accumulate(books.lines.begin(), books.lines.end(), 0.0);
}

// Joules of one pulse above what the board draws between pulses.
double joules_of_pulse(Nanoseconds pause, double& mhz) {
  constexpr double kPulse = 0.0205, kWatts = 830;
  Board board({}, 0);
  board.open_context();
  Books books(1);
  constexpr int kWarm = 200, kPulses = 200;
  for (int i = 0; i < kWarm + kPulses; ++i) {
    if (i == kWarm) board.keep(&books);
    for (int k = 0; k < 20; ++k) {  // the clock may change within a pulse
      const double length = kPulse / 20 * board.stretch(1);
      board.launch({length, kWatts * kPulse / 20 * board.energy_factor() / length, 0, false});
      board.drain();
    }
    board.advance(board.now() + pause);
  }
  mhz = board.states().back().mhz;
  board.keep(nullptr);
  return books.dynamic[0] / kPulses;
}

TEST(Board, SustainedWorkRunsAtTheLimitAndCostsLessThanBursts) {
  // Measured: 14.1 J a pulse back to back at about 1,500 MHz, 17.3 J with pauses of 30 to 100 ms.
  double sustained_mhz = 0, bursts_mhz = 0;
  const double sustained = joules_of_pulse(0, sustained_mhz);
  const double bursts = joules_of_pulse(100 * kMillisecond, bursts_mhz);
  EXPECT_NEAR(sustained_mhz, 1550, 100);
  EXPECT_NEAR(bursts_mhz, 1980, 1);
  EXPECT_NEAR(bursts, 17.0, 0.4);
  EXPECT_NEAR(bursts / sustained, 1.21, 0.06);
}

TEST(Board, ThePowerLimitHolds) {
  Board board({}, 0);
  board.open_context();
  for (int i = 0; i < 4000; ++i) {
    const double length = 1e-3 * board.stretch(1);
    board.launch({length, 1.5 * board.energy_factor() / length, 0, false});
    board.drain();
  }
  const Nanoseconds end = board.now();
  EXPECT_NEAR(board.waveform().joules(end - kSecond, end), 700, 7);
  EXPECT_TRUE(board.states().back().capped);
}

TEST(Board, EveryJouleIsInOneLineOfTheBooks) {
  BoardModel model;
  model.overlap = -0.05;
  Board board(model, 0);
  board.open_context();
  board.advance(kSecond);
  Books books(2);
  board.keep(&books);
  const Nanoseconds begin = board.now();
  for (int i = 0; i < 100; ++i) {
    board.launch({2e-3, 300, 0, false});
    board.advance(board.now() + kMillisecond);
    board.launch({3e-3, 200, 1, i % 2 == 0});
    board.drain();
    board.advance(board.now() + (i % 3 == 0 ? 5 * kMillisecond : kMillisecond / 2));
  }
  board.keep(nullptr);
  const double drawn = board.waveform().joules(begin, board.now());
  EXPECT_NEAR(sum(books), drawn, 1e-9 * drawn);
  const auto line = [&](Line which) { return books.lines[static_cast<std::size_t>(which)]; };
  EXPECT_NEAR(line(Line::operators), 100 * (0.6 + 0.6), 1e-6);
  EXPECT_NEAR(line(Line::overlap), -0.05 * 100 * 1e-3 * 500, 1e-6);
  for (const Line which : {Line::static_busy, Line::waiting, Line::idle, Line::launch_gap})
    EXPECT_GT(line(which), 0) << static_cast<int>(which);
  EXPECT_NEAR(books.total[0] + books.total[1],
              line(Line::operators) + line(Line::static_busy) + line(Line::waiting), 1e-6);
  EXPECT_NEAR(books.busy, 100 * 4e-3, 1e-9);
}

TEST(Board, WarmsWithItsTimeConstantAndLeaksMore) {
  BoardModel model;
  model.leakage = 0.004;
  Board board(model, 0);
  board.open_context();
  const double cold = board.states().back().celsius;
  const auto run = [&](double seconds) {
    for (double t = 0; t < seconds; t += 0.01) {
      board.launch({0.01, 400, 0, false});
      board.drain();
    }
  };
  run(model.thermal_seconds);
  const double limit = model.ambient_celsius + model.kelvin_per_watt * 530;
  EXPECT_NEAR(board.states().back().celsius, cold + (limit - cold) * (1 - 1 / 2.71828), 1);
  const double early = board.waveform().joules(kSecond, 2 * kSecond);
  run(100);
  EXPECT_GT(board.waveform().joules(board.now() - kSecond, board.now()), early + 2);
}

TEST(Board, SleepsWhereItDoes) {
  BoardModel model;
  model.sleep_after = 0.5;
  model.asleep_watts = 20;
  model.leakage = 0;
  Board board(model, 0);
  board.open_context();
  board.advance(2 * kSecond);
  EXPECT_NEAR(board.waveform().joules(kSecond, 2 * kSecond), 20, 0.1);
  EXPECT_EQ(board.states().back().mhz, model.lowest_mhz);
}

}  // namespace
}  // namespace joulediff::simulate
