// A year of one place, hour by hour, as its clocks show it.
//
// Tariffs, arrivals and seasons go by the local clock; meters and grids go by instants. So a year
// is the instants from the first local midnight of January to the next one, cut into hours of 3600
// s, each with the local date and hour at its begin. Where the clock goes back an hour exists
// twice: two slots with the same local hour; where it goes forward there is no slot with the hour
// left out. A leap year has 8784 slots, another 8760, since what spring takes autumn gives back.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"

namespace joulediff::facility {

using Instant = std::int64_t;  // seconds since 1970-01-01 00:00:00 UTC

struct Civil {
  int year = 1970, month = 1, day = 1, hour = 0, minute = 0, second = 0;
  auto operator<=>(const Civil&) const = default;
};

// When a local time was: once, twice (`first` before the clock went back, `second` after) or never
// (`first` is the instant at which the clock went forward).
struct Occurrence {
  enum class Kind { once, twice, never } kind = Kind::once;
  Instant first = 0;
  Instant second = 0;
};

class Zone {
 public:
  // An IANA name, as "Europe/Berlin" or "UTC". Error: bad input for a name that does not exist,
  // environment where the machine has no zone data.
  static Result<Zone> named(const std::string& name);
  static Zone utc();

  const std::string& name() const { return name_; }
  Civil local(Instant instant) const;
  Occurrence instant(const Civil& local) const;

 private:
  Zone();
  struct Data;
  std::shared_ptr<const Data> data_;
  std::string name_;
};

bool exists(const Civil& time);       // no 30th of February
int weekday(const Civil& date);       // 0: Monday
std::string text(const Civil& time);  // "2024-03-31 02:00"

struct Hour {
  Instant begin = 0;
  double seconds = 3600;  // the last of a year in which a zone changed by half an hour is shorter
  Civil local;
  int weekday = 0;
};

constexpr int kFirstYear = 1970;
constexpr int kLastYear = 2199;
std::vector<Hour> hours_of_year(const Zone& zone, int year);

}  // namespace joulediff::facility
