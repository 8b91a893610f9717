// What the sampler's threads have gathered: series by source and channel, and what was wrong with
// them. A counter that breaks begins another series of the same name: within a series every two
// readings belong together. Shared by threads, and outlives the sampler where one of them hangs.
#pragma once

#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "device/counter.h"
#include "run/model.h"

namespace joulediff::lab {

class Samples {
 public:
  void add(run::Source source, const std::string& channel, Nanoseconds time, std::int64_t value,
           std::optional<Nanoseconds> uncertainty = std::nullopt);
  // Of a counter; a break is diagnosed.
  void add(run::Source source, const std::string& channel, Nanoseconds time,
           const device::Counter::Reading& reading,
           std::optional<Nanoseconds> uncertainty = std::nullopt);
  // Counts one more of the same where rule and message are known already.
  void diagnose(Diagnostic diagnostic);

  // What the series that a counter is in now has since `begin`.
  run::Series since(run::Source source, const std::string& channel, Nanoseconds begin) const;

  Diagnostics diagnostics() const;

  // What has come in since the last call, for somebody who keeps it: hours of readings are not held
  // here. What was given is forgotten when it is older than kRemembered. Pieces of one source,
  // channel and stretch belong together.
  static constexpr Nanoseconds kRemembered = 120'000'000'000;
  struct Piece {
    std::uint32_t stretch = 0;
    run::Series series;
  };
  std::vector<Piece> fresh();

  // What is not forgotten.
  std::vector<run::Series> take_series();
  Diagnostics take_diagnostics();

 private:
  using Name = std::pair<run::Source, std::string>;
  void add_locked(const Name& name, Nanoseconds time, std::int64_t value, bool breaks,
                  std::optional<Nanoseconds> uncertainty);

  // How much of the last stretch fresh() has given.
  struct Given {
    std::uint32_t stretch = 0;
    std::size_t readings = 0;
  };
  void give(const Name& name);
  void forget(const Name& name, std::vector<run::Series>& stretches);

  mutable std::mutex mutex_;
  std::map<Name, std::vector<run::Series>> series_;  // stretches without a break
  std::map<Name, Given> given_;
  std::vector<Piece> fresh_;
  Diagnostics diagnostics_;
};

}  // namespace joulediff::lab
