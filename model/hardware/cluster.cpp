#include <fmt/format.h>

#include <algorithm>

#include "model/hardware/cluster.hpp"

namespace foretrain {
namespace {

/// "a>b" and "a-b" (half-duplex) in their parts.
bool joins(const std::string& link_name, const std::string& a, const std::string& b) {
  return link_name == a + ">" + b || link_name == a + "-" + b;
}

}  // namespace

bool Fault::concerns(const std::string& link_name) const {
  if (card >= 0) {
    return link_name == fmt::format("nic{}>fabric", card) || link_name == fmt::format("fabric>nic{}", card);
  }
  if (link == link_name) return true;
  const std::size_t dash = link.find('-');
  if (dash == std::string::npos) return false;
  const std::string a = link.substr(0, dash), b = link.substr(dash + 1);
  return joins(link_name, a, b) || joins(link_name, b, a);
}

BytesPerSecond Fault::left_of(BytesPerSecond whole) const {
  return failed ? BytesPerSecond(0.0) : std::min(whole * share, bandwidth);
}

}  // namespace foretrain
