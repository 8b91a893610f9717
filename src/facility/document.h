// A TOML document as a tree that remembers lines, and a reader of its tables that knows which keys
// it was asked for: what is left over is a key that nobody knows.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.h"

namespace joulediff::facility {

struct Node;
using Array = std::vector<Node>;
using Table = std::map<std::string, Node, std::less<>>;

struct Node {
  std::size_t line = 0;
  std::string path;  // "site.pue", "alternatives[1].name"
  std::variant<std::monostate, bool, double, std::string, Array, Table> value;  // dates: none

  const Table* table() const { return std::get_if<Table>(&value); }
  const Array* array() const { return std::get_if<Array>(&value); }
  const double* number() const { return std::get_if<double>(&value); }
  const std::string* text() const { return std::get_if<std::string>(&value); }
};

// The error says file and line.
Result<Node> read_document(std::string_view bytes, const std::string& file);

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

// The word nearest to it, if it is near enough to be what was meant.
std::optional<std::string> nearest(std::string_view word,
                                   const std::set<std::string, std::less<>>& words);

}  // namespace joulediff::facility
