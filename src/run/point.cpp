#include "run/point.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <map>
#include <set>
#include <string>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/file.h"
#include "base/format.h"
#include "base/toml.h"

namespace joulediff::run {
namespace {

constexpr std::uint64_t kMaxPointBytes = 1 << 20;
constexpr std::string_view kSchema = "joulediff.point/1";

// Of these, a number below 0 says something; of all others it is a mistake.
bool may_be_negative(std::string_view section, std::string_view name) {
  return name == "reference_change" || name == "slope" || name == "start_celsius" ||
         name == "shift" || name == "clock_change" || name == "value" || name == "target" ||
         section == "";
}

// Facts of which a rule asks by word: another word, or a misspelt one, would pass unseen.
struct Words {
  std::string_view section, key;
  std::vector<std::string_view> words;
};
const std::vector<Words>& closed_vocabularies() {
  static const std::vector<Words> kAll{
      {"", "kind", {"inference", "training", "tiny"}},
      {"", "claim", {"hardware", "software"}},
      {"energy", "standing", {"measured", "replayed", "estimated", "modelled"}},
      {"energy", "integrator", {"trapezoid", "mean", "counter"}},
      {"window", "scored", {"window", "log"}},
      {"boundary",
       "kind",
       {"rail", "board", "host", "node", "node-dc", "node-ac", "rack", "facility"}},
      {"boundary", "summed_by", {"time", "line"}},
      {"meter", "range", {"auto", "fixed"}},
      {"idle", "treatment", {"include", "subtract", "apportion"}},
      {"repeats", "order", {"interleaved", "random", "sequential"}},
      {"facility",
       "energy_boundary",
       {"rail", "board", "host", "node", "node-dc", "node-ac", "rack", "facility"}}};
  return kAll;
}

// Facts that are no more than so much by what they are.
struct Bounds {
  std::string_view section, key;
  double least, most;
  std::string_view what;
};
constexpr std::string_view kShare = "a share from 0 to 1";
constexpr Bounds kBounds[] = {
    {"scenario", "slo_percentile", 1, 100, "a percentile from 1 to 100"},
    {"scenario", "confidence", 0, 1, kShare},
    {"sampling", "missing_share", 0, 1, kShare},
    {"boundary", "estimated_share", 0, 1, kShare},
    {"boundary", "conversion", 0, 1, kShare},
    {"meter", "power_factor", 0, 1, kShare},
    {"idle", "utilisation", 0, 1, kShare},
    {"facility", "utilisation", 0, 1, kShare},
    {"facility", "resource_share", 0, 1, kShare},
};

class Reader {
 public:
  Reader(std::string_view name, const TomlNode& table) : name_(name), table_(table) {}

  template <class T>
  void operator()(const char* section, const char* key, T& value) {
    known_[section].insert(key);
    const TomlNode* node = find(section, key);
    if (node == nullptr || failure_) return;
    if (!take(*node, value))
      complain(*node, fmt::format("{} is {}", path(section, key), wanted(value)));
    if constexpr (std::is_same_v<T, std::string>) check_word(*node, section, key, value);
    if constexpr (std::is_same_v<T, Fact>) check_bounds(*node, section, key, value);
    if constexpr (std::is_same_v<T, Fact>)
      if (value && (!std::isfinite(*value) || (*value < 0 && !may_be_negative(section, key))))
        complain(*node, fmt::format("{} is a number that makes no sense", path(section, key)));
    if constexpr (std::is_same_v<T, std::vector<double>>)
      for (const double one : value)
        if (!std::isfinite(one) || one <= 0)
          complain(*node, fmt::format("{} holds a number that is not above 0", path(section, key)));
  }

  // After all facts: what is left is no fact.
  Status finish() {
    for (const auto& [name, node] : *table_.table()) {
      if (name == "schema") {
        if (node.text() == nullptr || *node.text() != kSchema)
          complain(node, fmt::format("schema is not \"{}\"", kSchema));
        continue;
      }
      const TomlTable* section = node.table();
      if (section == nullptr) {
        if (!known_[""].contains(name)) complain(node, no_fact("", name));
        continue;
      }
      const auto facts = known_.find(name);
      if (facts == known_.end() || name.empty()) {
        complain(node, fmt::format("[{}] is no part of a point", name));
        continue;
      }
      for (const auto& [inner, below] : *section)
        if (!facts->second.contains(inner)) complain(below, no_fact(name, inner));
    }
    if (!failure_) return {};
    return fail(ExitCode::bad_input, *failure_);
  }

