// With x constant, a first-order response y of time constant t obeys y' = (x - y) / t, so that over
// any time the integral of y is that of x less t times what y rose by: the joules that are still
// held back. Two in a row have the same closed form, so no step of a solver is ever taken.
#include "simulate/waveform.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace joulediff::simulate {
namespace {

class Held {
 public:
  Held(Response response, double watts) : response_(response), y_(watts), z_(watts) {
    // The closed form of two equal time constants is another; a millionth apart is as good.
    if (response_.lag > 0 && response_.lag == response_.ramp) response_.lag *= 1 + 1e-6;
  }

  // Lets `seconds` pass at `x` watts and returns the joules that came out.
  double pass(double x, double seconds) {
    const double y = y_, z = z_;
    const double ramp = response_.ramp, lag = response_.lag;
    const double of_ramp = ramp > 0 ? std::exp(-seconds / ramp) : 0;
    y_ = x + (y - x) * of_ramp;
    if (lag > 0) {
      const double of_lag = std::exp(-seconds / lag);
      const double both = ramp > 0 ? (y - x) * ramp / (ramp - lag) * (of_ramp - of_lag) : 0;
      z_ = x + (z - x) * of_lag + both;
    }
    return x * seconds - (ramp > 0 ? ramp * (y_ - y) : 0) - (lag > 0 ? lag * (z_ - z) : 0);
  }

 private:
  Response response_;
  double y_, z_;
};

}  // namespace

void Waveform::add(Nanoseconds until, double watts) {
  if (until <= end()) return;
  if (!watts_.empty() && watts_.back() == watts) {
    until_.back() = until;
    return;
  }
  until_.push_back(until);
  watts_.push_back(watts);
}

std::vector<double> Waveform::joules_at(std::span<const Nanoseconds> times,
                                        Response response) const {
  JD_CHECK(std::ranges::is_sorted(times));
  std::vector<double> result(times.size());
  if (watts_.empty()) return result;
  Held held(response, watts_.front());
  const bool plain = response.ramp <= 0 && response.lag <= 0;
  const auto pass = [&](double watts, Nanoseconds ns) {
    const double seconds = to_seconds(ns).value;
    return plain ? watts * seconds : held.pass(watts, seconds);
  };
  double joules = 0;
  Nanoseconds now = begin_;
  std::size_t piece = 0;
  for (std::size_t i = 0; i < times.size(); ++i) {
    if (times[i] < begin_) {
      result[i] = watts_.front() * to_seconds(times[i] - begin_).value;
      continue;
    }
    for (; piece + 1 < until_.size() && until_[piece] <= times[i]; ++piece) {
      joules += pass(watts_[piece], until_[piece] - now);
      now = until_[piece];
    }
    joules += pass(watts_[piece], times[i] - now);
    now = times[i];
    result[i] = joules;
  }
  return result;
}

double Waveform::joules(Nanoseconds from, Nanoseconds to, Response response) const {
  const Nanoseconds times[] = {from, to};
  const std::vector<double> at = joules_at(times, response);
  return at[1] - at[0];
}

}  // namespace joulediff::simulate
