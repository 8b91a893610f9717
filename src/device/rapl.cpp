#include "device/rapl.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <optional>

#include <fmt/format.h>

#include "device/sysfs.h"

namespace joulediff::device {
namespace {

namespace fs = std::filesystem;

// Microjoules a second that no domain can reach: a package draws up to 0.5 kW, a platform of eight
// of them with its memory stays below this too.
constexpr double kFastest = 5000e6;
constexpr Nanoseconds kLumps = 10'000'000;  // the counter moves about every millisecond
constexpr Nanoseconds kRetry = 1'000'000'000;

// "intel-rapl:0:2" lies in "intel-rapl:0"; the same register may be there twice, as intel-rapl and
// as intel-rapl-mmio.
std::optional<Rapl::Domain> domain_of(const fs::path& folder) {
  const std::string name = first_line(folder / "name");
  if (name.starts_with("package")) return Rapl::Domain{Rapl::Kind::package, name};
  if (name == "psys") return Rapl::Domain{Rapl::Kind::platform, name};
  if (name != "dram") return std::nullopt;
  const std::string file = folder.filename();
  const fs::path parent = folder.parent_path() / file.substr(0, file.rfind(':'));
  return Rapl::Domain{Rapl::Kind::dram, first_line(parent / "name") + " dram"};
}

// Two dies that show one register: both counters say the same to the last joule.
bool same_register(const std::string& a, const std::string& b) {
  constexpr std::int64_t kClose = 500'000, kEnough = 100'000'000;
  const auto x = number_in(a), y = number_in(b);
  return x && y && *x > kEnough && std::abs(*x - *y) < kClose;
}

}  // namespace

Rapl Rapl::open(const std::string& root) {
  Rapl rapl;
  std::vector<fs::path> folders;
  std::error_code error;
  for (fs::directory_iterator it(root, error), end; !error && it != end; it.increment(error))
    folders.push_back(it->path());
  std::ranges::sort(folders);
  std::ranges::stable_partition(folders, [](const fs::path& folder) {
    return folder.filename().string().find("-mmio") == std::string::npos;
  });
  for (const fs::path& folder : folders) {
    const auto domain = domain_of(folder);
    const auto range = number_in(folder / "max_energy_range_uj");
    if (!domain || !range || *range <= 0) continue;
    const std::string file = folder / "energy_uj";
    const auto twin = std::ranges::find_if(rapl.domains_, [&](const Source& other) {
      return other.domain.channel == domain->channel ||
             (other.domain.kind == domain->kind && same_register(other.file, file));
    });
    if (twin == rapl.domains_.end()) {
      rapl.domains_.push_back({*domain, file, *range, Counter(*range, kFastest, kLumps)});
    } else if (twin->domain.channel != domain->channel) {
      rapl.notes_.push_back({Severity::note, "record.same_counter",
                             fmt::format("{} and {} show one energy counter: it is read once",
                                         twin->domain.channel, domain->channel)});
    }
  }
  return rapl;
}

std::vector<Rapl::Reading> Rapl::read(Nanoseconds now) {
  std::vector<Reading> readings;
  for (Source& source : domains_) {
    if (now < source.retry) continue;
    const auto raw = number_in(source.file);
    if (!raw) {
      source.retry = now + kRetry;
      continue;
    }
    source.read_once = true;
    readings.push_back({source.domain, source.counter.next(now, *raw)});
  }
  return readings;
}

Diagnostics Rapl::notes() const {
  Diagnostics notes = notes_;
  std::string unread;
  for (const Source& source : domains_)
    if (!source.read_once) unread += (unread.empty() ? "" : ", ") + source.domain.channel;
  if (!unread.empty())
    notes.push_back(
        {Severity::warning, "record.rapl_permission",
         fmt::format("the energy counters of the processor ({}) may not be read", unread), 1,
         "sudo chmod a+r /sys/class/powercap/*/energy_uj"});
  return notes;
}

}  // namespace joulediff::device
