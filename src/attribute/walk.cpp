// A step launches the same kernels in the same order as another of its kind, so the trace is a few
// patterns over and over and an exact match is a comparison for each kernel. Where the stream
// departs from its pattern (a lost record, a kernel of another shape, an allocator's memset), the
// way back is sought, the surest first: the next few symbols exactly, past at most kReach skipped
// on both sides; by name alone, for shapes that no pattern has; else an index of the patterns'
// grams offers places, of which the cheapest is taken: ahead in this step, in a later one, in
// another pattern, or back where a loop goes round once more. What was passed over is then matched
// with the places that were, in any order, since streams that run side by side change places. All
// searches are bounded, so the walk is linear in the stream.
#include "attribute/walk.h"

#include <algorithm>
#include <array>
#include <utility>

#include <boost/unordered/unordered_flat_map.hpp>

namespace joulediff::attribute {
namespace {

constexpr std::size_t kReach = 6;    // places skipped by the near search, both sides together
constexpr std::size_t kConfirm = 3;  // symbols that must agree behind them
constexpr std::size_t kGram = 6;
constexpr std::size_t kAgree = 32;   // symbols by which patterns are chosen
constexpr std::size_t kChoices = 8;  // patterns that are held against one place
constexpr std::size_t kPassed = 64;  // places in which what was passed over is sought
constexpr std::size_t kNewLoop = 3;  // what it costs to see a loop in what the pattern has once,
constexpr std::size_t kSwitch = 8;   // to change to another pattern inside a step,
constexpr std::size_t kByName = 4;   // and to trust names alone, in places skipped

using Key = std::uint32_t Symbol::*;

struct Spot {
  std::uint32_t pattern = 0;
  std::uint32_t place = 0;
  auto operator<=>(const Spot&) const = default;
};
using Spots = boost::unordered_flat_map<std::uint64_t, std::vector<Spot>>;

constexpr std::uint64_t kMultiplier = 0x9E3779B97F4A7C15ull;

// At a place of a pattern: the length of the loop's body that ends here, 0 for none, and where the
// loop's last round ends.
struct Loop {
  std::uint32_t body = 0;
  std::uint32_t exit = 0;
};

// Bodies that follow themselves at least once. Where the last few names were seen before tells how
// long the body is; sums over prefixes tell whether it is one.
std::vector<Loop> loops(const Pattern& pattern) {
  std::vector<Loop> result(pattern.size() + 1);
  std::vector<std::uint64_t> sums = {0}, powers = {1};
  for (const Symbol& symbol : pattern) {
    sums.push_back(sums.back() * kMultiplier + symbol.name + 1);
    powers.push_back(powers.back() * kMultiplier);
  }
  const auto sum = [&](std::size_t from, std::size_t to) {
    return sums[to] - sums[from] * powers[to - from];
  };
  boost::unordered_flat_map<std::uint64_t, std::size_t> last;
  for (std::size_t end = kGram; end <= pattern.size(); ++end) {
    const auto [seen, fresh] = last.try_emplace(sum(end - kGram, end), end);
    if (fresh) continue;
    const std::size_t body = end - std::exchange(seen->second, end);
    if (end < 2 * body || sum(end - body, end) != sum(end - 2 * body, end - body)) continue;
    for (std::size_t place = end; place >= body && result[place].body != body &&
                                  sum(place - body, place) == sum(end - body, end);
         place -= body)
      result[place].body = static_cast<std::uint32_t>(body);
  }
  for (std::size_t place = result.size(); place-- > 0;) {
    Loop& loop = result[place];
    const std::size_t further = place + loop.body;
    const bool goes_on = loop.body > 0 && further < result.size() &&
                         result[further].body == loop.body &&
                         sum(place, further) == sum(place - loop.body, place);
    loop.exit = goes_on ? result[further].exit : static_cast<std::uint32_t>(place);
  }
  return result;
}

class Walker {
 public:
  Walker(std::span<const Pattern> patterns, std::span<const Symbol> stream, const Likely& likely)
      : patterns_(patterns), stream_(stream), likely_(likely) {
    std::size_t shortest = kGram;
    for (const Pattern& pattern : patterns_)
      if (!pattern.empty()) {
        shortest = std::min(shortest, pattern.size());
        ++choices_;
      }
    gram_ = choices_ > 1 ? std::max(kConfirm, shortest) : shortest;
    for (std::size_t p = 0; p < patterns_.size(); ++p) index(p);
  }

