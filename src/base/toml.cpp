// The only file that sees toml++, and so the only one that knows what it does with any bytes.
//
// toml++ (3.3 in Debian 12, 3.4 in Debian 13 and Ubuntu 24.04) asserts what a file need not keep:
// "a = 2024-01-01 1" followed by a line's end, for one, ends in `!is_value_terminator(*cp)`. In a
// release build it makes these assertions promises to the compiler. Here they are asked for in all
// builds, and throw. That is sound because
//   - everything a parse has made belongs to objects on its stack, as its own errors, which are
//     thrown too (TOML_EXCEPTIONS), need;
//   - the functions it declares noexcept assert only what the parser itself sees to: that it steps
//     back by no more characters than it has stepped (`step_back`), and the like. Were one of them
//     wrong, the program would end there (std::terminate), as with any assertion;
//   - the header is compiled into this file alone, so no other file has it with other assertions.
// What it does not bound is how deep dotted keys nest tables, which are destroyed by recursion.
#include "base/toml.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include "base/format.h"

namespace joulediff {
namespace {

struct AssertionFailed : std::logic_error {
  using std::logic_error::logic_error;
};
[[noreturn]] void assertion_failed(const char* what) {
  throw AssertionFailed(what);
}

}  // namespace
}  // namespace joulediff

#undef NDEBUG  // with it, toml++ undoes TOML_ASSERT
#define TOML_ASSERT(expr) \
  static_cast<void>(static_cast<bool>(expr) ? void() : ::joulediff::assertion_failed(#expr))
#define TOML_EXCEPTIONS 1
#define TOML_HEADER_ONLY 1  // Debian's package has a library, too; the static command has none
#define TOML_MAX_NESTED_VALUES 16
#include <toml++/toml.h>

namespace joulediff {
namespace {

constexpr std::ptrdiff_t kMaxDots = 200;  // of a line's keys; no file of ours has more than 3

TomlNode convert(const toml::node& from, std::string path) {
  TomlNode node;
  node.line = from.source().begin.line;
  node.path = std::move(path);
  if (const auto* table = from.as_table()) {
    TomlTable out;
    for (const auto& [key, value] : *table) {
      const std::string name(key.str());
      TomlNode child = convert(value, node.path.empty() ? name : node.path + "." + name);
      if (!value.is_table() || child.line == 0) child.line = key.source().begin.line;
      out.emplace(name, std::move(child));
    }
    node.value = std::move(out);
  } else if (const auto* array = from.as_array()) {
    TomlArray out;
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

// The first line in which a key or header may have more than kMaxDots dots. A key ends on its line
// whatever it is quoted with, so it is enough to count the dots before each '=', and all of those
// of a line that begins with a bracket; a line of a list or a text has no such limit.
std::optional<std::size_t> too_deep(std::string_view bytes) {
  std::size_t line = 1;
  for (; !bytes.empty(); ++line) {
    const std::string_view here = bytes.substr(0, bytes.find('\n'));
    bytes.remove_prefix(std::min(here.size() + 1, bytes.size()));
    const std::size_t first = here.find_first_not_of(" \t");
    const bool header = first != std::string_view::npos && here[first] == '[';
    const std::size_t end = header ? here.size() : here.rfind('=');
    if (end != std::string_view::npos && std::ranges::count(here.substr(0, end), '.') > kMaxDots)
      return line;
  }
  return std::nullopt;
}

bool fails(std::string_view bytes) {
  try {
    static_cast<void>(toml::parse(bytes));
  } catch (const AssertionFailed&) {
    return true;
  } catch (const toml::parse_error&) {
  }
  return false;
}

// An assertion has no place, but a parser reads forward: the fewest lines that fail end in it.
std::size_t line_of_failure(std::string_view bytes) {
  std::vector<std::size_t> ends;
  for (std::size_t at = bytes.find('\n'); at != std::string_view::npos;
       at = bytes.find('\n', at + 1))
    ends.push_back(at + 1);
  const auto first = std::ranges::partition_point(
      ends, [&](std::size_t end) { return !fails(bytes.substr(0, end)); });
  return static_cast<std::size_t>(first - ends.begin()) + 1;
}

tl::unexpected<Error> wrong(std::string_view file, std::size_t line, std::string why) {
  std::ranges::replace(why, '\n', ' ');
  return fail(ExitCode::bad_input, fmt::format("{}:{}: {}", printable(file), line, printable(why)));
}

}  // namespace

const TomlNode* TomlNode::find(std::string_view key) const {
  const TomlTable* inside = table();
  if (inside == nullptr) return nullptr;
  const auto found = inside->find(key);
  return found == inside->end() ? nullptr : &found->second;
}

Result<TomlNode> read_toml(std::string_view bytes, std::string_view file) {
  if (const auto line = too_deep(bytes))
    return wrong(file, *line, fmt::format("keys of more than {} parts in a line", kMaxDots));
  try {
    return convert(toml::parse(bytes), "");
  } catch (const toml::parse_error& error) {
    return wrong(file, error.source().begin.line, std::string(error.description()));
  } catch (const AssertionFailed&) {
    return wrong(file, line_of_failure(bytes), "this is not TOML");
  }
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

}  // namespace joulediff
