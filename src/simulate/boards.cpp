#include "simulate/boards.h"

#include <algorithm>

namespace joulediff::simulate {
namespace {

using run::Source;

constexpr std::string_view kMeasured =
    "measured on one H200, driver 580; how it warms, and its gains (1), are assumed";
constexpr std::string_view kHopper =
    "power sensors from arXiv 2312.02741 (10 boards); all else as the H200's, assumed";
constexpr std::string_view kStudy =
    "power sensors from arXiv 2312.02741; counter as the H200's, powers and heat assumed";

PowerModel instant(double period, double window, double gain = 1, double offset = 0) {
  PowerModel model{Source::nvml_power_instant, period, 5e-4, window};
  model.gain = gain;
  model.offset = offset;
  return model;
}

PowerModel average(double gain = 1, double offset = 0) {
  PowerModel model = instant(0.1, 1, gain, offset);
  model.source = Source::nvml_power_average;
  return model;
}

// It adds, every 20 ms, the mean of most of them; of every five samples the fourth comes 3 ms late.
CounterModel counter(double gain = 1, double offset = 0) {
  CounterModel model;
  model.jitter = 0.0025;
  model.step = 0.02;
  model.window = 0.0175;
  model.uneven = 0.003;
  model.gain = gain;
  model.offset = offset;
  return model;
}

BoardModel board(std::string name, double idle, double context, double awake, double cap,
                 double boost) {
  BoardModel model;
  model.name = std::move(name);
  model.idle_watts = idle;
  model.context_watts = context;
  model.static_watts = awake;
  model.cap_watts = cap;
  model.boost_mhz = boost;
  model.kelvin_per_watt = 35 / cap;
  return model;
}

std::vector<NamedBoard> all() {
  std::vector<NamedBoard> result;
  const BoardModel h200 = board("NVIDIA H200", 78, 128, 130, 700, 1980);
  RingModel ring;
  ring.of_counter = true;
  result.push_back({"h200", kMeasured, h200, {counter(), {instant(0.1, 0.025), average()}, ring}});

  BoardModel h100 = h200;
  h100.name = "NVIDIA H100";
  PowerModel h100_instant = instant(0.1, 0.023);
  h100_instant.jitter = 1e-3;
  h100_instant.delay = 0.05;
  result.push_back({"h100", kHopper, h100, {counter(), {h100_instant, average()}, ring}});

  result.push_back({"a100",
                    kStudy,
                    board("NVIDIA A100", 52, 66, 75, 400, 1410),
                    {counter(0.954), {instant(0.1, 0.025, 0.954)}, {}}});
  result.push_back({"v100",
                    kStudy,
                    board("NVIDIA V100", 40, 55, 60, 300, 1530),
                    {counter(), {instant(0.02, 0.01)}, {}}});

  BoardModel ada = board("NVIDIA RTX 4090", 22, 55, 65, 450, 2520);
  BoardModel ampere = board("NVIDIA RTX 3090", 25, 90, 100, 350, 1700);
  BoardModel turing = board("NVIDIA RTX 2060 SUPER", 12, 40, 45, 175, 1650);
  for (BoardModel* model : {&ada, &ampere, &turing}) {
    model->sleep_after = 5;
    model->asleep_watts = model->idle_watts;
  }
  result.push_back(
      {"rtx4090",
       kStudy,
       ada,
       {counter(1.044, -22), {instant(0.1, 0.1, 1.044, -22), average(1.044, -22)}, {}}});
  result.push_back({"rtx3090",
                    kStudy,
                    ampere,
                    {counter(0.946), {instant(0.1, 0.1, 0.946), average(0.946)}, {}}});
  result.push_back({"rtx2060s", kStudy, turing, {counter(1.11), {instant(0.1, 0.1, 1.11)}, {}}});
  return result;
}

}  // namespace

const std::vector<NamedBoard>& boards() {
  static const std::vector<NamedBoard> kBoards = all();
  return kBoards;
}

const NamedBoard* find_board(std::string_view key) {
  const auto found = std::ranges::find(boards(), key, &NamedBoard::key);
  return found == boards().end() ? nullptr : &*found;
}

std::string board_keys() {
  std::string keys;
  for (const NamedBoard& board : boards()) {
    if (!keys.empty()) keys += ", ";
    keys += board.key;
  }
  return keys;
}

}  // namespace joulediff::simulate
