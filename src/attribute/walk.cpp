// A step launches the same kernels in the same order, so the trace is one pattern over and over and
// an exact match is a comparison for each kernel. Where the stream departs from it (a lost record,
// a kernel of another shape, a garbage collection's copy), two searches find the way back: near by,
// the smallest number of skipped places on both sides after which kConfirm symbols agree; else, by
// an index of the pattern's grams, the place nearest to where the walk should be by now. What is
// between stays unmatched. Both searches are bounded, so the walk is linear in the stream.
#include "attribute/walk.h"

#include <algorithm>
#include <cstdlib>

#include <boost/unordered/unordered_flat_map.hpp>

namespace joulediff::attribute {
namespace {

constexpr std::size_t kReach = 6;    // places skipped by the near search, both sides together
constexpr std::size_t kConfirm = 3;  // symbols that must agree behind them
constexpr std::size_t kGram = 6;

class Walker {
 public:
  Walker(std::span<const Symbol> pattern, std::span<const Symbol> stream)
      : pattern_(pattern), stream_(stream), gram_(std::min(kGram, pattern.size())) {
    for (std::size_t place = 0; place < pattern_.size(); ++place)
      grams_[hash([&](std::size_t i) { return at(place + i).exact; })].push_back(place);
  }

  std::vector<std::int64_t> walk() {
    std::vector<std::int64_t> positions(stream_.size(), kUnmatched);
    std::size_t i = 0, next = 0;
    std::size_t gap = 0;  // the first symbol of the stream that is not placed yet
    while (i < stream_.size()) {
      std::size_t back = i, place = next;
      const bool found = (gap == i && stream_[i].exact == at(next).exact) ||
                         (i - gap < kReach && near(i, next, back, place)) ||
                         far(i, next + (i - gap), next, place);
      if (!found) {
        ++i;
        continue;
      }
      if (back - gap == place - next) match_by_name(positions, gap, back, next);
      positions[back] = static_cast<std::int64_t>(place);
      next = place + 1;
      gap = i = back + 1;
    }
    return positions;
  }

 private:
  const Symbol& at(std::size_t position) const { return pattern_[position % pattern_.size()]; }

  // As many symbols in the stream as in the pattern: the same kernels in another shape.
  void match_by_name(std::vector<std::int64_t>& positions, std::size_t from, std::size_t to,
                     std::size_t position) const {
    for (; from < to; ++from, ++position)
      if (stream_[from].name == at(position).name)
        positions[from] = static_cast<std::int64_t>(position);
  }

  bool confirmed(std::size_t i, std::size_t position) const {
    if (i >= stream_.size()) return false;
    const std::size_t length = std::min(kConfirm, stream_.size() - i);
    for (std::size_t k = 0; k < length; ++k)
      if (stream_[i + k].exact != at(position + k).exact) return false;
    return true;
  }

  bool near(std::size_t i, std::size_t next, std::size_t& back, std::size_t& place) const {
    for (std::size_t total = 1; total <= kReach; ++total)
      for (std::size_t missing = 0; missing <= total; ++missing)
        if (confirmed(i + total - missing, next + missing)) {
          back = i + total - missing;
          place = next + missing;
          return true;
        }
    return false;
  }

  // The position at or after `least` nearest to `expected` whose gram the stream has at i.
  bool far(std::size_t i, std::size_t expected, std::size_t least, std::size_t& position) const {
    if (i + gram_ > stream_.size()) return false;
    const auto found = grams_.find(hash([&](std::size_t k) { return stream_[i + k].exact; }));
    if (found == grams_.end()) return false;
    const std::vector<std::size_t>& places = found->second;
    const std::size_t size = pattern_.size();
    const auto after = std::ranges::lower_bound(places, expected % size);
    const std::size_t lap = expected - expected % size;
    const std::size_t up = after != places.end() ? lap + *after : lap + size + places.front();
    position = up;
    if (after != places.begin() || lap >= size) {
      const std::size_t down =
          after != places.begin() ? lap + *std::prev(after) : lap - size + places.back();
      if (down >= least && expected - down < up - expected) position = down;
    }
    for (std::size_t k = 0; k < gram_; ++k)
      if (stream_[i + k].exact != at(position + k).exact) return false;
    return true;
  }

  template <class SymbolAt>
  std::uint64_t hash(SymbolAt symbol) const {
    std::uint64_t sum = 0;
    for (std::size_t k = 0; k < gram_; ++k) sum = (sum ^ symbol(k)) * 0x9E3779B97F4A7C15ull;
    return sum;
  }

  std::span<const Symbol> pattern_;
  std::span<const Symbol> stream_;
  std::size_t gram_;
  boost::unordered_flat_map<std::uint64_t, std::vector<std::size_t>> grams_;
};

}  // namespace

std::vector<std::int64_t> walk(std::span<const Symbol> pattern, std::span<const Symbol> stream) {
  if (pattern.empty()) return std::vector<std::int64_t>(stream.size(), kUnmatched);
  return Walker(pattern, stream).walk();
}

}  // namespace joulediff::attribute
