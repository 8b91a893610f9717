#include "run/tables.h"

#include <fmt/format.h>

#include "base/format.h"

namespace joulediff::run {

Tables tables_of(const Run& run) {
  Tables tables;
  rows<Manifest>(tables) = {run.manifest};
  for (const auto& [key, value] : run.manifest.facts) rows<Fact>(tables).push_back({key, value});
  rows<Setting>(tables) = run.settings;
  rows<Frame>(tables) = run.frames;
  rows<StackNode>(tables) = run.stacks;
  rows<Signature>(tables) = run.signatures;
  rows<Tensor>(tables) = run.tensors;
  rows<Operator>(tables) = run.operators;
  rows<Kernel>(tables) = run.kernels;
  rows<Diagnostic>(tables) = run.diagnostics;
  rows<Device>(tables) = run.devices;
  rows<Inputs>(tables) = run.inputs;
  for (std::size_t b = 0; b < run.blocks.size(); ++b) {
    const Block& block = run.blocks[b];
    const auto id = static_cast<std::uint32_t>(b);
    Block& row = rows<Block>(tables).emplace_back();
    row.order = block.order;
    row.rank = block.rank;
    row.host = block.host;
    row.pid = block.pid;
    row.begin = block.begin;
    row.end = block.end;
    row.exit_status = block.exit_status;
    row.dropped_kernels = block.dropped_kernels;
    for (const Step& step : block.steps) rows<InBlock<Step>>(tables).push_back({id, step});
    for (const Replay& replay : block.replays) {
      rows<InBlock<Replay>>(tables).push_back({id, replay});
    }
  }
  PackedSeries packed = pack_series(run);
  rows<SeriesRow>(tables) = std::move(packed.series);
  rows<Chunk>(tables) = std::move(packed.chunks);
  rows<SampleChunk>(tables) = std::move(packed.samples);
  return tables;
}

Result<Run> run_of(Tables&& tables, std::uint32_t version) {
  if (rows<Manifest>(tables).size() != 1) {
    return fail(ExitCode::bad_input, "table manifest: not exactly one row");
  }
  Run run;
  run.manifest = std::move(rows<Manifest>(tables).front());
  for (Fact& fact : rows<Fact>(tables)) {
    const auto [place, fresh] = run.manifest.facts.emplace(fact.key, std::move(fact.value));
    if (!fresh) {
      return fail(ExitCode::bad_input,
                  fmt::format("table fact: {} is there twice", printable(fact.key)));
    }
  }
  run.settings = std::move(rows<Setting>(tables));
  run.frames = std::move(rows<Frame>(tables));
  run.stacks = std::move(rows<StackNode>(tables));
  run.signatures = std::move(rows<Signature>(tables));
  run.tensors = std::move(rows<Tensor>(tables));
  run.operators = std::move(rows<Operator>(tables));
  run.kernels = std::move(rows<Kernel>(tables));
  run.blocks = std::move(rows<Block>(tables));
  run.diagnostics = std::move(rows<Diagnostic>(tables));
  run.devices = std::move(rows<Device>(tables));
  run.inputs = std::move(rows<Inputs>(tables));
  const auto missing = [](const char* table, std::uint32_t block) {
    return fail(ExitCode::bad_input, fmt::format("table {}: there is no block {}", table, block));
  };
  for (const auto& [block, step] : rows<InBlock<Step>>(tables)) {
    if (block >= run.blocks.size()) return missing("step", block);
    run.blocks[block].steps.push_back(step);
  }
  for (const auto& [block, replay] : rows<InBlock<Replay>>(tables)) {
    if (block >= run.blocks.size()) return missing("replay", block);
    run.blocks[block].replays.push_back(replay);
  }
  JD_TRY(unpack_series({std::move(rows<SeriesRow>(tables)), std::move(rows<Chunk>(tables)),
                        std::move(rows<SampleChunk>(tables))},
                       version, run));
  return run;
}

}  // namespace joulediff::run
