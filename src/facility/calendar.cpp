#include "facility/calendar.h"

#include <absl/time/civil_time.h>
#include <absl/time/time.h>
#include <algorithm>

#include <fmt/format.h>

#include "base/format.h"

namespace joulediff::facility {

struct Zone::Data {
  absl::TimeZone zone;
};

namespace {

absl::CivilSecond civil(const Civil& t) {
  return absl::CivilSecond(t.year, t.month, t.day, t.hour, t.minute, t.second);
}

Instant seconds(absl::Time time) {
  return absl::ToUnixSeconds(time);
}

// Nothing that leads out of the folder of zones.
bool plain(const std::string& name) {
  const auto allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '+' || c == '-' || c == '/';
  };
  return !name.empty() && name.size() < 64 && name.front() != '/' &&
         std::all_of(name.begin(), name.end(), allowed);
}

}  // namespace

Zone::Zone() : data_(std::make_shared<Data>(Data{absl::UTCTimeZone()})), name_("UTC") {}

Zone Zone::utc() {
  return Zone();
}

Result<Zone> Zone::named(const std::string& name) {
  Zone zone;
  zone.name_ = name;
  Data data;
  if (name == "UTC") return zone;
  if (plain(name) && absl::LoadTimeZone(name, &data.zone)) {
    zone.data_ = std::make_shared<Data>(data);
    return zone;
  }
  if (absl::TimeZone any; !absl::LoadTimeZone("Europe/London", &any))
    return fail(ExitCode::environment,
                "this machine has no time zones; install tzdata, or set zone = \"UTC\"");
  return fail(ExitCode::bad_input,
              fmt::format("there is no time zone {}; give an IANA name such as Europe/Berlin",
                          printable(name)));
}

Civil Zone::local(Instant instant) const {
  const absl::CivilSecond c = data_->zone.At(absl::FromUnixSeconds(instant)).cs;
  return {static_cast<int>(c.year()), c.month(), c.day(), c.hour(), c.minute(), c.second()};
}

Occurrence Zone::instant(const Civil& local) const {
  const absl::TimeZone::TimeInfo info = data_->zone.At(civil(local));
  switch (info.kind) {
    case absl::TimeZone::TimeInfo::UNIQUE: break;
    case absl::TimeZone::TimeInfo::REPEATED:
      return {Occurrence::Kind::twice, seconds(info.pre), seconds(info.post)};
    case absl::TimeZone::TimeInfo::SKIPPED:
      return {Occurrence::Kind::never, seconds(info.trans), seconds(info.trans)};
  }
  return {Occurrence::Kind::once, seconds(info.pre), seconds(info.pre)};
}

bool exists(const Civil& t) {
  if (t.second < 0 || t.second > 59 || t.minute < 0 || t.minute > 59 || t.hour < 0 || t.hour > 23)
    return false;
  const absl::CivilSecond c = civil(t);  // which makes 1 March of 30 February
  return c.year() == t.year && c.month() == t.month && c.day() == t.day;
}

int weekday(const Civil& date) {
  return static_cast<int>(absl::GetWeekday(absl::CivilDay(civil(date))));
}

std::string text(const Civil& t) {
  return fmt::format("{:04}-{:02}-{:02} {:02}:{:02}", t.year, t.month, t.day, t.hour, t.minute);
}

std::vector<Hour> hours_of_year(const Zone& zone, int year) {
  const Instant begin = zone.instant({year, 1, 1}).first;
  const Instant end = zone.instant({year + 1, 1, 1}).first;
  std::vector<Hour> hours;
  for (Instant at = begin; at < end; at += 3600) {
    const Civil local = zone.local(at);
    hours.push_back(
        {at, static_cast<double>(std::min<Instant>(3600, end - at)), local, weekday(local)});
  }
  return hours;
}

}  // namespace joulediff::facility
