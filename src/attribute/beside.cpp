// Of these meters only what they saw in all is known: the other lines are unknown, and their joules
// are in `unattributed`.
//
// A meter outside has a clock of its own, and its readings come late. The edges of the load tell by
// how much: the pauses before the program and around its replay, and what its passes draw. What a
// raw series lacks for that is said here, never guessed; the series stays as it was recorded.
#include "attribute/beside.h"

#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "attribute/ledger.h"

namespace joulediff::attribute {
namespace {

const run::Series* series_of(const run::Block& block, const meter::Meter& meter) {
  const auto found = std::ranges::find_if(block.series, [&](const run::Series& series) {
    return series.source == meter.source && series.channel == meter.channels.front();
  });
  return found == block.series.end() ? nullptr : &*found;
}

// What the machine drew, by the finest meter on its own clock.
meter::Load load_of(const run::Block& block) {
  using enum run::Source;
  for (const run::Source source :
       {nvml_power_samples, nvml_power_instant, amd_power, nvml_energy, amd_energy,
        nvml_power_average, rapl_package, host_load, host_cpu})
    if (meter::Load load = meter::Load::drawn(block.series, source); !load.empty()) return load;
  return {};
}

void tell(Diagnostics& diagnostics, Diagnostic one) {
  const auto same = std::ranges::find(diagnostics, one.message, &Diagnostic::message);
  if (same != diagnostics.end())
    ++same->count;
  else
    diagnostics.push_back(std::move(one));
}

std::optional<meter::Alignment> aligned(const run::Series& series, const run::Block& block,
                                        const meter::Meter& meter, Diagnostics& diagnostics) {
  auto found = meter::align(series, load_of(block));
  if (!found)
    tell(diagnostics,
         {Severity::warning, "attribute.meter_not_aligned",
          fmt::format("how late the readings of the {} come is not known, as they are too few or "
                      "follow no edge of the load; it is in no ledger",
                      meter.name),
          1,
          "record again with at least 12 readings of it a process and with pauses in the load, as "
          "the replay pass makes them"});
  return found;
}

// Where they see more than one host, all hosts have the same meter.
bool sees_many_hosts(Boundary boundary) {
  return boundary == Boundary::rack || boundary == Boundary::facility;
}

}  // namespace

void add_beside(const Launch& launch, meter::Meter meter, BlockCosts& costs,
                Diagnostics& diagnostics) {
  std::optional<BlockCosts> sum;
  for (const HostShare& share : host_shares(launch)) {
    if (!meter.channels.empty()) {
      const run::Series* series = series_of(share.block, meter);
      if (series == nullptr || (sum && sees_many_hosts(meter.boundary))) continue;
      if (meter.source == run::Source::external_power) {
        meter.alignment = aligned(*series, share.block, meter, diagnostics);
        if (!meter.alignment) return;
      }
    }
    const auto view = view_beside(share.block, meter, costs.ledger->step_time, diagnostics);
    if (!view) return;
    BlockCosts one = attribute::costs(*view, {}, {}, meter);
    if (sum)
      add(*sum, one);
    else
      sum = std::move(one);
  }
  if (sum) costs.beside.push_back(*sum->ledger);
}

void tell_of_unstated(const run::Run& run, Diagnostics& diagnostics) {
  const std::vector<meter::Meter> known = meter::meters_beside(run);
  for (const run::Block& block : run.blocks)
    for (const run::Series& series : block.series) {
      const bool stated = std::ranges::find(known, run::Source::external_power,
                                            &meter::Meter::source) != known.end();
      if (series.source != run::Source::external_power || stated) continue;
      tell(diagnostics, {Severity::note, "attribute.meter_boundary",
                         fmt::format("the run does not say what the outside meter {} sees; it is "
                                     "in no ledger",
                                     series.channel),
                         1,
                         "record again with --meter-boundary node (or rail, board, host, rack, "
                         "facility)"});
    }
}

bool same_meter(const meter::Meter& a, const meter::Meter& b) {
  return a.boundary == b.boundary && a.source == b.source && a.channels == b.channels;
}

}  // namespace joulediff::attribute
