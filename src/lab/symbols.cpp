// elfutils does the work: each mapped file is reported at the place where the process had it. Debug
// information is looked for on this machine only; no server is asked.
#include "lab/symbols.h"

#include <algorithm>
#include <cstdlib>
#include <cxxabi.h>
#include <elfutils/libdwfl.h>
#include <fcntl.h>
#include <filesystem>
#include <gelf.h>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <unistd.h>

#include <fmt/format.h>

namespace joulediff::lab {
namespace {

int local_debug_information(Dwfl_Module* module, void** user, const char* name, Dwarf_Addr base,
                            const char* file, const char* link, GElf_Word crc, char** found) {
  if (std::getenv("DEBUGINFOD_URLS") != nullptr) return -1;
  return dwfl_standard_find_debuginfo(module, user, name, base, file, link, crc, found);
}

char* debug_path = nullptr;

const Dwfl_Callbacks kCallbacks{.find_elf = dwfl_build_id_find_elf,
                                .find_debuginfo = local_debug_information,
                                .section_address = dwfl_offline_section_address,
                                .debuginfo_path = &debug_path};

struct EndDwfl {
  void operator()(Dwfl* dwfl) const { dwfl_end(dwfl); }
};
struct EndElf {
  void operator()(Elf* elf) const { elf_end(elf); }
};

class Descriptor {
 public:
  explicit Descriptor(const std::string& path) : fd_(open(path.c_str(), O_RDONLY | O_CLOEXEC)) {}
  ~Descriptor() {
    if (fd_ >= 0) close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }

 private:
  int fd_;
};

// What the loader added to the addresses in the file.
std::optional<std::uint64_t> load_bias(const SpoolModule& module) {
  const Descriptor file(module.path);
  if (file.get() < 0) return std::nullopt;
  const std::unique_ptr<Elf, EndElf> elf(elf_begin(file.get(), ELF_C_READ_MMAP, nullptr));
  std::size_t count = 0;
  if (!elf || elf_getphdrnum(elf.get(), &count) != 0) return std::nullopt;
  constexpr std::uint64_t kPage = 4096;
  for (std::size_t i = 0; i < count; ++i) {
    GElf_Phdr segment{};
    if (gelf_getphdr(elf.get(), static_cast<int>(i), &segment) == nullptr ||
        segment.p_type != PT_LOAD)
      continue;
    const std::uint64_t first = segment.p_offset & ~(kPage - 1);
    if (first <= module.file_offset && module.file_offset < segment.p_offset + segment.p_filesz)
      return module.begin - (segment.p_vaddr - segment.p_offset + module.file_offset);
  }
  return std::nullopt;
}

std::string build_id_of(Dwfl_Module* module) {
  const unsigned char* bits = nullptr;
  GElf_Addr address = 0;
  const int size = dwfl_module_build_id(module, &bits, &address);
  std::string hex;
  for (int i = 0; i < size; ++i) hex += fmt::format("{:02x}", bits[i]);
  return hex;
}

std::string demangled(const char* name) {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> text(
      abi::__cxa_demangle(name, nullptr, nullptr, &status), &std::free);
  return text ? text.get() : name;
}

std::string file_name(const SpoolModule& module) {
  return std::filesystem::path(module.path).filename().string();
}

bool is_below_the_program(const SpoolModule& module) {
  const std::string name = file_name(module);
  constexpr std::string_view kOurs[] = {"libjoulediff-record", "libcupti", "libcuda.so"};
  return std::ranges::any_of(kOurs, [&](std::string_view stem) { return name.starts_with(stem); });
}

struct Source {
  std::string file;
  int line = 0;
};

// The units of a module by their addresses: some compilers (clang) write no table of them, and then
// libdwfl finds none.
class Units {
 public:
  explicit Units(Dwfl_Module* module) {
    Dwarf_Addr bias = 0;
    for (Dwarf_Die* unit = nullptr; (unit = dwfl_module_nextcu(module, unit, &bias)) != nullptr;) {
      Dwarf_Addr base = 0, begin = 0, end = 0;
      for (std::ptrdiff_t at = 0; (at = dwarf_ranges(unit, at, &base, &begin, &end)) > 0;)
        ranges_.push_back({begin + bias, end + bias, bias, unit});
    }
    std::ranges::sort(ranges_, {}, &Range::begin);
  }
  std::optional<Source> source_of(std::uint64_t address) const {
    const auto after = std::ranges::upper_bound(ranges_, address, {}, &Range::begin);
    if (after == ranges_.begin() || address >= std::prev(after)->end) return std::nullopt;
    const Range& range = *std::prev(after);
    Dwarf_Line* const line = dwarf_getsrc_die(range.unit, address - range.bias);
    Source source;
    const char* const path = line != nullptr ? dwarf_linesrc(line, nullptr, nullptr) : nullptr;
    if (path == nullptr || dwarf_lineno(line, &source.line) != 0) return std::nullopt;
    source.file = path;
    return source;
  }

