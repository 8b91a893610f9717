#include "meter/sensor.h"

#include <iostream>

#include <gtest/gtest.h>

#include "meter/test_recorded.h"

namespace joulediff::meter {
namespace {

std::ostream& operator<<(std::ostream& out, const Property& p) {
  if (!p.identified()) return out << "(" << p.why << ")";
  return out << p.value << " [" << p.low << ", " << p.high << "]";
}
void say(const char* what, const Rhythm& r) {
  std::cout << what << " period " << r.period << " jitter " << r.jitter << " tick " << r.tick << "\n";
}
void say(const char* what, const Response& r) {
  std::cout << what << " window " << r.window << " lag " << r.lag << " gain " << r.gain << " at0 " << r.at_zero
            << " at1 " << r.at_one << " R2 " << r.explained << "\n";
}

TEST(Explore, All) {
  using enum run::Source;
  auto square = h200_square(), samples = h200_samples(), pulses = h200_pulses();
  for (auto s : {nvml_energy, nvml_power_instant, nvml_power_average}) say("square", rhythm(series_of(square, s)));
  for (auto s : {nvml_power_samples, nvml_power_instant, nvml_power_average, nvml_power_memory}) say("samples", rhythm(series_of(samples, s)));
  for (auto s : {nvml_energy, nvml_power_samples, nvml_power_instant, nvml_power_average}) say("pulses", rhythm(series_of(pulses, s)));
  const Load marks = Load::busy(square.busy, 1000000);
  for (auto s : {nvml_power_instant, nvml_power_average}) say("square", response(updates(series_of(square, s)), marks));
  say("square counter", response(powers(updates(series_of(square, nvml_energy))), marks));
  const Load ring = Load::power(series_of(samples, nvml_power_samples), 1000000);
  for (auto s : {nvml_power_instant, nvml_power_average, nvml_power_memory}) say("samples", response(updates(series_of(samples, s)), ring));
  say("samples ring", response(updates(series_of(samples, nvml_power_samples)), Load::busy(samples.busy, 1000000)));
  const Load pring = Load::power(series_of(pulses, nvml_power_samples), 1000000);
  for (auto s : {nvml_power_instant, nvml_power_average, nvml_power_memory}) say("pulses", response(updates(series_of(pulses, s)), pring));
  say("pulses counter", response(powers(updates(series_of(pulses, nvml_energy))), pring));
  auto truth = a100();
  if (!truth) return;
  const Load load = Load::busy(truth->board.busy, 1000000);
  auto& inst = series_of(truth->board, nvml_power_instant);
  say("a100", rhythm(inst));
  say("a100 free", response(updates(inst), load));
  say("a100 25", phase_powers(updates(inst), load, .025));
  say("a100 104", phase_powers(updates(inst), load, .1043));
  say("a100 free vs meter", response(updates(inst), Load::power(truth->meter, 1000000)));
}

}  // namespace
}  // namespace joulediff::meter
#include "meter/alias.h"
namespace joulediff::meter {
TEST(Explore, Alias) {
  using enum run::Source;
  auto p = h200_pulses();
  for (auto& x : pulses(p.busy)) std::cout << x.count << " x " << x.length << " @ " << x.period << "\n";
  for (auto s : {nvml_energy, nvml_power_samples, nvml_power_instant, nvml_power_average}) {
    Updates u = updates(series_of(p, s)); if (s == nvml_energy) u = powers(u);
    std::cout << "source " << int(s) << "\n";
    for (auto& a : aliases(u, p.busy, s == nvml_power_average ? 1.1 : 0.3))
      std::cout << "  " << a.length << " @ " << a.period << (a.in_step ? " step " : "      ") << a.misread << "\n";
  }
}
}
