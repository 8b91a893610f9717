#include <nlohmann/json.hpp>

#include "simulate/recording.h"

namespace joulediff::simulate {

std::string truth_json(const Truth& truth) {
  using Json = nlohmann::ordered_json;
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
  const Json json{{"schema", "joulediff.truth/1"},
                  {"steps", truth.steps},
                  {"joules", truth.total},
                  {"seconds", truth.step},
                  {"busy_seconds", truth.busy},
                  {"counter_gain", truth.gain},
                  {"ledger", lines},
                  {"operators", operators},
                  {"windows", windows}};
  return json.dump(2) + "\n";
}

}  // namespace joulediff::simulate