  Walk walk() {
    result_.places.resize(stream_.size());
    if (choices_ == 0 || stream_.empty()) return std::move(result_);
    while (patterns_[pattern_].empty()) ++pattern_;
    choose(0);
    std::size_t i = 0;
    while (i < stream_.size()) {
      if (next_ == size() && choose(i)) ++lap_, next_ = 0;
      Target target{pattern_, next_, lap_, i};
      if (!(gap_ == i && agree(i, next_, &Symbol::exact)) && !resume(i, target)) {
        ++i;
        continue;
      }
      pass_over(target);
      take(target);
      i = target.symbol + 1;
    }
    return std::move(result_);
  }

 private:
  struct Target {
    std::uint32_t pattern = 0;
    std::size_t place = 0;
    std::uint32_t lap = 0;
    std::size_t symbol = 0;  // of the stream
    std::size_t cost = SIZE_MAX;
  };

  void index(std::size_t p) {
    const Pattern& pattern = patterns_[p];
    for (std::size_t place = 0; place < pattern.size(); ++place) {
      const Spot spot{static_cast<std::uint32_t>(p), static_cast<std::uint32_t>(place)};
      const auto symbol = [&](std::size_t k) -> const Symbol& {
        return pattern[(place + k) % pattern.size()];
      };
      exact_[hash(symbol, &Symbol::exact)].push_back(spot);
      names_[hash(symbol, &Symbol::name)].push_back(spot);
    }
    if (!pattern.empty()) starts_[pattern.front().name].push_back(static_cast<std::uint32_t>(p));
    loops_.push_back(loops(pattern));
  }

  template <class SymbolAt>
  std::uint64_t hash(SymbolAt symbol, Key key) const {
    std::uint64_t sum = 0;
    for (std::size_t k = 0; k < gram_; ++k) sum = (sum ^ symbol(k).*key) * kMultiplier;
    return sum;
  }

  std::size_t size() const { return patterns_[pattern_].size(); }
  bool agree(std::size_t i, std::size_t place, Key key) { return agree(i, pattern_, place, key); }
  bool agree(std::size_t i, std::uint32_t pattern, std::size_t place, Key key) {
    ++result_.comparisons;
    const Pattern& symbols = patterns_[pattern];
    return stream_[i].*key == symbols[place < symbols.size() ? place : place % symbols.size()].*key;
  }

  // At the end of a step: which pattern does the stream begin next? False: none begins here.
  bool choose(std::size_t i) {
    if (choices_ == 1) return agree(i, 0, &Symbol::name);
    std::array<std::uint32_t, 3 * kChoices> candidates{};
    std::size_t count = 0;
    const auto add = [&](std::uint32_t pattern) {
      if (patterns_[pattern].empty()) return;
      const auto end = candidates.begin() + static_cast<std::ptrdiff_t>(count);
      if (std::find(candidates.begin(), end, pattern) == end) candidates[count++] = pattern;
    };
    if (likely_)
      for (const std::uint32_t pattern : likely_(i))
        if (count < kChoices) add(pattern);
    add(pattern_);
    for (const std::uint32_t pattern : recent_) add(pattern);
    if (const auto found = starts_.find(stream_[i].name); found != starts_.end())
      for (std::size_t k = 0; k < std::min(kChoices, found->second.size()); ++k)
        add(found->second[k]);
    std::pair<std::size_t, std::size_t> most{0, 0};
    std::uint32_t best = candidates[0];
    for (std::size_t c = 0; c < count; ++c)
      if (const auto score = agreement(i, candidates[c]); score > most) {
        most = score;
        best = candidates[c];
      }
    if (most.first == 0) return false;
    if (best != pattern_) {
      std::ranges::rotate(recent_, recent_.end() - 1);
      recent_.front() = pattern_ = best;
    }
    return true;
  }

  // How many symbols a pattern's begin and the stream have in common by name, and exactly.
  std::pair<std::size_t, std::size_t> agreement(std::size_t i, std::uint32_t pattern) {
    const std::size_t length = std::min({kAgree, patterns_[pattern].size(), stream_.size() - i});
    std::size_t exact = 0;
    for (std::size_t k = 0; k < length; ++k) {
      if (!agree(i + k, pattern, k, &Symbol::name)) return {k, exact};
      if (agree(i + k, pattern, k, &Symbol::exact)) ++exact;
    }
    return {length, exact};
  }

