#include "model/memory/shortage.hpp"

#include <cmath>

#include "model/base/statistics.hpp"

namespace foretrain {

double chance_of_shortage(double filled, double spread) {
  if (!(filled > 0.0)) return 0.0;
  if (!(spread > 0.0)) return filled > 1.0 ? 1.0 : 0.0;
  return normal_cumulative(std::log(filled) / spread);
}

double spread_of_shortfall(double shortfall) { return std::log1p(shortfall) / normal_quantile(0.9); }

}  // namespace foretrain
