// Within two ticks the power has the shape of the ring's samples, else of the instant field, else
// none. A reading stands for the time since the one before it, and its edge may lie anywhere in it,
// so a cell may as well have its neighbours' power: half the difference is its half width, together
// with what the shape had to be stretched by to have the counter's joules. Without a shape the
// power is anything up to all of the interval's joules.
//
// The energy of a part of an interval is no less certain than that of the rest, since both have a
// known sum.
#include "meter/curve.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "meter/sensor.h"

namespace joulediff::meter {
namespace {

constexpr double kBothEnds = 1.1;  // as for a reading (meter/reading.cpp)

double seconds(Nanoseconds from, Nanoseconds to) {
  return to_seconds(to - from).value;
}

// Power by pieces; where nothing is known there is no piece.
struct Piece {
  Nanoseconds begin = 0, end = 0;
  double watts = 0;
};

// A reading stands for the time since the one before it, but for no longer than `most`.
std::vector<Piece> pieces(const run::Block& block, run::Source source, const std::string& channel,
                          Nanoseconds most) {
  std::vector<Piece> all;
  for (const run::Series& series : block.series) {
    if (series.source != source || series.channel != channel) continue;
    const Updates readings = updates(series);
    for (std::size_t i = 1; i < readings.size(); ++i)
      if (readings.time[i] > readings.time[i - 1])
        all.push_back({std::max(readings.time[i - 1], readings.time[i] - most), readings.time[i],
                       readings.value[i]});
  }
  std::ranges::sort(all, {}, &Piece::begin);
  return all;
}

// `finer`, and in its gaps what `coarser` has.
std::vector<Piece> filled(const std::vector<Piece>& finer, const std::vector<Piece>& coarser) {
  std::vector<Piece> all = finer;
  Nanoseconds covered = coarser.empty() ? 0 : coarser.front().begin;
  std::size_t next = 0;
  for (const Piece& piece : coarser) {
    covered = std::max(covered, piece.begin);
    while (next < finer.size() && finer[next].begin < piece.end) {
      if (finer[next].begin > covered) all.push_back({covered, finer[next].begin, piece.watts});
      covered = std::max(covered, finer[next].end);
      if (finer[next].end > piece.end) break;
      ++next;
    }
    if (covered < piece.end) all.push_back({covered, piece.end, piece.watts});
    covered = std::max(covered, piece.end);
  }
  std::ranges::sort(all, {}, &Piece::begin);
  return all;
}

using Cell = PowerCurve::Cell;

// The shape between two ticks, closed against the counter's joules.
void add_cells(const std::vector<Piece>& shape, Nanoseconds begin, Nanoseconds end, double joules,
               std::vector<Cell>& cells) {
  const std::size_t first = cells.size();
  const double flat = joules / seconds(begin, end);
  auto piece = std::ranges::lower_bound(shape, begin, {}, &Piece::end);
  double shaped = 0, unshaped = 0;  // joules, seconds
  Nanoseconds now = begin;
  const auto add = [&](Nanoseconds until, std::optional<double> watts) {
    if (until <= now) return;
    cells.push_back({now, until, watts.value_or(-1), 0});
    (watts ? shaped : unshaped) += seconds(now, until) * watts.value_or(1);
    now = until;
  };
  for (; piece != shape.end() && piece->begin < end; ++piece) {
    add(std::min(end, piece->begin), std::nullopt);
    add(std::min(end, piece->end), piece->watts);
  }
  add(end, std::nullopt);
  // What has no shape takes the mean; the rest is stretched to what then remains.
  const double rest = joules - flat * unshaped;
  const double stretch = shaped > 0 ? rest / shaped : 1;
  for (std::size_t i = first; i < cells.size(); ++i) {
    Cell& cell = cells[i];
    const bool has_shape = cell.watts >= 0;
    const double before = cell.watts;
    cell.watts = !has_shape ? flat : shaped > 0 ? before * stretch : flat;
    cell.half_width = has_shape ? std::abs(cell.watts - before) : flat;
  }
}

void add_neighbours(std::vector<Cell>& cells) {
  std::vector<double> apart(cells.size());
  for (std::size_t i = 0; i < cells.size(); ++i) {
    if (i > 0) apart[i] = std::abs(cells[i].watts - cells[i - 1].watts);
    if (i + 1 < cells.size())
      apart[i] = std::max(apart[i], std::abs(cells[i].watts - cells[i + 1].watts));
  }
  for (std::size_t i = 0; i < cells.size(); ++i) cells[i].half_width += apart[i] / 2;
}

const run::Series* counter_with(const run::Block& block, const Meter& meter, Nanoseconds first,
                                Nanoseconds last) {
  for (const run::Series& series : block.series)
    if (series.source == meter.source && series.channel == meter.channels.front() &&
        std::ranges::binary_search(series.time, first) &&
        std::ranges::binary_search(series.time, last))
      return &series;
  return nullptr;
}

}  // namespace

std::optional<PowerCurve> power_curve(const Meter& meter, const run::Block& block,
                                      Nanoseconds begin, Nanoseconds end) {
  constexpr Nanoseconds kRing = 60'000'000, kField = 150'000'000;
  if (meter.channels.size() != 1 || !run::is_energy_counter(meter.source)) return std::nullopt;
  PowerCurve curve;
  curve.ticks_ = ticks(meter, block, begin, end);
  if (curve.ticks_.size() < static_cast<std::size_t>(kMinimumTicks)) return std::nullopt;
  const run::Series* counter =
      counter_with(block, meter, curve.ticks_.front(), curve.ticks_.back());
  if (!counter) return std::nullopt;
  const std::string& channel = meter.channels.front();
  const std::vector<Piece> shape =
      filled(pieces(block, run::Source::nvml_power_samples, channel, kRing),
             filled(pieces(block, run::Source::nvml_power_instant, channel, kField),
                    pieces(block, run::Source::amd_power, channel, kField)));
  const auto index = [&](Nanoseconds time) {
    return static_cast<std::size_t>(std::ranges::lower_bound(counter->time, time) -
                                    counter->time.begin());
  };
  const double scale = unit(meter.source);
  for (std::size_t i = 0; i < curve.ticks_.size(); ++i) {
    const std::size_t here = index(curve.ticks_[i]);
    curve.uncertainty_.push_back(
        counter->uncertainty.empty() ? 0.01 : to_seconds(counter->uncertainty[here]).value);
    if (i == 0) continue;
    const std::size_t before = index(curve.ticks_[i - 1]);
    add_cells(shape, curve.ticks_[i - 1], curve.ticks_[i],
              scale * static_cast<double>(counter->value[here] - counter->value[before]),
              curve.cells_);
  }
  add_neighbours(curve.cells_);
  return curve;
}

std::optional<Energy> PowerCurve::energy(Nanoseconds from, Nanoseconds to) const {
  if (from >= to || from < ticks_.front() || to > ticks_.back()) return std::nullopt;
  double joules = 0, uncertain = 0;
  std::size_t cell = 0;
  bool whole = true;
  const auto last = static_cast<std::size_t>(std::ranges::lower_bound(ticks_, to) - ticks_.begin());
  const auto first =
      static_cast<std::size_t>(std::ranges::upper_bound(ticks_, from) - ticks_.begin());
  while (cells_[cell].end <= ticks_[first - 1]) ++cell;
  for (std::size_t i = first; i <= last; ++i) {
    double inside = 0, outside = 0;  // uncertain joules of the part asked for, and of the rest
    for (; cell < cells_.size() && cells_[cell].end <= ticks_[i]; ++cell) {
      const Cell& one = cells_[cell];
      const double part = std::max(0.0, seconds(std::max(from, one.begin), std::min(to, one.end)));
      joules += one.watts * part;
      inside += one.half_width * part;
      outside += one.half_width * (seconds(one.begin, one.end) - part);
    }
    uncertain = std::hypot(uncertain, std::min(inside, outside));
    whole = whole && from <= ticks_[i - 1] && ticks_[i] <= to;
  }
  const double watts = joules / seconds(from, to);
  const double ends = kBothEnds * watts * std::hypot(uncertainty_[first - 1], uncertainty_[last]);
  return Energy::around(Joules(joules), Joules(std::hypot(uncertain, ends)),
                        whole ? Standing::measured : Standing::estimated);
}

}  // namespace joulediff::meter
