#include "facility/csv.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include <fmt/format.h>

namespace joulediff::facility {

namespace {

constexpr std::size_t kColumns = 1000;

class Reader {
 public:
  Reader(std::string_view bytes, char separator) : bytes_(bytes), separator_(separator) {}

  bool done() const { return at_ == bytes_.size(); }

  // One record, which may span lines inside quotes.
  Result<CsvRow> row() {
    CsvRow row;
    row.line = line_;
    while (true) {
      JD_ASSIGN(std::string cell, this->cell());
      row.cells.push_back(std::move(cell));
      if (row.cells.size() > kColumns)
        return fail(ExitCode::bad_input, fmt::format("line {}: more than {} columns; this is no "
                                                     "table of hours",
                                                     row.line, kColumns));
      if (done()) return row;
      const char next = bytes_[at_++];
      if (next == separator_) continue;
      if (next == '\r' && !done() && bytes_[at_] == '\n') ++at_;
      ++line_;
      return row;
    }
  }

 private:
  Result<std::string> cell() {
    std::string text;
    const std::size_t begin = line_;
    if (!done() && bytes_[at_] == '"') {
      ++at_;
      while (true) {
        if (done())
          return fail(ExitCode::bad_input,
                      fmt::format("line {}: a quote is opened and never closed", begin));
        const char c = bytes_[at_++];
        if (c == '"' && !done() && bytes_[at_] == '"') {
          text += bytes_[at_++];
        } else if (c == '"') {
          break;
        } else {
          line_ += c == '\n' ? 1 : 0;
          text += c;
        }
      }
    }
    while (!done() && bytes_[at_] != separator_ && bytes_[at_] != '\n' && bytes_[at_] != '\r')
      text += bytes_[at_++];
    return std::string(trimmed(text));
  }

  std::string_view bytes_;
  char separator_;
  std::size_t at_ = 0;
  std::size_t line_ = 1;
};

char separator_of(std::string_view bytes) {
  const std::string_view header = bytes.substr(0, bytes.find('\n'));
  char best = ',';
  for (const char candidate : {';', '\t'})
    if (std::count(header.begin(), header.end(), candidate) >
        std::count(header.begin(), header.end(), best))
      best = candidate;
  return best;
}

}  // namespace

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlank = " \t\r\n";
  const std::size_t begin = text.find_first_not_of(kBlank);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlank) - begin + 1);
}

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return out;
}

std::optional<std::size_t> Csv::column(std::string_view name) const {
  const std::string wanted = lower(trimmed(name));
  for (std::size_t i = 0; i < header.size(); ++i)
    if (lower(header[i]) == wanted) return i;
  return std::nullopt;
}

Result<Csv> read_csv(std::string_view bytes) {
  if (bytes.starts_with("\xEF\xBB\xBF")) bytes.remove_prefix(3);
  Csv csv;
  csv.separator = separator_of(bytes);
  Reader reader(bytes, csv.separator);
  while (!reader.done()) {
    JD_ASSIGN(CsvRow row, reader.row());
    if (row.cells.size() == 1 && row.cells[0].empty()) continue;
    if (csv.header.empty())
      csv.header = std::move(row.cells);
    else
      csv.rows.push_back(std::move(row));
  }
  if (csv.rows.empty()) return fail(ExitCode::bad_input, "there is no row of data below a header");
  return csv;
}

std::optional<double> number(std::string_view cell, bool decimal_comma) {
  std::string text(trimmed(cell));
  if (text.starts_with('+')) text.erase(0, 1);
  if (decimal_comma) std::replace(text.begin(), text.end(), ',', '.');
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc() || end != text.data() + text.size() ||
      !std::isfinite(value))
    return std::nullopt;
  return value;
}

}  // namespace joulediff::facility
