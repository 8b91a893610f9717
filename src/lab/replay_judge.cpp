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
constexpr Nanoseconds kLook = 300 * kMillisecond;  // at the clock, six samples of it
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
// Those with operands that are cold in the cache come on top where all the others have enough.
std::string ReplayJudge::plan(std::uint64_t count, std::optional<std::uint64_t> cold) {
  left_ = std::max<Nanoseconds>(0, budget_());
  const auto room = static_cast<std::uint64_t>(left_ / policy_.least_share);
  accepted_ = std::clamp(room, std::min(kAlways, count), count);
  tally_.planned = count;
  tally_.cut = count - accepted_;
  if (!cold) return "replay " + std::to_string(accepted_);
  const Nanoseconds whole = policy_.settling + policy_.least_window + policy_.chunk;
  const auto full = static_cast<std::uint64_t>(left_ / whole);
  const std::uint64_t extra = full > accepted_ ? std::min(*cold, full - accepted_) : 0;
  const std::string answer = "replay " + std::to_string(accepted_) + " " + std::to_string(extra);
  accepted_ += extra;
  tally_.planned += extra;
  return answer;
}

// The device's state in the program's trace, which the replay is to have too.
void ReplayJudge::trace(Nanoseconds begin, Nanoseconds end, std::uint64_t steps) {
  program_ = conditions(begin, end);
  period_ = std::max<Nanoseconds>(1, (end - begin) / static_cast<Nanoseconds>(steps));
}

Conditions ReplayJudge::conditions(Nanoseconds begin, Nanoseconds end) const {
  Conditions found = state_(begin, end);
  const std::vector<Reading> readings = readings_(begin);
  if (readings.size() < 2) return found;
  // A trace may reach further back than what the sampler remembers.
  const Nanoseconds from = std::max(begin, readings.front().time);
  const Nanoseconds to = std::min(end, readings.back().time);
  const auto first = at(readings, from), last = at(readings, to);
  if (first && last && to > from) found.power = (*last - *first) / static_cast<double>(to - from);
  return found;
}

std::string ReplayJudge::answer(std::string_view line) {
  if (line.starts_with("plan ")) {
    const std::string_view rest = line.substr(5);
    if (const auto count = numbers<1>(rest); count && count->front() <= kMostOperators)
      return plan(count->front(), std::nullopt);
    const auto both = numbers<2>(rest);
    return both && both->front() <= kMostOperators && both->back() <= kMostOperators
               ? plan(both->front(), both->back())
               : refuse("replay 0");
  }
  if (line.starts_with("trace ")) {
    const auto said = numbers<3>(line.substr(6));
    if (!said || (*said)[1] > kLatest || (*said)[0] >= (*said)[1] || (*said)[2] == 0 ||
        (*said)[2] > kMostExecutions)
      return refuse("");
    trace(static_cast<Nanoseconds>((*said)[0]), static_cast<Nanoseconds>((*said)[1]), (*said)[2]);
    return "";
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
  if (subject.share == 0) {
    subject.begin = chunk.begin;
    // What the operators before did not need is shared out among those that remain.
    const std::uint64_t ended = subjects_.size() - 1;
    const std::uint64_t remaining = accepted_ > ended ? accepted_ - ended : 1;
    subject.share = std::max(left_ / static_cast<Nanoseconds>(remaining), policy_.least_share);
  }
  subject.chunks.push_back(chunk);
  return judge(subject);
}

// Whether the subject goes on at another pace. Until the meter and the clock have settled nothing
// is said of the one that it has.
bool ReplayJudge::repaced(Subject& subject) {
  if (period_ == 0) return false;
  const Nanoseconds from = subject.chunks.front().begin + policy_.settling;
  const Nanoseconds to = subject.chunks.back().end;
  if (to - from < kLook) return false;
  if (!subject.pacing) subject.pacing.emplace(program_, period_);
  const auto next = subject.pacing->next(conditions(from, to));
  if (!next) return false;
  if (!subject.pace) ++tally_.paced;
  subject.pace = next;
  subject.chunks.clear();
  return true;
}

// `each`: nanoseconds that an execution takes, with its part of the pauses.
std::string ReplayJudge::more(const Subject& subject, Nanoseconds spent, double each) const {
  const Nanoseconds wanted = std::clamp(subject.share - spent, policy_.chunk / 4, policy_.chunk);
  const double count = std::clamp(std::round(static_cast<double>(wanted) / each), 1.0, 1e9);
  const std::string number = std::to_string(static_cast<std::uint64_t>(count));
  if (!subject.pace) return "more " + number;
  return "pace " + number + " " + std::to_string(subject.pace->burst) + " " +
         std::to_string(subject.pace->idle);
}

std::string ReplayJudge::judge(Subject& subject) {
  const Chunk last = subject.chunks.back();
  const Nanoseconds spent = last.end - subject.begin;
  const double each = static_cast<double>(last.end - last.begin) / static_cast<double>(last.count);
  const bool ended = spent >= subject.share;
  const double before = subject.pace ? subject.pace->duty() : 1;
  if (!ended && repaced(subject)) {
    // What was measured at another clock is no part of it: it gets as long as one that was not.
    subject.share = std::max(subject.share, std::min(left_, subject.share + spent));
    return more(subject, spent, each * before / subject.pace->duty());
  }
  const bool reached =
      precision(subject.chunks, readings_(subject.chunks.front().begin), policy_).reached(policy_);
  if (!reached && !ended) return more(subject, spent, each);
  subject.done = true;
  ++(reached ? tally_.measured : tally_.cut);
  left_ = std::max<Nanoseconds>(0, left_ - spent);
  tally_.spent += spent;
  return "enough";
}

}  // namespace joulediff::lab
