#include "lab/installation.h"

#include <cstdlib>
#include <string>
#include <vector>

namespace joulediff::lab {
namespace {

namespace fs = std::filesystem;

constexpr const char* kRecorder = "lib/libjoulediff-record.so";
constexpr const char* kRemedy = "set JOULEDIFF_HOME to the folder that holds lib/ and python/";

bool is_there(const fs::path& path) {
  std::error_code error;
  return fs::exists(path, error);
}

Installation in_home(const fs::path& home) {
  return {home / kRecorder, home / "python/joulediff/inject"};
}

// Where pip may have put the package of a program in PREFIX/bin.
std::vector<fs::path> package_folders(const fs::path& prefix) {
  std::vector<fs::path> folders{prefix};  // pip install --target
  std::error_code error;
  for (const char* library : {"lib", "lib64"})
    for (const fs::directory_entry& entry : fs::directory_iterator(prefix / library, error))
      if (entry.path().filename().string().starts_with("python3"))
        for (const char* kind : {"site-packages", "dist-packages"})
          folders.push_back(entry.path() / kind);
  return folders;
}

Result<Installation> checked(const Installation& parts) {
  for (const fs::path& part : {parts.recorder, parts.inject})
    if (!is_there(part))
      return fail(ExitCode::environment, part.string() + " is not there: " + kRemedy);
  std::error_code error;
  return Installation{fs::absolute(parts.recorder, error), fs::absolute(parts.inject, error)};
}

}  // namespace

Result<Installation> installation_of(const fs::path& program) {
  const fs::path prefix = program.parent_path().parent_path();
  if (!is_there(in_home(prefix).recorder))
    // A prefix may serve several Pythons, of which one has the package that came with the program.
    for (const fs::path& folder : package_folders(prefix))
      if (is_there(folder / "joulediff-" JOULEDIFF_VERSION ".dist-info"))
        return checked({folder / "joulediff" / kRecorder, folder / "joulediff/inject"});
  return checked(in_home(prefix));
}

Result<Installation> find_installation() {
  const char* const home = std::getenv("JOULEDIFF_HOME");
  if (home != nullptr && *home == '\0')
    return fail(ExitCode::environment,
                std::string("JOULEDIFF_HOME is empty: unset it, or ") + kRemedy);
  if (home != nullptr) return checked(in_home(home));
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  if (error)
    return fail(ExitCode::environment,
                "cannot read /proc/self/exe (" + error.message() + "): " + kRemedy);
  return installation_of(program);
}

}  // namespace joulediff::lab
