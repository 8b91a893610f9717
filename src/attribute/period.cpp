// A step begins with something that it has once. Every short gram of the stream is tried as that
// mark: it cuts the stream into segments, and where many segments are equal it is a candidate. A
// mark inside a step (a layer's first kernel) gives itself away, since among its segments a
// different one (the last layer with the head) comes back at a fixed distance; a mark of requests
// with varying numbers of tokens, since its segments are of many lengths. Of those that remain the
// shortest wins that explains the stream, insertions and losses allowed, as well as the best does.
#include "attribute/period.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include <boost/unordered/unordered_flat_map.hpp>

#include "attribute/walk.h"

namespace joulediff::attribute {
namespace {

constexpr std::size_t kSample = 1'000'000;  // symbols in which marks are sought
constexpr std::size_t kProbe = 200'000;     // symbols on which candidates are tried
constexpr std::size_t kGrams[] = {1, 2, 4, 8};
constexpr std::size_t kFewest = 3;  // segments
constexpr std::size_t kMostForms = 8;
constexpr std::size_t kMostCandidates = 32;
constexpr double kAlike = 0.05;   // forms that differ by less are one kind
constexpr double kSlack = 0.02;   // of fit
constexpr double kRegular = 0.9;  // share of the stream in two kinds
constexpr double kSteady = 0.6;   // share of a kind's distances that are equal
constexpr double kLowestFit = 0.5;
constexpr std::uint64_t kMultiplier = 0x9E3779B97F4A7C15ull;

std::uint64_t mix(std::uint64_t x) {
  x = (x ^ (x >> 31)) * 0xBF58476D1CE4E5B9ull;
  return x ^ (x >> 29);
}

struct Mark {
  std::size_t gram = 0;
  std::uint64_t hash = 0;
  std::size_t count = 0;
  double equal = 0;  // share of the sample in segments that occur more than once
  double pause = 0;  // mean before it
  std::size_t first = 0;
};

struct Candidate {
  Mark mark;
  std::vector<Form> forms;
  double length = 0;  // mean, of its segments
  double fit = 0;
};

class Finder {
 public:
  Finder(std::span<const std::uint32_t> symbols, std::span<const Nanoseconds> pauses)
      : all_(symbols), begin_((symbols.size() - std::min(symbols.size(), kSample)) / 2) {
    sample_ = all_.subspan(begin_, std::min(all_.size(), kSample));
    if (pauses.size() == all_.size()) pauses_ = pauses.subspan(begin_, sample_.size());
    sums_.push_back(0);
    powers_.push_back(1);
    for (const std::uint32_t symbol : sample_) {
      sums_.push_back(sums_.back() * kMultiplier + mix(symbol + 1));
      powers_.push_back(powers_.back() * kMultiplier);
    }
  }

  std::optional<Period> find() {
    std::vector<Candidate> candidates;
    for (const Mark& mark : marks())
      if (auto candidate = judge(mark)) candidates.push_back(std::move(*candidate));
    double best = 0;
    for (const Candidate& candidate : candidates) best = std::max(best, candidate.fit);
    std::erase_if(candidates, [&](const Candidate& candidate) {
      return candidate.fit < std::max(best - kSlack, kLowestFit);
    });
    if (candidates.empty()) return std::nullopt;
    // Marks of about the shortest length cut the same steps, at other places.
    const double shortest = std::ranges::min(candidates, {}, &Candidate::length).length;
    const Candidate* chosen = nullptr;
    for (const Candidate& candidate : candidates)
      if (candidate.length <= shortest * (1 + kAlike) &&
          (chosen == nullptr || earlier(candidate.mark, chosen->mark)))
        chosen = &candidate;
    return period(*chosen);
  }

 private:
  std::uint64_t sum(std::size_t from, std::size_t to) const {
    return sums_[to] - sums_[from] * powers_[to - from];
  }

  // Of marks that come equally often, and so cut alike, the one behind the longest pause, else the
  // earliest; from the rarest on, those whose segments are about as equal as those of any rarer.
  std::vector<Mark> marks() const {
    std::map<int, Mark> by_count;
    for (const std::size_t gram : kGrams)
      for (const Mark& mark : marks_of(gram)) {
        const int count = static_cast<int>(std::log(static_cast<double>(mark.count)) / 0.02);
        const auto [found, fresh] = by_count.try_emplace(count, mark);
        if (!fresh && better(mark, found->second)) found->second = mark;
      }
    std::vector<Mark> result;
    double best = 0;
    for (const auto& [count, mark] : by_count) {
      if (mark.equal <= 0 || mark.equal < best - kAlike) continue;
      best = std::max(best, mark.equal);
      result.push_back(mark);
    }
    while (result.size() > kMostCandidates)
      result.erase(std::ranges::min_element(result, {}, &Mark::equal));
    return result;
  }

