// A table for a terminal: columns aligned, numbers to the right, never wider than asked.
#pragma once

#include <string>
#include <vector>

#include "base/format.h"

namespace joulediff {

enum class Align { left, right };

struct TextColumn {
  std::string title;
  Align align = Align::left;
  std::size_t least = 8;  // columns that truncation leaves it; it is never padded to it
  Cut cut = Cut::end;     // which end of a long text is cut; numbers (right-aligned) are never cut
};

class TextTable {
 public:
  explicit TextTable(std::vector<TextColumn> columns, std::size_t width = 100)
      : columns_(std::move(columns)), width_(width) {}

  // Missing cells are empty. Cells go through printable().
  void add(std::vector<std::string> cells);
  std::size_t rows() const { return rows_.size(); }

  // The title line (none where all titles are empty) and the rows, each ended by a newline and
  // without trailing blanks; every line begins with `indent`.
  std::string text(std::string_view indent = "") const;

 private:
  std::vector<TextColumn> columns_;
  std::vector<std::vector<std::string>> rows_;
  std::size_t width_;
};

}  // namespace joulediff
