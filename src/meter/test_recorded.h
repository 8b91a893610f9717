// Series of real boards, for tests: those of an H200 in tests/h200, and those of an A100 beside an
// external meter, which are not ours to keep: they are read from the folder that
// JOULEDIFF_SENSOR_TRUTH names, where there is one.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <zstd.h>

#include "base/file.h"
#include "meter/load.h"

namespace joulediff::meter {

struct RecordedBoard {
  run::Block block;  // its series
  Intervals busy;    // when the load was on
};

inline run::Series& series_of(RecordedBoard& board, run::Source source) {
  for (run::Series& series : board.block.series)
    if (series.source == source) return series;
  board.block.series.push_back({source, {}, {}, {}, "H200"});
  return board.block.series.back();
}

inline nlohmann::json h200_json(const std::string& name) {
  const auto packed = read_file(JOULEDIFF_SOURCE_DIR "/tests/h200/" + name + ".json.zst", 1 << 20);
  if (!packed) return {};
  std::string text(ZSTD_getFrameContentSize(packed->data(), packed->size()), '\0');
  ZSTD_decompress(text.data(), text.size(), packed->data(), packed->size());
  return nlohmann::json::parse(text);
}

// "square": a load of 0.1 to 1.5 s, on and off; each read of each source.
inline RecordedBoard h200_square() {
  using enum run::Source;
  const nlohmann::json json = h200_json("nvml_square");
  RecordedBoard board;
  for (const auto& row : json.at("log")) {
    const Nanoseconds begin = row[0], end = row[1];
    constexpr std::pair<run::Source, std::size_t> kColumns[] = {
        {nvml_energy, 4}, {nvml_power_instant, 3}, {nvml_power_average, 5}, {nvml_sm_clock, 7}};
    for (const auto& [source, column] : kColumns) {
      run::Series& series = series_of(board, source);
      series.time.push_back((begin + end) / 2);
      series.value.push_back(row[column]);
    }
  }
  for (const auto& mark : json.at("marks"))
    if (mark[2] == "busy") board.busy.emplace_back(mark[0], mark[1]);
  return board;
}

// "samples": the driver's ring beside the fields; loads of 50 ms to 2.5 s.
inline RecordedBoard h200_samples() {
  using enum run::Source;
  const nlohmann::json json = h200_json("nvml_samples");
  RecordedBoard board;
  const auto add = [&](run::Source source, const nlohmann::json& row, std::size_t column) {
    run::Series& series = series_of(board, source);
    series.time.push_back(1000 * row[0].get<Nanoseconds>());
    series.value.push_back(row[column]);
  };
  for (const auto& row : json.at("samples")) add(nvml_power_samples, row, 1);
  for (const auto& row : json.at("fields")) {
    add(nvml_power_memory, row, 1);
    add(nvml_power_instant, row, 2);
    add(nvml_power_average, row, 3);
  }
  for (const auto& mark : json.at("marks"))
    if (mark[2] != "idle")
      board.busy.emplace_back(1000 * mark[0].get<Nanoseconds>(), 1000 * mark[1].get<Nanoseconds>());
  return board;
}

// "pulses": equal pulses at eight periods, all sources.
inline RecordedBoard h200_pulses() {
  using enum run::Source;
  const nlohmann::json json = h200_json("pulses");
  RecordedBoard board;
  for (const auto& row : json.at("fields")) {
    constexpr std::pair<run::Source, std::size_t> kColumns[] = {
        {nvml_power_instant, 1}, {nvml_power_average, 2}, {nvml_power_memory, 3}};
    for (const auto& [source, column] : kColumns) {
      run::Series& series = series_of(board, source);
      series.time.push_back(row[0]);
      series.value.push_back(row[column]);
    }
  }
  for (const auto& row : json.at("ticks")) {
    const Nanoseconds begin = row[0], end = row[1];
    run::Series& series = series_of(board, nvml_energy);
    series.time.push_back((begin + end) / 2);
    series.value.push_back(row[2]);
    series.uncertainty.push_back((end - begin) / 2);
  }
  for (const auto& row : json.at("samples")) {
    run::Series& series = series_of(board, nvml_power_samples);
    series.time.push_back(1000 * row[0].get<Nanoseconds>());
    series.value.push_back(row[1]);
  }
  for (const auto& event : json.at("events")) board.busy.emplace_back(event[1], event[2]);
  return board;
}

struct Truth {
  RecordedBoard board;  // a load of 52 ms, on and off
  run::Series meter;    // every 0.21 ms
};

// The channels of the meter are signed 12-bit numbers; what is negative was 0.
inline double a100_watts(const std::uint16_t* row) {
  double watts = 0;
  const auto channel = [&](std::size_t i) {
    return std::max(0, static_cast<std::int16_t>(row[1 + i]) >> 4);
  };
  for (std::size_t i = 0; i < 8; i += 2) watts += channel(i) * channel(i + 1);
  return 0.007568 * 0.0488 * watts;
}

inline std::optional<Truth> a100() {
  const char* folder = std::getenv("JOULEDIFF_SENSOR_TRUTH");
  if (!folder) return std::nullopt;
  const std::string root = std::string(folder) + "/A100/";
  Truth truth;
  truth.meter.source = run::Source::external_power;

  Nanoseconds begin_us = 0;
  std::ifstream(root + "PMD_start_ts.txt") >> begin_us;
  std::ifstream binary(root + "PMD_data.bin", std::ios::binary);
  std::array<std::uint16_t, 9> row{};
  double counts = 0;
  std::optional<std::uint16_t> before;
  while (binary.read(reinterpret_cast<char*>(row.data()), sizeof row)) {
    if (before) counts += static_cast<std::uint16_t>(row[0] - *before);
    before = row[0];
    truth.meter.time.push_back(1000 * (begin_us - 50'000) + std::llround(counts / 2933.5 * 1e6));
    truth.meter.value.push_back(std::llround(1000 * a100_watts(row.data())));
  }

  // Its clock tells local time: off by whole hours.
  std::ifstream csv(root + "gpudata.csv");
  std::string line;
  std::getline(csv, line);
  run::Series& instant = series_of(truth.board, run::Source::nvml_power_instant);
  while (std::getline(csv, line)) {
    int hours = 0, minutes = 0;
    double seconds = 0;
    if (std::sscanf(line.c_str(), "%*d/%*d/%*d %d:%d:%lf", &hours, &minutes, &seconds) != 3) break;
    instant.time.push_back(std::llround((60.0 * minutes + seconds) * 1e3) * 1'000'000);
    instant.value.push_back(std::llround(1000 * std::atof(line.c_str() + line.rfind(',') + 1)));
  }
  constexpr Nanoseconds kHour = 3'600'000'000'000;
  if (truth.meter.time.empty() || instant.time.empty()) return std::nullopt;
  const Nanoseconds hour = truth.meter.time.front() / kHour * kHour;
  for (Nanoseconds& time : instant.time) time += hour;

  // Starts of the load's phases, each noted twice; every second one switches it off.
  std::ifstream marks(root + "timestamps.csv");
  std::getline(marks, line);
  std::vector<Nanoseconds> starts;
  for (Nanoseconds us = 0; marks >> us;)
    if (starts.empty() || starts.back() != 1000 * us) starts.push_back(1000 * us);
  for (std::size_t i = 0; i + 1 < starts.size(); i += 2)
    truth.board.busy.emplace_back(starts[i], starts[i + 1]);
  return truth;
}

}  // namespace joulediff::meter
