// A series is a list of columns. Executions on a device repeat: the same kernel lasts about as long
// and follows about the same gap each time. So the start of a kernel is written as its gap from the
// end of the one before, and gaps and durations as differences from those of the last execution of
// the same kernel (its context). What remains are small numbers, and the ids themselves repeat with
// the period of a step, which zstd finds.
#include "run/series.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <span>
#include <string_view>

#include <fmt/format.h>

#include "run/columns.h"
#include "run/run_file.h"

namespace joulediff::run {

namespace {

using Column = std::vector<std::int64_t>;

struct ColumnSpec {
  std::string_view name;
  std::optional<std::size_t> context;  // index of an earlier column
};

std::span<const ColumnSpec> columns_of(const SeriesRow& row, std::uint32_t version) {
  static constexpr std::array<ColumnSpec, 8> kKernels{{{"kernel", {}},
                                                       {"duration", 0},
                                                       {"gap", 0},
                                                       {"stream", {}},
                                                       {"op", {}},
                                                       {"step", {}},
                                                       {"device", {}},
                                                       {"stack", {}}}};
  static constexpr std::array<ColumnSpec, 4> kWaits{
      {{"kind", {}}, {"duration", 0}, {"gap", 0}, {"stream", {}}}};
  static constexpr std::array<ColumnSpec, 4> kTimes{
      {{"op", {}}, {"duration", 0}, {"gap", 0}, {"step", {}}}};
  static constexpr std::array<ColumnSpec, 3> kSensor{
      {{"time", {}}, {"value", {}}, {"uncertainty", {}}}};
  if (row.kind == SeriesKind::operator_times) return kTimes;
  if (row.kind == SeriesKind::sensor) return std::span(kSensor).first(row.uncertain ? 3 : 2);
  if (row.kind == SeriesKind::synchronisations) return kWaits;
  return std::span(kKernels).first(version < 2 ? 6 : 8);
}

// Differences and sums that wrap: whatever a hostile file holds, the arithmetic is defined.
std::int64_t minus(std::int64_t a, std::int64_t b) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) - static_cast<std::uint64_t>(b));
}
std::int64_t plus(std::int64_t a, std::int64_t b) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
}

Column gaps(const Column& start, const Column& duration) {
  Column out;
  out.reserve(start.size());
  std::int64_t end = 0;
  for (std::size_t i = 0; i < start.size(); ++i) {
    out.push_back(minus(start[i], end));
    end = plus(start[i], duration[i]);
  }
  return out;
}

Column starts(const Column& gap, const Column& duration) {
  Column out;
  out.reserve(gap.size());
  std::int64_t end = 0;
  for (std::size_t i = 0; i < gap.size(); ++i) {
    out.push_back(plus(end, gap[i]));
    end = plus(out.back(), duration[i]);
  }
  return out;
}

Column widen(const std::vector<std::uint32_t>& values) {
  return {values.begin(), values.end()};
}
template <class Tag>
Column widen(const std::vector<Id<Tag>>& ids) {
  Column out;
  out.reserve(ids.size());
  for (const Id<Tag> id : ids) out.push_back(id.value);
  return out;
}

// None of n, where a column of ids is left out.
template <class Tag>
Column widen(const std::vector<Id<Tag>>& ids, std::size_t n) {
  return ids.empty() ? Column(n, Id<Tag>::kNone) : widen(ids);
}

bool narrow(const Column& values, std::vector<std::uint32_t>& out) {
  constexpr std::int64_t kMax = std::numeric_limits<std::uint32_t>::max();
  for (const std::int64_t value : values) {
    if (value < 0 || value > kMax) return false;
    out.push_back(static_cast<std::uint32_t>(value));
  }
  return true;
}
template <class Tag>
bool narrow(const Column& values, std::vector<Id<Tag>>& out) {
  std::vector<std::uint32_t> ids;
  if (!narrow(values, ids)) return false;
  for (const std::uint32_t id : ids) out.emplace_back(std::size_t{id});
  return true;
}

// A column of ids that are all none is left out.
template <class Tag>
bool narrow_known(const Column& values, std::vector<Id<Tag>>& out) {
  const bool known = std::ranges::any_of(
      values, [](std::int64_t value) { return value != std::int64_t{Id<Tag>::kNone}; });
  return !known || narrow(values, out);
}

