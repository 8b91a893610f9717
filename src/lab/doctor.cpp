// One function for each check. Each says what it found before it says what is missing.
#include "lab/doctor.h"

#include <array>
#include <cstdlib>
#include <dlfcn.h>
#include <fstream>
#include <optional>
#include <sys/statvfs.h>
#include <unistd.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/format.h"
#include "device/host.h"
#include "device/hwmon.h"
#include "device/nvml.h"
#include "device/patience.h"
#include "device/rapl.h"
#include "device/rocm_smi.h"
#include "device/sysfs.h"
#include "lab/clock.h"
#include "lab/installation.h"

namespace joulediff::lab {
namespace {

using device::first_line;

constexpr Nanoseconds kPatience = 5 * kSecond;
constexpr Nanoseconds kTick = 300 * kMillisecond;  // an energy counter moves within this

// What a shell command prints, without its last newline; none where it fails.
std::optional<std::string> output_of(const std::string& command) {
  FILE* const pipe = popen((command + " 2>/dev/null").c_str(), "r");
  if (pipe == nullptr) return std::nullopt;
  std::string text;
  std::array<char, 256> part{};
  while (std::fgets(part.data(), part.size(), pipe) != nullptr) text += part.data();
  if (pclose(pipe) != 0) return std::nullopt;
  while (text.ends_with('\n')) text.pop_back();
  return text;
}

Check of_note(std::string what, const Diagnostic& note) {
  return {std::move(what), Health::missing, note.message, note.remedy};
}

// What one board's sensors answer.
struct BoardAnswers {
  bool counter = false, moves = false;
  std::size_t ring = 0;
  std::optional<std::int64_t> instant, average, memory;
  std::vector<device::BoardProcess> users;
};

BoardAnswers ask(const device::Board& board) {
  BoardAnswers answers;
  const auto before = board.energy();
  const auto since = static_cast<std::uint64_t>(read_clock(CLOCK_REALTIME) / 1000);
  pause_for(kTick);
  const auto after = board.energy();
  answers.counter = before && after;
  answers.moves = answers.counter && *after > *before;
  answers.ring = board.ring(since).size();
  const device::Board::Power power = board.power();
  answers.instant = power.instant;
  answers.average = power.average;
  answers.memory = power.memory;
  answers.users = board.processes();
  return answers;
}

Check board_check(const device::Board& board) {
  Check check{"board energy", Health::good, board.info().name + " " + board.info().uuid + ": ", ""};
  const auto answers = device::within(kPatience, [board] { return ask(board); });
  if (!answers) {
    check.health = Health::missing;
    check.says += "its driver does not answer";
    check.remedy = "nvidia-smi; if that hangs too, restart the machine";
    return check;
  }
  std::vector<std::string> has, lacks;
  const auto sort = [&](bool there, const char* sensor) {
    (there ? has : lacks).emplace_back(sensor);
  };
  sort(answers->moves, "energy counter");
  sort(answers->ring > 0, "20 ms power samples");
  sort(answers->instant.has_value(), "instant power");
  sort(answers->average.has_value(), "average power");
  sort(answers->memory.has_value(), "memory power");
  check.says += has.empty() ? "no sensor answers" : fmt::format("{}", fmt::join(has, ", "));
  if (!lacks.empty() && !has.empty()) check.says += fmt::format("; no {}", fmt::join(lacks, ", "));
  if (!answers->moves) {
    check.health = has.empty() ? Health::missing : Health::partly;
    if (answers->counter) check.says += "; its energy counter stands still";
    check.remedy = "record with --meter COMMAND --meter-boundary board";
  }
  return check;
}

void board_checks(std::vector<Check>& checks) {
  const device::Boards boards = device::Boards::open(std::getenv("CUDA_VISIBLE_DEVICES"),
                                                     std::getenv("CUDA_DEVICE_ORDER"), kPatience);
  for (const device::Board& board : boards.boards) {
    checks.push_back(board_check(board));
    std::vector<std::string> users;
    for (const device::BoardProcess& user : device::within(kPatience, [board] {
                                              return board.processes();
                                            }).value_or(std::vector<device::BoardProcess>()))
      users.push_back(
          fmt::format("{} ({})", user.pid, first_line(fmt::format("/proc/{}/comm", user.pid))));
    if (!users.empty())
      checks.push_back({"a board of one's own", Health::partly,
                        fmt::format("{} is in use by {}: their work would be in its energy",
                                    board.info().name, fmt::join(users, ", ")),
                        "end them, or choose another board with CUDA_VISIBLE_DEVICES"});
  }
  for (const Diagnostic& note : boards.notes) checks.push_back(of_note("board energy", note));

  const device::AmdBoards amd = device::AmdBoards::open(
      std::getenv("ROCR_VISIBLE_DEVICES"), std::getenv("HIP_VISIBLE_DEVICES"), kPatience);
  for (const device::AmdBoard& board : amd.boards) {
    const bool counts = board.energy().has_value(), draws = board.power().has_value();
    checks.push_back({"board energy",
                      counts && draws ? Health::good
                      : draws         ? Health::partly
                                      : Health::missing,
                      fmt::format("{} {}: {}", board.name(), board.id(),
                                  counts && draws ? "energy counter and power"
                                  : draws         ? "power, but no energy counter"
                                                  : "no power sensor answers"),
                      ""});
  }
  for (const Diagnostic& note : amd.notes) checks.push_back(of_note("board energy", note));
  const bool none =
      boards.boards.empty() && boards.notes.empty() && amd.boards.empty() && amd.notes.empty();
  if (const char* visible = std::getenv("CUDA_VISIBLE_DEVICES"); none && visible != nullptr)
    checks.push_back({"board energy", Health::missing,
                      fmt::format("no board is visible with CUDA_VISIBLE_DEVICES={}", visible),
                      "unset CUDA_VISIBLE_DEVICES, or name a board of this machine"});
  else if (none)
    checks.push_back({"board energy", Health::missing,
                      "no NVIDIA driver (libnvidia-ml.so.1) and no ROCm SMI on this machine",
                      "on a machine with a GPU, install its driver; on the processor alone, the "
                      "host's energy is used"});
}

Check host_check(const Places& places) {
  device::Rapl rapl = device::Rapl::open(places.powercap);
  std::vector<std::string> channels;
  for (const auto& reading : rapl.read(now())) channels.push_back(reading.domain.channel);
  const device::HostInfo host = device::host_info();
  if (!channels.empty())
    return {"host energy", Health::good, fmt::format("RAPL: {}", fmt::join(channels, ", ")), ""};
  const std::string modelled = fmt::format(
      "modelled from processor time ({} cores, watts of a busy core known within a factor of two)",
      host.cores);
  for (const Diagnostic& note : rapl.notes())
    if (!note.remedy.empty())
      return {"host energy", Health::partly, note.message + "; " + modelled, note.remedy};
  return {"host energy", Health::partly,
          "no RAPL here, as in most virtual machines and containers; " + modelled,
          "record with --meter COMMAND --meter-boundary node, or on the bare machine"};
}

std::optional<Check> rail_check(const Places& places) {
  device::Hwmon hwmon = device::Hwmon::open(places.hwmon);
  std::vector<std::string> channels;
  for (const auto& reading : hwmon.read(now())) channels.push_back(reading.channel);
  if (channels.empty()) return std::nullopt;
  return Check{"rails", Health::good, fmt::format("hwmon: {}", fmt::join(channels, ", ")), ""};
}

Check kernel_check(const Places& places) {
  const char* const chosen = std::getenv("JOULEDIFF_CUPTI");
  if (chosen == nullptr && access(places.nvidia.c_str(), F_OK) != 0)
    return {"kernels", Health::partly, "no NVIDIA GPU here, so no kernels; operators are recorded",
            "record on a machine with an NVIDIA GPU and its driver"};
  const std::vector<std::string> names =
      chosen != nullptr
          ? std::vector<std::string>{chosen}
          : std::vector<std::string>{"libcupti.so.13", "libcupti.so.12",
                                     "/usr/local/cuda/lib64/libcupti.so",
                                     "/usr/local/cuda/extras/CUPTI/lib64/libcupti.so"};
  for (const std::string& name : names) {
    void* const library = dlopen(name.c_str(), RTLD_LAZY | RTLD_LOCAL);
    if (library == nullptr) continue;
    std::uint32_t version = 0;
    const auto get = reinterpret_cast<int (*)(std::uint32_t*)>(dlsym(library, "cuptiGetVersion"));
    if (get == nullptr || get(&version) != 0) continue;
    return {"kernels", Health::good, fmt::format("{}, version {}", name, version), ""};
  }
  if (chosen != nullptr)
    return {"kernels", Health::missing,
            fmt::format("JOULEDIFF_CUPTI={} is no libcupti that can be loaded", chosen),
            "unset JOULEDIFF_CUPTI, or give the path of a libcupti.so"};
  return {"kernels", Health::partly,
          "no libcupti on the system; a program that brings its own (PyTorch's does) is recorded "
          "all the same",
          "for other CUDA programs: pip install nvidia-cuda-cupti, or install the CUDA toolkit"};
}

Check recorder_check() {
  const Result<Installation> installation = find_installation();
  if (!installation) {
    const std::string& why = installation.error().message;
    return {"recorder", Health::missing, why, "install joulediff again, or set JOULEDIFF_HOME"};
  }
  void* const library = dlopen(installation->recorder.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr)
    return {"recorder", Health::missing, fmt::format("it does not load: {}", dlerror()),
            "build or install joulediff on this machine"};
  return {"recorder", Health::good, installation->recorder.string(), ""};
}

Check framework_check() {
  const auto found = output_of(
      "python3 -c \"import importlib.metadata as m, sys; print('Python', sys.version.split()[0], "
      "*[f'{n} {m.version(n)}' for n in ('torch', 'jax', 'onnxruntime') if any(True for d in "
      "m.distributions() if d.metadata['Name'] == n)])\"");
  if (!found)
    return {"plug-ins", Health::missing, "no python3 on PATH",
            "activate the environment of the program that is to be recorded"};
  if (found->find("torch") == std::string::npos)
    return {"plug-ins", Health::partly,
            *found + ", without torch: its programs have kernels and no operators",
            "activate the environment of the program that is to be recorded"};
  return {"plug-ins", Health::good, *found, ""};
}

Check ptrace_check(const Places& places) {
  const std::string scope = first_line(places.proc + "/sys/kernel/yama/ptrace_scope");
  if (scope.empty() || scope == "0")
    return {"stepping", Health::good, "a program may be stepped to find the branch that parted",
            ""};
  if (scope == "1")
    return {"stepping", Health::good, "programs that joulediff starts may be stepped", ""};
  return {"stepping", Health::missing, "ptrace is not allowed (yama.ptrace_scope is " + scope + ")",
          "sudo sysctl kernel.yama.ptrace_scope=1"};
}

Check clock_check() {
  const std::string source =
      first_line("/sys/devices/system/clocksource/clocksource0/current_clocksource");
  Nanoseconds worst = 0, last = now();
  for (int i = 0; i < 1000; ++i) {
    const Nanoseconds next = now();
    worst = std::max(worst, next - last);
    last = next;
  }
  return {
      "clock", Health::good,
      fmt::format("CLOCK_MONOTONIC from {}, longest of 1,000 reads {:.1f} us",
                  source.empty() ? "an unknown source" : source, static_cast<double>(worst) / 1000),
      ""};
}

Check quiet_check(const Places& places) {
  double load = 0;
  const std::string path = places.proc + "/loadavg";
  if (!(std::ifstream(path) >> load))
    return {"a quiet host", Health::partly, "unknown, as " + path + " cannot be read",
            "mount /proc; until then look with top whether other work shares the processor"};
  const unsigned cores = std::max(1U, device::host_info().cores);
  const bool busy = load > 0.5 * cores;
  return {"a quiet host", busy ? Health::partly : Health::good,
          fmt::format("load {:.1f} on {} cores", load, cores),
          busy ? "end other work before recording: it shares the processor with the program" : ""};
}

Check space_check() {
  struct statvfs disk{};
  if (statvfs(".", &disk) != 0) return {"disk", Health::missing, "the folder cannot be read", ""};
  const double bytes = static_cast<double>(disk.f_bavail) * static_cast<double>(disk.f_frsize);
  constexpr double kEnough = 2e9;  // a spool of minutes at 50,000 kernels a second
  const bool writable = access(".", W_OK) == 0;
  Check check{"disk", bytes >= kEnough && writable ? Health::good : Health::partly,
              fmt::format("{:.1f} GB free in this folder, where run files and spools are written",
                          bytes / 1e9),
              ""};
  if (!writable) {
    check.health = Health::missing;
    check.says = "this folder cannot be written to";
    check.remedy = "change to a folder of your own, or give -o a path there";
  } else if (bytes < kEnough) {
    check.remedy = "free some space, or give -o a path on another disk";
  }
  return check;
}

}  // namespace

std::string_view name(Health health) {
  switch (health) {
    case Health::good: return "yes";
    case Health::partly: return "partly";
    case Health::missing: return "no";
  }
  return "";
}

std::vector<Check> examine(const Places& places) {
  std::vector<Check> checks;
  board_checks(checks);
  checks.push_back(host_check(places));
  if (auto rails = rail_check(places)) checks.push_back(std::move(*rails));
  checks.push_back(kernel_check(places));
  checks.push_back(recorder_check());
  checks.push_back(framework_check());
  checks.push_back(ptrace_check(places));
  checks.push_back(clock_check());
  checks.push_back(quiet_check(places));
  checks.push_back(space_check());
  return checks;
}

}  // namespace joulediff::lab
