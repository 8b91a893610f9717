// The recording of a pair. Blocks are fresh processes in the order A B B A, so that a slow drift of
// the machine (temperature, clocks, neighbours) weighs on both sides alike. The first block of each
// side makes the values pass; what it costs beyond replay is then known, and the replay of every
// block gets an even share of what the budget leaves after those costs.
#include "lab/record.h"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <sstream>
#include <sys/random.h>
#include <unistd.h>

#include <fmt/format.h>

#include "base/check.h"
#include "base/format.h"
#include "base/progress.h"
#include "device/host.h"
#include "lab/budget.h"
#include "lab/clock.h"
#include "lab/diagnostics.h"
#include "lab/output_file.h"
#include "lab/pack.h"
#include "lab/profiles.h"
#include "lab/signals.h"
#include "lab/spool_folder.h"
#include "lab/stated.h"
#include "run/run_file.h"

namespace joulediff::lab {
namespace {

namespace fs = std::filesystem;

constexpr Nanoseconds kEnding = kSecond;  // a program's end after its replay, and packing
constexpr double kMostWithin = 0.97;      // of a block's progress before it has ended

std::string random_id() {
  // Not std::random_device: a static libstdc++ may take it from a glibc newer than the wheel's.
  std::uint64_t random = 0;
  JD_CHECK(getrandom(&random, sizeof random, 0) == sizeof random);
  return fmt::format("{:016x}", random);
}

std::string label_of(const std::vector<std::string>& command) {
  for (const std::string& argument : command)
    if (argument.ends_with(".py")) return fs::path(argument).stem().string();
  return fs::path(command.front()).filename().string();
}

std::string joined(const std::vector<std::string>& command) {
  std::string line;
  for (const std::string& argument : command) {
    const bool plain = !argument.empty() &&
                       argument.find_first_of(" \t\n\"'\\$`*?;&|<>(){}[]!#~") == std::string::npos;
    std::string quoted = argument;
    if (!plain) {
      for (std::size_t at = 0; (at = quoted.find('\'', at)) != std::string::npos; at += 4)
        quoted.replace(at, 1, "'\\''");
      quoted = "'" + quoted + "'";
    }
    line += (line.empty() ? "" : " ") + quoted;
  }
  return line;
}

class Recording {
 public:
  Recording(const RecordOptions& options, const Installation& installation, const Meters& meters)
      : options_(options),
        installation_(installation),
        meters_(meters),
        budget_(static_cast<Nanoseconds>(options.budget.value * 1e9)),
        order_(block_order(options.sides.size(), options.blocks)),
        costs_(options.sides.size(), -1),
        progress_(options.quiet) {
    for (const RecordSide& side : options.sides)
      report_.sides.push_back({.output = side.output, .run = {}, .spools = {}, .replay = {}});
  }

  Result<RecordReport> record() {
    for (RecordedSide& side : report_.sides) {
      if (options_.resume) JD_TRY(go_on_with(side));
      JD_ASSIGN(SpoolFolder folder, SpoolFolder::make(side.output));
      if (options_.keep_spool) {
        folder.keep();
        side.spools.push_back(folder.path().string());
      }
      folders_.push_back(std::move(folder));
    }
    try {
      return record_all();
    } catch (const std::exception& error) {  // no memory: what was recorded stays
      std::string message = fmt::format("the run could not be made: {}", error.what());
      for (std::size_t side = 0; side < folders_.size(); ++side) {
        folders_[side].keep();
        message +=
            fmt::format("; afterwards {} makes the run of what was recorded",
                        recovery_of(folders_[side].path().string(), report_.sides[side].output));
      }
      return fail(ExitCode::environment, std::move(message));
    }
  }

 private:
  Result<RecordReport> record_all() {
    for (unsigned block = 0; block < order_.size() && !report_.interrupted; ++block) {
      const Status status = record_block(block);
      if (status) continue;
      // With nothing on one side there is nothing to keep but the error.
      const bool each_has_one = std::all_of(report_.sides.begin(), report_.sides.end(),
                                            [](const auto& s) { return !s.run.blocks.empty(); });
      if (!each_has_one && !report_.interrupted) return fail(status.error());
      diagnose(report_.sides[order_[block]].run, Severity::warning, "record.block_failed",
               "a later block was not recorded: " + status.error().message);
      break;
    }
    progress_.finish();
    return write();
  }

  Nanoseconds left() const { return budget_ - (now() - begin_); }

  // The blocks that are there come before those that are recorded now, on the same clock.
  Status go_on_with(RecordedSide& side) {
    if (!fs::exists(side.output)) return {};
    JD_ASSIGN(side.run, run::read_run(side.output));
    const auto boot = side.run.manifest.facts.find(kBootFact);
    if (boot == side.run.manifest.facts.end() || boot->second != device::boot_id())
      return fail(ExitCode::environment,
                  side.output +
                      ": it was recorded on another machine or before this one was "
                      "restarted, so their clocks are not one: record it anew (--force)");
    for (const run::Block& block : side.run.blocks)
      first_order_ = std::max(first_order_, block.order + 1);
    return {};
  }