void pack(PackedSeries& packed, const SeriesRow& row, const std::vector<Column>& columns) {
  const auto specs = columns_of(row, kFormatVersion);
  const auto series = static_cast<std::uint32_t>(packed.series.size());
  packed.series.push_back(row);
  for (std::size_t c = 0; c < specs.size(); ++c) {
    const std::span<const std::int64_t> values = columns[c];
    for (std::size_t begin = 0; begin < values.size(); begin += kChunkRecords) {
      const std::size_t n = std::min(kChunkRecords, values.size() - begin);
      std::span<const std::int64_t> contexts;
      if (specs[c].context) contexts = std::span(columns[*specs[c].context]).subspan(begin, n);
      packed.chunks.push_back({series,
                               std::string(specs[c].name),
                               static_cast<std::uint32_t>(n),
                               {encode_integers(values.subspan(begin, n), contexts)}});
    }
  }
}

void pack_kernels(PackedSeries& packed, std::uint32_t block, SeriesKind kind,
                  const KernelSeries& series) {
  if (series.size() == 0) return;
  pack(packed, {.block = block, .kind = kind, .records = series.size()},
       {widen(series.kernel), series.duration, gaps(series.start, series.duration),
        widen(series.stream), widen(series.op), widen(series.step),
        widen(series.device, series.size()), widen(series.stack, series.size())});
}

void pack_waits(PackedSeries& packed, std::uint32_t block, const Synchronisations& waits) {
  if (waits.size() == 0) return;
  Column kind;
  for (const SynchronisationKind one : waits.kind) kind.push_back(static_cast<std::int64_t>(one));
  pack(packed, {.block = block, .kind = SeriesKind::synchronisations, .records = waits.size()},
       {kind, waits.duration, gaps(waits.start, waits.duration), widen(waits.stream)});
}

void pack_times(PackedSeries& packed, std::uint32_t block, const OperatorTimes& times) {
  if (times.size() == 0) return;
  Column duration;
  for (std::size_t i = 0; i < times.size(); ++i) {
    duration.push_back(minus(times.end[i], times.begin[i]));
  }
  pack(packed, {.block = block, .kind = SeriesKind::operator_times, .records = times.size()},
       {widen(times.op), duration, gaps(times.begin, duration), widen(times.step)});
}

void pack_sensor(PackedSeries& packed, std::uint32_t block, const Series& series) {
  pack(packed,
       {.block = block,
        .kind = SeriesKind::sensor,
        .source = series.source,
        .uncertain = !series.uncertainty.empty(),
        .records = series.time.size(),
        .channel = series.channel},
       {series.time, series.value, series.uncertainty});
}

void pack_samples(PackedSeries& packed, const std::vector<Tensor>& tensors) {
  std::vector<std::span<const float>> samples;
  std::size_t records = 0;
  const auto flush = [&] {
    if (records == 0) return;
    packed.samples.push_back({static_cast<std::uint32_t>(records), {encode_samples(samples)}});
    samples.clear();
    records = 0;
  };
  for (const Tensor& tensor : tensors) {
    if (records + tensor.sample.size() > kChunkRecords) flush();
    samples.emplace_back(tensor.sample);
    records += tensor.sample.size();
  }
  flush();
}

bool unpack_kernels(std::vector<Column>& columns, KernelSeries& out) {
  if (out.size() != 0) return false;  // twice
  out.start = starts(columns[2], columns[1]);
  out.duration = std::move(columns[1]);
  return narrow(columns[0], out.kernel) && narrow(columns[3], out.stream) &&
         narrow(columns[4], out.op) && narrow(columns[5], out.step) &&
         (columns.size() < 8 ||
          (narrow_known(columns[6], out.device) && narrow_known(columns[7], out.stack)));
}

bool unpack_waits(std::vector<Column>& columns, Synchronisations& out) {
  if (out.size() != 0) return false;
  out.start = starts(columns[2], columns[1]);
  out.duration = std::move(columns[1]);
  for (const std::int64_t kind : columns[0]) {
    if (kind < 0 || kind >= std::ssize(kNames<SynchronisationKind>)) return false;
    out.kind.push_back(static_cast<SynchronisationKind>(kind));
  }
  return narrow(columns[3], out.stream);
}

bool unpack_times(const std::vector<Column>& columns, OperatorTimes& out) {
  if (out.size() != 0) return false;
  out.begin = starts(columns[2], columns[1]);
  for (std::size_t i = 0; i < out.begin.size(); ++i) {
    out.end.push_back(plus(out.begin[i], columns[1][i]));
  }
  return narrow(columns[0], out.op) && narrow(columns[3], out.step);
}

