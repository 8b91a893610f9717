// Text inside a JSON string.
#pragma once

#include <string>
#include <string_view>

namespace joulediff::record {

inline std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  }
  return out;
}

}  // namespace joulediff::record
