// What an MLPerf submission is worth: its metric by the official rule and by the integral over the
// window, every check of the official checker without its defects, the checks that it lacks, and
// where the two verdicts differ and why.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/energy.h"
#include "rules/grammar.h"
#include "run/point.h"
#include "run/submission.h"

namespace joulediff::rules {

// unchecked: by the official checker, that it has no such check; by us, that a file is missing.
enum class Checked { passed, warned, failed, unchecked };
std::string_view name(Checked);

struct MlperfCheck {
  std::string id;  // "mlperf.uuid"
  Checked official = Checked::unchecked;
  Checked ours = Checked::passed;
  std::string message;  // what was found, with figures; empty where all is well
  std::string remedy;
  std::string why;                   // why the two differ, where the rule itself is the reason
  std::vector<std::string> files{};  // all that the message speaks of, which names the first
};

// A part of what the official figure is off by.
struct Part {
  std::string what;
  Joules joules;  // official less ours
};

// One window: a run of training, a window of Tiny, the testing run of inference.
struct MlperfWindow {
  std::string name;
  Seconds seconds;
  std::optional<Joules> official;
  std::optional<Joules> trapezoid;
  double units = 1;
};

struct Score {
  std::string metric;               // "samples/J", "mJ/stream", "J to train", "uJ/inference"
  std::optional<double> official;   // as the official rule makes it
  std::optional<double> ours;       // the same metric by the integral over the window
  std::optional<double> published;  // what the submission's own files say, where they do
  std::optional<Joules> official_joules;
  std::optional<Joules> trapezoid;  // every reading as it stands
  std::optional<Joules> bridged;    // without readings at or below 0 W; none where there are none
  std::optional<Watts> official_watts;
  std::optional<Watts> ranging_watts;
  std::optional<Seconds> window;
  std::string unit;  // of work
  std::optional<double> units;
  std::optional<double> rate;  // units a second
  std::vector<Part> parts;
  std::vector<MlperfWindow> windows;
  Standing standing = Standing::measured;

  // What is known best: readings that cannot be are no part of it.
  std::optional<Joules> joules() const { return bridged ? bridged : trapezoid; }
  std::optional<double> joules_per_unit() const {
    if (!joules() || !units || !(*units > 0)) return {};
    return joules()->value / *units;
  }
};

struct MlperfJudgement {
  Score score;
  run::Point point;
  std::vector<MlperfCheck> checks;
  std::vector<Objection> objections;  // of the grammar
  Checked official = Checked::passed;
  Checked ours = Checked::passed;
};

// The lists of hashes that the official checker accepts; empty: its first two checks are left out.
using KnownSources = std::vector<std::map<std::string, std::string>>;

MlperfJudgement judge(const run::Submission& submission, const KnownSources& known = {});

}  // namespace joulediff::rules