  static bool better(const Mark& a, const Mark& b) {
    if (std::abs(a.equal - b.equal) > kSlack) return a.equal > b.equal;
    return earlier(a, b);
  }

  static bool earlier(const Mark& a, const Mark& b) {
    return std::tuple(a.pause, b.first) > std::tuple(b.pause, a.first);
  }

  std::vector<Mark> marks_of(std::size_t gram) const {
    struct Seen {
      std::size_t last = 0;
      Mark mark;
    };
    boost::unordered_flat_map<std::uint64_t, Seen> seen;
    struct Segment {
      std::uint64_t mark = 0;
      std::size_t length = 0;
      std::size_t count = 0;
    };
    boost::unordered_flat_map<std::uint64_t, Segment> segments;
    for (std::size_t i = 0; i + gram <= sample_.size(); ++i) {
      const std::uint64_t hash = sum(i, i + gram);
      const auto [found, fresh] = seen.try_emplace(hash, Seen{i, {gram, hash, 0, 0, 0, i}});
      Seen& one = found->second;
      if (!fresh) {
        Segment& segment = segments[mix(hash) ^ mix(sum(one.last, i) + (i - one.last))];
        segment = {hash, i - one.last, segment.count + 1};
        one.last = i;
      }
      ++one.mark.count;
      if (!pauses_.empty()) one.mark.pause += static_cast<double>(pauses_[i]);
    }
    for (const auto& [hash, segment] : segments)
      if (segment.count > 1)
        seen.at(segment.mark).mark.equal += static_cast<double>(segment.length * segment.count) /
                                            static_cast<double>(sample_.size());
    std::vector<Mark> result;
    for (auto& [hash, one] : seen) {
      if (one.mark.count <= kFewest) continue;
      one.mark.pause /= static_cast<double>(one.mark.count);
      result.push_back(one.mark);
    }
    std::ranges::sort(result, {}, &Mark::first);
    return result;
  }

  // Segments between the occurrences of a mark, their kinds, and what they explain.
  std::optional<Candidate> judge(const Mark& mark) const {
    std::vector<Form> segments;
    std::size_t last = SIZE_MAX;
    for (std::size_t i = mark.first; i + mark.gram <= sample_.size(); ++i) {
      if (sum(i, i + mark.gram) != mark.hash) continue;
      if (last != SIZE_MAX) segments.push_back({last, i - last});
      last = i;
    }
    if (segments.size() < kFewest) return std::nullopt;
    const std::vector<Form> forms = common(segments);
    if (forms.empty()) return std::nullopt;
    const std::vector<std::size_t> kind = kinds(forms);

    // A segment that equals no form is of the kind of the form of about its length.
    std::vector<std::size_t> labels;
    std::vector<double> covered(forms.size() + 1);
    double length = 0;
    for (const Form& segment : segments) {
      std::size_t label = forms.size();
      for (std::size_t f = 0; f < forms.size() && label == forms.size(); ++f)
        if (equal(segment, forms[f])) label = kind[f];
      for (std::size_t f = 0; f < forms.size() && label == forms.size(); ++f)
        if (alike(segment.length, forms[f].length)) label = kind[f];
      labels.push_back(label);
      covered[label] += static_cast<double>(segment.length);
      length += static_cast<double>(segment.length);
    }
    if (inside_a_step(labels)) return std::nullopt;
    covered.pop_back();
    std::vector<std::size_t> order(covered.size());
    for (std::size_t k = 0; k < order.size(); ++k) order[k] = k;
    std::ranges::sort(order, [&](std::size_t a, std::size_t b) { return covered[a] > covered[b]; });
    order.resize(std::min<std::size_t>(order.size(), 2));
    double regular = 0;
    for (const std::size_t k : order) regular += covered[k];
    if (regular < kRegular * length) return std::nullopt;

    Candidate result;
    result.mark = mark;
    result.length = length / static_cast<double>(segments.size());
    for (std::size_t f = 0; f < forms.size(); ++f)
      if (std::ranges::find(order, kind[f]) != order.end()) result.forms.push_back(forms[f]);
    const std::size_t probe = std::min(kProbe, sample_.size());
    result.fit = share(follow(result.forms, sample_.subspan((sample_.size() - probe) / 2, probe)));
    return result;
  }

  bool equal(const Form& a, const Form& b) const {
    return a.length == b.length &&
           sum(a.begin, a.begin + a.length) == sum(b.begin, b.begin + b.length);
  }

