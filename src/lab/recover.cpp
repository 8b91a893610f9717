// The run of a recording that was killed, or could not be written: packed as a whole one is, from
// what lies in its folder. The folder goes when all of it is in the run, and only then.
#include <algorithm>
#include <filesystem>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "lab/diagnostics.h"
#include "lab/journal.h"
#include "lab/output_file.h"
#include "lab/pack.h"
#include "lab/record.h"
#include "lab/spool_folder.h"
#include "lab/stated.h"
#include "run/run_file.h"

namespace joulediff::lab {
namespace {

namespace fs = std::filesystem;

// Of a launch whose end its journal does not say. What no meter saw tells nothing of energy, and
// without any meter it lasted as long as its steps.
void cut_off(std::vector<SpoolContents>& spools, Launched& launched) {
  const auto end = static_cast<std::uint64_t>(launched.end);
  std::uint64_t first = ~0ull, last = 0;
  for (SpoolContents& spool : spools) {
    if (!launched.series.empty()) {
      std::erase_if(spool.steps, [end](const auto& step) { return step.end_ns > end; });
      std::erase_if(spool.replays,
                    [&](const SpoolReplay& replay) { return replay.end > launched.end; });
    }
    for (const spool::Step& step : spool.steps) {
      first = std::min(first, step.begin_ns);
      last = std::max(last, step.end_ns);
    }
  }
  if (last == 0) return;
  if (launched.begin == 0) launched.begin = static_cast<Nanoseconds>(first);
  launched.end = std::max(launched.end, static_cast<Nanoseconds>(last));
}

bool lies_in(const fs::path& file, const fs::path& folder) {
  std::error_code error;
  const fs::path way = fs::weakly_canonical(fs::absolute(file, error), error)
                           .lexically_relative(fs::canonical(folder, error));
  return !error && !way.empty() && *way.begin() != "..";
}

// What a run that is made of a folder does not hold of it.
class LeftOut {
 public:
  void add(const std::string& what) { all_.push_back(what); }
  void add(const std::string& block, const std::vector<SpoolContents>& spools) {
    for (const SpoolContents& spool : spools)
      if (spool.torn || spool.damaged_records > 0)
        add(fmt::format("{}/{}.spool is damaged", block, spool.pid));
  }
  // Of the processes in the order of blocks, `side` of a pair made some: which have no folder?
  void add_missing(const std::vector<std::pair<unsigned, fs::path>>& blocks, const Stated& stated) {
    constexpr unsigned kMostBlocks = 1000;
    const unsigned count = std::min(blocks.back().first + 1, kMostBlocks);
    const auto sides = block_order(stated.pair.empty() ? 1 : 2, count);
    for (unsigned order = 0; order < count; ++order)
      if (sides[order] == (stated.side == "b" ? 1U : 0U) &&
          std::ranges::find(blocks, order, &std::pair<unsigned, fs::path>::first) == blocks.end())
        add(fmt::format("the folder {} of a process is missing", order));
  }
  bool empty() const { return all_.empty(); }
  std::string told() const {
    constexpr std::size_t kMost = 4;
    std::vector<std::string> some(
        all_.begin(), all_.begin() + static_cast<std::ptrdiff_t>(std::min(all_.size(), kMost)));
    if (all_.size() > kMost) some.push_back(fmt::format("and {} more", all_.size() - kMost));
    return fmt::format("{}", fmt::join(some, "; "));
  }

 private:
  std::vector<std::string> all_;
};

}  // namespace

Result<RecordReport> recover(const RecoverOptions& options) {
  JD_TRY(check_output(options.output, options.force, Recovering::yes));
  if (lies_in(options.output, options.folder))
    return fail(ExitCode::usage, options.output + " lies in " + options.folder +
                                     ", which is removed when its run is made: give another -o");
  JD_ASSIGN(SpoolFolder folder, SpoolFolder::open(options.folder));
  RecordReport report;
  RecordedSide& side = report.sides.emplace_back();
  side.output = options.output;
  Stated stated;
  Diagnostics notes;
  Status first_trouble;
  LeftOut left_out;
  const auto blocks = folder.blocks();
  const bool alone = folder.is_spools_alone();
  for (const auto& [order, path] : blocks) {
    const std::string name = alone ? options.folder : path.filename().string();
    JournalContents journal = read_journal(path);
    if (!journal.trouble.empty() && !alone) left_out.add("in " + name + ": " + journal.trouble);
    Recorded recorded;
    recorded.spools = read_spools(path.string(), recorded.strangers);
    recorded.order = order;
    left_out.add(name, recorded.spools);
    for (const std::string& stranger : recorded.strangers) left_out.add(name + "/" + stranger);
    if (journal.launched.cut) cut_off(recorded.spools, journal.launched);
    const Diagnostics of_meters = std::move(journal.launched.diagnostics);
    recorded.launched = std::move(journal.launched);
    Status status = add_launch(side.run, std::move(recorded));
    if (status)
      for (const Diagnostic& each : of_meters) diagnose(side.run, each);
    if (stated.command.empty()) {
      stated = stated_in(journal.facts);
      notes = std::move(journal.notes);
    }
    if (status) continue;
    left_out.add("in " + name + ": " + status.error().message);
    if (first_trouble) first_trouble = std::move(status);
  }
  if (side.run.blocks.empty()) return fail(std::move(first_trouble).error().within(options.folder));
  for (const std::string& name : folder.strangers())
    left_out.add(name + " is no folder of a process");
  if (!alone) left_out.add_missing(blocks, stated);
  if (!left_out.empty())
    diagnose(side.run, Severity::warning, "record.left_out",
             fmt::format("{} is kept, as not all of it is in the run: {}", options.folder,
                         left_out.told()));
  complete_manifest(side.run.manifest, stated);
  for (const Diagnostic& note : notes) diagnose(side.run, note);
  if (side.run.manifest.label.empty())
    side.run.manifest.label = fs::path(options.output).stem().string();
  JD_TRY(run::write_run(side.run, options.output));
  report.elapsed = to_seconds(side.run.blocks.back().end - side.run.blocks.front().begin);
  if (options.keep_spool || !left_out.empty() || !folder.remove())
    side.spools.push_back(options.folder);
  return report;
}

}  // namespace joulediff::lab
