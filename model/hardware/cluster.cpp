#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include "model/base/number.hpp"
#include "model/hardware/cluster.hpp"

namespace foretrain {
namespace {

/// "a>b" and "a-b" (half-duplex) in their parts.
bool joins(const std::string& link_name, const std::string& a, const std::string& b) {
  return link_name == a + ">" + b || link_name == a + "-" + b;
}

/// Beyond the largest cluster measured the rate keeps falling as a power of the nodes. The exponent is that from the
/// smallest measured cluster, or from one node if that is gentler. With one measured number of nodes the rate stays.
/// nanotron's rates on 2 to 8 nodes of p5.48xlarge extrapolate to 14 % of one node's on 64, where 15 % are left.
double further_loss(const std::map<int, double>& scaling) {
  const auto [least, of_least] = *scaling.begin();
  const auto [most, of_most] = *scaling.rbegin();
  if (most == least) return 0.0;
  const double since_one = std::log(of_most) / std::log(most);
  return std::min(std::max(std::log(of_most / of_least) / std::log(number(most) / least), since_one), 0.0);
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

std::vector<NodeKind> Cluster::kinds() const {
  std::vector<NodeKind> all;
  for (std::size_t group = 0; group < std::max<std::size_t>(groups.size(), 1); ++group) {
    all.push_back(kind(static_cast<int>(group)));
  }
  return all;
}

NodeKind Cluster::kind(int group) const {
  if (groups.empty()) return {node, nodes, gpus_per_node, network};
  const NodeGroup& of = groups[at_index(group)];
  return {of.node, of.nodes, of.gpus_per_node, of.network};
}

int Cluster::group_of_node(int number) const {
  int group = 0;
  for (int end = 0; std::cmp_less(group + 1, groups.size()); ++group) {
    end += groups[at_index(group)].nodes;
    if (number < end) break;
  }
  return group;
}

double Network::share_left(int nodes) const {
  const auto above = scaling.lower_bound(nodes);
  if (above == scaling.end()) {
    if (scaling.empty()) return 1.0;
    const auto [most, left] = *scaling.rbegin();
    return left * std::pow(number(nodes) / most, further_loss(scaling));
  }
  std::pair<int, double> fewer{1, 1.0};
  if (above != scaling.begin()) fewer = *std::prev(above);
  const auto [few, share_of_few] = fewer;
  const auto [many, share_of_many] = *above;
  if (many == few) return share_of_many;
  const double part = std::log(number(nodes) / few) / std::log(number(many) / few);
  return share_of_few + part * (share_of_many - share_of_few);
}

Cluster Cluster::at_its_size() const {
  Cluster same = *this;
  const auto apply = [this](Network& one) {
    one.efficiency *= one.share_left(nodes);
    one.scaling.clear();
  };
  apply(same.network);
  for (NodeGroup& group : same.groups) apply(group.network);
  return same;
}

int Cluster::first_gpu(int number) const {
  if (groups.empty()) return number * gpus_per_node;
  int gpu = 0;
  for (const NodeGroup& group : groups) {
    gpu += std::min(number, group.nodes) * group.gpus_per_node;
    number -= std::min(number, group.nodes);
  }
  return gpu;
}

Cluster Cluster::as_group(int group) const {
  const auto& [of_node, count, of_gpus, of_network] = kind(group);
  Cluster alike = *this;
  alike.groups.clear();
  alike.node = of_node;
  alike.gpus_per_node = of_gpus;
  alike.network = of_network;
  return alike;
}

}  // namespace foretrain
