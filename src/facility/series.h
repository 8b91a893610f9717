// Values over a year's hours from somebody's CSV: carbon intensities, prices, arrivals, PUE.
//
// A row says what was so for a while: from its stamp (or up to it, where stamps are of ends) for
// one step of the file, which is the commonest distance between rows, or until the next row, which
// is nearer where steps are months and days of 23 hours. Counts are spread over that. Hours are the
// mean over what the rows cover, by time, so 5 and 15 minutes become hours, and hours that begin at
// a quarter past do so rightly. Nothing is guessed in silence: unsorted, repeated and missing rows
// are counted diagnostics; up to kBridged hours without data are filled from both sides, and more
// is an error.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/diagnostics.h"
#include "base/result.h"
#include "facility/calendar.h"

namespace joulediff::facility {

enum class Content { carbon, price, demand, pue };

// What a plan says of a file; what it leaves out is taken from the header where that is known.
struct SeriesSource {
  std::string path;
  std::optional<std::string> time;   // column
  std::optional<std::string> value;  // column
  std::optional<std::string> unit;
  std::optional<std::string> zone;             // of stamps that say none
  std::string currency;                        // that prices must be in; empty: any
  bool stamps_end = false;                     // a stamp is the end of what its row is about
  std::map<std::string, std::string> where{};  // only rows with these cells
};

struct Series {
  std::vector<double> by_hour;  // g/kWh; currency/kWh; units per second; PUE
  std::string provider;         // "Electricity Maps"; empty where unknown
  std::string column;           // of the value
  std::string kind;             // of carbon: "average", "marginal"; empty where unknown
  double step = 3600;           // seconds
};

constexpr int kBridged = 6;  // hours

// Errors and diagnostics name the file and the line.
Result<Series> read_series(std::string_view bytes, const SeriesSource& source, Content content,
                           const std::vector<Hour>& hours, const Zone& zone,
                           Diagnostics& diagnostics);

}  // namespace joulediff::facility
