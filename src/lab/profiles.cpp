#include "lab/profiles.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <filesystem>

#include "base/file.h"

namespace joulediff::lab {
namespace {

constexpr std::uint64_t kLargest = 1 << 20;

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

// A file of that board; empty where there is no place for it.
std::string path_of(std::string_view uuid, std::string_view ending) {
  std::string folder = environment("XDG_CONFIG_HOME");
  if (folder.empty() && !environment("HOME").empty()) folder = environment("HOME") + "/.config";
  if (folder.empty()) return {};
  std::string name(uuid);
  std::ranges::replace_if(
      name, [](unsigned char c) { return std::isalnum(c) == 0 && c != '-'; }, '_');
  return folder + "/joulediff/boards/" + name + std::string(ending);
}

Result<std::string> keep(std::string path, const std::string& text, const char* what) {
  if (path.empty())
    return fail(ExitCode::environment, "no place to keep the " + std::string(what) +
                                           ": set XDG_CONFIG_HOME or HOME to a folder");
  std::error_code error;
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(), error);
  if (auto written = write_file_atomically(path, text + "\n"); !written)
    return fail(std::move(written).error().within("keeping the " + std::string(what)));
  return path;
}

std::optional<std::string> kept(const std::string& path) {
  if (path.empty() || !std::filesystem::exists(path)) return std::nullopt;
  auto text = read_file(path, kLargest);
  if (!text) return std::nullopt;
  return std::move(*text);
}

}  // namespace

std::string profile_path(std::string_view uuid) {
  return path_of(uuid, ".json");
}

Result<std::string> keep_profile(const meter::Profile& profile) {
  return keep(profile_path(profile.uuid), meter::to_json({profile}), "profile");
}

std::optional<std::string> kept_profile(std::string_view uuid) {
  auto text = kept(profile_path(uuid));
  if (!text) return std::nullopt;
  const auto profiles = meter::profiles_from_json(*text);
  if (!profiles || profiles->size() != 1 || profiles->front().uuid != uuid) return std::nullopt;
  return text;
}

std::string noise_path(std::string_view uuid) {
  return path_of(uuid, ".noise.json");
}

Result<std::string> keep_noise(const diagnose::Noise& noise) {
  if (noise.uuid.empty())
    return fail(ExitCode::environment,
                "the run names no board whose noise floor could be kept: record it on one");
  return keep(noise_path(noise.uuid), diagnose::to_json(noise), "noise floor");
}

std::optional<diagnose::Noise> kept_noise(std::string_view uuid) {
  const auto text = kept(noise_path(uuid));
  if (!text) return std::nullopt;
  auto noise = diagnose::noise_from_json(*text);
  if (!noise || noise->uuid != uuid) return std::nullopt;
  return std::move(*noise);
}

}  // namespace joulediff::lab
