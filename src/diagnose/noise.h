// The A/A noise floor of a machine: by how much the joules of one program differ from process to
// process there, where nothing else does.
//
// The spread between the blocks of a comparison says the same of those few processes, and is often
// small by chance. What was measured once over more of them, by board and driver, stands beside it:
// the larger one is the floor under which a difference is none. It never stands in for blocks that
// were not recorded: another program may repeat worse than the one that it was measured with.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "attribute/attribute.h"
#include "base/result.h"
#include "run/model.h"

namespace joulediff::diagnose {

struct Noise {
  std::string board, uuid, driver, date, program;  // empty: unknown
  std::size_t processes = 0;
  // Relative standard deviations between processes: of the energy per work unit, and of what the
  // calls of one operator cost (root mean square over those that are worth a test).
  double whole = 0;
  std::optional<double> operators;
  std::size_t signatures = 0;  // so many operators

  // Differences between the means of so many processes are larger than this in 5 % of the cases
  // where there is none (Student).
  double whole_floor(std::size_t blocks_a, std::size_t blocks_b) const;
  std::optional<double> operator_floor(std::size_t blocks_a, std::size_t blocks_b) const;
};

constexpr std::size_t kLeastProcesses = 3;

struct Repeated {
  const run::Run& run;
  const attribute::Attribution& cost;
};
// Of runs of one program on one board: the two of a pair of a program with itself, or one alone.
Result<Noise> measure_noise(std::span<const Repeated> runs);

// joulediff.noise/1
std::string to_json(const Noise& noise);
Result<Noise> noise_from_json(std::string_view text);

// What was kept of the board when the run was recorded: a fact of the run.
std::string noise_fact(std::string_view uuid);
std::optional<Noise> noise_of(const run::Run& run);

// That of both runs: the larger one where they are of two boards; none where one has none.
std::optional<Noise> noise_of(const run::Run& a, const run::Run& b);

}  // namespace joulediff::diagnose
