// A reader of a document's tables that knows which keys it was asked for: what is left over is a
// key that nobody knows.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/toml.h"

namespace joulediff::facility {

using Node = TomlNode;
using Array = TomlArray;
using Table = TomlTable;

// What stands in one table, asked for key by key.
class TableReader {
 public:
  TableReader(const Node& node, const std::string& file) : node_(&node), file_(&file) {}

  const Node* find(std::string_view key) const;
  Result<const Node*> need(std::string_view key, std::string_view what) const;

  Result<std::optional<std::string>> text(std::string_view key) const;
  Result<std::string> needed_text(std::string_view key, std::string_view what) const;
  Result<std::optional<double>> number(std::string_view key, double least, double most) const;
  Result<std::optional<int>> whole(std::string_view key, int least, int most) const;
  // One of the words; the first where the key is not there.
  Result<std::size_t> choice(std::string_view key, const std::vector<std::string>& words) const;
  Result<std::optional<TableReader>> table(std::string_view key) const;

  // Error: a key that was never asked for.
  Status finish() const;

  tl::unexpected<Error> wrong(const Node& node, std::string_view what) const;
  tl::unexpected<Error> wrong(std::string_view what) const { return wrong(*node_, what); }
  const Node& node() const { return *node_; }
  const std::string& file() const { return *file_; }
  std::string origin(const Node& node) const;  // "plan.toml:12"

 private:
  const Node* node_;
  const std::string* file_;
  mutable std::set<std::string, std::less<>> asked_;
};

}  // namespace joulediff::facility
