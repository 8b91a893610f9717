#include "lab/stated.h"

#include <nlohmann/json.hpp>

namespace joulediff::lab {

using nlohmann::json;

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(Stated, command, label, script, work_unit,
                                                work_per_step, pair, side, device, device_uuid,
                                                facts)

std::string to_json(const Stated& stated) {
  return json(stated).dump(-1, ' ', false, json::error_handler_t::replace);
}

Stated stated_in(const std::string& text) {
  try {
    return json::parse(text).get<Stated>();
  } catch (const json::exception&) {
    return {};
  }
}

void complete_manifest(run::Manifest& manifest, const Stated& stated) {
  manifest.command = stated.command;
  if (!stated.label.empty()) manifest.label = stated.label;
  if (manifest.label.empty()) manifest.label = stated.script;
  if (stated.work_per_step > 0) manifest.work = {stated.work_unit, stated.work_per_step};
  manifest.pair = stated.pair;
  manifest.side = stated.side;
  for (const auto& [key, value] : stated.facts) manifest.facts[key] = value;
  if (manifest.device.empty()) manifest.device = stated.device;
  if (manifest.device_uuid.empty()) manifest.device_uuid = stated.device_uuid;
}

}  // namespace joulediff::lab
