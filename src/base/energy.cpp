#include "base/energy.h"

namespace joulediff {

std::string_view name(Standing standing) {
  switch (standing) {
    case Standing::measured: return "measured";
    case Standing::replayed: return "replayed";
    case Standing::estimated: return "estimated";
    case Standing::modelled: return "modelled";
  }
  return "?";
}

std::string_view name(Boundary boundary) {
  switch (boundary) {
    case Boundary::rail: return "rail";
    case Boundary::board: return "board";
    case Boundary::host: return "host";
    case Boundary::node: return "node";
    case Boundary::rack: return "rack";
    case Boundary::facility: return "facility";
  }
  return "?";
}

}  // namespace joulediff
