// What a report says, for people and for programs. A report on one run is a comparison with
// nothing.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "attribute/attribute.h"
#include "diagnose/compare.h"
#include "run/model.h"

namespace joulediff::report {

struct Subject {
  const run::Run* run = nullptr;
  const attribute::Attribution* cost = nullptr;  // none where the run holds no energy
};

struct Page {
  Subject a;
  std::optional<Subject> b;
  const diagnose::Comparison* comparison = nullptr;  // with b; if not comparable, only the reasons
  std::optional<double> gate;                        // the limit asked for
  std::size_t top = 10;                              // rows of a table
  bool colour = false;
};

// At most 100 columns.
std::string text(const Page& page);

// Schema joulediff.compare/1, or joulediff.show/1 without b (docs/schemas).
std::string json(const Page& page);

}  // namespace joulediff::report
