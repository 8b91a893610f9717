// What the launcher itself knows of a launch, kept beside the program's spools and in their form
// while it comes in: should we be killed, at most the last second of it is lost; and what is there
// is not held in memory, for however long the program runs.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "lab/launcher.h"
#include "lab/samples.h"
#include "spool/spool.h"

namespace joulediff::lab {

constexpr const char* kJournalName = "launcher.spool";

class Journal {
 public:
  explicit Journal(const std::filesystem::path& folder);
  // `notes`: on the meters, before anything was read.
  void began(Nanoseconds begin, const std::string& facts, const Diagnostics& notes = {});
  // Where the file has no room for it, it is held here.
  void sampled(std::vector<Samples::Piece> fresh);
  // All of them until now, where there are more than at the last call.
  void diagnosed(const Diagnostics& all);
  void ended(const Launched& launched);

  // All that was sampled. Readings that were in the file and are no longer are diagnosed.
  std::vector<run::Series> series(Diagnostics& diagnostics);

 private:
  const std::filesystem::path folder_;
  spool::Writer writer_;
  std::vector<Samples::Piece> held_;
  std::uint64_t readings_ = 0;   // that were sampled
  std::uint64_t diagnosed_ = 0;  // their counts together
};

struct JournalContents {
  Launched launched;  // `cut` where it does not say how the launch ended
  std::string facts = "{}";
  Diagnostics notes;
  std::string trouble;  // why it is not all here; empty: it is
};
JournalContents read_journal(const std::filesystem::path& folder);

}  // namespace joulediff::lab
