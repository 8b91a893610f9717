#include "report/sections.h"

namespace joulediff::report {

std::string text(const Page& page) {
  std::string out = header(page);
  if (!page.b) return out + energy(page) + energy_beside(page) + operators(page) + notes(page);
  out += comparability(page);
  const bool energies = page.a.cost != nullptr && page.b->cost != nullptr;
  if (!page.comparison->comparable.ok || !energies) return out + notes(page);
  return out + energy(page) + energy_beside(page) + findings(page) + regions(page) +
         unmatched(page) + notes(page);
}

}  // namespace joulediff::report