 private:
  const TomlNode* find(std::string_view section, std::string_view key) const {
    const TomlNode* node = table_.find(section.empty() ? key : section);
    if (node == nullptr || !section.empty()) return node == nullptr ? nullptr : node->find(key);
    return node->table() != nullptr ? nullptr : node;
  }

  void check_word(const TomlNode& node, std::string_view section, std::string_view key,
                  const std::string& value) {
    for (const Words& one : closed_vocabularies())
      if (one.section == section && one.key == key &&
          std::ranges::find(one.words, value) == one.words.end())
        complain(node,
                 fmt::format("{} is none of: {}", path(section, key), fmt::join(one.words, ", ")));
  }

  void check_bounds(const TomlNode& node, std::string_view section, std::string_view key,
                    const Fact& value) {
    for (const Bounds& one : kBounds)
      if (one.section == section && one.key == key && value &&
          !(*value >= one.least && *value <= one.most))
        complain(node, fmt::format("{} is {}", path(section, key), one.what));
  }

  static std::string path(std::string_view section, std::string_view key) {
    return section.empty() ? std::string(key) : fmt::format("{}.{}", section, key);
  }

  static bool take(const TomlNode& node, std::string& value) {
    if (node.text() != nullptr) value = *node.text();
    return node.text() != nullptr;
  }
  static bool take(const TomlNode& node, Fact& value) {
    if (node.number() != nullptr) value = *node.number();
    return node.number() != nullptr;
  }
  static bool take(const TomlNode& node, Flag& value) {
    if (node.flag() != nullptr) value = *node.flag();
    return node.flag() != nullptr;
  }
  template <class T>
  static bool take(const TomlNode& node, std::vector<T>& value) {
    if (node.array() == nullptr) return false;
    for (const TomlNode& one : *node.array()) {
      if constexpr (std::is_same_v<T, double>) {
        if (one.number() == nullptr) return false;
        value.push_back(*one.number());
      } else {
        value.emplace_back();
        if (!take(one, value.back())) return false;
      }
    }
    return true;
  }

  static std::string_view wanted(const std::string&) { return "no text"; }
  static std::string_view wanted(const Fact&) { return "no number"; }
  static std::string_view wanted(const Flag&) { return "neither true nor false"; }
  static std::string_view wanted(const std::vector<std::string>&) { return "no list of texts"; }
  static std::string_view wanted(const std::vector<double>&) { return "no list of numbers"; }

  std::string no_fact(const std::string& section, const std::string& key) const {
    const auto meant = nearest(key, known_.at(section));
    return fmt::format("{} is no fact{}", path(section, key),
                       meant ? fmt::format("; did you mean {}?", *meant) : "");
  }

  void complain(const TomlNode& node, const std::string& what) {
    if (!failure_)
      failure_ = fmt::format("{}:{}: {}; docs/points.md lists the facts", printable(name_),
                             node.line, printable(what));
  }

  std::string_view name_;
  const TomlNode& table_;  // a table
  std::map<std::string, std::set<std::string, std::less<>>> known_;
  std::optional<std::string> failure_;
};

}  // namespace

Result<Point> read_point_text(std::string_view name, std::string_view text) {
  Result<TomlNode> table = read_toml(text, name);
  if (!table) {
    Error error = std::move(table).error();
    error.message += "; a point is TOML (docs/points.md)";
    return fail(std::move(error));
  }
  if (table->table()->empty())
    return fail(ExitCode::bad_input,
                fmt::format("{}: it states nothing; docs/points.md lists the facts of a point",
                            printable(name)));
  Point point;
  Reader reader(name, *table);
  facts(reader, point);
  JD_TRY(reader.finish());
  return point;
}

Result<Point> read_point(const std::string& path) {
  JD_ASSIGN(const std::string text, read_file(path, kMaxPointBytes));
  JD_ASSIGN(Point point, read_point_text(path, text));
  if (point.label.empty()) point.label = path;
  return point;
}

}  // namespace joulediff::run
