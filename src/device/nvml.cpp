#include "device/nvml.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <dlfcn.h>

#include <fmt/format.h>

#include "device/nvml_abi.h"

namespace joulediff::device {
namespace {

struct Library {
  abi::Functions call{};
  bool found = false;
  std::string trouble;  // empty: initialised
};

// Loaded once and never unloaded: the driver's library keeps threads of its own.
Library load() {
  Library library;
  const char* override_path = std::getenv("JOULEDIFF_NVML");
  const char* path = override_path ? override_path : "libnvidia-ml.so.1";
  void* handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!handle) return library;
  library.found = true;
  abi::Functions& call = library.call;
  const auto find = [&](auto& function, const char* symbol) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(handle, symbol));
  };
#define JD_FIND(name) find(call.name, "nvml" #name)
  JD_FIND(Init_v2);
  JD_FIND(SystemGetDriverVersion);
  JD_FIND(DeviceGetCount_v2);
  JD_FIND(DeviceGetHandleByIndex_v2);
  JD_FIND(DeviceGetName);
  JD_FIND(DeviceGetUUID);
  JD_FIND(DeviceGetMigMode);
  JD_FIND(DeviceGetPowerUsage);
  JD_FIND(DeviceGetTotalEnergyConsumption);
  JD_FIND(DeviceGetSamples);
  JD_FIND(DeviceGetFieldValues);
  JD_FIND(DeviceGetClockInfo);
  JD_FIND(DeviceGetCurrentClocksEventReasons);
  JD_FIND(DeviceGetEnforcedPowerLimit);
  JD_FIND(DeviceGetTemperature);
#undef JD_FIND
  // Drivers before 535 have the same function under its old name.
  if (!call.DeviceGetCurrentClocksEventReasons)
    find(call.DeviceGetCurrentClocksEventReasons, "nvmlDeviceGetCurrentClocksThrottleReasons");

  if (!call.Init_v2 || !call.DeviceGetCount_v2 || !call.DeviceGetHandleByIndex_v2 ||
      !call.DeviceGetUUID)
    library.trouble = fmt::format("{} is not NVIDIA's management library", path);
  else if (const abi::Return result = call.Init_v2(); result != abi::kSuccess)
    library.trouble = fmt::format("the NVIDIA driver does not answer (nvmlInit gives {})", result);
  return library;
}

const Library& library() {
  static const Library loaded = load();
  return loaded;
}
const abi::Functions& nvml() {
  return library().call;
}

template <class Function, class... Arguments>
std::string text(Function function, Arguments... arguments) {
  std::array<char, abi::kNameSize> buffer{};
  if (!function || function(arguments..., buffer.data(), abi::kNameSize) != abi::kSuccess)
    return "";
  buffer.back() = '\0';
  return buffer.data();
}

template <class Out, class Function, class... Arguments>
std::optional<std::int64_t> number(Function function, Arguments... arguments) {
  Out value = 0;
  if (!function || function(arguments..., &value) != abi::kSuccess) return std::nullopt;
  return static_cast<std::int64_t>(value);
}

std::int64_t as_integer(int type, const abi::Value& value) {
  switch (type) {
    case abi::kDouble: return static_cast<std::int64_t>(value.d);
    case abi::kUnsignedLong: return static_cast<std::int64_t>(value.ul);
    case abi::kUnsignedLongLong: return static_cast<std::int64_t>(value.ull);
    case abi::kSignedLongLong: return value.sll;
    case abi::kSignedInt: return value.si;
    case abi::kUnsignedShort: return value.us;
    default: return value.ui;
  }
}

abi::Device device(void* handle) {
  return static_cast<abi::Device>(handle);
}

// The board that CUDA_VISIBLE_DEVICES puts first: an index, or a UUID or the beginning of one.
Result<std::optional<abi::Device>> first_visible(const char* visible_devices) {
  unsigned count = 0;
  std::vector<abi::Device> boards;
  if (nvml().DeviceGetCount_v2(&count) == abi::kSuccess) boards.resize(count);
  for (unsigned i = 0; i < count; ++i)
    if (nvml().DeviceGetHandleByIndex_v2(i, &boards[i]) != abi::kSuccess)
      return fail(ExitCode::environment,
                  fmt::format("the NVIDIA driver does not open board {}", i));
  if (boards.empty()) return std::nullopt;
  if (!visible_devices) return boards.front();

  std::string first(visible_devices);
  first = first.substr(0, first.find(','));
  if (first.empty() || first.front() == '-') return std::nullopt;
  if (first.starts_with("MIG-"))
    return fail(ExitCode::environment,
                "CUDA_VISIBLE_DEVICES names a MIG instance, and a board's meters see the whole "
                "board: record on a board without MIG");
  if (first.starts_with("GPU-")) {
    for (abi::Device board : boards)
      if (text(nvml().DeviceGetUUID, board).starts_with(first)) return board;
  } else {
    char* end = nullptr;
    const unsigned long index = std::strtoul(first.c_str(), &end, 10);
    if (*end == '\0' && index < count) return boards[index];
  }
  return fail(ExitCode::environment,
              fmt::format("CUDA_VISIBLE_DEVICES={} names no board of this machine, which has {}",
                          visible_devices, count));
}

}  // namespace