bool unpack_series(const SeriesRow& row, std::vector<Column>& columns, Block& block) {
  switch (row.kind) {
    case SeriesKind::order_kernels: return unpack_kernels(columns, block.order_kernels);
    case SeriesKind::trace_kernels: return unpack_kernels(columns, block.trace_kernels);
    case SeriesKind::operator_times: return unpack_times(columns, block.operator_times);
    case SeriesKind::synchronisations: return unpack_waits(columns, block.synchronisations);
    case SeriesKind::sensor: break;
  }
  Series& series = block.series.emplace_back();
  series.source = row.source;
  series.channel = row.channel;
  series.time = std::move(columns[0]);
  series.value = std::move(columns[1]);
  if (row.uncertain) series.uncertainty = std::move(columns[2]);
  return true;
}

Status unpack_samples(const std::vector<SampleChunk>& chunks, std::vector<Tensor>& tensors) {
  std::size_t next = 0;  // tensor
  for (std::size_t c = 0; c < chunks.size(); ++c) {
    std::vector<std::span<float>> samples;
    std::size_t records = 0;
    while (next < tensors.size() && records + tensors[next].sample.size() <= chunks[c].records) {
      samples.emplace_back(tensors[next].sample);
      records += tensors[next].sample.size();
      ++next;
    }
    if (records != chunks[c].records || !decode_samples(chunks[c].data.bytes, samples)) {
      return fail(ExitCode::bad_input, fmt::format("table sample, row {}: not a sample chunk", c));
    }
  }
  for (; next < tensors.size(); ++next) {
    if (!tensors[next].sample.empty()) {
      return fail(ExitCode::bad_input, fmt::format("the sample of tensor {} is missing", next));
    }
  }
  return {};
}

}  // namespace

PackedSeries pack_series(const Run& run) {
  PackedSeries packed;
  for (std::size_t b = 0; b < run.blocks.size(); ++b) {
    const Block& block = run.blocks[b];
    const auto id = static_cast<std::uint32_t>(b);
    pack_kernels(packed, id, SeriesKind::order_kernels, block.order_kernels);
    pack_kernels(packed, id, SeriesKind::trace_kernels, block.trace_kernels);
    pack_times(packed, id, block.operator_times);
    pack_waits(packed, id, block.synchronisations);
    for (const Series& series : block.series) pack_sensor(packed, id, series);
  }
  pack_samples(packed, run.tensors);
  return packed;
}

Status unpack_series(const PackedSeries& packed, std::uint32_t version, Run& run) {
  std::uint64_t total = 0;
  std::size_t next = 0;  // chunk
  for (std::size_t s = 0; s < packed.series.size(); ++s) {
    const SeriesRow& row = packed.series[s];
    const auto bad = [&](std::string_view why) {
      return fail(ExitCode::bad_input, fmt::format("table series, row {}: {}", s, why));
    };
    if (row.block >= run.blocks.size()) return bad("there is no such block");
    const auto specs = columns_of(row, version);
    if (row.records > kMaxSeriesValues) return bad("more records than a file may hold");
    total += row.records * specs.size();
    if (total > kMaxSeriesValues) return bad("more records than a file may hold");

    std::vector<Column> columns(specs.size());
    for (std::size_t c = 0; c < specs.size(); ++c) {
      while (columns[c].size() < row.records) {
        const std::size_t begin = columns[c].size();
        const std::size_t n = std::min<std::size_t>(kChunkRecords, row.records - begin);
        if (next >= packed.chunks.size()) return bad("its chunks are missing");
        const Chunk& chunk = packed.chunks[next++];
        std::span<const std::int64_t> contexts;
        if (specs[c].context) contexts = std::span(columns[*specs[c].context]).subspan(begin, n);
        if (chunk.series != s || chunk.column != specs[c].name || chunk.records != n ||
            !decode_integers(chunk.data.bytes, n, contexts, columns[c])) {
          return bad(fmt::format("chunk {} is not its next chunk", next - 1));
        }
      }
    }
    if (!unpack_series(row, columns, run.blocks[row.block])) {
      return bad("twice, or an id is out of range");
    }
  }
  if (next != packed.chunks.size()) {
    return fail(ExitCode::bad_input,
                fmt::format("table chunk, row {}: it belongs to no series", next));
  }
  return unpack_samples(packed.samples, run.tensors);
}

}  // namespace joulediff::run