  bool resume(std::size_t i, Target& target) {
    const bool close = i - gap_ < kReach, here = gap_ == i;
    constexpr std::size_t kSure = 2;
    return (here && (known_loop(i, target) || new_loop(i, target))) ||
           (close && near(i, 1, kSure, &Symbol::exact, target)) ||
           (here && confirmed(i, next_, &Symbol::name, kGram)) ||
           (close && near(i, kSure + 1, kReach, &Symbol::exact, target)) ||
           (here && confirmed(i, next_, &Symbol::name)) ||
           (close && near(i, 1, kReach, &Symbol::name, target)) || far(i, target);
  }

  // A loop of the pattern that goes round once more, or ends early.
  bool known_loop(std::size_t i, Target& target) {
    const Loop loop = next_ < loops_[pattern_].size() ? loops_[pattern_][next_] : Loop{};
    if (loop.body == 0) return false;
    for (const std::size_t place : {std::size_t{loop.exit}, next_ - loop.body})
      if (place != next_ && confirmed(i, place, &Symbol::name)) {
        target.place = place;
        return true;
      }
    return false;
  }

  // What a short stretch of the pattern holds comes again, as a loop that the pattern has once.
  bool new_loop(std::size_t i, Target& target) {
    for (std::size_t body = 1; body <= std::min(kGram, next_); ++body) {
      const std::size_t begin = next_ - body;
      const auto again = [&](std::size_t from) {
        std::size_t k = 0;
        while (k < body && from + k < stream_.size() && agree(from + k, begin + k, &Symbol::name))
          ++k;
        return k == body;
      };
      if (!again(i) || !(confirmed(i + body, next_, &Symbol::name) || again(i + body))) continue;
      target.place = begin;
      return true;
    }
    return false;
  }

  bool confirmed(std::size_t i, std::size_t place, Key key, std::size_t length = kConfirm) {
    if (i >= stream_.size()) return false;
    length = std::min(length, stream_.size() - i);
    // Behind a step's end any pattern may follow.
    if (choices_ > 1) {
      if (place >= size()) return false;
      length = std::min(length, size() - place);
    }
    for (std::size_t k = 0; k < length; ++k)
      if (!agree(i + k, place + k, key)) return false;
    return true;
  }

  bool near(std::size_t i, std::size_t least, std::size_t most, Key key, Target& target) {
    for (std::size_t total = least; total <= most; ++total)
      for (std::size_t missing = 0; missing <= total; ++missing)
        if (confirmed(i + total - missing, next_ + missing, key)) {
          target.place = next_ + missing;
          target.symbol = i + total - missing;
          return true;
        }
    return false;
  }

  bool far(std::size_t i, Target& target) {
    if (i + gram_ > stream_.size()) return false;
    Target best{pattern_, next_, lap_, i};
    search(i, exact_, &Symbol::exact, 0, best);
    search(i, names_, &Symbol::name, kByName, best);
    if (best.cost == SIZE_MAX) return false;
    target = best;
    return true;
  }

  void search(std::size_t i, const Spots& spots, Key key, std::size_t penalty, Target& best) {
    result_.comparisons += gram_;
    const auto found =
        spots.find(hash([&](std::size_t k) -> const Symbol& { return stream_[i + k]; }, key));
    if (found == spots.end()) return;
    const auto consider = [&](std::uint32_t pattern, std::size_t place, std::uint32_t lap,
                              std::size_t cost, std::size_t length) {
      if (cost + penalty >= best.cost) return;
      for (std::size_t k = 0; k < std::min(length, stream_.size() - i); ++k)
        if (!agree(i + k, pattern, place + k, key)) return;
      best = {pattern, place, lap, i, cost + penalty};
    };
    const std::vector<Spot>& all = found->second;
    const auto own = std::ranges::equal_range(all, pattern_, {}, &Spot::pattern);
    if (!own.empty()) {
      ahead(i, own, consider);
      back(i, own, consider);
    }
    std::size_t others = 0;
    for (auto group = all.begin(); group != all.end() && others < kChoices;) {
      const auto end = std::upper_bound(group, all.end(), Spot{group->pattern, Place::kNone});
      if (group->pattern != pattern_) {
        ++others;
        other(i, std::span(group, end), consider);
      }
      group = end;
    }
  }

  // The place at or after the next one nearest to where the walk should be by now.
  template <class Consider>
  void ahead(std::size_t i, std::span<const Spot> spots, Consider consider) {
    const std::size_t expected = next_ + (i - gap_);
    const std::size_t lap = expected - expected % size();
    const auto offer = [&](std::size_t position) {
      consider(pattern_, position % size(), lap_ + static_cast<std::uint32_t>(position / size()),
               position > expected ? position - expected : expected - position, gram_);
    };
    const auto after = std::ranges::lower_bound(spots, expected % size(), {}, &Spot::place);
    offer(after != spots.end() ? lap + after->place : lap + size() + spots.front().place);
    if (after == spots.begin() && lap < size()) return;
    const std::size_t down =
        after != spots.begin() ? lap + std::prev(after)->place : lap - size() + spots.back().place;
    if (down >= next_) offer(down);
  }

