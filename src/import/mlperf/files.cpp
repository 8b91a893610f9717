#include "import/mlperf/files.h"

#include <algorithm>
#include <array>
#include <nettle/sha1.h>

#include <fmt/format.h>

#include "base/file.h"

namespace joulediff::mlperf {
namespace {

constexpr std::uint64_t kMaxFileBytes = std::uint64_t{4} << 30;

}  // namespace

std::string sha1(std::string_view bytes) {
  sha1_ctx context;
  sha1_init(&context);
  sha1_update(&context, bytes.size(), reinterpret_cast<const std::uint8_t*>(bytes.data()));
  std::array<std::uint8_t, SHA1_DIGEST_SIZE> digest{};
  sha1_digest(&context, digest.size(), digest.data());
  std::string text;
  for (const std::uint8_t byte : digest) text += fmt::format("{:02x}", byte);
  return text;
}

std::optional<std::string> Files::read(const std::string& name) {
  if (!has(name)) return {};
  Result<std::string> bytes = read_file((folder_ / name).string(), kMaxFileBytes);
  if (bytes) return std::move(*bytes);
  submission_.diagnostics.push_back({Severity::error, "mlperf.unreadable", bytes.error().message});
  return {};
}

std::optional<std::string> Files::require(const std::string& name, std::string_view what_for) {
  if (!has(name)) {
    submission_.diagnostics.push_back({Severity::error, "mlperf.missing_file",
                                       fmt::format("{} is missing: {}; file it", name, what_for)});
    return {};
  }
  return read(name);
}

bool Files::has(const std::string& name) const {
  std::error_code error;
  return std::filesystem::exists(std::filesystem::symlink_status(folder_ / name, error));
}

std::vector<std::string> Files::list(const std::string& name) const {
  std::vector<std::string> names;
  std::error_code error;
  for (auto entry = std::filesystem::directory_iterator(folder_ / name, error);
       !error && entry != std::filesystem::directory_iterator(); entry.increment(error))
    names.push_back(entry->path().filename().string());
  std::ranges::sort(names);
  return names;
}

}  // namespace joulediff::mlperf
