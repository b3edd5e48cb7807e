#include "validate/cuda/collective/network_cards.hpp"

#include <algorithm>
#include <fstream>

namespace foretrain::gpu {

namespace {

namespace fs = std::filesystem;

std::string word_in(const fs::path& file) {
  std::string word;
  std::ifstream(file) >> word;
  return word;
}

double number_in(const fs::path& file) {
  double number = 0.0;
  std::ifstream(file) >> number;
  return number;
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
      if (word_in(port / "state") == "4:") cards.push_back({device.filename(), number_in(port / "rate") * 1e9});
    }
  }
  if (cards.empty()) {
    for (const fs::path& card : entries_of(root / "net")) {
      // In Mbit/s; virtual ones have no device.
      if (!fs::exists(card / "device") || word_in(card / "operstate") != "up") continue;
      cards.push_back({card.filename(), number_in(card / "speed") * 1e6});
    }
  }
  double fastest = 0.0;
  for (const NetworkCard& card : cards) fastest = std::max(fastest, card.bits_per_second);
  std::erase_if(cards,
                [&](const NetworkCard& card) { return card.bits_per_second <= 0.0 || card.bits_per_second < fastest; });
  return cards;
}

}  // namespace foretrain::gpu
