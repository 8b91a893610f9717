// The counter's ticks say how much was drawn since the first, each at an instant that is known to
// within some milliseconds. The board's ring and its instant field say how much was drawn within
// windows of some tens of milliseconds, with a gain of their own. Both are sums of what ran: calls
// of each operator x its joules, static power, and what of kernels side by side is not the sum of
// them.
#include "attribute/mixture.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "meter/calibrate.h"
#include "meter/stretch.h"

namespace joulediff::attribute {
namespace {

// The costliest in time; all others are one.
constexpr std::size_t kMostClasses = 60;
constexpr double kGain = 0.05;       // by which a board's sensors differ, 95 %
constexpr double kSideBySide = 0.2;  // of dynamic power, 95 %

}  // namespace

bool is_missing(const UnitCost& unit, const Usage& usage) {
  return !unit.known && usage.calls > 0;
}

Mixture::Mixture(const Traced& traced, const std::vector<UnitCost>& units)
    : traced_(traced), class_of_(units.size(), kNone) {
  std::map<run::SignatureId, Class> own;
  for (std::size_t i = 0; i < units.size(); ++i) {
    const Usage& usage = traced.spent.usage[i];
    if (!is_missing(units[i], usage)) continue;
    Class& one = own[traced.run.operators[i].signature];
    one.calls += usage.calls;
    one.seconds += usage.seconds;
  }
  std::vector<run::SignatureId> order;
  for (const auto& [signature, one] : own)
    if (signature.valid()) order.push_back(signature);
  std::ranges::stable_sort(order, std::greater<>(), [&](auto one) { return own[one].seconds; });
  order.resize(std::min(order.size(), kMostClasses));
  std::map<run::SignatureId, std::size_t> number;
  for (const run::SignatureId signature : order) {
    number.emplace(signature, classes_.size());
    classes_.push_back(own[signature]);
  }
  layout_.classes = classes_.size();
  for (std::size_t i = 0; i < units.size(); ++i) {
    if (!is_missing(units[i], traced.spent.usage[i])) continue;
    const auto found = number.find(traced.run.operators[i].signature);
    class_of_[i] = found == number.end() ? layout_.pooled() : found->second;
  }
  idle_ = meter::idle_power(traced.meter, traced.block);
  add_counter();
  add_samples();
  believe(units);
  presence_.emplace(presence_of(units));
}

Nanoseconds Mixture::middle() const {
  return traced_.reading.begin + (traced_.reading.end - traced_.reading.begin) / 2;
}

// From the first tick to each of the others: their errors are apart.
void Mixture::add_counter() {
  Readings counter;
  meter::Stamps stamps;
  const auto all =
      meter::stretches(traced_.meter, traced_.block, traced_.reading.begin, traced_.reading.end);
  if (const meter::Stretch* ticks = meter::longest(all)) {
    const double watts = traced_.reading.power().value;
    for (const meter::Tick& tick : *ticks) {
      stamps.end.push_back(tick.time);
      counter.value.push_back(tick.joules - ticks->front().joules);
      counter.deviation.push_back(std::max(1e-3, watts * tick.uncertainty / std::sqrt(3.0)));
    }
  }
  counter.stamps = {std::move(stamps)};
  sources_.push_back(std::move(counter));
}

// Where there is a ring it is finer than the field.
void Mixture::add_samples() {
  for (meter::PowerSamples& one : meter::power_samples(
           traced_.meter, traced_.block, traced_.reading.begin, traced_.reading.end)) {
    Readings readings;
    readings.polled = !one.window;
    readings.windows = one.window ? std::vector<double>{*one.window} : windows(one.source);
    readings.deviation.assign(one.watts.size(), 0.01 * traced_.reading.power().value);
    readings.value = std::move(one.watts);
    readings.stamps = std::move(one.stamps);
    if (sources_.size() > 1 && readings.polled) continue;
    sources_.resize(1);
    sources_.push_back(std::move(readings));
  }
}

// As calibrated; else those of boards that were measured (docs/simulate.md has the sources).
std::vector<double> Mixture::windows(run::Source source) const {
  const auto counter =
      std::ranges::find(traced_.block.series, traced_.meter.source, &run::Series::source);
  if (counter != traced_.block.series.end())
    if (const auto profile = meter::profile_of(traced_.run, counter->channel)) {
      const auto sensor = std::ranges::find(profile->sensors, source, &meter::SensorModel::source);
      if (sensor != profile->sensors.end() && sensor->window.identified())
        return {sensor->window.value};
    }
  return {0.025, 0.01, 0.05, 0.1};
}

void Mixture::believe(const std::vector<UnitCost>& units) {
  const Timeline& spent = traced_.spent;
  double others = spent.busy + spent.waiting;
  double joules =
      (traced_.reading.energy.joules - traced_.floor.watts * traced_.reading.seconds()).value;
  for (std::size_t i = 0; i < units.size(); ++i)
    if (class_of_[i] == kNone) {
      others -= spent.usage[i].share;
      joules -= spent.usage[i].calls * units[i].joules;
    }
  const double watts = others > 0 ? std::max(0.0, joules / others) : 0;
  // A watt is as good as another: the mean, give or take itself.
  for (const Class& one : classes_) {
    const double each = watts * one.seconds / one.calls;
    prior_.push_back({each, each});
  }
  const double seconds = traced_.reading.seconds().value;
  prior_.push_back({watts, watts});
  prior_.push_back({1, kGain});
  prior_.push_back({0, std::max(1e-3, traced_.floor.half_width.value), true});
  prior_.push_back({0, idle_ ? idle_->half_width.value : kGain * traced_.floor.watts.value, true});
  prior_.push_back({0, kSideBySide * watts, true});
  prior_.push_back({0, 0.1 * traced_.reading.energy.joules.value / std::max(seconds, 1e-3), true});
  for (std::size_t s = 1; s < sources_.size(); ++s) prior_.push_back({0, kGain, true});
}

Presence Mixture::presence_of(const std::vector<UnitCost>& units) const {
  const run::KernelSeries& trace = traced_.trace;
  std::vector<std::uint32_t> classes(trace.size());
  std::vector<float> amounts(trace.size());
  for (std::size_t i = 0; i < trace.size(); ++i) {
    const run::OperatorId op = traced_.recognition.op[i];
    const std::size_t own = op.valid() ? class_of_[op.index()] : layout_.pooled();
    const float calls = traced_.recognition.calls[i];
    if (own < layout_.classes) {
      classes[i] = static_cast<std::uint32_t>(own);
      amounts[i] = calls;
    } else if (own == kNone) {
      classes[i] = static_cast<std::uint32_t>(layout_.known());
      amounts[i] = static_cast<float>(units[op.index()].joules) * calls;
    } else {
      classes[i] = static_cast<std::uint32_t>(layout_.pooled());
      amounts[i] = static_cast<float>(to_seconds(trace.duration[i]).value);
    }
  }
  return {trace, std::move(classes), std::move(amounts), layout_.kinds()};
}

std::vector<Observation> Mixture::observe(const Assumed& tried) const {
  std::vector<Observation> all;
  for (std::size_t s = 0; s < sources_.size(); ++s) {
    const Readings& source = sources_[s];
    const std::vector<Nanoseconds>& ends = source.stamps[s > 0 ? tried.stamps : 0].end;
    std::vector<Nanoseconds> times;
    std::vector<std::pair<Nanoseconds, Nanoseconds>> spans;
    for (const Nanoseconds end : ends) {
      Nanoseconds to = end, from = ends.front();
      if (s == 0) {
        to -= tried.late;
        from -= tried.late;
      }
      if (source.polled)
        to += tried.shift +
              static_cast<Nanoseconds>(tried.drift * static_cast<double>(end - middle()));
      if (s > 0) from = to - std::llround(1e9 * tried.window);
      spans.emplace_back(from, to);
      times.insert(times.end(), {from, to});
    }
    std::ranges::sort(times);
    const auto [last, end] = std::ranges::unique(times);
    times.erase(last, end);
    // The counter's own lag holds back like the board's capacitors.
    const std::vector<Present> present =
        presence_->up_to(times, tried.response + (s == 0 ? traced_.meter.lag : 0));
    const auto at = [&](Nanoseconds time) -> const Present& {
      return present[static_cast<std::size_t>(std::ranges::lower_bound(times, time) -
                                              times.begin())];
    };
    for (std::size_t k = 0; k < spans.size(); ++k)
      all.push_back(observation(s, k, spans[k], at(spans[k].first), at(spans[k].second)));
  }
  return all;
}

Observation Mixture::observation(std::size_t source, std::size_t k,
                                 std::pair<Nanoseconds, Nanoseconds> span, const Present& from,
                                 const Present& to) const {
  const double seconds = to_seconds(span.second - span.first).value;
  const double idle = seconds - (to.busy - from.busy);
  // Of the counter in joules, of the others in watts.
  const double unit = source == 0 ? 1 : seconds;
  const double reading = sources_[source].value[k];
  Observation one{reading, sources_[source].deviation[k], source,
                  std::vector<double>(prior_.size())};
  const double floor = traced_.floor.watts.value;
  one.value -= floor * seconds / unit;
  if (idle_) one.value -= (idle_->watts.value - floor) * idle / unit;
  for (std::size_t j = 0; j < layout_.kinds(); ++j)
    one.amounts[j] = (to.amounts[j] - from.amounts[j]) / unit;
  one.amounts[layout_.floor()] = seconds / unit;
  one.amounts[layout_.idle()] = idle / unit;
  one.amounts[layout_.beside()] = (to.overlapped - from.overlapped) / unit;
  if (source == 0)
    one.amounts[layout_.start()] = 1;
  else
    one.amounts[layout_.gain(source)] = reading;
  return one;
}

}  // namespace joulediff::attribute