  static bool alike(std::size_t a, std::size_t b) {
    const auto more = static_cast<double>(std::max(a, b));
    return more - static_cast<double>(std::min(a, b)) <= kAlike * more;
  }

  // The segments that occur more than once, those that cover the most first.
  std::vector<Form> common(const std::vector<Form>& segments) const {
    struct Seen {
      Form form;
      std::size_t count = 0;
    };
    boost::unordered_flat_map<std::uint64_t, Seen> seen;
    for (const Form& segment : segments) {
      Seen& one = seen[sum(segment.begin, segment.begin + segment.length) ^ mix(segment.length)];
      if (one.count++ == 0) one.form = segment;
    }
    std::vector<Seen> order;
    for (const auto& [hash, one] : seen)
      if (one.count > 1) order.push_back(one);
    std::ranges::sort(order, [](const Seen& a, const Seen& b) {
      return std::tuple(a.form.length * a.count, b.form.begin) >
             std::tuple(b.form.length * b.count, a.form.begin);
    });
    std::vector<Form> forms;
    for (const Seen& one : order)
      if (forms.size() < kMostForms) forms.push_back(one.form);
    return forms;
  }

  // Forms that explain one another are of one kind, numbered by its first form.
  std::vector<std::size_t> kinds(const std::vector<Form>& forms) const {
    std::vector<std::size_t> result;
    for (std::size_t f = 0; f < forms.size(); ++f) {
      std::size_t kind = f;
      for (std::size_t other = 0; other < f && kind == f; ++other)
        if (result[other] == other && alike(forms[f].length, forms[other].length) &&
            share(follow({forms[other]}, sample_.subspan(forms[f].begin, forms[f].length))) >=
                1 - kAlike)
          kind = other;
      result.push_back(kind);
    }
    return result;
  }

  // Some kind comes back at a fixed distance: together with what is between it is the step.
  static bool inside_a_step(const std::vector<std::size_t>& labels) {
    std::map<std::size_t, std::vector<std::size_t>> places;
    for (std::size_t i = 0; i < labels.size(); ++i) places[labels[i]].push_back(i);
    for (const auto& [label, at] : places) {
      if (at.size() < kFewest) continue;
      std::map<std::size_t, std::size_t> distances;
      for (std::size_t i = 1; i < at.size(); ++i) ++distances[at[i] - at[i - 1]];
      const auto most =
          std::ranges::max_element(distances, {}, [](const auto& d) { return d.second; });
      if (most->first > 1 &&
          static_cast<double>(most->second) >= kSteady * static_cast<double>(at.size() - 1))
        return true;
    }
    return false;
  }

  Walk follow(const std::vector<Form>& forms, std::span<const std::uint32_t> symbols) const {
    std::vector<Pattern> patterns;
    patterns.reserve(forms.size());
    for (const Form& form : forms)
      patterns.push_back(pattern(sample_.subspan(form.begin, form.length)));
    return walk(patterns, pattern(symbols));
  }

  static Pattern pattern(std::span<const std::uint32_t> symbols) {
    Pattern result;
    result.reserve(symbols.size());
    for (const std::uint32_t symbol : symbols) result.push_back({symbol, symbol});
    return result;
  }

  static double share(const Walk& walked) {
    const auto found = std::ranges::count_if(walked.places, &Place::found);
    return static_cast<double>(found) / static_cast<double>(walked.places.size());
  }

  Period period(const Candidate& candidate) const {
    Period result;
    result.length = candidate.forms.front().length;
    const Walk walked = follow(candidate.forms, all_);
    result.fit = share(walked);
    Place last;
    for (std::size_t i = 0; i < walked.places.size(); ++i) {
      const Place& at = walked.places[i];
      if (!at.found() || (last.found() && at.lap <= last.lap)) continue;
      if (std::size_t{2} * at.place < candidate.forms[at.pattern].length)
        result.boundaries.push_back(i);
      last = at;
    }
    result.forms.reserve(candidate.forms.size());
    for (Form form : candidate.forms) {
      form.begin += begin_;
      result.forms.push_back(form);
    }
    return result;
  }

  std::span<const std::uint32_t> all_;
  std::size_t begin_ = 0;
  std::span<const std::uint32_t> sample_;
  std::span<const Nanoseconds> pauses_;
  std::vector<std::uint64_t> sums_;
  std::vector<std::uint64_t> powers_;
};

}  // namespace

std::optional<Period> find_period(std::span<const std::uint32_t> symbols,
                                  std::span<const Nanoseconds> pauses) {
  if (symbols.size() < kFewest) return std::nullopt;
  return Finder(symbols, pauses).find();
}

}  // namespace joulediff::attribute
