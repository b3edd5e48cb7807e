// Routes that chance chooses: which draw of them lies in the middle, and how far the others lie from it.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "model/job/job.hpp"

namespace foretrain {

/// Runs a graph over a topology: of a job's, or of a draw of its routes.
using ExecutorOn = std::function<Execution(const TaskGraph&, const Topology&)>;

/// Draws of a job's routes. The job's graph runs over each; where a simulation has many flows, they are estimated, and
/// compared with what the one in the middle takes.
///
/// The library that plans a collective knows no hashes: algorithms, rings and the classes of ranks are those of the
/// topology without draws. What groups of a class carry out side by side then ends with the slowest of them, in each
/// collective anew: exact where one group is the slowest throughout, else a little too long. Where flows of several
/// kinds meet, a route that holds one kind up may leave another more of a card. A draw of hashes that comes out faster
/// than the topology without draws counts as that.
struct RoutingDraws {
  Topology median;
  std::vector<Seconds> makespans;  ///< ascending
  std::size_t middle = 0;          ///< the median's among these
  std::optional<Execution> run;    ///< of the graph over it, where there has been one
};
RoutingDraws draw_routes(const Job& job, const ExecutorOn& execute);

/// The graph over an uncontended network with these routes: each block of flows takes as much longer as its flows do by
/// themselves, or beside the others of its transfer.
Execution run_uncontended(const TaskGraph& graph, const Topology& planned, const Topology& drawn,
                          std::span<const BackgroundFlow> background);

/// As result_of(), over the job's topology or over the middle one of its draws.
Result result_over_fabric(const Job& job, const ExecutorOn& execute, Detail detail = Detail::numbers);

}  // namespace foretrain
