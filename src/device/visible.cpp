#include "device/visible.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <sstream>

#include <fmt/format.h>

namespace joulediff::device {
namespace {

std::vector<std::string> entries(const char* list) {
  std::vector<std::string> all;
  std::istringstream text(list);
  for (std::string entry; std::getline(text, entry, ',');) {
    const std::size_t begin = entry.find_first_not_of(" \t");
    const std::size_t end = entry.find_last_not_of(" \t");
    all.push_back(begin == std::string::npos ? "" : entry.substr(begin, end - begin + 1));
  }
  return all;
}

std::optional<std::size_t> index_in(const std::string& entry) {
  std::size_t index = 0;
  const char* end = entry.data() + entry.size();
  const auto [rest, error] = std::from_chars(entry.data(), end, index);
  if (error != std::errc() || rest != end) return std::nullopt;
  return index;
}

std::optional<std::size_t> find(const std::string& entry, const std::vector<std::string>& ids) {
  if (const auto index = index_in(entry)) {
    if (*index < ids.size()) return index;
    return std::nullopt;
  }
  if (entry.empty()) return std::nullopt;
  const auto begins = [&](const std::string& id) { return id.starts_with(entry); };
  const auto found = std::ranges::find_if(ids, begins);
  // The beginning of two ids names neither.
  if (found == ids.end() || std::ranges::count_if(ids, begins) > 1) return std::nullopt;
  return static_cast<std::size_t>(found - ids.begin());
}

}  // namespace

std::vector<std::size_t> visible_devices(const char* list, const std::vector<std::string>& ids,
                                         std::string_view variable, Diagnostics& notes) {
  std::vector<std::size_t> shown;
  if (list == nullptr) {
    for (std::size_t i = 0; i < ids.size(); ++i) shown.push_back(i);
    return shown;
  }
  for (const std::string& entry : entries(list)) {
    if (entry.starts_with('-') || entry == "NoDevFiles") break;  // hides what follows, on purpose
    if (entry.starts_with("MIG-")) {
      notes.push_back(
          {Severity::warning, "record.mig",
           fmt::format("{} names the MIG instance {}, and a board's meters see the whole board: no "
                       "board energy",
                       variable, entry),
           1, "record on a board without MIG for it"});
      continue;
    }
    const auto found = find(entry, ids);
    if (!found) {
      notes.push_back(
          {Severity::warning, "record.no_such_board",
           fmt::format("{}={} names no board of this machine with \"{}\", which has {}: "
                       "the boards after it are hidden",
                       variable, list, entry, ids.size()),
           1, fmt::format("unset {}, or name a board of this machine", variable)});
      break;
    }
    if (std::ranges::find(shown, *found) == shown.end()) shown.push_back(*found);
  }
  return shown;
}

bool picks_by_index(const char* list) {
  if (list == nullptr) return false;
  const auto all = entries(list);
  return std::ranges::any_of(all, [](const std::string& e) { return index_in(e).has_value(); });
}

}  // namespace joulediff::device
