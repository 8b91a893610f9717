#include "record/raw_capture.h"

#include <cstdio>
#include <cstdlib>
#include <map>
#include <unistd.h>

namespace joulediff::record {
namespace {

void write_file(const std::string& path, const void* bytes, std::size_t size) {
  FILE* const file = std::fopen(path.c_str(), "wbe");
  if (file == nullptr) return;
  std::fwrite(bytes, 1, size, file);
  std::fclose(file);
}

}  // namespace

void RawCapture::start(std::uint32_t cupti_version) {
  const char* const folder = std::getenv("JOULEDIFF_CUPTI_RAW");
  folder_ = folder != nullptr ? folder : "";
  version_ = cupti_version;
}

void RawCapture::keep(const cupti::Functions& cupti, std::uint8_t* buffer, std::size_t valid) {
  if (folder_.empty() || valid == 0) return;
  std::map<const char*, std::string> names;
  cupti::Activity* record = nullptr;
  while (cupti.ActivityGetNextRecord(buffer, valid, &record) == cupti::kSuccess) {
    if (record->kind != cupti::kConcurrentKernel) continue;
    const char* const name = reinterpret_cast<const cupti::KernelActivity*>(record)->name;
    if (name != nullptr) names.emplace(name, name);
  }
  std::string lines;
  for (const auto& [pointer, name] : names) {
    char address[32];
    std::snprintf(address, sizeof address, "%zx ", reinterpret_cast<std::size_t>(pointer));
    lines += address + name + '\n';
  }
  const std::string stem = folder_ + "/" + std::to_string(getpid()) + "-" +
                           std::to_string(++count_) + ".v" + std::to_string(version_);
  write_file(stem + ".buf", buffer, valid);
  write_file(stem + ".names", lines.data(), lines.size());
}

}  // namespace joulediff::record
