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

}  // namespace

std::string profile_path(std::string_view uuid) {
  std::string folder = environment("XDG_CONFIG_HOME");
  if (folder.empty() && !environment("HOME").empty()) folder = environment("HOME") + "/.config";
  if (folder.empty()) return {};
  std::string name(uuid);
  std::ranges::replace_if(
      name, [](unsigned char c) { return std::isalnum(c) == 0 && c != '-'; }, '_');
  return folder + "/joulediff/boards/" + name + ".json";
}

Result<std::string> keep_profile(const meter::Profile& profile) {
  std::string path = profile_path(profile.uuid);
  if (path.empty())
    return fail(ExitCode::environment,
                "no place to keep the profile: set XDG_CONFIG_HOME or HOME to a folder");
  std::error_code error;
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(), error);
  if (auto written = write_file_atomically(path, meter::to_json({profile}) + "\n"); !written)
    return fail(std::move(written).error().within("keeping the profile"));
  return path;
}

std::optional<std::string> kept_profile(std::string_view uuid) {
  const std::string path = profile_path(uuid);
  if (path.empty() || !std::filesystem::exists(path)) return std::nullopt;
  auto text = read_file(path, kLargest);
  if (!text) return std::nullopt;
  const auto profiles = meter::profiles_from_json(*text);
  if (!profiles || profiles->size() != 1 || profiles->front().uuid != uuid) return std::nullopt;
  return std::move(*text);
}

}  // namespace joulediff::lab
