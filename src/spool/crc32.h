// CRC-32 (IEEE 802.3, reflected), as in zlib's crc32.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace joulediff::spool {

constexpr std::array<std::uint32_t, 256> make_crc_table() {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t i = 0; i < 256; ++i) {
    std::uint32_t x = i;
    for (int bit = 0; bit < 8; ++bit) x = (x >> 1) ^ (x & 1 ? 0xEDB88320u : 0);
    table[i] = x;
  }
  return table;
}

inline constexpr auto kCrcTable = make_crc_table();

constexpr std::uint32_t crc32(std::string_view bytes) {
  std::uint32_t x = 0xFFFFFFFFu;
  for (const char c : bytes) x = (x >> 8) ^ kCrcTable[(x ^ static_cast<unsigned char>(c)) & 0xFF];
  return ~x;
}

}  // namespace joulediff::spool
