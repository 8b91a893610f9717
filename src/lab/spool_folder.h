// The folder beside a run file in which its processes and the launcher write while they record:
// OUTPUT.PID.spool, with a folder in it for each process in turn. It is locked while somebody
// records into it, and removed when the run file is written. One that nobody locks is left of a
// recording that was killed.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

namespace joulediff::lab {

class SpoolFolder {
 public:
  static Result<SpoolFolder> make(const std::string& output);
  // One that is left behind.
  static Result<SpoolFolder> open(const std::string& path);

  SpoolFolder(SpoolFolder&& other) noexcept;
  SpoolFolder& operator=(SpoolFolder&&) = delete;
  ~SpoolFolder();

  const std::filesystem::path& path() const { return path_; }
  void keep() { keep_ = true; }
  void remove_at_the_end() { keep_ = false; }

  Result<std::filesystem::path> make_block(unsigned order) const;
  // Those that were made, in order; of a folder of spools alone, itself.
  std::vector<std::pair<unsigned, std::filesystem::path>> blocks() const;

 private:
  SpoolFolder(std::filesystem::path path, int lock) : path_(std::move(path)), lock_(lock) {}
  std::filesystem::path path_;
  int lock_ = -1;
  bool keep_ = false;
};

// A folder that a killed recording of `output` left.
std::optional<std::string> left_behind_of(const std::string& output);

// The command that makes a run of it.
std::string recovery_of(const std::string& folder, const std::string& output);

}  // namespace joulediff::lab
