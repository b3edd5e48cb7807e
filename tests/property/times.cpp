#include "tests/property/times.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <variant>

#include "sim/simulate.hpp"

namespace foretrain::test {

bool is_above(Seconds a, Seconds b, double slack) { return a > b * (1.0 + slack) + least; }
bool differ(Seconds a, Seconds b) { return is_above(a, b) || is_above(b, a); }

std::string compared(Seconds before, Seconds after, const std::string& what) {
  return fmt::format("{}: {:.9g} -> {:.9g} s ({:+.3f} %)", what, before.value(), after.value(),
                     100.0 * (after / before - 1.0));
}

Seconds time_of(const Scenario& scenario, Fidelity fidelity) {
  return predict(scenario, fidelity, Detail::numbers).time();
}

Seconds time_of(const Settings& settings, Fidelity fidelity) {
  static LastTimes times;
  return times.of(settings, fidelity, [&] { return time_of(scenario_of(settings), fidelity); });
}

void widen_fabric(Fabric& fabric) {
  if (auto* tree = std::get_if<FatTree>(&fabric.shape)) {
    tree->oversubscription = std::max(1.0, tree->oversubscription / 2.0);
  } else if (auto* dragonfly = std::get_if<Dragonfly>(&fabric.shape)) {
    dragonfly->local_bandwidth *= 2.0;
    dragonfly->global_bandwidth *= 2.0;
  } else if (auto* torus = std::get_if<Torus>(&fabric.shape)) {
    torus->link_bandwidth *= 2.0;
  } else if (auto* sites = std::get_if<Sites>(&fabric.shape)) {
    sites->bandwidth *= 2.0;
  }
}

}  // namespace foretrain::test
