// The sampler: reads the meters, in the launcher's process and on threads of its own, while a
// program is recorded. What it gathers are raw series; nothing is computed from them here.
//
// Each board has two threads: its energy counter takes milliseconds to read and its ticks are to be
// timed closely, so it is read alone. Each other kind of meter has one. A call into a driver may
// never return, so no thread waits for another: the one that hangs is left behind at the end, with
// what it shares, and the rest is kept.
#pragma once

#include <atomic>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <sys/types.h>
#include <thread>
#include <vector>

#include "device/host.h"
#include "lab/meters.h"
#include "lab/replay_judge.h"
#include "lab/samples.h"
#include "run/model.h"

namespace joulediff::lab {

class Sampler {
 public:
  // Sampling begins at once.
  explicit Sampler(Meters meters);
  ~Sampler();
  Sampler(const Sampler&) = delete;
  Sampler& operator=(const Sampler&) = delete;

  // From now on the processor time of this process tree is read too.
  void watch(pid_t root);
  // The tree's root has ended (and is not yet waited for): reads it a last time.
  void unwatch();

  // The meter that replay is judged by, since a little before `begin`: the first board's counter in
  // mJ, without a board the processor time in ns.
  std::vector<Reading> meter_since(Nanoseconds begin) const;

  // Clock and limits of the first board between two times; unknown without one, or where fewer than
  // three readings of them lie between.
  Conditions board_state(Nanoseconds begin, Nanoseconds end) const;

  // What has been gathered so far.
  const Samples& samples() const { return shared_->samples; }

  // What has come in since the last call.
  std::vector<Samples::Piece> fresh() { return shared_->samples.fresh(); }

  struct Gathered {
    std::vector<run::Series> series;
    Diagnostics diagnostics;
  };
  // Ends sampling. A thread that does not end within `patience` is left behind.
  void end(Nanoseconds patience = 3'000'000'000);
  // Ends it, and gives what fresh() has not made forgotten.
  Gathered stop(Nanoseconds patience = 3'000'000'000);

 private:
  // What threads may still use when the sampler is gone.
  struct Shared {
    Samples samples;
    std::mutex mutex;  // over the tree
    std::optional<device::ProcessTree> tree;
    std::atomic<pid_t> root = 0;  // 0: no program runs
    void read_processor_time();   // lock held
  };
  struct Worker {
    std::string what;
    std::future<void> ended;
    std::thread thread;
  };
  using Body = std::function<void(Shared&, const std::stop_token&)>;
  void start(std::string what, Body body);
  void read_files();

  static void read_counter(const device::Board& board, Shared& shared, const std::stop_token& stop);
  static void read_board(const device::Board& board, Shared& shared, const std::stop_token& stop);
  static void read_amd(const device::AmdBoard& board, Shared& shared, const std::stop_token& stop);
  static void read_host(const std::string& powercap, Shared& shared, const std::stop_token& stop);
  static void read_hwmon(const std::string& root, Shared& shared, const std::stop_token& stop);
  static void read_program(const std::string& command, Shared& shared, const std::stop_token& stop);

  const Meters meters_;
  const Nanoseconds begin_;
  const std::shared_ptr<Shared> shared_ = std::make_shared<Shared>();
  std::stop_source stop_;
  std::vector<Worker> workers_;
};

}  // namespace joulediff::lab
