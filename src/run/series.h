// The long series of a run as rows of compressed chunks, and back (docs/file-format.md).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "run/model.h"
#include "run/names.h"

namespace joulediff::run {

// What a file may hold of all series together: bounds the memory that a hostile file can ask for.
constexpr std::uint64_t kMaxSeriesValues = std::uint64_t{1} << 27;

enum class SeriesKind : std::uint8_t {
  order_kernels = 0,
  trace_kernels = 1,
  operator_times = 2,
  sensor = 3,
  synchronisations = 4
};
template <>
inline constexpr std::array<std::string_view, 5> kNames<SeriesKind>{
    "order_kernels", "trace_kernels", "operator_times", "sensor", "synchronisations"};

struct Blob {
  std::string bytes;
};

struct SeriesRow {
  std::uint32_t block = 0;
  SeriesKind kind = SeriesKind::sensor;
  Source source = Source::nvml_energy;  // of a sensor
  bool uncertain = false;               // a sensor with a column of uncertainty
  std::uint64_t records = 0;
  std::string channel{};  // of a sensor
};

struct Chunk {
  std::uint32_t series = 0;
  std::string column;
  std::uint32_t records = 0;
  Blob data;
};

struct SampleChunk {
  std::uint32_t records = 0;  // floats
  Blob data;
};

struct PackedSeries {
  std::vector<SeriesRow> series;
  std::vector<Chunk> chunks;
  std::vector<SampleChunk> samples;
};

PackedSeries pack_series(const Run& run);

// Fills the series of the run's blocks and the samples of its tensors, whose sizes are known.
Status unpack_series(const PackedSeries& packed, std::uint32_t version, Run& run);

}  // namespace joulediff::run
