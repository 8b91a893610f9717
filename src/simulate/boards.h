// Boards by name, with what is known of their sensors (docs/simulate.md has the sources).
#pragma once

#include <string_view>
#include <vector>

#include "simulate/board.h"
#include "simulate/sensors.h"

namespace joulediff::simulate {

struct NamedBoard {
  std::string_view key;
  std::string_view source;  // of its figures, and what is assumed
  BoardModel board;
  Sensors sensors;
};

const std::vector<NamedBoard>& boards();
const NamedBoard* find_board(std::string_view key);  // null: none of that name
std::string board_keys();                            // "h200, h100, ..."

}  // namespace joulediff::simulate
