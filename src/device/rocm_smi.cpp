#include "device/rocm_smi.h"

#include <array>
#include <cstdlib>
#include <dlfcn.h>

#include <fmt/format.h>

#include "device/patience.h"
#include "device/rocm_smi_abi.h"
#include "device/visible.h"

namespace joulediff::device {
namespace {

constexpr Nanoseconds kStretch = 1'000'000'000;  // over which the counter is held against power
constexpr double kAgreement = 10;

struct Library {
  rocm::Functions call{};
  bool found = false;
  std::uint32_t version = 0;
};

// Loaded once and never unloaded: a call that hangs may outlive us.
Library* load() {
  auto* library = new Library;
  const char* override_path = std::getenv("JOULEDIFF_ROCM_SMI");
  void* handle = nullptr;
  for (const char* path : {"librocm_smi64.so", "librocm_smi64.so.7", "librocm_smi64.so.6",
                           "librocm_smi64.so.1", "/opt/rocm/lib/librocm_smi64.so"})
    if (!handle) handle = dlopen(override_path ? override_path : path, RTLD_NOW | RTLD_LOCAL);
  if (!handle) return library;
  library->found = true;
  rocm::Functions& call = library->call;
#define JD_FIND(name) \
  call.name = reinterpret_cast<decltype(call.name)>(dlsym(handle, "rsmi_" #name))
  JD_FIND(init);
  JD_FIND(version_get);
  JD_FIND(num_monitor_devices);
  JD_FIND(dev_name_get);
  JD_FIND(dev_unique_id_get);
  JD_FIND(dev_energy_count_get);
  JD_FIND(dev_current_socket_power_get);
  JD_FIND(dev_power_ave_get);
  JD_FIND(dev_gpu_clk_freq_get);
  JD_FIND(dev_temp_metric_get);
#undef JD_FIND
  return library;
}

Library& library() {
  static Library* const loaded = load();
  return *loaded;
}
const rocm::Functions& rsmi() {
  return library().call;
}

struct Found {
  std::vector<std::string> names, ids;
  Diagnostics notes;
};

Found find_boards() {
  Found found;
  const char* const named = std::getenv("JOULEDIFF_ROCM_SMI");
  if (!library().found && named != nullptr)
    found.notes.push_back(
        {Severity::warning, "record.driver",
         fmt::format("JOULEDIFF_ROCM_SMI={} cannot be loaded: no board energy", named), 1,
         "unset JOULEDIFF_ROCM_SMI, or let it name librocm_smi64.so"});
  if (!library().found) return found;
  if (!rsmi().init || !rsmi().num_monitor_devices || rsmi().init(0) != rocm::kSuccess) {
    found.notes.push_back({Severity::warning, "record.driver",
                           "ROCm SMI does not start: no board energy", 1,
                           "see what rocm-smi says"});
    return found;
  }
  rocm::Version version{};
  if (rsmi().version_get && rsmi().version_get(&version) == rocm::kSuccess)
    library().version = version.major;
  std::uint32_t count = 0;
  if (rsmi().num_monitor_devices(&count) != rocm::kSuccess) count = 0;
  for (std::uint32_t i = 0; i < count; ++i) {
    std::array<char, rocm::kNameSize> name{};
    if (rsmi().dev_name_get) rsmi().dev_name_get(i, name.data(), name.size() - 1);
    std::uint64_t id = 0;
    const bool unique =
        rsmi().dev_unique_id_get && rsmi().dev_unique_id_get(i, &id) == rocm::kSuccess && id != 0;
    found.names.emplace_back(name.data());
    found.ids.push_back(unique ? fmt::format("GPU-{:016x}", id) : fmt::format("amd-{}", i));
  }
  return found;
}

std::optional<std::int64_t> megahertz(std::uint32_t index, int clock) {
  if (!rsmi().dev_gpu_clk_freq_get) return std::nullopt;
  // Room for either layout, so that a wrong guess of the version cannot overrun it.
  union {
    rocm::Frequencies now;
    rocm::FrequenciesBefore6 before;
  } levels{};
  if (rsmi().dev_gpu_clk_freq_get(index, clock, &levels) != rocm::kSuccess) return std::nullopt;
  const auto current = [](const auto& of) -> std::optional<std::int64_t> {
    if (of.current >= of.count || of.current >= std::size(of.frequency)) return std::nullopt;
    const auto hertz = static_cast<std::int64_t>(of.frequency[of.current]);
    return hertz > 0 ? std::optional(hertz / 1'000'000) : std::nullopt;
  };
  return library().version >= rocm::kVersionWithFlag ? current(levels.now) : current(levels.before);
}

}  // namespace

AmdBoards AmdBoards::open(const char* rocr_visible_devices, const char* hip_visible_devices,
                          Nanoseconds patience) {
  AmdBoards result;
  auto found = within(patience, find_boards);
  if (!found) {
    result.notes.push_back({Severity::warning, "record.meter_hung",
                            fmt::format("ROCm SMI gave no answer within {} s: no board energy",
                                        patience / 1'000'000'000),
                            1, "see whether rocm-smi returns; if not, restart the machine"});
    return result;
  }
  result.notes = std::move(found->notes);
  if (found->ids.empty()) return result;
  const auto outer =
      visible_devices(rocr_visible_devices, found->ids, "ROCR_VISIBLE_DEVICES", result.notes);
  std::vector<std::string> shown;
  for (std::size_t i : outer) shown.push_back(found->ids[i]);
  for (std::size_t i :
       visible_devices(hip_visible_devices, shown, "HIP_VISIBLE_DEVICES", result.notes))
    result.boards.push_back(
        AmdBoard(static_cast<std::uint32_t>(outer[i]), found->names[outer[i]], shown[i]));
  return result;
}

std::optional<std::int64_t> AmdBoard::energy() const {
  std::uint64_t count = 0, time = 0;
  float resolution = 0;
  if (!rsmi().dev_energy_count_get ||
      rsmi().dev_energy_count_get(index_, &count, &resolution, &time) != rocm::kSuccess)
    return std::nullopt;
  const double microjoules = static_cast<double>(count) * static_cast<double>(resolution);
  if (!(microjoules > 0 && microjoules < 9e18)) return std::nullopt;
  return static_cast<std::int64_t>(microjoules);
}

std::optional<std::int64_t> AmdBoard::power() const {
  std::uint64_t microwatts = 0;
  const bool known = (rsmi().dev_current_socket_power_get &&
                      rsmi().dev_current_socket_power_get(index_, &microwatts) == rocm::kSuccess &&
                      microwatts > 0) ||
                     (rsmi().dev_power_ave_get &&
                      rsmi().dev_power_ave_get(index_, 0, &microwatts) == rocm::kSuccess);
  // The second die of a package shows 0 W: its power is in the first one's.
  if (!known || microwatts == 0) return std::nullopt;
  return static_cast<std::int64_t>(microwatts / 1000);
}

std::optional<std::int64_t> AmdBoard::sm_clock() const {
  return megahertz(index_, rocm::kClockSystem);
}
std::optional<std::int64_t> AmdBoard::memory_clock() const {
  return megahertz(index_, rocm::kClockMemory);
}

std::optional<std::int64_t> AmdBoard::temperature() const {
  std::int64_t millidegrees = 0;
  for (std::uint32_t sensor : {rocm::kTemperatureEdge, rocm::kTemperatureJunction})
    if (rsmi().dev_temp_metric_get &&
        rsmi().dev_temp_metric_get(index_, sensor, rocm::kTemperatureCurrent, &millidegrees) ==
            rocm::kSuccess)
      return millidegrees / 1000;
  return std::nullopt;
}

std::vector<CheckedCounter::Reading> CheckedCounter::next(Nanoseconds time,
                                                          std::int64_t microjoules,
                                                          std::optional<std::int64_t> milliwatts) {
  if (!pending_.empty() && milliwatts) {
    const Nanoseconds passed = time - pending_.back().time;
    expected_ += static_cast<double>(*milliwatts) * 1e3 * to_seconds(passed).value;
    powered_ += passed;
  }
  pending_.push_back({time, microjoules, false});
  return time - pending_.front().time >= kStretch ? judge() : std::vector<Reading>();
}

std::vector<CheckedCounter::Reading> CheckedCounter::judge() {
  const Reading last = pending_.back();
  const auto counted = static_cast<double>(last.microjoules - pending_.front().microjoules);
  const bool checked = 2 * powered_ >= last.time - pending_.front().time;
  const double ratio = expected_ > 0 ? counted / expected_ : 0;
  const bool believed = checked && ratio >= 1 / kAgreement && ratio <= kAgreement;
  if (!checked)
    ++unchecked_;
  else if (!believed)
    ++(counted == 0 ? frozen_ : impossible_);

  std::vector<Reading> readings;
  if (believed) {
    readings = std::move(pending_);
    if (doubted_)
      readings.front().breaks = true;
    else if (given_)
      readings.erase(readings.begin());  // the last of the stretch before
    given_ = true;
  }
  doubted_ = !believed;
  pending_ = {last};
  expected_ = 0;
  powered_ = 0;
  return readings;
}

}  // namespace joulediff::device
