#include "validate/cuda/collective/keys.hpp"

#include <algorithm>
#include <stdexcept>

namespace foretrain::gpu {

std::vector<Key> cut_into_keys(std::uint64_t elements, int servers, int keys) {
  if (servers < 1 || keys < 0) throw std::invalid_argument("a parameter server needs at least one server");
  const auto pieces = static_cast<std::uint64_t>(keys == 0 ? servers : keys);
  std::vector<Key> cut;
  const std::uint64_t units = (elements + key_alignment - 1) / key_alignment;
  const auto border = [&](std::uint64_t k) {
    const std::uint64_t unit = units / pieces * k + units % pieces * k / pieces;
    return std::min(elements, unit * key_alignment);
  };
  for (std::uint64_t k = 0; k < pieces; ++k) {
    const std::uint64_t first = border(k);
    const std::uint64_t end = border(k + 1);
    const int index = static_cast<int>(k);
    if (end > first) cut.push_back({first, end - first, index, index % servers});
  }
  return cut;
}

}  // namespace foretrain::gpu
