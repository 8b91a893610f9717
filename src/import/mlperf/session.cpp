#include "import/mlperf/session.h"

#include <cmath>
#include <limits>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/format.h"

namespace joulediff::mlperf {
namespace {

using nlohmann::json;

// A discarded value where the text is no JSON, with a diagnostic.
json parsed(const std::string& file, std::string_view text, Diagnostics& diagnostics) {
  json result = json::parse(text, nullptr, false);
  if (result.is_discarded())
    diagnostics.push_back({Severity::error, "mlperf.no_json",
                           fmt::format("{} is no JSON; file it as the tool wrote it", file)});
  return result;
}

std::string text_of(const json& object, const char* key) {
  if (!object.is_object()) return {};
  const auto found = object.find(key);
  if (found == object.end() || found->is_null()) return {};
  if (found->is_string()) return found->get<std::string>();
  return found->is_primitive() ? found->dump() : std::string();
}

std::optional<double> as_number(const json& value) {
  if (!value.is_number()) return {};
  const double figure = value.get<double>();
  return std::isfinite(figure) ? std::optional(figure) : std::nullopt;
}

std::map<std::string, std::string> texts(const json& object, const char* key) {
  std::map<std::string, std::string> result;
  const auto found = object.find(key);
  if (found == object.end() || !found->is_object()) return result;
  for (const auto& [name, value] : found->items())
    if (value.is_string()) result[name] = value.get<std::string>();
  return result;
}

std::vector<run::Message> messages(const json& object, const char* key) {
  std::vector<run::Message> result;
  const auto found = object.find(key);
  if (found == object.end() || !found->is_array()) return result;
  for (const json& one : *found) result.push_back({text_of(one, "cmd"), text_of(one, "reply")});
  return result;
}

std::map<std::string, std::vector<run::Instant>> phases(const json& object) {
  std::map<std::string, std::vector<run::Instant>> result;
  const auto found = object.find("phases");
  if (found == object.end() || !found->is_object()) return result;
  for (const auto& [mode, instants] : found->items()) {
    if (!instants.is_array()) continue;
    for (const json& instant : instants) {
      if (!instant.is_array() || instant.empty()) continue;
      const std::optional<double> unix_time = as_number(instant[0]);
      if (!unix_time) continue;
      result[mode].push_back(
          {*unix_time, instant.size() > 1 ? as_number(instant[1]).value_or(0) : 0});
    }
  }
  return result;
}

// ptd_config is an object, or a list of them where the tools know several analyzers.
std::vector<run::Session::Analyzer> analyzers(const json& object) {
  std::vector<run::Session::Analyzer> result;
  const auto found = object.find("ptd_config");
  if (found == object.end()) return result;
  const json list = found->is_array() ? *found : json::array({*found});
  for (const json& one : list) {
    if (!one.is_object()) continue;
    run::Session::Analyzer analyzer;
    if (const auto device = one.find("device_type");
        device != one.end() && device->is_number_integer())
      analyzer.device = device->get<int>();
    if (const auto channel = one.find("channel"); channel != one.end() && channel->is_array())
      for (const json& number : *channel)
        if (number.is_number_integer()) analyzer.channels.push_back(number.get<int>());
    if (const auto command = one.find("command"); command != one.end() && command->is_array())
      for (const json& word : *command)
        if (word.is_string()) analyzer.command.push_back(word.get<std::string>());
    result.push_back(std::move(analyzer));
  }
  return result;
}

}  // namespace

run::Session read_session(const std::string& file, std::string_view text,
                          Diagnostics& diagnostics) {
  run::Session session;
  const json object = parsed(file, text, diagnostics);
  if (!object.is_object()) {
    if (!object.is_discarded())
      diagnostics.push_back(
          {Severity::error, "mlperf.no_json",
           fmt::format("{} is no JSON object; file it as the tool wrote it", file)});
    return session;
  }
  session.file = file;
  for (const char* key : {"version", "timezone", "modules", "sources", "messages", "uuid",
                          "session_name", "results", "phases"})
    if (!object.contains(key)) session.missing.emplace_back(key);
  session.name = text_of(object, "session_name");
  if (const auto uuid = object.find("uuid"); uuid != object.end()) {
    session.client_uuid = text_of(*uuid, "client");
    session.server_uuid = text_of(*uuid, "server");
  }
  if (const auto zone = object.find("timezone"); zone != object.end())
    session.timezone = as_number(*zone);
  session.sources = texts(object, "sources");
  session.results = texts(object, "results");
  session.phases = phases(object);
  session.messages = messages(object, "messages");
  session.ptd_messages = messages(object, "ptd_messages");
  session.analyzers = analyzers(object);
  const auto debug = object.find("debug");
  session.debug = debug != object.end() && *debug != json(false) && !debug->is_null();
  return session;
}

std::map<std::string, std::string> read_description(const std::string& file, std::string_view text,
                                                    Diagnostics& diagnostics) {
  std::map<std::string, std::string> result;
  const json object = parsed(file, text, diagnostics);
  if (!object.is_object()) return result;
  for (const auto& [key, value] : object.items()) {
    if (value.is_object()) {
      for (const auto& [inner, below] : value.items()) {
        if (below.is_primitive() && !below.is_null())
          result[key + "." + inner] = text_of(value, inner.c_str());
      }
    } else if (value.is_primitive() && !value.is_null()) {
      result[key] = text_of(object, key.c_str());
    }
  }
  return result;
}

std::optional<double> read_scaling(const std::string& file, std::string_view text,
                                   Diagnostics& diagnostics) {
  constexpr double kMost = 1000;
  const json object = parsed(file, text, diagnostics);
  std::optional<double> factor;
  if (object.is_object())
    if (const auto found = object.find("scaling_factor"); found != object.end())
      factor = as_number(*found);
  if (factor && *factor > 0 && *factor <= kMost) return factor;
  diagnostics.push_back(
      {Severity::error, "mlperf.no_scaling",
       fmt::format("{} has no scaling_factor above 0 and up to {:g}, so the figure is not known",
                   file, kMost)});
  return std::numeric_limits<double>::quiet_NaN();
}

Result<std::vector<std::map<std::string, std::string>>> read_known_sources(
    const std::string& path) {
  constexpr std::uint64_t kMaxBytes = 1 << 24;
  JD_ASSIGN(const std::string text, read_file(path, kMaxBytes));
  const json list = json::parse(text, nullptr, false);
  std::vector<std::map<std::string, std::string>> releases;
  if (list.is_array())
    for (const json& release : list)
      if (release.is_object()) releases.push_back(texts(json{{"", release}}, ""));
  if (releases.empty())
    return fail(ExitCode::bad_input,
                fmt::format("{} is no list of releases; give the checker's sources_checksums.json",
                            printable(path)));
  return releases;
}

std::vector<double> read_timestamps(const std::string& file, std::string_view text,
                                    Diagnostics& diagnostics) {
  std::vector<double> result;
  const json list = parsed(file, text, diagnostics);
  if (!list.is_array()) return result;
  for (const json& one : list) {
    const std::optional<double> seconds = as_number(one);
    if (!seconds || *seconds < 0 || (!result.empty() && *seconds < result.back())) {
      diagnostics.push_back({Severity::error, "mlperf.timestamps",
                             fmt::format("{}: instant {} is no number, or earlier than the one "
                                         "before; the rest is left out",
                                         file, result.size() + 1)});
      break;
    }
    result.push_back(*seconds);
  }
  return result;
}

}  // namespace joulediff::mlperf
