#include "model/collectives/link_load.hpp"

#include <algorithm>

namespace foretrain {

LinkLoad::LinkLoad(const Topology& topology)
    : topology_(topology), load_(static_cast<std::size_t>(topology.links()), Bytes(0.0)) {}

Seconds LinkLoad::busiest(const std::vector<Flow>& flows) {
  links_.clear();
  for (const Flow& flow : flows) {
    const std::size_t begin = links_.size();
    topology_.append_route(flow.source, flow.destination, links_);
    for (std::size_t i = begin; i < links_.size(); ++i) load_[links_[i]] += flow.bytes;
  }
  Seconds busiest(0.0);
  for (const LinkId link : links_) {
    if (load_[link] > Bytes(0.0)) busiest = std::max(busiest, load_[link] / topology_.link_bandwidth(link));
    load_[link] = Bytes(0.0);
  }
  return busiest;
}

}  // namespace foretrain
