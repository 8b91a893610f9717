#include "attribute/launch.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace joulediff::attribute {
namespace {

run::Block without_kernels(const run::Block& block) {
  run::Block result;
  result.order = block.order;
  result.rank = block.rank;
  result.host = block.host;
  result.begin = block.begin;
  result.end = block.end;
  result.steps = block.steps;
  result.operator_times = block.operator_times;
  result.replays = block.replays;
  return result;
}

// The first block of each host has the series of its meters.
const std::vector<run::Series>& series_on(const Launch& launch, const std::string& host) {
  static const std::vector<run::Series> kNone;
  for (const run::Block* block : launch.ranks)
    if (block->host == host && !block->series.empty()) return block->series;
  return kNone;
}

bool contains(const std::vector<std::string>& all, const std::string& one) {
  return std::ranges::find(all, one) != all.end();
}

// Old files name neither devices nor channels: what there is, is the device's.
std::vector<run::Series> series_of(const run::Run& run, const std::vector<run::Series>& all,
                                   run::DeviceId device, const meter::Meter& meter) {
  const bool alone = run.devices.size() <= 1;
  const std::string& uuid =
      device.valid() ? run.devices[device.index()].uuid : run.manifest.device_uuid;
  const bool named = std::ranges::any_of(all, [&](const run::Series& series) {
    return series.source == meter.source && !series.channel.empty() && series.channel == uuid;
  });
  std::vector<run::Series> result;
  for (const run::Series& series : all)
    if (named ? series.channel == uuid || series.channel.empty()
              : alone && (series.channel.empty() ||
                          (uuid.empty() && contains(meter.channels, series.channel))))
      result.push_back(series);
  return result;
}

struct Execution {
  Nanoseconds start = 0;
  std::uint32_t rank = 0;
  std::uint32_t index = 0;
};

// Kernels of several ranks or devices, taken together for one device.
void merge(const Launch& launch, const std::vector<Recognition>& recognitions,
           std::vector<Execution> executions, DeviceShare& share) {
  std::ranges::sort(executions, {}, [](const Execution& one) {
    return std::tuple(one.start, one.rank, one.index);
  });
  share.merged = std::make_unique<run::KernelSeries>();
  run::KernelSeries& merged = *share.merged;
  Recognition& recognition = share.recognition;
  double all = 0, known = 0;
  for (const Execution& one : executions) {
    const run::KernelSeries& trace = launch.ranks[one.rank]->trace_kernels;
    merged.kernel.push_back(trace.kernel[one.index]);
    merged.start.push_back(one.start);
    merged.duration.push_back(trace.duration[one.index]);
    merged.stream.push_back(trace.stream[one.index]);
    recognition.op.push_back(recognitions[one.rank].op[one.index]);
    recognition.calls.push_back(recognitions[one.rank].calls[one.index]);
    const double seconds = to_seconds(trace.duration[one.index]).value;
    all += seconds;
    if (recognition.op.back().valid()) known += seconds;
  }
  recognition.share = all > 0 ? known / all : 1;
  for (const Recognition& other : recognitions)
    for (std::size_t op = 0; op < other.launches.size(); ++op)
      if (other.launches[op]) recognition.launches[op] = true;
  share.trace = &merged;
}

Recognition recognise(const run::Run& run, const run::Block& block) {
  // A block without an order pass is read with that of another block of the run.
  Templates templates = step_templates(run, block);
  for (const run::Block& other : run.blocks)
    if (templates.size() == 0) templates = step_templates(run, other);
  return recognise(run, block, templates);
}

}  // namespace

std::vector<Launch> launches(const run::Run& run) {
  std::vector<Launch> result;
  std::map<std::uint32_t, std::size_t> numbers;
  for (const run::Block& block : run.blocks) {
    const auto [found, fresh] = numbers.try_emplace(block.order, result.size());
    if (fresh) result.push_back({block.order, {}});
    result[found->second].ranks.push_back(&block);
  }
  for (Launch& launch : result) std::ranges::stable_sort(launch.ranks, {}, &run::Block::rank);
  return result;
}

std::vector<HostShare> host_shares(const Launch& launch) {
  std::vector<HostShare> result;
  std::map<std::string, std::size_t> numbers;
  for (const run::Block* block : launch.ranks) {
    const auto [found, fresh] = numbers.try_emplace(block->host, result.size());
    if (fresh) {
      HostShare& share = result.emplace_back();
      share.block = without_kernels(*block);
      share.block.series = series_on(launch, block->host);
    }
    result[found->second].ranks.push_back(block);
  }
  return result;
}

std::vector<DeviceShare> device_shares(const run::Run& run, const Launch& launch,
                                       const meter::Meter& meter) {
  const run::DeviceId only = run.devices.size() == 1 ? run::DeviceId(0) : run::DeviceId();
  std::map<std::pair<run::DeviceId, std::string>, std::map<std::uint32_t, double>> seconds;
  for (std::uint32_t rank = 0; rank < launch.ranks.size(); ++rank) {
    const run::KernelSeries& trace = launch.ranks[rank]->trace_kernels;
    std::map<run::DeviceId, double> busy;
    double* sum = nullptr;
    for (std::size_t i = 0; i < trace.size(); ++i) {
      const bool same = i > 0 && trace.device_of(i) == trace.device_of(i - 1);
      if (!same) sum = &busy[trace.device_of(i).valid() ? trace.device_of(i) : only];
      *sum += to_seconds(trace.duration[i]).value;
    }
    // Devices of two hosts that have no name are two devices.
    for (const auto& [device, length] : busy)
      seconds[{device, device.valid() ? "" : launch.ranks[rank]->host}][rank] = length;
  }
  std::vector<Recognition> recognitions;
  recognitions.reserve(launch.ranks.size());
  for (const run::Block* block : launch.ranks) recognitions.push_back(recognise(run, *block));

  std::vector<DeviceShare> result;
  for (const auto& [key, by_rank] : seconds) {
    const auto& [device, host] = key;
    const std::uint32_t lead =
        std::ranges::max_element(by_rank, {}, [](const auto& one) { return one.second; })->first;
    const run::Block& block = *launch.ranks[lead];
    DeviceShare& share = result.emplace_back();
    share.name = device.valid() ? run.devices[device.index()].uuid : run.manifest.device;
    share.block = without_kernels(block);
    share.block.series = series_of(run, series_on(launch, block.host), device, meter);
    share.metered = std::ranges::find(share.block.series, meter.source, &run::Series::source) !=
                    share.block.series.end();
    share.block.replays.clear();  // those of every rank were on this device
    for (const auto& [rank, busy] : by_rank) {
      const run::Block& own = *launch.ranks[rank];
      share.block.dropped_kernels += own.dropped_kernels;
      share.block.replays.insert(share.block.replays.end(), own.replays.begin(), own.replays.end());
    }
    if (launch.ranks.size() == 1 && seconds.size() == 1) {
      share.trace = &block.trace_kernels;
      share.recognition = std::move(recognitions[lead]);
      continue;
    }
    std::vector<Execution> executions;
    for (const auto& [rank, busy] : by_rank) {
      const run::KernelSeries& trace = launch.ranks[rank]->trace_kernels;
      for (std::uint32_t i = 0; i < trace.size(); ++i)
        if ((trace.device_of(i).valid() ? trace.device_of(i) : only) == device)
          executions.push_back({trace.start[i], rank, i});
    }
    share.recognition.launches = recognitions[lead].launches;
    share.recognition.marks = recognitions[lead].marks;
    merge(launch, recognitions, std::move(executions), share);
  }
  return result;
}

}  // namespace joulediff::attribute
