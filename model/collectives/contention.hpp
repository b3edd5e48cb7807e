// Time of a collective that meets no other traffic of its job, alone on the hardware or beside the background.
#pragma once

#include <span>
#include <vector>

#include "model/base/error.hpp"
#include "model/collectives/collective.hpp"

namespace foretrain {

/// Traffic of others, which lasts as long as the scenario: another job, data loading, checkpoint writing.
struct BackgroundFlow {
  struct Place {
    /// memory_of_gpu: of the socket that is nearest to the GPU. outside: of no node (Topology::outside).
    enum class Kind { gpu, node_memory, memory_of_gpu, outside };
    Kind kind = Kind::gpu;
    int number = 0;  ///< GPU rank, node, or turn
    int socket = 0;  ///< node_memory
  };

  Place from, to;
  BytesPerSecond rate = BytesPerSecond::infinity();  ///< at most; infinite: all that its fair share allows
  SourcePosition where;                              ///< of its destination
};

/// On concrete hardware: flows without an end. Throws ScenarioError for one that begins and ends in the same memory.
std::vector<Flow> background_flows(std::span<const BackgroundFlow> background, const Topology& topology);

/// Time of a collective when nothing else of its job moves. Per phase: latency + the busiest link's bytes over its
/// bandwidth, or more where the transport lets less through between two endpoints (LinkLoad). In a phase that shares a
/// link with the background, its flows and the background share all links max–min fairly from its first byte to its
/// last. Rates are computed again whenever a flow ends. Throws ScenarioError as background_flows does.
Seconds uncontended_time(const LoweredCollective& lowered, const Topology& topology,
                         std::span<const BackgroundFlow> background = {});

}  // namespace foretrain
