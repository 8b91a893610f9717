#include "run/point.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <map>
#include <set>
#include <string>

#define TOML_HEADER_ONLY 1
#define TOML_EXCEPTIONS 0
#include <toml++/toml.h>

#include <fmt/format.h>

#include "base/file.h"
#include "base/format.h"
#include "base/toml_text.h"

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

class Reader {
 public:
  Reader(std::string_view name, const toml::table& table) : name_(name), table_(table) {}

  template <class T>
  void operator()(const char* section, const char* key, T& value) {
    known_[section].insert(key);
    const toml::node* node = find(section, key);
    if (node == nullptr || failure_) return;
    if (!take(*node, value))
      complain(*node, fmt::format("{} is {}", path(section, key), wanted(value)));
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
    for (const auto& [key, node] : table_) {
      const std::string name(key.str());
      if (name == "schema") {
        if (node.value<std::string_view>() != kSchema)
          complain(node, fmt::format("schema is not \"{}\"", kSchema));
        continue;
      }
      const toml::table* section = node.as_table();
      if (section == nullptr) {
        if (!known_[""].contains(name)) complain(node, fmt::format("{} is no fact", name));
        continue;
      }
      const auto facts = known_.find(name);
      if (facts == known_.end() || name.empty()) {
        complain(node, fmt::format("[{}] is no part of a point", name));
        continue;
      }
      for (const auto& [inner, below] : *section)
        if (!facts->second.contains(std::string(inner.str())))
          complain(below, fmt::format("{}.{} is no fact", name, inner.str()));
    }
    if (!failure_) return {};
    return fail(ExitCode::bad_input, *failure_);
  }

 private:
  const toml::node* find(std::string_view section, std::string_view key) const {
    if (section.empty()) {
      const toml::node* node = table_.get(key);
      return node != nullptr && node->is_table() ? nullptr : node;
    }
    const toml::node* node = table_.get(section);
    const toml::table* inner = node == nullptr ? nullptr : node->as_table();
    return inner == nullptr ? nullptr : inner->get(key);
  }

  static std::string path(std::string_view section, std::string_view key) {
    return section.empty() ? std::string(key) : fmt::format("{}.{}", section, key);
  }

  static bool take(const toml::node& node, std::string& value) {
    const auto text = node.value_exact<std::string>();
    if (text) value = *text;
    return text.has_value();
  }
  static bool take(const toml::node& node, Fact& value) {
    if (!node.is_number()) return false;
    value = node.value<double>();
    return value.has_value();
  }
  static bool take(const toml::node& node, Flag& value) {
    value = node.value_exact<bool>();
    return value.has_value();
  }
  template <class T>
  static bool take(const toml::node& node, std::vector<T>& value) {
    const toml::array* list = node.as_array();
    if (list == nullptr) return false;
    for (const toml::node& one : *list) {
      if constexpr (std::is_same_v<T, double>) {
        Fact number;
        if (!take(one, number)) return false;
        value.push_back(*number);
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

  void complain(const toml::node& node, const std::string& what) {
    if (!failure_)
      failure_ = fmt::format("{}:{}: {}; docs/points.md lists the facts", printable(name_),
                             node.source().begin.line, printable(what));
  }

  std::string_view name_;
  const toml::table& table_;
  std::map<std::string, std::set<std::string>> known_;
  std::optional<std::string> failure_;
};

}  // namespace

Result<Point> read_point_text(std::string_view name, std::string_view text) {
  if (const auto fault = toml_fault(text))
    return fail(ExitCode::bad_input, fmt::format("{}:{}: {}; a point is TOML (docs/points.md)",
                                                 printable(name), fault->line, fault->what));
  const toml::parse_result parsed = toml::parse(text, name);
  if (!parsed)
    return fail(
        ExitCode::bad_input,
        fmt::format("{}:{}: {}; a point is TOML (docs/points.md)", printable(name),
                    parsed.error().source().begin.line, printable(parsed.error().description())));
  Point point;
  Reader reader(name, parsed.table());
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