 private:
  struct Range {
    std::uint64_t begin, end, bias;
    Dwarf_Die* unit;
  };
  std::vector<Range> ranges_;
};

std::optional<Source> known_source(Dwfl_Module* module, std::uint64_t address) {
  Dwfl_Line* const line = dwfl_module_getsrc(module, address);
  Source source;
  const char* const path =
      line != nullptr ? dwfl_lineinfo(line, nullptr, &source.line, nullptr, nullptr, nullptr)
                      : nullptr;
  if (path == nullptr) return std::nullopt;
  source.file = path;
  return source;
}

}  // namespace

struct Symbols::Files {
  std::unique_ptr<Dwfl, EndDwfl> dwfl{dwfl_begin(&kCallbacks)};
  std::set<std::string> replaced;             // paths with another file than the process had
  std::map<std::uint64_t, run::Frame> known;  // by return address
  std::map<Dwfl_Module*, Units> units;        // of modules without a table
};

Symbols::Symbols(const std::vector<SpoolModule>& modules)
    : modules_(modules), files_(std::make_unique<Files>()) {
  std::ranges::sort(modules_, {}, &SpoolModule::begin);
  elf_version(EV_CURRENT);
  Dwfl* const dwfl = files_->dwfl.get();
  if (dwfl == nullptr) return;
  dwfl_report_begin(dwfl);
  std::set<std::pair<std::string, std::uint64_t>> reported;  // a file has several segments
  for (const SpoolModule& module : modules_) {
    const auto bias = load_bias(module);
    if (!bias || !reported.emplace(module.path, *bias).second) continue;
    Dwfl_Module* const found =
        dwfl_report_elf(dwfl, module.path.c_str(), module.path.c_str(), -1, *bias, true);
    if (found == nullptr) continue;
    GElf_Addr unused = 0;
    dwfl_module_getelf(found, &unused);  // the build id is known once the file is read
    if (!module.build_id.empty() && build_id_of(found) != module.build_id)
      files_->replaced.insert(module.path);
  }
  dwfl_report_end(dwfl, nullptr, nullptr);
}

Symbols::~Symbols() = default;

const SpoolModule* Symbols::module_of(std::uint64_t address) const {
  const auto after = std::ranges::upper_bound(modules_, address, {}, &SpoolModule::begin);
  if (after == modules_.begin() || address >= std::prev(after)->end) return nullptr;
  return &*std::prev(after);
}

run::Frame Symbols::frame(std::uint64_t return_address) {
  const auto [known, fresh] = files_->known.try_emplace(return_address);
  run::Frame& frame = known->second;
  if (!fresh) return frame;
  const std::uint64_t call = return_address - 1;  // the address after a call may be another line
  const SpoolModule* const module = module_of(call);
  if (module == nullptr) {
    frame = {"?", 0, fmt::format("{:#x}", call)};
    return frame;
  }
  frame = {file_name(*module), 0,
           fmt::format("+{:#x}", call - module->begin + module->file_offset)};
  if (files_->replaced.contains(module->path) || !files_->dwfl) return frame;
  Dwfl_Module* const found = dwfl_addrmodule(files_->dwfl.get(), call);
  if (found == nullptr) return frame;
  if (const char* name = dwfl_module_addrname(found, call)) frame.function = demangled(name);
  auto source = known_source(found, call);
  if (!source) source = files_->units.try_emplace(found, found).first->second.source_of(call);
  if (source) {
    frame.file = source->file;
    frame.line = static_cast<std::uint32_t>(std::max(source->line, 0));
  }
  return frame;
}

std::vector<run::Frame> Symbols::call_path(const std::vector<std::uint64_t>& return_addresses) {
  auto first = return_addresses.begin();
  for (; first != return_addresses.end(); ++first) {
    const SpoolModule* const module = module_of(*first - 1);
    if (module == nullptr || !is_below_the_program(*module)) break;
  }
  std::vector<run::Frame> path;
  for (; first != return_addresses.end(); ++first) path.push_back(frame(*first));
  return path;
}

}  // namespace joulediff::lab
