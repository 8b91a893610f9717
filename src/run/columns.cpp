#include "run/columns.h"

#include <bit>
#include <unordered_map>

#include <zstd.h>

#include "base/check.h"

namespace joulediff::run {

namespace {

constexpr int kLevel = 12;
constexpr std::size_t kLongestVarint = 10;

std::string compress(std::string_view raw) {
  std::string out(ZSTD_compressBound(raw.size()), '\0');
  const std::size_t size = ZSTD_compress(out.data(), out.size(), raw.data(), raw.size(), kLevel);
  JD_CHECK(!ZSTD_isError(size));
  out.resize(size);
  return out;
}

// False unless the frame states a size of at most `limit` and keeps its word: what a hostile file
// can make us allocate is known beforehand.
bool decompress(std::string_view bytes, std::size_t limit, std::string& raw) {
  const unsigned long long size = ZSTD_getFrameContentSize(bytes.data(), bytes.size());
  if (size == ZSTD_CONTENTSIZE_ERROR || size == ZSTD_CONTENTSIZE_UNKNOWN || size > limit) {
    return false;
  }
  raw.resize(static_cast<std::size_t>(size));
  const std::size_t got = ZSTD_decompress(raw.data(), raw.size(), bytes.data(), bytes.size());
  return !ZSTD_isError(got) && got == raw.size();
}

void put_varint(std::string& out, std::uint64_t value) {
  while (value >= 0x80) {
    out.push_back(static_cast<char>(value | 0x80));
    value >>= 7;
  }
  out.push_back(static_cast<char>(value));
}

bool get_varint(std::string_view& rest, std::uint64_t& value) {
  value = 0;
  for (unsigned shift = 0; shift < 64 && !rest.empty(); shift += 7) {
    const auto byte = static_cast<unsigned char>(rest.front());
    rest.remove_prefix(1);
    value |= static_cast<std::uint64_t>(byte & 0x7F) << shift;
    if (byte < 0x80) return true;
  }
  return false;
}

// Unsigned arithmetic throughout: the difference of any two values wraps and unwraps.
std::uint64_t zigzag(std::uint64_t difference) {
  return (difference << 1) ^ (difference >> 63 ? ~std::uint64_t{0} : 0);
}
std::uint64_t unzigzag(std::uint64_t code) {
  return (code >> 1) ^ (code & 1 ? ~std::uint64_t{0} : 0);
}

// The last value of each context.
class Predictor {
 public:
  explicit Predictor(std::span<const std::int64_t> contexts) : contexts_(contexts) {}
  std::uint64_t& last(std::size_t i) { return contexts_.empty() ? all_ : by_[contexts_[i]]; }

 private:
  std::span<const std::int64_t> contexts_;
  std::uint64_t all_ = 0;
  std::unordered_map<std::int64_t, std::uint64_t> by_;
};

}  // namespace

std::string encode_integers(std::span<const std::int64_t> values,
                            std::span<const std::int64_t> contexts) {
  JD_CHECK(values.size() <= kChunkRecords);
  JD_CHECK(contexts.empty() || contexts.size() == values.size());
  std::string raw;
  Predictor predictor(contexts);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto value = static_cast<std::uint64_t>(values[i]);
    std::uint64_t& last = predictor.last(i);
    put_varint(raw, zigzag(value - last));
    last = value;
  }
  return compress(raw);
}

bool decode_integers(std::string_view bytes, std::size_t records,
                     std::span<const std::int64_t> contexts, std::vector<std::int64_t>& values) {
  if (records > kChunkRecords) return false;
  std::string raw;
  if (!decompress(bytes, records * kLongestVarint, raw) || raw.size() < records) return false;
  Predictor predictor(contexts);
  std::string_view rest = raw;
  for (std::size_t i = 0; i < records; ++i) {
    std::uint64_t code = 0;
    if (!get_varint(rest, code)) return false;
    std::uint64_t& last = predictor.last(i);
    last += unzigzag(code);
    values.push_back(static_cast<std::int64_t>(last));
  }
  return rest.empty();
}

std::string encode_samples(std::span<const std::span<const float>> samples) {
  std::string raw;
  for (const std::span<const float> sample : samples) {
    for (unsigned shift = 0; shift < 32; shift += 8) {
      for (const float value : sample) {
        raw.push_back(static_cast<char>(std::bit_cast<std::uint32_t>(value) >> shift & 0xFF));
      }
    }
  }
  JD_CHECK(raw.size() <= kChunkRecords * sizeof(float));
  return compress(raw);
}

bool decode_samples(std::string_view bytes, std::span<const std::span<float>> samples) {
  std::size_t size = 0;
  for (const std::span<float> sample : samples) size += sample.size() * sizeof(float);
  std::string raw;
  if (size > kChunkRecords * sizeof(float) || !decompress(bytes, size, raw) || raw.size() != size) {
    return false;
  }
  const char* begin = raw.data();
  for (const std::span<float> sample : samples) {
    for (std::size_t i = 0; i < sample.size(); ++i) {
      std::uint32_t bits = 0;
      for (unsigned plane = 0; plane < 4; ++plane) {
        const auto byte = static_cast<unsigned char>(begin[plane * sample.size() + i]);
        bits |= static_cast<std::uint32_t>(byte) << (8 * plane);
      }
      sample[i] = std::bit_cast<float>(bits);
    }
    begin += sample.size() * sizeof(float);
  }
  return true;
}

}  // namespace joulediff::run
