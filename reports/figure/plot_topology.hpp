// A machine, or a cluster of machines, as it is wired: boxes for sockets, switches, GPUs and NICs, lines by
// kinds of links, whose bandwidths the legend tells.
#pragma once

#include <optional>
#include <string>

#include "model/hardware/cluster.hpp"
#include "reports/figure/figure.hpp"

namespace foretrain {

/// Drawing of one machine, with the fabric above it if there are several.
struct TopologyPicture {
  std::string title;
  Node node;
  Network network = {};                           ///< of the machine's cards: the node's own, or the cluster's
  std::optional<Cluster> cluster = std::nullopt;  ///< of nodes that are all alike
  double width_cm = 0.0;                          ///< as in Figure
};

/// If all parts of a row would be too narrow to read, it shows the first and the last.
Figure to_figure(const TopologyPicture& picture);

/// The panel of one machine, so many pixels wide.
Panel node_panel(const Node& node, const Network& network, int width);

/// The levels of the fabric behind the cards in words, with their counts, a line each.
std::string fabric_text(const Cluster& cluster);

/// The same in words: the fabric, then the machine's wiring.
std::string to_text(const TopologyPicture& picture);

}  // namespace foretrain
