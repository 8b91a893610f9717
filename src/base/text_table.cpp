#include "base/text_table.h"

#include <algorithm>
#include <numeric>

#include "base/check.h"

namespace joulediff {

namespace {

constexpr std::size_t kGap = 2;

void append_padded(std::string& line, std::string_view cell, std::size_t width, Align align) {
  const std::size_t have = width_of(cell);
  const std::size_t pad = width > have ? width - have : 0;
  if (align == Align::right) line.append(pad, ' ');
  line.append(cell);
  if (align == Align::left) line.append(pad, ' ');
}

}  // namespace

void TextTable::add(std::vector<std::string> cells) {
  JD_CHECK(cells.size() <= columns_.size());
  cells.resize(columns_.size());
  for (std::string& cell : cells) cell = printable(cell);
  rows_.push_back(std::move(cells));
}

std::string TextTable::text(std::string_view indent) const {
  if (columns_.empty()) return "";
  std::vector<std::size_t> widths;
  for (std::size_t c = 0; c < columns_.size(); ++c) {
    std::size_t width = width_of(columns_[c].title);
    for (const auto& row : rows_) width = std::max(width, width_of(row[c]));
    widths.push_back(width);
  }
  // The widest text column gives way first, so that short ones stay whole.
  const std::size_t fixed = kGap * (columns_.size() - 1) + width_of(indent);
  std::size_t total = std::accumulate(widths.begin(), widths.end(), fixed);
  while (total > width_) {
    std::size_t widest = columns_.size();
    for (std::size_t c = 0; c < columns_.size(); ++c) {
      const bool gives = columns_[c].align == Align::left && widths[c] > columns_[c].least;
      if (gives && (widest == columns_.size() || widths[c] > widths[widest])) widest = c;
    }
    if (widest == columns_.size()) break;
    --widths[widest];
    --total;
  }

  std::string out;
  const auto add_line = [&](auto cell_of) {
    std::string line(indent);
    for (std::size_t c = 0; c < columns_.size(); ++c) {
      if (c != 0) line.append(kGap, ' ');
      const std::string cell = columns_[c].align == Align::left
                                   ? truncated(cell_of(c), widths[c], columns_[c].cut)
                                   : std::string(cell_of(c));
      append_padded(line, cell, widths[c], columns_[c].align);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + "\n";
  };
  const bool titled = std::any_of(columns_.begin(), columns_.end(),
                                  [](const TextColumn& column) { return !column.title.empty(); });
  if (titled) add_line([&](std::size_t c) -> std::string_view { return columns_[c].title; });
  for (const auto& row : rows_) {
    add_line([&](std::size_t c) -> std::string_view { return row[c]; });
  }
  return out;
}

}  // namespace joulediff
