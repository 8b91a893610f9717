#include "diagnose/compare.h"

namespace joulediff::diagnose {

std::string_view name(Outcome outcome) {
  switch (outcome) {
    case Outcome::waste: return "waste";
    case Outcome::trade_off: return "trade-off";
    case Outcome::equal: return "equal";
    case Outcome::undecided: return "undecided";
  }
  return "?";
}

std::string_view name(CauseKind kind) {
  switch (kind) {
    case CauseKind::operators: return "operators";
    case CauseKind::redundant: return "redundant";
    case CauseKind::layout: return "layout";
    case CauseKind::kernel: return "kernel";
    case CauseKind::setting: return "setting";
    case CauseKind::argument: return "argument";
    case CauseKind::branch: return "branch";
    case CauseKind::host: return "host";
    case CauseKind::waiting: return "waiting";
  }
  return "?";
}

std::string_view name(CauseStanding standing) {
  switch (standing) {
    case CauseStanding::confirmed: return "confirmed";
    case CauseStanding::likely: return "likely";
    case CauseStanding::open: return "open";
  }
  return "?";
}

std::string_view name(Gate gate) {
  switch (gate) {
    case Gate::passed: return "passed";
    case Gate::failed: return "failed";
    case Gate::undecided: return "undecided";
  }
  return "?";
}

}  // namespace joulediff::diagnose
