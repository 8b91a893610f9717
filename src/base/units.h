// Joules, watts and seconds as types: a number without its unit cannot reach a report.
#pragma once

#include <compare>
#include <cstdint>

namespace joulediff {

template <class Tag>
struct Quantity {
  double value = 0;

  constexpr Quantity() = default;
  constexpr explicit Quantity(double v) : value(v) {}
  constexpr auto operator<=>(const Quantity&) const = default;
  constexpr Quantity& operator+=(Quantity o) {
    value += o.value;
    return *this;
  }
  constexpr Quantity& operator-=(Quantity o) {
    value -= o.value;
    return *this;
  }
  friend constexpr Quantity operator+(Quantity a, Quantity b) {
    return Quantity(a.value + b.value);
  }
  friend constexpr Quantity operator-(Quantity a, Quantity b) {
    return Quantity(a.value - b.value);
  }
  friend constexpr Quantity operator-(Quantity a) { return Quantity(-a.value); }
  friend constexpr Quantity operator*(Quantity a, double k) { return Quantity(a.value * k); }
  friend constexpr Quantity operator*(double k, Quantity a) { return Quantity(a.value * k); }
  friend constexpr Quantity operator/(Quantity a, double k) { return Quantity(a.value / k); }
  friend constexpr double operator/(Quantity a, Quantity b) { return a.value / b.value; }
};

using Joules = Quantity<struct JoulesTag>;
using Watts = Quantity<struct WattsTag>;
using Seconds = Quantity<struct SecondsTag>;

constexpr Joules operator*(Watts p, Seconds t) {
  return Joules(p.value * t.value);
}
constexpr Joules operator*(Seconds t, Watts p) {
  return p * t;
}
constexpr Watts operator/(Joules e, Seconds t) {
  return Watts(e.value / t.value);
}
constexpr Seconds operator/(Joules e, Watts p) {
  return Seconds(e.value / p.value);
}

// Instants are nanoseconds of CLOCK_MONOTONIC on the recorded machine.
using Nanoseconds = std::int64_t;
constexpr Seconds to_seconds(Nanoseconds ns) {
  return Seconds(static_cast<double>(ns) * 1e-9);
}

}  // namespace joulediff
