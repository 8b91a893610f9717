// Whether an operator has been replayed long enough for its joules to be known.
//
// Its executions come in chunks; the meter's readings (cumulative, each with the half width of its
// time) come when they come. Each chunk that the readings cover gives one energy per execution, by
// interpolation between readings, which is fair since the same operator runs before and after. The
// interval is their spread (Student) together with what the two ends of the window are uncertain
// by. Pure: times come in with the messages.
//
// Where the device's clock is not the one that the program saw in its trace, the plug-in is told to
// pace its executions (pacing.h); what came before is then another measurement.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"
#include "lab/pacing.h"

namespace joulediff::lab {

struct Reading {
  Nanoseconds time = 0;
  Nanoseconds half_width = 0;
  double value = 0;
};

struct Chunk {
  Nanoseconds begin = 0;
  Nanoseconds end = 0;
  std::uint64_t count = 0;
};

struct JudgePolicy {
  Nanoseconds settling = 0;      // dropped from the begin
  Nanoseconds least_window = 0;  // what follows must last this long
  std::uint64_t least_count = 1;
  double target = 0.02;         // relative half width of the 95 % interval
  Nanoseconds chunk = 0;        // how long a chunk should last
  Nanoseconds least_share = 0;  // of the budget: with less an operator would tell nothing
};
JudgePolicy board_policy();
JudgePolicy host_policy();

struct Precision {
  Nanoseconds window = 0;   // from the first settled chunk to the last that readings cover
  std::uint64_t count = 0;  // executions in it
  double relative = 1e9;    // half width of the 95 % interval; huge where unknown
  bool reached(const JudgePolicy& policy) const {
    return window >= policy.least_window && count >= policy.least_count &&
           relative <= policy.target;
  }
};
Precision precision(std::span<const Chunk> chunks, std::span<const Reading> readings,
                    const JudgePolicy& policy);

// The replay of one process: answers the lines of its plug-in (docs/recording.md, "Socket").
class ReplayJudge {
 public:
  // `readings(begin)`: the meter since `begin`. `budget()`: asked once, when the plan comes, for
  // how long the whole replay may last. `state(begin, end)`: the device's clock and limits then.
  using State = std::function<Conditions(Nanoseconds begin, Nanoseconds end)>;
  ReplayJudge(
      JudgePolicy policy, std::function<std::vector<Reading>(Nanoseconds begin)> readings,
      std::function<Nanoseconds()> budget,
      State state = [](Nanoseconds, Nanoseconds) { return Conditions(); })
      : policy_(policy),
        readings_(std::move(readings)),
        budget_(std::move(budget)),
        state_(std::move(state)) {}

  // The answer to a line, without its newline; empty where none is due. Where a line asks for what
  // cannot be, the answer is that nothing is to be replayed.
  std::string answer(std::string_view line);

  struct Tally {
    std::uint64_t planned = 0;
    std::uint64_t measured = 0;  // to the target
    std::uint64_t cut = 0;       // by the budget
    std::uint64_t paced = 0;     // with pauses, to have the program's clock
    Nanoseconds spent = 0;
    std::uint64_t refused = 0;  // lines that are none of the protocol's, or of impossible numbers
  };
  const Tally& tally() const { return tally_; }

 private:
  struct Subject {
    std::vector<Chunk> chunks;  // at the pace that it has now
    Nanoseconds begin = 0;      // of its first one at any pace
    Nanoseconds share = 0;
    std::optional<Pacing> pacing{};
    std::optional<Pace> pace{};
    bool done = false;
  };
  std::string plan(std::uint64_t count, std::optional<std::uint64_t> cold);
  void trace(Nanoseconds begin, Nanoseconds end, std::uint64_t steps);
  Conditions conditions(Nanoseconds begin, Nanoseconds end) const;
  bool repaced(Subject& subject);
  std::string judge(Subject& subject);
  std::string more(const Subject& subject, Nanoseconds spent, double each) const;
  std::string refuse(const char* answer);

  JudgePolicy policy_;
  std::function<std::vector<Reading>(Nanoseconds)> readings_;
  std::function<Nanoseconds()> budget_;
  State state_;
  Conditions program_;      // in its trace
  Nanoseconds period_ = 0;  // of its steps there; 0: no trace was told of
  std::map<std::uint64_t, Subject> subjects_;
  Nanoseconds left_ = -1;       // of the budget; -1: no plan yet
  std::uint64_t accepted_ = 0;  // of the plan
  Tally tally_;
};

}  // namespace joulediff::lab
