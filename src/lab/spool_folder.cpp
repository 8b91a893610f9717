#include "lab/spool_folder.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>
#include <utility>

#include <fmt/format.h>

namespace joulediff::lab {
namespace {

namespace fs = std::filesystem;

// -1: it cannot be locked.
int lock(const fs::path& folder) {
  const int file = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (file >= 0 && flock(file, LOCK_EX | LOCK_NB) == 0) return file;
  const int why = errno;
  if (file >= 0) ::close(file);
  errno = why;
  return -1;
}

std::optional<unsigned> number(const std::string& text) {
  unsigned value = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || rest != end) return std::nullopt;
  return value;
}

}  // namespace

Result<SpoolFolder> SpoolFolder::make(const std::string& output) {
  const fs::path path = fmt::format("{}.{}.spool", output, getpid());
  std::error_code error;
  if (!fs::create_directory(path, error))
    return fail(ExitCode::environment, "cannot make the folder " + path.string() + ": " +
                                           (error ? error.message() : "it exists; remove it"));
  return SpoolFolder(path, lock(path));
}

Result<SpoolFolder> SpoolFolder::open(const std::string& path) {
  const int held = lock(path);
  if (held < 0 && errno == EWOULDBLOCK)
    return fail(ExitCode::usage, path + " is still recorded into: wait for it to end");
  if (held < 0)
    return fail(ExitCode::bad_input, "cannot read " + path + ": " + std::strerror(errno) +
                                         "; --recover takes the folder that a recording left");
  SpoolFolder folder(path, held);
  folder.keep_ = true;
  return folder;
}

SpoolFolder::SpoolFolder(SpoolFolder&& other) noexcept
    : path_(std::exchange(other.path_, {})),
      lock_(std::exchange(other.lock_, -1)),
      keep_(other.keep_) {}

SpoolFolder::~SpoolFolder() {
  std::error_code error;
  if (!path_.empty() && !keep_) fs::remove_all(path_, error);
  if (lock_ >= 0) ::close(lock_);
}

Result<fs::path> SpoolFolder::make_block(unsigned order) const {
  const fs::path block = path_ / std::to_string(order);
  std::error_code error;
  if (!fs::create_directory(block, error))
    return fail(ExitCode::environment, "cannot make the folder " + block.string() + ": " +
                                           (error ? error.message() : "it exists"));
  return block;
}

std::vector<std::pair<unsigned, fs::path>> SpoolFolder::blocks() const {
  std::vector<std::pair<unsigned, fs::path>> all;
  std::error_code error;
  for (fs::directory_iterator it(path_, error), end; !error && it != end; it.increment(error))
    if (const auto order = number(it->path().filename().string()))
      if (std::error_code ignored; it->is_directory(ignored)) all.emplace_back(*order, it->path());
  std::sort(all.begin(), all.end());
  if (all.empty()) all.emplace_back(0, path_);
  return all;
}

std::optional<std::string> left_behind_of(const std::string& output) {
  const fs::path path(output);
  const fs::path folder = path.has_parent_path() ? path.parent_path() : fs::path(".");
  const std::string prefix = path.filename().string() + ".";
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename().string();
    if (!name.starts_with(prefix) || it->path().extension() != ".spool" ||
        !number(it->path().stem().string().substr(std::min(prefix.size(), name.size() - 6))))
      continue;
    const int held = lock(it->path());
    if (held < 0) continue;
    ::close(held);
    return path.has_parent_path() ? it->path().string() : name;
  }
  return std::nullopt;
}

std::string recovery_of(const std::string& folder, const std::string& output) {
  return "joulediff record --recover " + folder + " -o " + output;
}

}  // namespace joulediff::lab
