#include "cli/outputs.h"

#include <algorithm>
#include <filesystem>

#include <fmt/format.h>

#include "base/format.h"

namespace joulediff::cli {
namespace {

namespace fs = std::filesystem;

tl::unexpected<Error> usage(const Outputs& outputs, const std::string& path, std::string_view why) {
  return fail(ExitCode::usage, fmt::format("{}: {} {}", outputs.verb, printable(path), why));
}

Status check_one(const Outputs& outputs, const std::string& path) {
  std::error_code error;
  if (path.empty())
    return fail(ExitCode::usage,
                fmt::format("{}: the name of a file to write is empty", outputs.verb));
  if (fs::exists(path, error)) {
    if (!fs::is_regular_file(path, error))
      return usage(outputs, path, "is no regular file: give another name");
    if (!outputs.force)
      return usage(outputs, path, "exists: give another name, or --force to replace it");
    return {};
  }
  const fs::path folder = fs::path(path).parent_path();
  if (folder.empty() || fs::is_directory(folder, error)) return {};
  return fail(ExitCode::environment,
              fmt::format("cannot write {}: there is no folder {}; make the folder first",
                          printable(path), printable(folder.string())));
}

}  // namespace

std::string real_path(const std::string& path) {
  std::error_code error;
  const fs::path real = fs::weakly_canonical(fs::absolute(path, error), error);
  return error ? path : real.string();
}

bool same_file(const std::string& x, const std::string& y) {
  std::error_code error;
  return x == y || fs::equivalent(x, y, error) || real_path(x) == real_path(y);
}

Status check_apart(const Outputs& outputs, std::span<const std::string> inputs) {
  for (const std::string& path : outputs.files)
    if (path != "-" && std::ranges::any_of(inputs, [&](const std::string& input) {
          return same_file(path, input);
        }))
      return usage(outputs, path, "is read here, and would be overwritten: give another name");
  return {};
}

Status check_outputs(const Outputs& outputs, std::span<const std::string> inputs) {
  JD_TRY(check_apart(outputs, inputs));
  const std::vector<std::string>& files = outputs.files;
  for (std::size_t i = 0; i < files.size(); ++i) {
    if (files[i] == "-") continue;
    for (std::size_t j = 0; j < i; ++j)
      if (same_file(files[i], files[j]))
        return usage(outputs, files[i],
                     fmt::format("and {} are one file: give two names", printable(files[j])));
  }
  for (const std::string& path : files)
    if (path != "-") JD_TRY(check_one(outputs, path));
  return {};
}

}  // namespace joulediff::cli
