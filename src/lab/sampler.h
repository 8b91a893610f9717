// The sampler: reads the meters, in the launcher's process and on threads of its own, while a
// program is recorded. What it gathers are raw series; nothing is computed from them here.
//
// Two threads: the board's energy counter takes milliseconds to read and its ticks are to be timed
// closely, so it is read alone; everything else is cheap and shares the other thread.
#pragma once

#include <map>
#include <mutex>
#include <optional>
#include <stop_token>
#include <sys/types.h>
#include <thread>
#include <vector>

#include "device/host.h"
#include "device/nvml.h"
#include "lab/replay_judge.h"
#include "run/model.h"

namespace joulediff::lab {

class Sampler {
 public:
  // `board`: null where there is none; it must outlive the sampler. Sampling begins at once.
  explicit Sampler(const device::Board* board);
  ~Sampler();
  Sampler(const Sampler&) = delete;
  Sampler& operator=(const Sampler&) = delete;

  // From now on the processor time of this process tree is read too.
  void watch(pid_t root);
  // The tree's root has ended (and is not yet waited for): reads it a last time.
  void unwatch();

  // The meter that replay is judged by, since a little before `begin`: the board's counter in mJ,
  // without a board the processor time in ns.
  std::vector<Reading> meter_since(Nanoseconds begin) const;

  // What has come in since the last call. Pieces of one source, channel and stretch belong
  // together.
  struct Piece {
    std::uint32_t stretch = 0;
    run::Series series;
  };
  std::vector<Piece> fresh();

  // Ends sampling. The series, by source.
  std::vector<run::Series> stop();

 private:
  void read_counter(std::stop_token stop);
  void read_sensors(std::stop_token stop);
  void read_fields();
  void read_ring();
  void read_processor_time();  // lock held
  void add(run::Source source, Nanoseconds time, std::int64_t value,
           std::optional<Nanoseconds> uncertainty = std::nullopt);

  const device::Board* board_;
  std::optional<device::Rapl> rapl_;
  std::uint64_t ring_seen_us_ = 0;

  mutable std::mutex mutex_;  // over what follows
  std::map<run::Source, run::Series> series_;
  std::map<run::Source, std::size_t> given_;  // by fresh()
  std::optional<device::ProcessTree> tree_;

  std::jthread counter_;
  std::jthread sensors_;
};

}  // namespace joulediff::lab
