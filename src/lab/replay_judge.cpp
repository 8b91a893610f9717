#include "lab/replay_judge.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <optional>

#include <boost/math/distributions/students_t.hpp>

#include "lab/clock.h"

namespace joulediff::lab {
namespace {

constexpr std::size_t kLeastChunks = 3;
constexpr std::uint64_t kMostOperators = 1'000'000;
constexpr std::uint64_t kMostExecutions = 1'000'000'000'000;
constexpr std::uint64_t kLongestChunk = 86'400'000'000'000;  // a day
constexpr std::uint64_t kLatest = std::uint64_t{1} << 61;
constexpr std::uint64_t kAlways = 4;  // taken whatever the budget: the two floors, two operators

// Exactly N of them, each after one blank but the first.
template <std::size_t N>
std::optional<std::array<std::uint64_t, N>> numbers(std::string_view text) {
  std::array<std::uint64_t, N> all{};
  const char* at = text.data();
  const char* const end = at + text.size();
  for (std::size_t i = 0; i < N; ++i) {
    if (i > 0 && (at == end || *at++ != ' ')) return std::nullopt;
    const auto [rest, error] = std::from_chars(at, end, all[i]);
    if (error != std::errc()) return std::nullopt;
    at = rest;
  }
  return at == end ? std::optional(all) : std::nullopt;
}

double student_97_5(std::size_t degrees) {
  return boost::math::quantile(boost::math::students_t(static_cast<double>(degrees)), 0.975);
}

// The meter at `time`, between the readings about it. None outside them.
std::optional<double> at(std::span<const Reading> readings, Nanoseconds time) {
  const auto after = std::lower_bound(readings.begin(), readings.end(), time,
                                      [](const Reading& r, Nanoseconds t) { return r.time < t; });
  if (after == readings.end()) return std::nullopt;
  if (after->time == time) return after->value;
  if (after == readings.begin()) return std::nullopt;
  const auto before = std::prev(after);
  const double part =
      static_cast<double>(time - before->time) / static_cast<double>(after->time - before->time);
  return before->value + part * (after->value - before->value);
}

Nanoseconds half_width_near(std::span<const Reading> readings, Nanoseconds time) {
  const auto after = std::lower_bound(readings.begin(), readings.end(), time,
                                      [](const Reading& r, Nanoseconds t) { return r.time < t; });
  return after == readings.end() ? 0 : after->half_width;
}

}  // namespace

JudgePolicy board_policy() {
  return {300 * kMillisecond, 1200 * kMillisecond, 1, 0.02, 250 * kMillisecond, 800 * kMillisecond};
}
JudgePolicy host_policy() {
  return {0, 250 * kMillisecond, 10, 0.02, 50 * kMillisecond, 100 * kMillisecond};
}

Precision precision(std::span<const Chunk> chunks, std::span<const Reading> readings,
                    const JudgePolicy& policy) {
  Precision result;
  if (chunks.empty()) return result;
  const Nanoseconds settled = chunks.front().begin + policy.settling;
  std::vector<double> each;  // energy per execution
  std::optional<Nanoseconds> begin;
  Nanoseconds end = 0;
  for (const Chunk& chunk : chunks) {
    if (chunk.begin < settled || chunk.count == 0) continue;
    const auto from = at(readings, chunk.begin), to = at(readings, chunk.end);
    if (!from || !to) continue;
    each.push_back((*to - *from) / static_cast<double>(chunk.count));
    if (!begin) begin = chunk.begin;
    end = chunk.end;
    result.count += chunk.count;
  }
  if (!begin) return result;
  result.window = end - *begin;
  if (each.size() < kLeastChunks || result.window <= 0) return result;

  const auto n = static_cast<double>(each.size());
  double mean = 0, squares = 0;
  for (double x : each) mean += x / n;
  for (double x : each) squares += (x - mean) * (x - mean);
  if (mean <= 0) return result;
  const double spread = student_97_5(each.size() - 1) * std::sqrt(squares / (n - 1) / n) / mean;
  const double ends = std::hypot(static_cast<double>(half_width_near(readings, *begin)),
                                 static_cast<double>(half_width_near(readings, end))) /
                      static_cast<double>(result.window);
  result.relative = std::hypot(spread, ends);
  return result;
}

std::string ReplayJudge::refuse(const char* answer) {
  ++tally_.refused;
  return answer;
}

// Few operators measured well tell more than many measured too shortly for the meter: as many are
// taken as the budget has room for, and always the floor and the costliest.
std::string ReplayJudge::plan(std::uint64_t count) {
  left_ = std::max<Nanoseconds>(0, budget_());
  const auto room = static_cast<std::uint64_t>(left_ / policy_.least_share);
  accepted_ = std::clamp(room, std::min(kAlways, count), count);
  tally_.planned = count;
  tally_.cut = count - accepted_;
  return "replay " + std::to_string(accepted_);
}

std::string ReplayJudge::answer(std::string_view line) {
  if (line.starts_with("plan ")) {
    const auto count = numbers<1>(line.substr(5));
    return count && count->front() <= kMostOperators ? plan(count->front()) : refuse("replay 0");
  }
  if (!line.starts_with("replay ")) return refuse("");
  const auto said = numbers<4>(line.substr(7));
  if (!said) return refuse("enough");
  const auto [signature, begin, end, count] = *said;
  if (begin > kLatest || end > kLatest || end < begin || end - begin > kLongestChunk ||
      count > kMostExecutions)
    return refuse("enough");
  const Chunk chunk{static_cast<Nanoseconds>(begin), static_cast<Nanoseconds>(end), count};
  if (chunk.end <= chunk.begin || chunk.count == 0) return refuse("enough");
  if (left_ < 0) left_ = std::max<Nanoseconds>(0, budget_());

  Subject& subject = subjects_[signature];
  if (subject.done) return "enough";
  if (subject.chunks.empty()) {
    // What the operators before did not need is shared out among those that remain.
    const std::uint64_t ended = subjects_.size() - 1;
    const std::uint64_t remaining = accepted_ > ended ? accepted_ - ended : 1;
    subject.share = std::max(left_ / static_cast<Nanoseconds>(remaining), policy_.least_share);
  }
  subject.chunks.push_back(chunk);
  return judge(subject);
}

std::string ReplayJudge::judge(Subject& subject) {
  const std::vector<Chunk>& chunks = subject.chunks;
  const Nanoseconds spent = chunks.back().end - chunks.front().begin;
  const bool reached = precision(chunks, readings_(chunks.front().begin), policy_).reached(policy_);
  if (reached || spent >= subject.share) {
    subject.done = true;
    ++(reached ? tally_.measured : tally_.cut);
    left_ = std::max<Nanoseconds>(0, left_ - spent);
    tally_.spent += spent;
    return "enough";
  }
  const Chunk& last = chunks.back();
  const Nanoseconds wanted = std::clamp(subject.share - spent, policy_.chunk / 4, policy_.chunk);
  const double each = static_cast<double>(last.end - last.begin) / static_cast<double>(last.count);
  const double more = std::clamp(std::round(static_cast<double>(wanted) / each), 1.0, 1e9);
  return "more " + std::to_string(static_cast<std::uint64_t>(more));
}

}  // namespace joulediff::lab