Result<std::optional<Board>> Board::open(const char* visible_devices) {
  if (!library().found) return std::nullopt;
  if (!library().trouble.empty()) return fail(ExitCode::environment, library().trouble);
  JD_ASSIGN(const std::optional<abi::Device> first, first_visible(visible_devices));
  if (!first) return std::nullopt;
  const abi::Device board = *first;
  BoardInfo info{text(nvml().DeviceGetName, board), text(nvml().DeviceGetUUID, board),
                 text(nvml().SystemGetDriverVersion)};
  unsigned mig = 0, pending = 0;
  if (nvml().DeviceGetMigMode && nvml().DeviceGetMigMode(board, &mig, &pending) == abi::kSuccess &&
      mig != 0)
    return fail(ExitCode::environment,
                fmt::format("{} is cut up by MIG, and its meters see the whole board: record on a "
                            "board without MIG",
                            info.name));
  return Board(board, std::move(info));
}

std::optional<std::int64_t> Board::energy() const {
  return number<unsigned long long>(nvml().DeviceGetTotalEnergyConsumption, device(handle_));
}

Board::Power Board::power() const {
  std::array<abi::FieldValue, 3> fields{};
  fields[0].field = abi::kFieldPowerInstant;
  fields[1].field = abi::kFieldPowerAverage;
  fields[2].field = abi::kFieldPowerAverage;
  fields[2].scope = abi::kScopeMemory;
  Power power;
  const auto value = [&](const abi::FieldValue& field) -> std::optional<std::int64_t> {
    if (field.result != abi::kSuccess) return std::nullopt;
    return as_integer(field.value_type, field.value);
  };
  if (nvml().DeviceGetFieldValues &&
      nvml().DeviceGetFieldValues(device(handle_), fields.size(), fields.data()) == abi::kSuccess)
    power = {value(fields[0]), value(fields[1]), value(fields[2])};
  if (!power.average) power.average = number<unsigned>(nvml().DeviceGetPowerUsage, device(handle_));
  return power;
}

std::optional<std::int64_t> Board::power_limit() const {
  return number<unsigned>(nvml().DeviceGetEnforcedPowerLimit, device(handle_));
}

std::vector<RingSample> Board::ring(std::uint64_t since_us) const {
  std::vector<RingSample> ring;
  if (!nvml().DeviceGetSamples) return ring;
  std::vector<abi::Sample> samples(256);
  for (int attempt = 0; attempt < 4; ++attempt, samples.resize(samples.size() * 4)) {
    auto count = static_cast<unsigned>(samples.size());
    int type = abi::kUnsignedInt;
    const abi::Return result = nvml().DeviceGetSamples(device(handle_), abi::kTotalPowerSamples,
                                                       since_us, &type, &count, samples.data());
    if (result == abi::kInsufficientSize) continue;
    if (result != abi::kSuccess) break;
    for (unsigned i = 0; i < count && i < samples.size(); ++i)
      if (samples[i].time_us > since_us)
        ring.push_back({samples[i].time_us, as_integer(type, samples[i].value)});
    break;
  }
  std::sort(ring.begin(), ring.end(),
            [](const RingSample& a, const RingSample& b) { return a.time_us < b.time_us; });
  return ring;
}

std::optional<std::int64_t> Board::sm_clock() const {
  return number<unsigned>(nvml().DeviceGetClockInfo, device(handle_), abi::kClockSm);
}
std::optional<std::int64_t> Board::memory_clock() const {
  return number<unsigned>(nvml().DeviceGetClockInfo, device(handle_), abi::kClockMemory);
}
std::optional<std::int64_t> Board::temperature() const {
  return number<unsigned>(nvml().DeviceGetTemperature, device(handle_), abi::kTemperatureGpu);
}
std::optional<std::int64_t> Board::throttle() const {
  return number<unsigned long long>(nvml().DeviceGetCurrentClocksEventReasons, device(handle_));
}

}  // namespace joulediff::device
