#include "device/nvml.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <dlfcn.h>
#include <tuple>

#include <fmt/format.h>

#include "device/nvml_abi.h"
#include "device/patience.h"
#include "device/visible.h"

namespace joulediff::device {
namespace {

struct Library {
  abi::Functions call{};
  std::string path;
  bool found = false;
};

// Loaded once and never unloaded, not at exit either: the driver's library keeps threads of its
// own, and a call that hangs may outlive us.
Library* load() {
  auto* library = new Library;
  const char* override_path = std::getenv("JOULEDIFF_NVML");
  library->path = override_path ? override_path : "libnvidia-ml.so.1";
  void* handle = dlopen(library->path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle) return library;
  library->found = true;
  abi::Functions& call = library->call;
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
  JD_FIND(DeviceGetVirtualizationMode);
  JD_FIND(DeviceGetComputeRunningProcesses_v3);
  JD_FIND(DeviceGetGraphicsRunningProcesses_v3);
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
  // And before 510 these, with the same layout.
  if (!call.DeviceGetComputeRunningProcesses_v3)
    find(call.DeviceGetComputeRunningProcesses_v3, "nvmlDeviceGetComputeRunningProcesses_v2");
  if (!call.DeviceGetGraphicsRunningProcesses_v3)
    find(call.DeviceGetGraphicsRunningProcesses_v3, "nvmlDeviceGetGraphicsRunningProcesses_v2");
  return library;
}

const Library& library() {
  static const Library* const loaded = load();
  return *loaded;
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

// A board that draws nothing does not answer: 0 W is what the second die of a package shows, or a
// scope that the board does not have.
std::optional<std::int64_t> above_zero(std::optional<std::int64_t> value) {
  return value && *value > 0 ? value : std::nullopt;
}

Diagnostic note(Severity severity, std::string rule, std::string message, std::string remedy) {
  return {severity, std::move(rule), std::move(message), 1, std::move(remedy)};
}

// Why there is no board at all; empty: the driver answers.
std::optional<Diagnostic> trouble_of_driver() {
  const abi::Functions& call = nvml();
  if (!call.Init_v2 || !call.DeviceGetCount_v2 || !call.DeviceGetHandleByIndex_v2 ||
      !call.DeviceGetUUID)
    return note(
        Severity::warning, "record.driver",
        fmt::format("{} is not NVIDIA's management library: no board energy", library().path),
        "unset JOULEDIFF_NVML, or install the driver's own");
  switch (const abi::Return result = call.Init_v2()) {
    case abi::kSuccess: return std::nullopt;
    case abi::kVersionMismatch:
      return note(Severity::warning, "record.driver_mismatch",
                  "the NVIDIA driver in the kernel and its library are of different versions: no "
                  "board energy",
                  "reload the kernel module or restart the machine");
    case abi::kDriverNotLoaded:
      return note(Severity::note, "record.driver",
                  "the NVIDIA driver is not loaded: no board energy", "sudo modprobe nvidia");
    default:
      return note(Severity::warning, "record.driver",
                  fmt::format("the NVIDIA driver does not answer (nvmlInit gives {}): no board "
                              "energy",
                              result),
                  "see what nvidia-smi says");
  }
}

// Why the meters of a board may not be read, and what would help; empty: they may.
struct Refusal {
  std::string why;
  std::string remedy;
};

// Meters that see more than the program.
Refusal shared_by_design(abi::Device board) {
  unsigned mig = 0, pending = 0;
  if (nvml().DeviceGetMigMode && nvml().DeviceGetMigMode(board, &mig, &pending) == abi::kSuccess &&
      mig != 0)
    return {"is cut up by MIG, and its meters see the whole board: no board energy",
            "record on a board without MIG for it"};
  int mode = 0;
  if (nvml().DeviceGetVirtualizationMode &&
      nvml().DeviceGetVirtualizationMode(board, &mode) == abi::kSuccess && mode > abi::kPassthrough)
    return {
        "is shared among virtual machines (vGPU), and its meters see all of them: no board energy",
        "record on a board that is passed through whole for it"};
  return {};
}

struct Found {
  std::vector<abi::Device> handles;
  std::vector<BoardInfo> infos;
  std::vector<Refusal> refused;  // by board
  Diagnostics notes;
};

Found find_boards() {
  Found found;
  if (!library().found && std::getenv("JOULEDIFF_NVML") != nullptr)
    found.notes.push_back(
        note(Severity::warning, "record.driver",
             fmt::format("JOULEDIFF_NVML={} cannot be loaded: no board energy", library().path),
             "unset JOULEDIFF_NVML, or let it name libnvidia-ml.so.1"));
  if (!library().found) return found;
  if (auto trouble = trouble_of_driver()) {
    found.notes.push_back(std::move(*trouble));
    return found;
  }
  unsigned count = 0;
  if (nvml().DeviceGetCount_v2(&count) != abi::kSuccess) count = 0;
  const std::string driver = text(nvml().SystemGetDriverVersion);
  for (unsigned i = 0; i < count; ++i) {
    abi::Device board = nullptr;
    const abi::Return result = nvml().DeviceGetHandleByIndex_v2(i, &board);
    BoardInfo info;
    Refusal refused;
    if (result == abi::kSuccess) {
      info = {text(nvml().DeviceGetName, board), text(nvml().DeviceGetUUID, board), driver};
      refused = shared_by_design(board);
    } else {
      info.name = fmt::format("board {}", i);
      refused = result == abi::kGpuIsLost
                    ? Refusal{"has fallen off the bus (the kernel log names an Xid): no energy of "
                              "it",
                              "reset it or restart the machine"}
                    : Refusal{fmt::format("is not opened by the NVIDIA driver ({}): no energy of "
                                          "it",
                                          result),
                              "see what nvidia-smi says"};
    }
    found.handles.push_back(board);
    found.infos.push_back(std::move(info));
    found.refused.push_back(std::move(refused));
  }
  return found;
}

// CUDA counts the fastest first unless told otherwise; NVML counts along the bus.
bool counted_differently(const char* visible_devices, const char* device_order,
                         const std::vector<BoardInfo>& boards) {
  const bool bus_order = device_order && std::string_view(device_order) == "PCI_BUS_ID";
  const bool alike = std::ranges::all_of(
      boards, [&](const BoardInfo& board) { return board.name == boards.front().name; });
  return picks_by_index(visible_devices) && !bus_order && !alike;
}

}  // namespace

Boards Boards::open(const char* visible_devices, const char* device_order, Nanoseconds patience) {
  Boards result;
  auto found = within(patience, find_boards);
  if (!found) {
    result.notes.push_back(
        note(Severity::warning, "record.meter_hung",
             fmt::format("the NVIDIA driver gave no answer within {} s: no board energy",
                         patience / 1'000'000'000),
             "see whether nvidia-smi returns; if not, restart the machine"));
    return result;
  }
  result.notes = std::move(found->notes);
  if (found->handles.empty()) return result;
  std::vector<std::string> uuids;
  for (const BoardInfo& info : found->infos) uuids.push_back(info.uuid);
  if (counted_differently(visible_devices, device_order, found->infos))
    result.notes.push_back(
        note(Severity::warning, "record.device_order",
             "the boards are of different kinds, and CUDA numbers them by speed, NVML by their "
             "place on the bus: the meters may watch others than the program uses",
             "set CUDA_DEVICE_ORDER=PCI_BUS_ID, or name boards by UUID in CUDA_VISIBLE_DEVICES"));
  for (std::size_t i :
       device::visible_devices(visible_devices, uuids, "CUDA_VISIBLE_DEVICES", result.notes)) {
    const Refusal& refused = found->refused[i];
    if (refused.why.empty())
      result.boards.push_back(Board(found->handles[i], found->infos[i]));
    else
      result.notes.push_back(note(Severity::warning, "record.board_unmetered",
                                  fmt::format("{} {}", found->infos[i].name, refused.why),
                                  refused.remedy));
  }
  return result;
}

std::optional<std::int64_t> Board::energy() const {
  return above_zero(
      number<unsigned long long>(nvml().DeviceGetTotalEnergyConsumption, device(handle_)));
}

Board::Power Board::power() const {
  constexpr std::array kFields = {std::pair(abi::kFieldPowerInstant, abi::kScopeGpu),
                                  std::pair(abi::kFieldPowerAverage, abi::kScopeGpu),
                                  std::pair(abi::kFieldPowerAverage, abi::kScopeMemory),
                                  std::pair(abi::kFieldPowerInstant, abi::kScopeModule),
                                  std::pair(abi::kFieldPowerAverage, abi::kScopeModule)};
  std::array<abi::FieldValue, kFields.size()> fields{};
  for (std::size_t i = 0; i < kFields.size(); ++i)
    std::tie(fields[i].field, fields[i].scope) = kFields[i];
  const auto value = [&](std::size_t i) -> std::optional<std::int64_t> {
    if (fields[i].result != abi::kSuccess) return std::nullopt;
    return above_zero(as_integer(fields[i].value_type, fields[i].value));
  };
  Power power;
  if (nvml().DeviceGetFieldValues &&
      nvml().DeviceGetFieldValues(device(handle_), fields.size(), fields.data()) == abi::kSuccess)
    power = {value(0), value(1), value(2), value(3) ? value(3) : value(4)};
  if (!power.average)
    power.average = above_zero(number<unsigned>(nvml().DeviceGetPowerUsage, device(handle_)));
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
      if (samples[i].time_us > since_us && as_integer(type, samples[i].value) > 0)
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

std::vector<BoardProcess> Board::processes() const {
  std::vector<BoardProcess> all;
  for (const auto list :
       {nvml().DeviceGetComputeRunningProcesses_v3, nvml().DeviceGetGraphicsRunningProcesses_v3}) {
    if (!list) continue;
    std::vector<abi::ProcessInfo> found(64);
    auto count = static_cast<unsigned>(found.size());
    abi::Return result = list(device(handle_), &count, found.data());
    if (result == abi::kInsufficientSize) {  // `count` says how many there are
      found.resize(count + 64);
      count = static_cast<unsigned>(found.size());
      result = list(device(handle_), &count, found.data());
    }
    if (result != abi::kSuccess) continue;
    for (unsigned i = 0; i < count && i < found.size(); ++i) {
      if (std::ranges::find(all, found[i].pid, &BoardProcess::pid) != all.end()) continue;
      all.push_back({found[i].pid, found[i].memory == abi::kNotAvailable
                                       ? std::nullopt
                                       : std::optional<std::uint64_t>(found[i].memory)});
    }
  }
  return all;
}

bool Board::lost() const {
  unsigned value = 0;
  return nvml().DeviceGetPowerUsage &&
         nvml().DeviceGetPowerUsage(device(handle_), &value) == abi::kGpuIsLost;
}

}  // namespace joulediff::device
