// A profile as joulediff.calibrate/1, and back.
#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "meter/calibrate.h"

namespace joulediff::meter {
namespace {

using nlohmann::ordered_json;

constexpr std::string_view kSchema = "joulediff.calibrate/1";

constexpr std::array<std::string_view, 24> kNames = {
    "nvml_energy",       "nvml_power_samples", "nvml_power_instant", "nvml_power_average",
    "nvml_power_memory", "nvml_sm_clock",      "nvml_memory_clock",  "nvml_temperature",
    "nvml_throttle",     "nvml_power_limit",   "host_cpu",           "rapl_package",
    "nvml_power_module", "rapl_dram",          "rapl_psys",          "hwmon_power",
    "hwmon_energy",      "amd_energy",         "amd_power",          "amd_sm_clock",
    "amd_memory_clock",  "amd_temperature",    "external_power",     "host_load"};

ordered_json json_of(const Property& property) {
  if (!property.identified()) return {{"value", nullptr}, {"why", property.why}};
  return {{"value", property.value}, {"low", property.low}, {"high", property.high}};
}

Property property_of(const ordered_json& json) {
  if (json.at("value").is_null()) return Property::unknown(json.at("why"));
  return {json.at("value"), json.at("low"), json.at("high"), {}};
}

ordered_json known(double value) {
  return value > 0 ? ordered_json(value) : ordered_json();
}
double known(const ordered_json& json) {
  return json.is_null() ? 0 : json.get<double>();
}

ordered_json json_of(const SensorModel& model) {
  ordered_json aliases = ordered_json::array();
  for (const Alias& alias : model.aliases)
    aliases.push_back({{"period", alias.period},
                       {"pulse", alias.length},
                       {"in_step", alias.in_step},
                       {"misread", json_of(alias.misread)}});
  return {{"source", name_of(model.source)},   {"readings", model.readings},
          {"period", json_of(model.period)},   {"jitter", json_of(model.jitter)},
          {"tick", json_of(model.tick)},       {"window", json_of(model.window)},
          {"lag", json_of(model.lag)},         {"against", model.against},
          {"explained", model.explained},      {"residual_watts", model.residual},
          {"sampled", json_of(model.sampled)}, {"gain", json_of(model.gain)},
          {"aliases", std::move(aliases)},     {"no_aliases", model.no_aliases}};
}

SensorModel model_of(const ordered_json& json) {
  SensorModel model;
  const std::string source = json.at("source");
  const auto found = std::find(kNames.begin(), kNames.end(), source);
  if (found == kNames.end()) throw std::out_of_range("no such source: " + source);
  model.source = static_cast<run::Source>(found - kNames.begin());
  model.readings = json.at("readings");
  model.period = property_of(json.at("period"));
  model.jitter = property_of(json.at("jitter"));
  model.tick = property_of(json.at("tick"));
  model.window = property_of(json.at("window"));
  model.lag = property_of(json.at("lag"));
  model.against = json.at("against");
  model.explained = json.at("explained");
  model.residual = json.at("residual_watts");
  model.sampled = property_of(json.at("sampled"));
  model.gain = property_of(json.at("gain"));
  for (const ordered_json& alias : json.at("aliases"))
    model.aliases.push_back({alias.at("period"), alias.at("pulse"), alias.at("in_step"),
                             property_of(alias.at("misread"))});
  model.no_aliases = json.at("no_aliases");
  return model;
}

Profile profile_of(const ordered_json& json) {
  const ordered_json& board = json.at("board");
  Profile profile{
      board.at("name"), board.at("uuid"), board.at("driver"), json.at("date"), {}, {}, {}, {}};
  for (const ordered_json& sensor : json.at("sensors")) profile.sensors.push_back(model_of(sensor));
  for (const ordered_json& floor : json.at("floors"))
    profile.floors.push_back({floor.at("state"), property_of(floor.at("watts")),
                              known(floor.at("megahertz")), known(floor.at("celsius"))});
  profile.static_per_celsius = property_of(json.at("static_per_celsius"));
  for (const ordered_json& one : json.at("coefficients")) {
    Coefficient coefficient{one.at("what"), one.at("per"), property_of(one.at("joules")), {}};
    for (const ordered_json& values : one.at("by_values"))
      coefficient.by_values.emplace_back(values.at("values"), property_of(values.at("joules")));
    profile.coefficients.push_back(std::move(coefficient));
  }
  return profile;
}

ordered_json json_of(const Profile& profile) {
  ordered_json all{
      {"board", {{"name", profile.board}, {"uuid", profile.uuid}, {"driver", profile.driver}}},
      {"date", profile.date},
      {"sensors", ordered_json::array()},
      {"floors", ordered_json::array()},
      {"static_per_celsius", json_of(profile.static_per_celsius)},
      {"coefficients", ordered_json::array()}};
  for (const SensorModel& model : profile.sensors) all["sensors"].push_back(json_of(model));
  for (const Floor& floor : profile.floors)
    all["floors"].push_back({{"state", floor.state},
                             {"watts", json_of(floor.watts)},
                             {"megahertz", known(floor.megahertz)},
                             {"celsius", known(floor.celsius)}});
  for (const Coefficient& one : profile.coefficients) {
    ordered_json by_values = ordered_json::array();
    for (const auto& [values, joules] : one.by_values)
      by_values.push_back({{"values", values}, {"joules", json_of(joules)}});
    all["coefficients"].push_back({{"what", one.what},
                                   {"per", one.per},
                                   {"joules", json_of(one.joules)},
                                   {"by_values", std::move(by_values)}});
  }
  return all;
}

}  // namespace

std::string_view name_of(run::Source source) {
  return kNames[static_cast<std::size_t>(source)];
}

std::string to_json(const std::vector<Profile>& profiles) {
  ordered_json all{{"schema", kSchema}, {"boards", ordered_json::array()}};
  for (const Profile& profile : profiles) all["boards"].push_back(json_of(profile));
  return all.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

Result<std::vector<Profile>> profiles_from_json(std::string_view text) {
  try {
    const ordered_json json = ordered_json::parse(text);
    if (json.at("schema") != kSchema)
      throw std::out_of_range("its schema is not " + std::string(kSchema));
    std::vector<Profile> all;
    for (const ordered_json& board : json.at("boards")) all.push_back(profile_of(board));
    return all;
  } catch (const std::exception& error) {
    return fail(ExitCode::bad_input,
                fmt::format("no profile of a board: {}; make it again with `joulediff calibrate`",
                            error.what()));
  }
}

}  // namespace joulediff::meter
