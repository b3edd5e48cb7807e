#include "model/result.hpp"

namespace foretrain {

Seconds Result::time() const {
  const auto time_of = [](const auto& kind) {
    if constexpr (requires { kind.step_time; }) {
      return kind.step_time;
    } else {
      return kind.time;
    }
  };
  return std::visit(time_of, work);
}

void Result::set_uncertainty(double faster, double slower) {
  uncertainty_low = time() / (1.0 + faster);
  uncertainty_high = time() * (1.0 + slower);
  uncertainty_causes.clear();
}

}  // namespace foretrain
