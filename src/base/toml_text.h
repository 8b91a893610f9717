// What toml++ 3.3 takes for granted of a text, and a file need not keep: to be asked before
// parsing.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

namespace joulediff {

struct TomlFault {
  std::size_t line = 0;
  std::string_view what;
};

// The first header that begins with no name ("[.a]"), or the first character beyond ASCII outside
// of strings and comments, where TOML has none.
std::optional<TomlFault> toml_fault(std::string_view text);

}  // namespace joulediff
