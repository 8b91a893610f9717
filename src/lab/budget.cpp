#include "lab/budget.h"

#include <algorithm>
#include <string>

#include <fmt/format.h>

#include "base/format.h"

namespace joulediff::lab {
namespace {

std::string duration(Nanoseconds time) {
  return format(to_seconds(time));
}

std::string processes(unsigned count) {
  return count == 1 ? "its process" : fmt::format("its {} processes", count);
}

std::string why(const Budget& budget, Nanoseconds over, const Spent& spent) {
  const std::string who = processes(spent.processes);
  if (spent.after >= over && spent.after > 0)
    return fmt::format("{} went on for {} when the passes were made; ", who,
                       duration(spent.after)) +
           (budget.stop ? "that is how long the program takes to end when --stop asks it to"
                        : "give --stop to end them then");
  if (spent.replay > spent.passes)
    return fmt::format(
        "the replays alone took {}, of which the costliest operators are replayed whatever the "
        "budget; give a longer --budget",
        duration(spent.replay));
  return fmt::format(
      "{} took {} to start and to make {}; give fewer --trace-seconds or a longer --budget", who,
      duration(spent.passes), spent.replay > 0 ? "all passes but the replay" : "the passes");
}

}  // namespace

void Spent::add(const Launched& launched) {
  const Nanoseconds made = launched.done > 0 ? std::min(launched.done, launched.end) : launched.end;
  ++processes;
  replay += launched.replay.spent;
  after += launched.end - made;
  passes += std::max<Nanoseconds>(0, made - launched.begin - launched.replay.spent);
}

std::optional<Diagnostic> over_budget(const Budget& budget, Nanoseconds elapsed,
                                      const Spent& spent) {
  if (elapsed <= budget.whole) return std::nullopt;
  return Diagnostic{
      Severity::note, "record.over_budget",
      fmt::format("recording took {}, over its budget of {}: {}", duration(elapsed),
                  duration(budget.whole), why(budget, elapsed - budget.whole, spent))};
}

std::optional<Diagnostic> replays_cut(const Budget& budget, const ReplayJudge::Tally& replay) {
  if (replay.cut == 0) return std::nullopt;
  return Diagnostic{
      Severity::note, "record.budget",
      fmt::format("{} of {} replays had their share of the budget of {} before they were known to "
                  "2 %: their intervals are wider; give a longer --budget for narrower ones",
                  format_count(replay.cut), format_count(replay.planned), duration(budget.whole))};
}

std::optional<Diagnostic> replays_paced(const ReplayJudge::Tally& replay) {
  if (replay.paced == 0) return std::nullopt;
  return Diagnostic{Severity::note, "record.paced",
                    fmt::format("{} of {} replays had another SM clock back to back than the "
                                "program in its trace, and were made in bursts with pauses to have "
                                "that one",
                                format_count(replay.paced), format_count(replay.planned))};
}

}  // namespace joulediff::lab
