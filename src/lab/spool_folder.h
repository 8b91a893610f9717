// The folder beside a run file in which its processes and the launcher write while they record:
// OUTPUT.PID.spool, with a folder in it for each process in turn. It is locked while somebody
// records into it, and what recorders write is removed from it when the run file is written; the
// folder with it, where nothing else lies there. One that nobody locks is left of a recording that
// was killed.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

namespace joulediff::lab {

class SpoolFolder {
 public:
  // None while another recording writes the same file.
  static Result<SpoolFolder> make(const std::string& output);
  // One that is left behind.
  static Result<SpoolFolder> open(const std::string& path);

  SpoolFolder(SpoolFolder&& other) noexcept;
  SpoolFolder& operator=(SpoolFolder&&) = delete;
  ~SpoolFolder();

  const std::filesystem::path& path() const { return path_; }
  void keep() { keep_ = true; }
  // What recorders wrote, and the folder unless something else lies in it. False: it stays.
  bool remove();

  Result<std::filesystem::path> make_block(unsigned order) const;
  // Those that hold spools, in order; of a folder of spools alone, itself.
  std::vector<std::pair<unsigned, std::filesystem::path>> blocks() const;
  bool is_spools_alone() const;
  // What holds spools and is none of the blocks.
  std::vector<std::string> strangers() const;

 private:
  SpoolFolder(std::filesystem::path path, int lock) : path_(std::move(path)), lock_(lock) {}
  std::filesystem::path path_;
  int lock_ = -1;
  bool keep_ = false;
};

// A folder of a recording of `output`: one that was killed left it, or it is written to.
struct OtherRecording {
  std::string folder;
  bool running = false;
};
std::optional<OtherRecording> other_recording_of(const std::string& output);

// What is said of one that is running.
std::string still_recorded(const std::string& output, const std::string& folder);

// The command that makes a run of it.
std::string recovery_of(const std::string& folder, const std::string& output);

}  // namespace joulediff::lab
