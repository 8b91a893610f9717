#include <nlohmann/json.hpp>

#include "simulate/readings.h"

namespace joulediff::simulate {
namespace {

using Json = nlohmann::ordered_json;

Json json(const Truth& truth) {
  Json lines = Json::array(), operators = Json::array(), windows = Json::array();
  for (std::size_t i = 0; i < kLines; ++i)
    lines.push_back({{"line", name(static_cast<Line>(i))}, {"joules", truth.lines[i]}});
  lines.push_back({{"line", "unattributed"}, {"joules", truth.held_back}});
  for (const OperatorTruth& op : truth.operators)
    operators.push_back({{"name", op.name},
                         {"calls", op.calls},
                         {"seconds", op.seconds},
                         {"dynamic_joules", op.dynamic},
                         {"total_joules", op.total},
                         {"replayed", op.replayed}});
  for (const WindowTruth& window : truth.windows)
    windows.push_back({{"name", window.name},
                       {"begin_ns", window.begin},
                       {"end_ns", window.end},
                       {"joules", window.joules}});
  return {{"schema", "joulediff.truth/1"},
          {"steps", truth.steps},
          {"joules", truth.total},
          {"seconds", truth.step},
          {"busy_seconds", truth.busy},
          {"counter_gain", truth.gain},
          {"ledger", lines},
          {"operators", operators},
          {"windows", windows}};
}

}  // namespace

std::string truth_json(const Truth& truth) {
  return json(truth).dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string simulation_json(const Recording& recording, std::string_view board,
                            std::string_view source, std::uint64_t seed) {
  Json meters = Json::array();
  for (const Reading& reading : readings(recording))
    meters.push_back(
        {{"meter", reading.meter}, {"joules", reading.joules}, {"error", reading.error}});
  const WindowTruth& trace = recording.truth.windows.front();
  const Json all{{"schema", "joulediff.simulate/1"},
                 {"program", recording.run.manifest.label},
                 {"board", board},
                 {"source", source},
                 {"seed", seed},
                 {"seconds", to_seconds(trace.end - trace.begin).value},
                 {"joules", trace.joules},
                 {"meters", meters},
                 {"truth", json(recording.truth)}};
  return all.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace joulediff::simulate
