// The small files in which Linux tells what it knows: one number or one line each.
#pragma once

#include <cstdint>
#include <fstream>
#include <optional>
#include <string>

namespace joulediff::device {

inline std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

// None where the file is missing, unreadable or holds no number.
inline std::optional<std::int64_t> number_in(const std::string& path) {
  std::ifstream file(path);
  std::int64_t value = 0;
  if (!(file >> value)) return std::nullopt;
  return value;
}

}  // namespace joulediff::device