  // A loop that the pattern has once goes round again.
  template <class Consider>
  void back(std::size_t i, std::span<const Spot> spots, Consider consider) {
    const auto after = std::ranges::lower_bound(spots, next_, {}, &Spot::place);
    if (after == spots.begin() || i - gap_ > kReach) return;
    const std::size_t place = std::prev(after)->place;
    consider(pattern_, place, lap_, i - gap_ + kNewLoop,
             std::max(gram_, std::min(next_ - place, 2 * kGram)));
  }

  // Another pattern: as far in the same step, or from its begin in the next.
  template <class Consider>
  void other(std::size_t i, std::span<const Spot> spots, Consider consider) {
    const std::size_t passed = i - gap_;
    const auto offer = [&](const Spot& spot, std::uint32_t lap, std::size_t position,
                           std::size_t cost) {
      const std::size_t expected = next_ + passed;
      consider(spot.pattern, spot.place, lap,
               cost + (position > expected ? position - expected : expected - position), gram_);
    };
    const auto after = std::ranges::lower_bound(spots, next_, {}, &Spot::place);
    if (after != spots.end() && next_ < size()) offer(*after, lap_, after->place, kSwitch);
    offer(spots.front(), lap_ + 1, size() + spots.front().place, 1);
  }

  // Matches the symbols and places between here and the target: one by one where there are as many
  // of both, which is the same kernels in other shapes, else in any order.
  void pass_over(const Target& target) {
    if (gap_ == target.symbol) return;
    const std::size_t whole = size();
    std::size_t until = whole;  // in places counted from the begin of this lap
    if (target.pattern == pattern_ && (target.lap > lap_ || target.place >= next_))
      until = (target.lap - lap_) * whole + target.place;
    const std::size_t symbols = target.symbol - gap_;
    const std::size_t places = std::min(until - next_, std::max(symbols, kPassed));
    used_.assign(places, false);
    if (symbols == until - next_)
      for (std::size_t k = 0; k < symbols; ++k) fill(gap_ + k, k, &Symbol::name);
    for (const Key key : {&Symbol::exact, &Symbol::name})
      for (std::size_t i = gap_; i < target.symbol; ++i)
        for (std::size_t k = 0; k < std::min(places, kPassed); ++k)
          if (fill(i, k, key)) break;
  }

  bool fill(std::size_t i, std::size_t skipped, Key key) {
    if (result_.places[i].found() || used_[skipped] || !agree(i, next_ + skipped, key))
      return false;
    const std::size_t position = next_ + skipped;
    result_.places[i] = {pattern_, static_cast<std::uint32_t>(position % size()),
                         lap_ + static_cast<std::uint32_t>(position / size())};
    used_[skipped] = true;
    return true;
  }

  void take(const Target& target) {
    pattern_ = target.pattern;
    lap_ = target.lap + static_cast<std::uint32_t>(target.place / size());
    next_ = target.place % size();
    result_.places[target.symbol] = {pattern_, static_cast<std::uint32_t>(next_), lap_};
    ++next_;
    gap_ = target.symbol + 1;
  }

  std::span<const Pattern> patterns_;
  std::span<const Symbol> stream_;
  const Likely& likely_;
  std::size_t choices_ = 0;  // patterns that have symbols
  std::size_t gram_ = kGram;
  Spots exact_;
  Spots names_;
  std::vector<std::vector<Loop>> loops_;  // by pattern
  boost::unordered_flat_map<std::uint32_t, std::vector<std::uint32_t>> starts_;
  Walk result_;

  std::uint32_t pattern_ = 0;
  std::size_t next_ = 0;  // the place that should come; size() at a step's end
  std::uint32_t lap_ = 0;
  std::size_t gap_ = 0;  // the first symbol of the stream that is not placed yet
  std::array<std::uint32_t, kChoices> recent_{};
  std::vector<bool> used_;
};

}  // namespace

Walk walk(std::span<const Pattern> patterns, std::span<const Symbol> stream, const Likely& likely) {
  return Walker(patterns, stream, likely).walk();
}

}  // namespace joulediff::attribute
