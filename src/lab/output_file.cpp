#include "lab/output_file.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <unistd.h>

#include "lab/spool_folder.h"

namespace joulediff::lab {

namespace fs = std::filesystem;

Status check_output(const std::string& output, bool force, Recovering recovering) {
  std::error_code error;
  const fs::path path(output);
  const bool exists = fs::exists(path, error);
  if (exists && !fs::is_regular_file(path, error))
    return fail(ExitCode::usage, output + " is no regular file: -o names the file to write");
  if (exists && !force)
    return fail(ExitCode::usage, output + " exists: give another -o, or --force to replace it");
  if (exists && access(path.c_str(), W_OK) != 0)
    return fail(ExitCode::environment,
                "cannot replace " + output + ": it is read-only; give another -o");
  const fs::path folder = path.has_parent_path() ? path.parent_path() : fs::path(".");
  if (access(folder.c_str(), W_OK | X_OK) != 0) {
    const bool missing = errno == ENOENT;
    return fail(ExitCode::environment,
                "cannot write in " + folder.string() + ": " + std::strerror(errno) +
                    (missing ? "; make the folder, or" : ";") + " give another -o");
  }
  const auto other = recovering == Recovering::no ? other_recording_of(output) : std::nullopt;
  if (other && other->running) return fail(ExitCode::usage, still_recorded(output, other->folder));
  if (other && !force)
    return fail(ExitCode::usage, "a recording of " + output +
                                     " was killed or could not be written: " +
                                     recovery_of(other->folder, output) + " makes a run of " +
                                     other->folder + "; remove that, or give --force to leave it");
  return {};
}

}  // namespace joulediff::lab
