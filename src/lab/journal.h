// What the launcher itself knows of a launch, kept beside the program's spools and in their form
// while it comes in: should we be killed, at most the last second of it is lost.
#pragma once

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
  // Without room for it there is none: it is a copy.
  explicit Journal(const std::filesystem::path& folder);
  void began(Nanoseconds begin, const std::string& facts);
  void sampled(const std::vector<Samples::Piece>& fresh);
  void ended(const Launched& launched);

 private:
  spool::Writer writer_;
};

struct JournalContents {
  Launched launched;  // `cut` where it does not say how the launch ended
  std::string facts = "{}";
};
JournalContents read_journal(const std::filesystem::path& folder);

}  // namespace joulediff::lab
