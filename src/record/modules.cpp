#include "record/modules.h"

#include <cstring>
#include <exception>
#include <link.h>
#include <string_view>
#include <unistd.h>

namespace joulediff::record {
namespace {

std::string path_of(const dl_phdr_info& info) {
  if (info.dlpi_name != nullptr && *info.dlpi_name != '\0') return info.dlpi_name;
  char path[4096];
  const ssize_t size = readlink("/proc/self/exe", path, sizeof path);
  return size > 0 ? std::string(path, static_cast<std::size_t>(size)) : "";
}

std::string hexadecimal(const unsigned char* bytes, std::size_t count) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (std::size_t i = 0; i < count; ++i) {
    text += kDigits[bytes[i] >> 4];
    text += kDigits[bytes[i] & 15];
  }
  return text;
}

std::string build_id_of(const dl_phdr_info& info) {
  for (int i = 0; i < info.dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = info.dlpi_phdr[i];
    if (segment.p_type != PT_NOTE) continue;
    const auto* const notes =
        reinterpret_cast<const unsigned char*>(info.dlpi_addr + segment.p_vaddr);
    const std::size_t align = segment.p_align == 8 ? 8 : 4;
    const auto padded = [&](std::size_t size) { return (size + align - 1) / align * align; };
    std::size_t at = 0;
    while (at + sizeof(ElfW(Nhdr)) <= segment.p_memsz) {
      ElfW(Nhdr) note;
      std::memcpy(&note, notes + at, sizeof note);
      const std::size_t name = at + sizeof note, value = name + padded(note.n_namesz);
      if (value + note.n_descsz > segment.p_memsz) break;
      if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 &&
          std::memcmp(notes + name, "GNU", 4) == 0)
        return hexadecimal(notes + value, note.n_descsz);
      at = value + padded(note.n_descsz);
    }
  }
  return "";
}

// What is thrown here would have to pass through the C library.
int add(dl_phdr_info* info, std::size_t, void* out) noexcept {
  try {
    auto& modules = *static_cast<std::vector<Module>*>(out);
    for (int i = 0; i < info->dlpi_phnum; ++i) {
      const ElfW(Phdr)& segment = info->dlpi_phdr[i];
      if (segment.p_type != PT_LOAD || (segment.p_flags & PF_X) == 0) continue;
      const std::uint64_t begin = info->dlpi_addr + segment.p_vaddr;
      modules.push_back(
          {begin, begin + segment.p_memsz, segment.p_offset, path_of(*info), build_id_of(*info)});
    }
    return 0;
  } catch (const std::exception&) {
    return 1;
  }
}

}  // namespace

std::vector<Module> modules_of_process() {
  std::vector<Module> modules;
  dl_iterate_phdr(add, &modules);
  return modules;
}

}  // namespace joulediff::record
