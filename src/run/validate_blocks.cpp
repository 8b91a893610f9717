#include <set>

#include "run/checks.h"

namespace joulediff::run {

namespace {

Status check_kernels(const Run& run, const KernelSeries& series, std::string_view where) {
  const std::size_t n = series.size();
  if (series.start.size() != n || series.duration.size() != n || series.stream.size() != n ||
      series.op.size() != n || series.step.size() != n ||
      (!series.device.empty() && series.device.size() != n) ||
      (!series.stack.empty() && series.stack.size() != n)) {
    return fault("{}: the columns have different lengths", where);
  }
  for (std::size_t i = 0; i < n; ++i) {
    if (series.kernel[i].index() >= run.kernels.size()) {
      return fault("{}, record {}: kernel {} is not there", where, i, series.kernel[i].value);
    }
    if (!fits(series.op[i], run.operators.size())) {
      return fault("{}, record {}: operator {} is not there", where, i, series.op[i].value);
    }
    if (!fits(series.device_of(i), run.devices.size())) {
      return fault("{}, record {}: device {} is not there", where, i, series.device[i].value);
    }
    if (!fits(series.stack_of(i), run.stacks.size())) {
      return fault("{}, record {}: stack {} is not there", where, i, series.stack[i].value);
    }
    if (series.duration[i] < 0) return fault("{}, record {}: a negative duration", where, i);
    if (!in_time(series.start[i]) || !in_time(series.duration[i])) {
      return fault("{}, record {}: a time out of range", where, i);
    }
    if (i > 0 && series.start[i] < series.start[i - 1]) {
      return fault("{}, record {}: it starts before the one before it", where, i);
    }
  }
  return {};
}

Status check_times(const Run& run, const OperatorTimes& times, std::string_view where) {
  const std::size_t n = times.size();
  if (times.step.size() != n || times.begin.size() != n || times.end.size() != n) {
    return fault("{}: the columns have different lengths", where);
  }
  for (std::size_t i = 0; i < n; ++i) {
    if (times.op[i].index() >= run.operators.size()) {
      return fault("{}, record {}: operator {} is not there", where, i, times.op[i].value);
    }
    if (!window(times.begin[i], times.end[i])) {
      return fault("{}, record {}: it ends before it begins, or out of range", where, i);
    }
  }
  return {};
}

Status check_waits(const Synchronisations& waits, std::string_view where) {
  const std::size_t n = waits.size();
  if (waits.start.size() != n || waits.duration.size() != n || waits.stream.size() != n) {
    return fault("{}: the columns have different lengths", where);
  }
  for (std::size_t i = 0; i < n; ++i) {
    if (!known(waits.kind[i])) return fault("{}, record {}: no known kind", where, i);
    if (waits.duration[i] < 0 || !in_time(waits.start[i]) || !in_time(waits.duration[i])) {
      return fault("{}, record {}: a negative duration, or a time out of range", where, i);
    }
    if (i > 0 && waits.start[i] < waits.start[i - 1]) {
      return fault("{}, record {}: it starts before the one before it", where, i);
    }
  }
  return {};
}

bool below_zero(Source source) {
  return source == Source::nvml_temperature || source == Source::amd_temperature;
}

Status check_sensor(const Series& series, std::string_view where) {
  const std::size_t n = series.time.size();
  if (!known(series.source)) return fault("{}: no known source", where);
  if (series.value.size() != n || (!series.uncertainty.empty() && series.uncertainty.size() != n)) {
    return fault("{}: the columns have different lengths", where);
  }
  for (std::size_t i = 0; i < n; ++i) {
    if (!in_time(series.time[i])) return fault("{}, record {}: a time out of range", where, i);
    if (i > 0 && series.time[i] < series.time[i - 1]) {
      return fault("{}, record {}: its time is before that of the one before it", where, i);
    }
    if (series.value[i] < 0 && !below_zero(series.source)) {
      return fault("{}, record {}: the negative value {}", where, i, series.value[i]);
    }
    if (i > 0 && is_energy_counter(series.source) && series.value[i] < series.value[i - 1]) {
      return fault("{}, record {}: a counter of energy that goes back", where, i);
    }
    if (!series.uncertainty.empty() &&
        (series.uncertainty[i] < 0 || !in_time(series.uncertainty[i]))) {
      return fault("{}, record {}: a negative uncertainty, or out of range", where, i);
    }
  }
  return {};
}

Status check_block(const Run& run, std::size_t id) {
  const Block& block = run.blocks[id];
  if (!window(block.begin, block.end)) return fault("block {} ends before it begins", id);
  for (std::size_t i = 0; i < block.steps.size(); ++i) {
    if (!known(block.steps[i].pass)) return fault("block {}, step {}: no known pass", id, i);
    if (!window(block.steps[i].begin, block.steps[i].end)) {
      return fault("block {}, step {}: it ends before it begins", id, i);
    }
    if (!fits(block.steps[i].inputs, run.inputs.size())) {
      return fault("block {}, step {}: inputs {} are not there", id, i,
                   block.steps[i].inputs.value);
    }
  }
  for (std::size_t i = 0; i < block.replays.size(); ++i) {
    const Replay& replay = block.replays[i];
    if (!known(replay.kind)) return fault("block {}, replay {}: no known kind", id, i);
    const bool has_signature = replay.signature.index() < run.signatures.size();
    if (is_of_operator(replay.kind) ? !has_signature : replay.signature.valid()) {
      return fault("block {}, replay {}: signature {} is not there", id, i, replay.signature.value);
    }
    if (!window(replay.begin, replay.end)) {
      return fault("block {}, replay {}: it ends before it begins", id, i);
    }
    if (replay.count == 0) return fault("block {}, replay {}: no executions", id, i);
  }
  JD_TRY(check_kernels(run, block.order_kernels, fmt::format("block {}, order kernels", id)));
  JD_TRY(check_kernels(run, block.trace_kernels, fmt::format("block {}, trace kernels", id)));
  JD_TRY(check_times(run, block.operator_times, fmt::format("block {}, operator times", id)));
  JD_TRY(check_waits(block.synchronisations, fmt::format("block {}, synchronisations", id)));
  for (std::size_t i = 0; i < block.series.size(); ++i) {
    JD_TRY(check_sensor(block.series[i], fmt::format("block {}, series {} ({})", id, i,
                                                     name(block.series[i].source))));
  }
  return {};
}

// What one launch was read with is in one of its blocks, or it would count twice.
Status check_launches(const Run& run) {
  std::set<std::pair<std::uint32_t, std::string_view>> read;
  for (std::size_t i = 0; i < run.blocks.size(); ++i) {
    const Block& block = run.blocks[i];
    const bool first = read.emplace(block.order, block.host).second;
    if (!first && !block.series.empty()) {
      return fault("block {} has series, which the first block of its launch has", i);
    }
  }
  return {};
}

}  // namespace

Status check_blocks(const Run& run) {
  for (std::size_t i = 0; i < run.blocks.size(); ++i) JD_TRY(check_block(run, i));
  return check_launches(run);
}

}  // namespace joulediff::run
