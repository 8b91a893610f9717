#include "base/toml_text.h"

#include <algorithm>
#include <cctype>

namespace joulediff {
namespace {

// `header` begins with its bracket; a second one that follows at once makes it a list's.
bool is_named(std::string_view header) {
  header.remove_prefix(header.starts_with("[[") ? 2 : 1);
  const std::size_t name = header.find_first_not_of(" \t");
  if (name == std::string_view::npos) return false;
  const char first = header[name];
  return std::isalnum(static_cast<unsigned char>(first)) != 0 ||
         std::string_view("_-\"'").find(first) != std::string_view::npos;
}

// The length of the string that begins at the front, quotes included; it may span lines.
std::size_t string_length(std::string_view text) {
  const char quote = text.front();
  const bool basic = quote == '"';
  const std::string_view three = basic ? R"(""")" : "'''";
  const bool many = text.starts_with(three);
  std::size_t at = many ? 3 : 1;
  while (at < text.size()) {
    if (basic && text[at] == '\\') {
      at += 2;
    } else if (many ? text.substr(at).starts_with(three) : text[at] == quote) {
      return at + (many ? 3 : 1);
    } else if (!many && text[at] == '\n') {
      return at;  // it does not end: the parser says so
    } else {
      ++at;
    }
  }
  return text.size();
}

}  // namespace

std::optional<TomlFault> toml_fault(std::string_view text) {
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  std::size_t line = 1;
  bool at_begin = true;   // of a line, but for blanks
  bool at_token = true;   // a string may begin
  bool assigned = false;  // a second '=' begins no value
  while (!text.empty()) {
    std::size_t length = 1;
    const char c = text.front();
    if (static_cast<unsigned char>(c) >= 0x80)
      return TomlFault{line, "a character outside of quotes that TOML does not have there"};
    if (at_begin && c == '[' && !is_named(text.substr(0, text.find('\n'))))
      return TomlFault{line, "a section without a name"};
    if (at_token && (c == '"' || c == '\'')) length = string_length(text);
    if (c == '#') length = std::min(text.find('\n'), text.size());
    const std::string_view taken = text.substr(0, length);
    line += static_cast<std::size_t>(std::ranges::count(taken, '\n'));
    at_begin = c == '\n' || (at_begin && (c == ' ' || c == '\t'));
    at_token =
        c == '=' ? !assigned : std::string_view(" \t\r\n,[{.").find(c) != std::string_view::npos;
    assigned = (assigned || c == '=') && c != '\n' && c != ',' && c != '{';
    text.remove_prefix(std::min(length, text.size()));
  }
  return std::nullopt;
}

}  // namespace joulediff
