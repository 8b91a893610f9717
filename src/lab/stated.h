// What the launcher says of a run, beside what the program says itself: kept in the journal, so
// that a recording that was killed has it too.
#pragma once

#include <map>
#include <string>

#include "run/model.h"

namespace joulediff::lab {

struct Stated {
  std::string command;
  std::string label;   // asked for; empty: the program's own
  std::string script;  // what the program is called where it does not say it
  std::string work_unit;
  double work_per_step = 0;  // 0: what the program says
  std::string pair, side;
  std::string device, device_uuid;  // of the meters; the uuid is empty for a processor
  std::map<std::string, std::string> facts;
};

std::string to_json(const Stated& stated);
Stated stated_in(const std::string& json);  // what it does not hold is empty

void complete_manifest(run::Manifest& manifest, const Stated& stated);

}  // namespace joulediff::lab
