// Utilisation of a scenario's links over time, by transfer: the bytes of all its transfers over what each link could
// have carried at the same time.
#pragma once

#include <string>
#include <vector>

#include "model/graph/execution.hpp"
#include "model/hardware/topology.hpp"
#include "model/scenario/scenario.hpp"
#include "reports/figure/figure.hpp"

namespace foretrain {

/// The links of one name on all nodes; those of a fabric whose names differ in numbers alone. What is said of the
/// busiest is said of the first of those that carry most.
struct LinkUse {
  /// Load of one kind of transfer on the busiest of them.
  struct User {
    std::string name;  ///< as in the communication table: "gradient all-reduce"; of those inside layers their kind;
                       ///< "background traffic"
    Bytes bytes;
  };

  std::string name;  ///< "gpu0>nvswitch"
  LinkKind kind = LinkKind::pcie;
  BytesPerSecond bandwidth;  ///< of the first of them
  int links = 0;
  LinkId busiest_link = -1;
  Bytes busiest = {};               ///< on the busiest of them
  double mean = 0.0;                ///< share of the time in which a link is busy, of all of them
  double most = 0.0;                ///< of the busiest
  Seconds in_use = {};              ///< moments in which a transfer crosses the busiest; the background is no transfer
  std::vector<User> users = {};     ///< of the busiest, most bytes first
  std::vector<double> slices = {};  ///< share of the busiest's bandwidth that is used, in equal parts of the time
};

/// Time that kernels of one rank class wait until another has done its part: of a collective of both, or of what it
/// sends. The transfer's own time is not in it.
struct Wait {
  std::string late, waiting;  ///< "stage 1", "stage 0, rank 4": as their compute streams are called
  Seconds time;               ///< of all its waits together
};

/// The longest first. Who is late because somebody else is, is late here, too: each wait has its last cause.
std::vector<Wait> waits_of(const TaskGraph& graph, const Execution& execution);

struct LinkUses {
  std::vector<LinkUse> links;  ///< in the order of a node's links, the fabric's behind them
  int nodes = 1;
  Seconds time;                        ///< that the transfers are compared with
  bool without_inside_layers = false;  ///< as passes of replicas with unequal numbers of them are not cut
  std::vector<Wait> waits = {};        ///< for other ranks, the longest first
};

/// Bytes are those of flows: with what protocols and small messages add, and what the library loses against large
/// copies. Over its time a transfer is taken to move evenly. Other jobs on the fabric are not in it; background traffic
/// is where its rate is stated. Where routes are drawn, over those of the draw in the middle.
LinkUses link_uses(const Scenario& scenario, Fidelity fidelity);

/// "gpu>nvswitch" of "gpu0>nvswitch": what links that differ in their numbers alone have in common.
std::string without_numbers(const std::string& link);

/// The busiest links, what uses them, and who waits for whom; ending in a line end.
std::string to_text(const LinkUses& uses);
std::string to_json(const LinkUses& uses);
/// The busiest links over the time, darker the more of them is used.
Figure to_figure(const LinkUses& uses);

}  // namespace foretrain
