#include "facility/document.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/format.h"

namespace joulediff::facility {

std::string TableReader::origin(const Node& node) const {
  return fmt::format("{}:{}", printable(*file_), node.line);
}

tl::unexpected<Error> TableReader::wrong(const Node& node, std::string_view what) const {
  return fail(ExitCode::bad_input, fmt::format("{}: {}{}{}", origin(node), printable(node.path),
                                               node.path.empty() ? "" : ": ", what));
}

const Node* TableReader::find(std::string_view key) const {
  asked_.emplace(key);
  const Table* table = node_->table();
  if (table == nullptr) return nullptr;
  const auto found = table->find(key);
  return found == table->end() ? nullptr : &found->second;
}

Result<const Node*> TableReader::need(std::string_view key, std::string_view what) const {
  const Node* node = find(key);
  if (node == nullptr) return wrong(fmt::format("{} is missing: {}", key, what));
  return node;
}

Result<std::optional<std::string>> TableReader::text(std::string_view key) const {
  const Node* node = find(key);
  if (node == nullptr) return std::optional<std::string>();
  if (node->text() == nullptr) return wrong(*node, "give text in quotes");
  return std::optional(*node->text());
}

Result<std::string> TableReader::needed_text(std::string_view key, std::string_view what) const {
  JD_ASSIGN(const Node* node, need(key, what));
  if (node->text() == nullptr || node->text()->empty())
    return wrong(*node, fmt::format("give text in quotes: {}", what));
  return *node->text();
}

Result<std::optional<double>> TableReader::number(std::string_view key, double least,
                                                  double most) const {
  const Node* node = find(key);
  if (node == nullptr) return std::optional<double>();
  if (node->number() == nullptr) return wrong(*node, "give a number");
  const double value = *node->number();
  if (!(value >= least && value <= most))
    return wrong(*node, std::isinf(most)
                            ? fmt::format("give a number of at least {:g}", least)
                            : fmt::format("give a number from {:g} to {:g}", least, most));
  return std::optional(value);
}

Result<std::optional<int>> TableReader::whole(std::string_view key, int least, int most) const {
  JD_ASSIGN(const auto value, number(key, least, most));
  if (!value) return std::optional<int>();
  if (*value != std::floor(*value)) return wrong(*find(key), "give a whole number");
  return std::optional(static_cast<int>(*value));
}

Result<std::size_t> TableReader::choice(std::string_view key,
                                        const std::vector<std::string>& words) const {
  JD_ASSIGN(const auto word, text(key));
  if (!word) return std::size_t{0};
  const auto found = std::find(words.begin(), words.end(), *word);
  if (found != words.end()) return static_cast<std::size_t>(found - words.begin());
  return wrong(*find(key),
               fmt::format("{} is none of: {}", printable(*word), fmt::join(words, ", ")));
}

Result<std::optional<TableReader>> TableReader::table(std::string_view key) const {
  const Node* node = find(key);
  if (node == nullptr) return std::optional<TableReader>();
  if (node->table() == nullptr) return wrong(*node, fmt::format("give a table, [{}]", node->path));
  return std::optional<TableReader>(TableReader(*node, *file_));
}

Status TableReader::finish() const {
  const Table* table = node_->table();
  if (table == nullptr) return {};
  const Node* first = nullptr;
  std::string_view name;
  for (const auto& [key, node] : *table) {
    if (asked_.contains(key) || (first != nullptr && first->line <= node.line)) continue;
    first = &node;
    name = key;
  }
  if (first == nullptr) return {};
  const auto meant = nearest(name, asked_);
  return wrong(*first,
               meant ? fmt::format("there is no such key; did you mean {}?", *meant)
                     : fmt::format("there is no such key; there are: {}", fmt::join(asked_, ", ")));
}

}  // namespace joulediff::facility
