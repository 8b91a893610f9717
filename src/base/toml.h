// A TOML document as a tree of plain values that remember their lines: all that the rest of the
// program sees of the library that parses it.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.h"

namespace joulediff {

struct TomlNode;
using TomlArray = std::vector<TomlNode>;
using TomlTable = std::map<std::string, TomlNode, std::less<>>;

struct TomlNode {
  std::size_t line = 0;  // of a table its header, of all else the key; from 1
  std::string path;      // "site.pue", "alternatives[1].name"
  // A date or a time of day is none of these. Whole numbers above 2^53 are rounded.
  std::variant<std::monostate, bool, double, std::string, TomlArray, TomlTable> value;

  const TomlTable* table() const { return std::get_if<TomlTable>(&value); }
  const TomlArray* array() const { return std::get_if<TomlArray>(&value); }
  const double* number() const { return std::get_if<double>(&value); }
  const std::string* text() const { return std::get_if<std::string>(&value); }
  const bool* flag() const { return std::get_if<bool>(&value); }
  // Null where this is no table, or has no such key.
  const TomlNode* find(std::string_view key) const;
};

// Any bytes: the table that they are, or one line "file:line: what is wrong".
Result<TomlNode> read_toml(std::string_view bytes, std::string_view file);

// The word nearest to it, if it is near enough to be what was meant.
std::optional<std::string> nearest(std::string_view word,
                                   const std::set<std::string, std::less<>>& words);

}  // namespace joulediff
