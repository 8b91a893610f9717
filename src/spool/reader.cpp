#include <cstring>

#include "spool/crc32.h"
#include "spool/spool.h"

namespace joulediff::spool {

bool read(std::string_view bytes, Contents& contents) {
  contents = {};
  if (bytes.size() < kHeaderBytes || std::memcmp(bytes.data(), kMagic, sizeof kMagic) != 0)
    return false;
  std::size_t at = kHeaderBytes;
  while (at < bytes.size()) {
    const std::string_view rest = bytes.substr(at);
    std::uint32_t size = 0, crc = 0;
    if (rest.size() < 12) break;
    std::memcpy(&size, rest.data(), sizeof size);
    if (rest.size() - 12 < size) break;
    std::memcpy(&crc, rest.data() + 8 + size, sizeof crc);
    if (crc32(rest.substr(0, 8 + size)) != crc) break;
    Record record{};
    std::memcpy(&record.type, rest.data() + 4, sizeof record.type);
    record.payload = rest.substr(8, size);
    contents.records.push_back(record);
    at += 12 + size;
  }
  contents.whole_bytes = at;
  contents.torn = at < bytes.size();
  return true;
}

}  // namespace joulediff::spool
