#include "diagnose/noise.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <map>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/format.h"
#include "diagnose/costs.h"
#include "diagnose/judge.h"
#include "diagnose/ratio.h"
#include "diagnose/statistics.h"

namespace joulediff::diagnose {
namespace {

using nlohmann::ordered_json;

constexpr std::string_view kSchema = "joulediff.noise/1";
constexpr std::string_view kFact = "noise_floor.";

std::string fact(const run::Run& run, const std::string& key) {
  const auto found = run.manifest.facts.find(key);
  return found == run.manifest.facts.end() ? std::string() : found->second;
}

// "2026-12-01", from the clocks of the recording.
std::string date_of(const run::Run& run) {
  const std::string wall = fact(run, "wall_minus_monotonic_ns");
  if (wall.empty() || run.blocks.empty()) return {};
  const Nanoseconds ns = run.blocks.front().begin + std::strtoll(wall.c_str(), nullptr, 10);
  const std::chrono::sys_time<std::chrono::nanoseconds> time{std::chrono::nanoseconds(ns)};
  const std::chrono::year_month_day day(std::chrono::floor<std::chrono::days>(time));
  return fmt::format("{:04}-{:02}-{:02}", static_cast<int>(day.year()),
                     static_cast<unsigned>(day.month()), static_cast<unsigned>(day.day()));
}

// The joules of the calls of each operator, by its signature.
using BySignature = std::map<std::string, std::vector<run::OperatorId>>;
BySignature by_signature(const run::Run& run) {
  BySignature all;
  for (std::size_t i = 0; i < run.operators.size(); ++i)
    if (const run::Operator& op = run.operators[i]; !op.view && op.signature.valid())
      all[run.signatures[op.signature.index()].text].push_back(run::OperatorId(i));
  return all;
}

bool same_program(const run::Run& a, const run::Run& b) {
  const BySignature x = by_signature(a), y = by_signature(b);
  return std::ranges::equal(x, y, [](const auto& p, const auto& q) {
    return p.first == q.first && p.second.size() == q.second.size();
  });
}

// Standard deviation over mean, squared; none with fewer than two values.
std::optional<double> relative_variance(const std::vector<double>& values) {
  if (values.size() < 2) return std::nullopt;
  const auto n = static_cast<double>(values.size());
  double mean = 0, squares = 0;
  for (const double x : values) mean += x / n;
  for (const double x : values) squares += (x - mean) * (x - mean);
  if (!(mean > 0)) return std::nullopt;
  return squares / (n - 1) / (mean * mean);
}

void append(std::vector<double>& all, const std::vector<double>& more) {
  all.insert(all.end(), more.begin(), more.end());
}

double floor_of(double deviation, std::size_t processes, std::size_t n, std::size_t m) {
  if (n == 0 || m == 0 || processes < 2) return 0;
  const double parts = 1 / static_cast<double>(n) + 1 / static_cast<double>(m);
  return deviation * std::sqrt(parts) *
         student_quantile(kAlpha, static_cast<double>(processes - 1));
}

Status one_program(std::span<const Repeated> runs) {
  const run::Run& first = runs.front().run;
  for (const Repeated& one : runs.subspan(1)) {
    if (!same_program(first, one.run))
      return fail(ExitCode::not_comparable,
                  "the runs are of different programs: a noise floor is what one program differs "
                  "by from itself; record it as both sides of a pair");
    if (one.run.manifest.device_uuid != first.manifest.device_uuid ||
        fact(one.run, "driver") != fact(first, "driver"))
      return fail(ExitCode::not_comparable,
                  "the runs are of different boards or drivers: a noise floor is of one; give the "
                  "runs of each by themselves");
  }
  return {};
}

}  // namespace

double Noise::whole_floor(std::size_t blocks_a, std::size_t blocks_b) const {
  return floor_of(whole, processes, blocks_a, blocks_b);
}

std::optional<double> Noise::operator_floor(std::size_t blocks_a, std::size_t blocks_b) const {
  if (!operators) return std::nullopt;
  return floor_of(*operators, processes, blocks_a, blocks_b);
}

Result<Noise> measure_noise(std::span<const Repeated> runs) {
  if (runs.empty()) return fail(ExitCode::usage, "no run was given to measure a noise floor with");
  JD_TRY(one_program(runs));
  const run::Run& first = runs.front().run;
  std::vector<double> whole;
  for (const Repeated& one : runs) append(whole, per_work_unit(one.run, one.cost).blocks);
  const auto variance = relative_variance(whole);
  if (whole.size() < kLeastProcesses || !variance)
    return fail(ExitCode::not_comparable,
                fmt::format("the energy of {} process(es) is known, and a noise floor needs {} at "
                            "least: record the program as both sides of a pair with --blocks 8",
                            whole.size(), kLeastProcesses));
  Noise noise{first.manifest.device,
              first.manifest.device_uuid,
              fact(first, "driver"),
              date_of(first),
              first.manifest.label,
              whole.size(),
              std::sqrt(*variance),
              std::nullopt,
              0};
  double squares = 0;
  for (const auto& [signature, ids] : by_signature(first)) {
    std::vector<double> joules;
    double share = 0;
    for (const Repeated& one : runs) {
      const Measured calls = cost(one.run, one.cost, by_signature(one.run).at(signature));
      append(joules, calls.blocks);
      share = std::max(share, calls.mean / one.cost.ledger.total.joules.value);
    }
    const auto own = relative_variance(joules);
    if (share < kLeastShare || joules.size() != whole.size() || !own) continue;
    squares += *own;
    ++noise.signatures;
  }
  if (noise.signatures > 0)
    noise.operators = std::sqrt(squares / static_cast<double>(noise.signatures));
  return noise;
}

std::string to_json(const Noise& noise) {
  const ordered_json all{
      {"schema", kSchema},
      {"board", {{"name", noise.board}, {"uuid", noise.uuid}, {"driver", noise.driver}}},
      {"date", noise.date},
      {"program", noise.program},
      {"processes", noise.processes},
      {"whole", noise.whole},
      {"operators", noise.operators ? ordered_json(*noise.operators) : ordered_json()},
      {"signatures", noise.signatures}};
  return all.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

Result<Noise> noise_from_json(std::string_view text) {
  try {
    const ordered_json json = ordered_json::parse(text);
    if (json.at("schema") != kSchema)
      throw std::out_of_range("its schema is not " + std::string(kSchema));
    const ordered_json& board = json.at("board");
    Noise noise{board.at("name"), board.at("uuid"),   board.at("driver"),
                json.at("date"),  json.at("program"), json.at("processes"),
                json.at("whole"), std::nullopt,       json.at("signatures")};
    if (!json.at("operators").is_null()) noise.operators = json.at("operators").get<double>();
    if (!(noise.whole >= 0) || (noise.operators && !(*noise.operators >= 0)) || noise.processes < 2)
      throw std::out_of_range("a spread that cannot be");
    return noise;
  } catch (const std::exception& error) {
    return fail(ExitCode::bad_input,
                fmt::format("no noise floor of a board: {}; measure it again with `joulediff "
                            "calibrate --noise A.jd B.jd --keep`",
                            error.what()));
  }
}

std::string noise_fact(std::string_view uuid) {
  return std::string(kFact) + std::string(uuid);
}

std::optional<Noise> noise_of(const run::Run& run) {
  const std::string& used = run.manifest.device_uuid;
  for (auto at = run.manifest.facts.lower_bound(std::string(kFact));
       at != run.manifest.facts.end() && at->first.starts_with(kFact); ++at) {
    // Some say "GPU-..." and some leave it out.
    const std::string uuid = at->first.substr(kFact.size());
    if (!used.empty() && uuid.find(used) == std::string::npos &&
        used.find(uuid) == std::string::npos)
      continue;
    if (auto noise = noise_from_json(at->second)) return std::move(*noise);
  }
  return std::nullopt;
}

std::optional<Noise> noise_of(const run::Run& a, const run::Run& b) {
  const auto of_a = noise_of(a), of_b = noise_of(b);
  if (!of_a || !of_b) return std::nullopt;
  return of_a->whole_floor(1, 1) >= of_b->whole_floor(1, 1) ? of_a : of_b;
}

}  // namespace joulediff::diagnose
