// What the headers of common exports mean: which columns, in which unit, by which clock.
#pragma once

#include <optional>
#include <string>

#include "facility/csv.h"
#include "facility/series.h"
#include "facility/timestamp.h"

namespace joulediff::facility {

struct Columns {
  std::size_t time = 0;
  std::size_t value = 0;
  double factor = 1;  // to the unit of Series::by_hour
  Zone zone = Zone::utc();
  DateOrder order = DateOrder::unknown;
  bool stamps_end = false;
  std::string provider;
  std::string kind;
};

// The columns that the source names, and of the rest what the header tells.
Result<Columns> choose_columns(const Csv& csv, const SeriesSource& source, Content content,
                               const Zone& zone);

}  // namespace joulediff::facility