  Status record_block(unsigned block) {
    const std::size_t side = order_[block];
    RecordedSide& recorded = report_.sides[side];
    const Nanoseconds block_begin = now();
    Launch plan;
    JD_ASSIGN(plan.spool, folders_[side].make_block(block));
    plan.command = options_.sides[side].command;
    plan.settings = options_.settings;
    plan.stop = options_.stop;
    plan.facts = to_json(stated(side));
    plan.deadline = begin_ + budget_;
    if (!recorded.run.blocks.empty()) plan.settings.passes = without_values(plan.settings.passes);
    plan.replay_budget = [&] { return replay_budget(block, now() - block_begin); };
    plan.tick = [&] { show_progress(block, now() - block_begin); };
    JD_ASSIGN(Launched launched, launch(plan, installation_, meters_, signals_));

    const ReplayJudge::Tally tally = launched.replay;
    costs_[side] = now() - block_begin - tally.spent;
    spent_.add(launched);
    recorded.replay.planned += tally.planned;
    recorded.replay.measured += tally.measured;
    recorded.replay.cut += tally.cut;
    recorded.replay.paced += tally.paced;
    recorded.replay.spent += tally.spent;
    report_.interrupted = launched.interrupted || signals_.take_request();
    if (!fs::exists(plan.spool))
      return fail(ExitCode::environment,
                  "the folder of spools " + plan.spool.string() +
                      " was removed while the program ran: leave it alone until the run file is "
                      "there, and record it again");
    const Diagnostics of_meters = std::move(launched.diagnostics);
    Recorded left_behind;
    left_behind.launched = std::move(launched);
    left_behind.spools = read_spools(plan.spool.string(), left_behind.strangers);
    left_behind.order = first_order_ + block;
    left_behind.region = options_.settings.region;
    JD_TRY(add_launch(recorded.run, std::move(left_behind)));
    for (const Diagnostic& each : of_meters) diagnose(recorded.run, each);
    return {};
  }

  static std::string without_values(const std::string& passes) {
    std::string others;
    std::istringstream all(passes);
    for (std::string pass; std::getline(all, pass, ',');)
      if (pass != "values") others += (others.empty() ? "" : ",") + pass;
    return others;
  }

  Nanoseconds replay_budget(unsigned block, Nanoseconds this_block_until_replay) {
    std::vector<Nanoseconds> to_come;
    for (std::size_t later = block + 1; later < order_.size(); ++later) {
      const Nanoseconds known = costs_[order_[later]];
      to_come.push_back(known >= 0 ? known : this_block_until_replay + kEnding);
    }
    return replay_share(left() - kEnding, to_come);
  }

  void show_progress(unsigned block, Nanoseconds within) {
    const Nanoseconds spent = now() - begin_ - within;
    const auto expected = static_cast<double>(block > 0 ? spent / block : budget_ / order_.size());
    const double part =
        std::min(kMostWithin, static_cast<double>(within) / std::max(1.0, expected));
    progress_.update(fmt::format("recording {} (process {} of {})",
                                 report_.sides[order_[block]].output, block + 1, order_.size()),
                     (block + part) / static_cast<double>(order_.size()));
  }

  Stated stated(std::size_t side) const {
    const std::vector<std::string>& command = options_.sides[side].command;
    const device::HostInfo host = device::host_info();
    const Instant at = read_both_clocks();
    Stated stated;
    stated.command = joined(command);
    stated.label = options_.label;
    stated.script = label_of(command);
    if (options_.work) {
      stated.work_unit = options_.work->unit;
      stated.work_per_step = options_.work->per_step;
    }
    if (options_.sides.size() == 2) {
      stated.pair = pair_;
      stated.side = side == 0 ? "a" : "b";
    }
    stated.facts = {{"joulediff", JOULEDIFF_VERSION},
                    {"host", host.name},
                    {"processor", host.processor},
                    {"cores", std::to_string(host.cores)},
                    {kBootFact, device::boot_id()},
                    {kWallClockFact, std::to_string(at.realtime - at.monotonic)}};
    if (!options_.meter_boundary.empty()) stated.facts["meter_boundary"] = options_.meter_boundary;
    for (const device::Board& board : meters_.boards)
      if (auto profile = kept_profile(board.info().uuid))
        stated.facts[meter::profile_fact(board.info().uuid)] = std::move(*profile);
    for (const device::Board& board : meters_.boards)
      if (const auto noise = kept_noise(board.info().uuid); noise && is_of(*noise, board))
        stated.facts[diagnose::noise_fact(board.info().uuid)] = diagnose::to_json(*noise);
    if (!meters_.boards.empty()) {
      stated.facts["driver"] = meters_.boards.front().info().driver;
      stated.device = meters_.boards.front().info().name;
      stated.device_uuid = meters_.boards.front().info().uuid;
    } else if (!meters_.amd_boards.empty()) {
      stated.device = meters_.amd_boards.front().name();
      stated.device_uuid = meters_.amd_boards.front().id();
    }
    if (stated.device.empty())
      stated.device = fmt::format(
          "{}, {} cores", host.processor.empty() ? "processor" : host.processor, host.cores);
    return stated;
  }

