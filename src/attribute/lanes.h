// The streams of a program by what runs on them. Their numbers change: a program may make new
// streams in each step, and a graph runs on streams of its own.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include <boost/unordered/unordered_flat_set.hpp>

#include "attribute/walk.h"
#include "run/model.h"

namespace joulediff::attribute {

// By kernel: what it is, and its name's number.
std::vector<Symbol> symbols(const run::Run& run);

struct Queue {
  std::uint32_t device = 0;
  std::uint32_t stream = 0;
  auto operator<=>(const Queue&) const = default;
};

// The kernels of one stream, as places in a series, in time.
struct Strand {
  Queue queue;
  std::vector<std::uint32_t> members;
};
std::vector<Strand> strands(const run::KernelSeries& series,
                            std::span<const std::uint32_t> members);
std::vector<Strand> strands(const run::KernelSeries& series);

// The symbols of the members.
Pattern sequence(const std::vector<Symbol>& symbols, const run::KernelSeries& series,
                 std::span<const std::uint32_t> members);

class Lanes {
 public:
  // A new lane that holds what the strand does.
  std::uint32_t add(Queue queue, std::span<const Symbol> strand);
  // The lane also holds this.
  void extend(std::uint32_t lane, std::span<const Symbol> strand);
  // The lane that runs what the strand does: that of the same stream, else of the same device, else
  // any, the longest unused of equals. None where no lane alone holds most of it.
  std::optional<std::uint32_t> find(Queue queue, std::span<const Symbol> strand);
  // The lane that began as this stream.
  std::optional<std::uint32_t> of(Queue queue) const;
  std::size_t size() const { return queues_.size(); }

 private:
  double overlap(std::uint32_t lane, std::span<const Symbol> strand) const;

  std::vector<Queue> queues_;  // by lane
  std::vector<std::uint64_t> used_;
  std::uint64_t uses_ = 0;
  boost::unordered_flat_set<std::uint64_t> exact_;  // lane and symbol
  boost::unordered_flat_set<std::uint64_t> names_;
};

}  // namespace joulediff::attribute
