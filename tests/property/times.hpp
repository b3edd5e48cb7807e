// Shared by all properties: times, how they are compared, and changes of scenarios.
#pragma once

#include <map>
#include <string>

#include "model/graph/execution.hpp"
#include "model/scenario/scenario.hpp"
#include "tests/property/settings.hpp"

namespace foretrain::test {

/// SimGrid counts whole bytes and announces ends in steps of its own; sums have another order.
constexpr double rounding = 1e-6;
constexpr Seconds least(20e-9);

bool is_above(Seconds a, Seconds b, double slack = rounding);
bool differ(Seconds a, Seconds b);
/// "what: before -> after s (+change %)"
std::string compared(Seconds before, Seconds after, const std::string& what);

Seconds time_of(const Scenario& scenario, Fidelity fidelity);
/// Remembers the last scenario's: several properties ask for it.
Seconds time_of(const Settings& settings, Fidelity fidelity);

/// Times of the settings that were asked for last, which several properties ask for.
class LastTimes {
 public:
  template <typename Work>
  Seconds of(const Settings& settings, Fidelity fidelity, const Work& work) {
    if (settings != last_) times_.clear();
    last_ = settings;
    const auto known = times_.find(fidelity);
    if (known != times_.end()) return known->second;
    const Seconds time = work();  // which may throw
    return times_[fidelity] = time;
  }

 private:
  Settings last_;
  std::map<Fidelity, Seconds> times_;
};

/// Every link of the fabric twice as fast, or half as oversubscribed.
void widen_fabric(Fabric& fabric);

template <typename Quantity>
void multiply(Quantity& quantity, double factor) {
  quantity = quantity * factor;
}

}  // namespace foretrain::test
