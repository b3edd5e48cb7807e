#include "validate/cuda/collective/ladder.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>

namespace foretrain::gpu {

std::vector<std::uint64_t> size_ladder(std::uint64_t first, std::uint64_t last, unsigned factor) {
  if (factor < 2 || first == 0) throw std::invalid_argument("a ladder of sizes needs a factor of at least 2");
  std::vector<std::uint64_t> sizes;
  for (std::uint64_t size = first; size < last; size *= factor) sizes.push_back(size);
  sizes.push_back(last);
  return sizes;
}

std::vector<int> rank_counts(int all) {
  if (all < 2) return {};
  std::vector<int> counts{all};
  for (int count = 2; count < all; count *= 2) counts.push_back(count);
  return counts;
}

int batch_of(double once, double least, int most) {
  if (!(once > 0.0)) return most;
  return static_cast<int>(std::clamp(std::ceil(least / once), 1.0, static_cast<double>(most)));
}

}  // namespace foretrain::gpu