  // Under another driver a board may repeat otherwise.
  static bool is_of(const diagnose::Noise& noise, const device::Board& board) {
    return noise.driver == board.info().driver;
  }

  // Some say "GPU-..." and some leave it out.
  bool watched(const std::string& uuid) const {
    return std::ranges::any_of(meters_.boards, [&](const device::Board& board) {
      return board.info().uuid.find(uuid) != std::string::npos ||
             uuid.find(board.info().uuid) != std::string::npos;
    });
  }

  void complete(std::size_t side) {
    RecordedSide& recorded = report_.sides[side];
    const run::Manifest& manifest = recorded.run.manifest;
    complete_manifest(recorded.run.manifest, stated(side));
    for (const Diagnostic& note : meters_.notes) diagnose(recorded.run, note);
    for (const device::Board& board : meters_.boards)
      if (const auto noise = kept_noise(board.info().uuid); noise && !is_of(*noise, board))
        diagnose(
            recorded.run, Severity::note, "record.old_noise_floor",
            fmt::format("the noise floor kept of board {} is of driver {}, not {}, and is left "
                        "out: measure it again (joulediff calibrate --noise)",
                        board.info().uuid, noise->driver, board.info().driver));
    if (!meters_.boards.empty() && !watched(manifest.device_uuid))
      diagnose(recorded.run, Severity::warning, "record.other_device",
               fmt::format("the program ran on {}, which no meter watched: show it the board "
                           "that it uses with CUDA_VISIBLE_DEVICES",
                           manifest.device_uuid));
    const Budget budget{budget_, options_.stop};
    if (auto over = over_budget(budget, now() - begin_, spent_)) diagnose(recorded.run, *over);
    if (auto cut = replays_cut(budget, recorded.replay)) diagnose(recorded.run, *cut);
    if (auto paced = replays_paced(recorded.replay)) diagnose(recorded.run, *paced);
    for (std::size_t other = 0; other < report_.sides.size(); ++other)
      if (report_.sides[other].run.blocks.empty())
        diagnose(recorded.run, Severity::warning, "record.other_side_missing",
                 fmt::format("{} is not written, as the recording was interrupted before {} had "
                             "recorded a step: record the pair again to compare the two",
                             report_.sides[other].output, other == 0 ? "A" : "B"));
  }

  Result<RecordReport> write() {
    Status first_trouble;
    for (std::size_t side = 0; side < report_.sides.size(); ++side) {
      RecordedSide& recorded = report_.sides[side];
      if (recorded.run.blocks.empty()) continue;
      complete(side);
      Status status = run::write_run(recorded.run, recorded.output);
      if (status) {
        if (!options_.keep_spool && !folders_[side].remove())  // something else lies in it
          recorded.spools.push_back(folders_[side].path().string());
        continue;
      }
      folders_[side].keep();
      Error error = std::move(status).error();
      error.message += "; afterwards " +
                       recovery_of(folders_[side].path().string(), recorded.output) +
                       " makes the run of what was recorded";
      if (first_trouble) first_trouble = fail(std::move(error));
    }
    if (!first_trouble) return fail(first_trouble.error());
    std::erase_if(report_.sides, [](const auto& side) { return side.run.blocks.empty(); });
    if (report_.sides.empty())
      return fail(ExitCode::bad_input, "interrupted before anything was recorded");
    report_.elapsed = to_seconds(now() - begin_);
    return std::move(report_);
  }

  const RecordOptions& options_;
  const Installation& installation_;
  const Meters& meters_;
  const Nanoseconds begin_ = now();
  const Nanoseconds budget_;
  const std::vector<std::size_t> order_;
  const std::string pair_ = random_id();
  const Signals signals_;
  std::uint32_t first_order_ = 0;     // of the blocks, where the files had some
  std::vector<SpoolFolder> folders_;  // of each side
  Spent spent_;
  std::vector<Nanoseconds> costs_;  // of a side's last block, without replay; -1: not known
  Progress progress_;
  RecordReport report_;
};

}  // namespace

std::vector<std::size_t> block_order(std::size_t sides, unsigned blocks) {
  std::vector<std::size_t> order;
  for (unsigned block = 0; block < blocks; ++block)
    order.push_back(sides == 2 && (block % 4 == 1 || block % 4 == 2) ? 1 : 0);
  return order;
}

Nanoseconds replay_share(Nanoseconds left, const std::vector<Nanoseconds>& costs_to_come) {
  for (Nanoseconds cost : costs_to_come) left -= cost;
  return std::max<Nanoseconds>(0, left) / static_cast<Nanoseconds>(costs_to_come.size() + 1);
}

Result<RecordReport> record(const RecordOptions& options) {
  for (const RecordSide& side : options.sides)
    JD_TRY(check_output(side.output, options.force || (options.resume && fs::exists(side.output))));
  JD_ASSIGN(const Installation installation, find_installation());
  Meters meters = open_meters();
  meters.outside = options.meters;
  return Recording(options, installation, meters).record();
}

}  // namespace joulediff::lab
