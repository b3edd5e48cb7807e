#include "validate/cuda/collective/network_cards.hpp"

#include <algorithm>
#include <fstream>

namespace foretrain::gpu {

namespace {

namespace fs = std::filesystem;

template <typename Value>
Value first_in(const fs::path& file) {
  Value value = {};
  std::ifstream(file) >> value;
  return value;
}

std::vector<fs::path> entries_of(const fs::path& folder) {
  std::vector<fs::path> entries;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(folder, none)) entries.push_back(entry.path());
  std::sort(entries.begin(), entries.end());
  return entries;
}

}  // namespace

std::vector<NetworkCard> network_cards(const std::filesystem::path& root) {
  std::vector<NetworkCard> cards;
  for (const fs::path& device : entries_of(root / "infiniband")) {
    for (const fs::path& port : entries_of(device / "ports")) {
      // "400 Gb/sec (4X NDR)", "4: ACTIVE"
      if (first_in<std::string>(port / "state") == "4:")
        cards.push_back({device.filename(), first_in<double>(port / "rate") * 1e9});
    }
  }
  if (cards.empty()) {
    for (const fs::path& card : entries_of(root / "net")) {
      // In Mbit/s; virtual ones have no device.
      if (!fs::exists(card / "device") || first_in<std::string>(card / "operstate") != "up") continue;
      cards.push_back({card.filename(), first_in<double>(card / "speed") * 1e6});
    }
  }
  double fastest = 1.0;
  for (const NetworkCard& card : cards) fastest = std::max(fastest, card.bits_per_second);
  std::erase_if(cards, [&](const NetworkCard& card) { return card.bits_per_second < fastest; });
  return cards;
}

}  // namespace foretrain::gpu
