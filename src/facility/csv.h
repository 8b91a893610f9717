// A table as spreadsheets and data portals write it (RFC 4180): quoted cells, a byte order mark,
// CRLF; separated by comma, semicolon or tab, whichever the header has most of.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace joulediff::facility {

struct CsvRow {
  std::size_t line = 0;  // in the file, from 1
  std::vector<std::string> cells;
};

struct Csv {
  char separator = ',';
  std::vector<std::string> header;
  std::vector<CsvRow> rows;  // without empty lines

  // By name; case and surrounding blanks do not matter.
  std::optional<std::size_t> column(std::string_view name) const;
};

// Errors say the line, not the file.
Result<Csv> read_csv(std::string_view bytes);

// "12.5", "1e3"; with `decimal_comma` also "12,5". Nothing else in the cell; finite.
std::optional<double> number(std::string_view cell, bool decimal_comma = false);

std::string_view trimmed(std::string_view text);
std::string lower(std::string_view text);  // ASCII

}  // namespace joulediff::facility
