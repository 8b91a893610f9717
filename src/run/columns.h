// Compressed columns: how a long series lies in the file, at most kChunkRecords records at a time.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace joulediff::run {

constexpr std::size_t kChunkRecords = 65536;

// Each value as its difference from the last value with the same context (from the last value of
// all, where `contexts` is empty), zigzag, varint, zstd. At most kChunkRecords values.
std::string encode_integers(std::span<const std::int64_t> values,
                            std::span<const std::int64_t> contexts);

// Appends `records` values to `values`; false, without harm, where the bytes are not such a chunk.
bool decode_integers(std::string_view bytes, std::size_t records,
                     std::span<const std::int64_t> contexts, std::vector<std::int64_t>& values);

// Whole samples one after another, each as four planes (the lowest bytes of all its floats first),
// zstd. At most kChunkRecords floats.
std::string encode_samples(std::span<const std::span<const float>> samples);

// Fills the samples, whose sizes are known. False where the bytes are not such a chunk.
bool decode_samples(std::string_view bytes, std::span<const std::span<float>> samples);

}  // namespace joulediff::run
