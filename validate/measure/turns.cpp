#include "validate/measure/turns.hpp"

#include <cmath>

#include "model/base/hash.hpp"

namespace foretrain {

double turn_of(const std::string& name, double value) {
  std::uint64_t state = fnv_1a(name);
  const double uniform = (static_cast<double>(split_mix(state) >> 11) + 0.5) * 0x1p-53;
  return -std::log(uniform) / value;
}

}  // namespace foretrain
