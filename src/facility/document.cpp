#include "facility/document.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/format.h"
#include "base/toml_text.h"

// The only file that sees toml++. Debian's package also has a shared library of it; the header
// alone is enough, and the static command needs it so.
#define TOML_HEADER_ONLY 1
#define TOML_EXCEPTIONS 0
#include <toml++/toml.h>

namespace joulediff::facility {

namespace {

Node convert(const toml::node& from, std::string path) {
  Node node;
  node.line = from.source().begin.line;
  node.path = std::move(path);
  if (const auto* table = from.as_table()) {
    Table out;
    for (const auto& [key, value] : *table) {
      const std::string name(key.str());
      Node child = convert(value, node.path.empty() ? name : node.path + "." + name);
      // A table's own place is its header; a key's is where it is written.
      if (!value.is_table() || child.line == 0) child.line = key.source().begin.line;
      out.emplace(name, std::move(child));
    }
    node.value = std::move(out);
  } else if (const auto* array = from.as_array()) {
    Array out;
    for (const auto& value : *array)
      out.push_back(convert(value, fmt::format("{}[{}]", node.path, out.size() + 1)));
    node.value = std::move(out);
  } else if (const auto text = from.value_exact<std::string>()) {
    node.value = *text;
  } else if (const auto flag = from.value_exact<bool>()) {
    node.value = *flag;
  } else if (const auto number = from.value<double>(); number && from.is_number()) {
    node.value = *number;
  }
  return node;
}

}  // namespace

Result<Node> read_document(std::string_view bytes, const std::string& file) {
  if (const auto fault = toml_fault(bytes))
    return fail(ExitCode::bad_input,
                fmt::format("{}:{}: {}", printable(file), fault->line, fault->what));
  const toml::parse_result result = toml::parse(bytes, file);
  if (!result) {
    std::string why(result.error().description());
    std::replace(why.begin(), why.end(), '\n', ' ');
    return fail(ExitCode::bad_input,
                fmt::format("{}:{}: {}", printable(file), result.error().source().begin.line,
                            printable(why)));
  }
  return convert(result.table(), "");
}

std::optional<std::string> nearest(std::string_view word,
                                   const std::set<std::string, std::less<>>& words) {
  std::optional<std::string> best;
  std::size_t least = std::max<std::size_t>(2, word.size() / 3) + 1;
  for (const std::string& other : words) {
    // Edit distance, a row at a time.
    std::vector<std::size_t> row(other.size() + 1);
    for (std::size_t j = 0; j <= other.size(); ++j) row[j] = j;
    for (std::size_t i = 1; i <= word.size(); ++i) {
      std::size_t diagonal = row[0];
      row[0] = i;
      for (std::size_t j = 1; j <= other.size(); ++j) {
        const std::size_t replaced = diagonal + (word[i - 1] == other[j - 1] ? 0 : 1);
        diagonal = row[j];
        row[j] = std::min({row[j] + 1, row[j - 1] + 1, replaced});
      }
    }
    if (row.back() >= least) continue;
    least = row.back();
    best = other;
  }
  return best;
}

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
