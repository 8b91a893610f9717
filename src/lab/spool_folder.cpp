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

#include "lab/clock.h"
#include "lab/journal.h"

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

// As make_block writes it.
std::optional<unsigned> number(const std::string& text) {
  unsigned value = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || rest != end || std::to_string(value) != text) return std::nullopt;
  return value;
}

// PID.spool, PID.2.spool, ...
bool is_spool(const std::string& name) {
  if (!name.ends_with(".spool")) return false;
  const std::string stem = name.substr(0, name.size() - std::strlen(".spool"));
  const std::size_t dot = stem.find('.');
  return number(stem.substr(0, dot)) && (dot == std::string::npos || number(stem.substr(dot + 1)));
}

// What recorders and launchers write into a folder of spools.
bool is_ours(const std::string& name) {
  return is_spool(name) || name == kJournalName || name == "replay.lock";
}

template <class Act>
void each_in(const fs::path& folder, Act act) {
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error))
    act(*it, it->path().filename().string());
}

bool is_folder(const fs::directory_entry& entry) {
  std::error_code error;
  return entry.is_directory(error) && !entry.is_symlink(error);
}

bool holds_spools(const fs::path& folder) {
  bool found = false;
  each_in(folder, [&](const fs::directory_entry&, const std::string& name) {
    found = found || is_spool(name) || name == kJournalName;
  });
  return found;
}

// Of a folder that nobody looks for a recording in.
void remove_spools(const fs::path& folder) {
  std::vector<fs::path> ours;
  each_in(folder, [&](const fs::directory_entry& entry, const std::string& name) {
    std::error_code error;
    if (is_ours(name) && !entry.is_symlink(error) && entry.is_regular_file(error))
      ours.push_back(entry.path());
  });
  std::error_code error;
  for (const fs::path& file : ours) fs::remove(file, error);
}

fs::path folder_of(const std::string& output) {
  const fs::path path(output);
  return path.has_parent_path() ? path.parent_path() : fs::path(".");
}

// While it lives, no other recording looks for others beside its output, or begins there. Somebody
// else's lock on the folder is waited for a second, and then not heeded.
class Looking {
 public:
  explicit Looking(const std::string& output) {
    constexpr Nanoseconds kPause = 10 * kMillisecond;
    const Nanoseconds end = now() + kSecond;
    while ((lock_ = lock(folder_of(output))) < 0 && errno == EWOULDBLOCK && now() < end)
      pause_for(kPause);
  }
  ~Looking() {
    if (lock_ >= 0) ::close(lock_);
  }
  Looking(const Looking&) = delete;
  Looking& operator=(const Looking&) = delete;

 private:
  int lock_ = -1;
};

std::optional<OtherRecording> found_other(const std::string& output) {
  const std::string prefix = fs::path(output).filename().string() + ".";
  std::optional<OtherRecording> found;
  each_in(folder_of(output), [&](const fs::directory_entry& entry, const std::string& name) {
    if (!name.starts_with(prefix) || entry.path().extension() != ".spool" || !is_folder(entry) ||
        !number(fs::path(name.substr(prefix.size())).stem().string()))
      return;
    const int held = lock(entry.path());
    const bool running = held < 0 && errno == EWOULDBLOCK;
    if (held >= 0) ::close(held);
    if ((held < 0 && !running) || (found && found->running)) return;
    found = {fs::path(output).has_parent_path() ? entry.path().string() : name, running};
  });
  return found;
}

}  // namespace

Result<SpoolFolder> SpoolFolder::make(const std::string& output) {
  const fs::path path = fmt::format("{}.{}.spool", output, getpid());
  const Looking looking(output);
  if (const auto other = found_other(output); other && other->running)
    return fail(ExitCode::usage, still_recorded(output, other->folder));
  std::error_code error;
  if (!fs::create_directory(path, error))
    return fail(ExitCode::environment,
                "cannot make the folder " + path.string() + ": " +
                    (!error ? "it exists; remove it"
                            : error.message() + (error == std::errc::filename_too_long
                                                     ? "; give a shorter -o"
                                                     : "; give another -o")));
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
  if (folder.blocks().empty())
    return fail(ExitCode::bad_input, path +
                                         " holds no recording: --recover takes the folder "
                                         "OUTPUT.PID.spool that a recording left");
  return folder;
}

SpoolFolder::SpoolFolder(SpoolFolder&& other) noexcept
    : path_(std::exchange(other.path_, {})),
      lock_(std::exchange(other.lock_, -1)),
      keep_(other.keep_) {}

SpoolFolder::~SpoolFolder() {
  if (!path_.empty() && !keep_) remove();
  if (lock_ >= 0) ::close(lock_);
}

bool SpoolFolder::remove() {
  std::vector<fs::path> folders;
  if (!is_spools_alone())
    each_in(path_, [&](const fs::directory_entry& entry, const std::string& name) {
      if (number(name) && is_folder(entry)) folders.push_back(entry.path());
    });
  folders.push_back(path_);
  std::error_code error;
  for (const fs::path& folder : folders) {
    remove_spools(folder);
    fs::remove(folder, error);  // one that is not empty stays
  }
  keep_ = true;
  return !fs::exists(path_, error);
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
  each_in(path_, [&](const fs::directory_entry& entry, const std::string& name) {
    const auto order = number(name);
    if (order && is_folder(entry) && holds_spools(entry.path()))
      all.emplace_back(*order, entry.path());
  });
  std::sort(all.begin(), all.end());
  if (all.empty() && holds_spools(path_)) all.emplace_back(0, path_);
  return all;
}

bool SpoolFolder::is_spools_alone() const {
  const auto taken = blocks();
  return !taken.empty() && taken.front().second == path_;
}

std::vector<std::string> SpoolFolder::strangers() const {
  const auto taken = blocks();
  const bool itself = is_spools_alone();
  std::vector<std::string> all;
  each_in(path_, [&](const fs::directory_entry& entry, const std::string& name) {
    const bool of_a_block =
        itself || std::ranges::any_of(taken, [&](const auto& b) { return b.second == entry; });
    std::error_code error;
    if (entry.is_directory(error) ? !of_a_block && holds_spools(entry.path())
                                  : !itself && is_spool(name))
      all.push_back(name);
  });
  std::ranges::sort(all);
  return all;
}

std::optional<OtherRecording> other_recording_of(const std::string& output) {
  const Looking looking(output);
  return found_other(output);
}

std::string still_recorded(const std::string& output, const std::string& folder) {
  return output + " is being recorded by another joulediff, into " + folder +
         ": wait for it to end, or give another -o";
}

std::string recovery_of(const std::string& folder, const std::string& output) {
  return "joulediff record --recover " + folder + " -o " + output;
}

}  // namespace joulediff::lab
