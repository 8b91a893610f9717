#include "attribute/lanes.h"

#include <algorithm>
#include <numeric>
#include <string_view>

#include <boost/unordered/unordered_flat_map.hpp>

namespace joulediff::attribute {
namespace {

constexpr std::size_t kMostLanes = 32;
constexpr double kByName = 0.75;       // of what a symbol counts that has another launch shape
constexpr double kAsGood = 0.9;        // of the best overlap
constexpr double kMost = 0.5;          // of a strand
constexpr std::size_t kLooked = 4096;  // symbols of a strand that are looked at

std::uint64_t key(std::uint32_t lane, std::uint32_t symbol) {
  return std::uint64_t{lane} << 32 | symbol;
}

}  // namespace

std::vector<Symbol> symbols(const run::Run& run) {
  boost::unordered_flat_map<std::string_view, std::uint32_t> names;
  std::vector<Symbol> result;
  for (std::size_t i = 0; i < run.kernels.size(); ++i) {
    const auto number = static_cast<std::uint32_t>(names.size());
    result.push_back({static_cast<std::uint32_t>(i),
                      names.try_emplace(run.kernels[i].name, number).first->second});
  }
  return result;
}

std::vector<Strand> strands(const run::KernelSeries& series,
                            std::span<const std::uint32_t> members) {
  boost::unordered_flat_map<std::uint64_t, std::size_t> numbers;
  std::vector<Strand> result;
  for (const std::uint32_t i : members) {
    const Queue queue{series.device.empty() ? 0 : series.device[i].value, series.stream[i]};
    const auto [found, fresh] = numbers.try_emplace(key(queue.device, queue.stream), result.size());
    if (fresh) result.push_back({queue, {}});
    result[found->second].members.push_back(i);
  }
  return result;
}

std::vector<Strand> strands(const run::KernelSeries& series) {
  std::vector<std::uint32_t> all(series.size());
  std::iota(all.begin(), all.end(), 0u);
  return strands(series, all);
}

Pattern sequence(const std::vector<Symbol>& symbols, const run::KernelSeries& series,
                 std::span<const std::uint32_t> members) {
  Pattern result;
  result.reserve(members.size());
  for (const std::uint32_t i : members) result.push_back(symbols[series.kernel[i].index()]);
  return result;
}

std::uint32_t Lanes::add(Queue queue, std::span<const Symbol> strand) {
  queues_.push_back(queue);
  used_.push_back(++uses_);
  const auto lane = static_cast<std::uint32_t>(queues_.size() - 1);
  extend(lane, strand);
  return lane;
}

void Lanes::extend(std::uint32_t lane, std::span<const Symbol> strand) {
  for (const Symbol& symbol : strand) {
    exact_.insert(key(lane, symbol.exact));
    names_.insert(key(lane, symbol.name));
  }
}

double Lanes::overlap(std::uint32_t lane, std::span<const Symbol> strand) const {
  double sum = 0;
  for (const Symbol& symbol : strand)
    if (exact_.contains(key(lane, symbol.exact)))
      sum += 1;
    else if (names_.contains(key(lane, symbol.name)))
      sum += kByName;
  return sum / static_cast<double>(strand.size());
}

std::optional<std::uint32_t> Lanes::of(Queue queue) const {
  const auto found = std::ranges::find(queues_, queue);
  if (found == queues_.end()) return std::nullopt;
  return static_cast<std::uint32_t>(found - queues_.begin());
}

std::optional<std::uint32_t> Lanes::find(Queue queue, std::span<const Symbol> strand) {
  strand = strand.first(std::min(strand.size(), kLooked));
  std::vector<double> overlaps(std::min(queues_.size(), kMostLanes));
  for (std::uint32_t lane = 0; lane < overlaps.size(); ++lane)
    overlaps[lane] = overlap(lane, strand);
  const double best = overlaps.empty() ? 0 : std::ranges::max(overlaps);
  if (best < kMost) return std::nullopt;
  std::optional<std::uint32_t> found;
  const auto rank = [&](std::uint32_t lane) {
    const int place = queues_[lane] == queue ? 0 : queues_[lane].device == queue.device ? 1 : 2;
    return std::pair(place, used_[lane]);
  };
  for (std::uint32_t lane = 0; lane < overlaps.size(); ++lane)
    if (overlaps[lane] >= kAsGood * best && (!found || rank(lane) < rank(*found))) found = lane;
  used_[*found] = ++uses_;
  return found;
}

}  // namespace joulediff::attribute
