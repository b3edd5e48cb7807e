// Small task graphs for the simulator's tests.
#pragma once

#include <utility>
#include <vector>

#include "model/collectives/schedule.hpp"
#include "model/graph/task_graph.hpp"
#include "tests/hardware/nodes.hpp"

namespace foretrain::test_graphs {

inline LoweredCollective flows_at_once(Seconds latency, std::vector<Flow> flows) {
  return {"test", {{latency, std::move(flows), 1}}};
}

/// A ring all-reduce of `size` over `ranks`: 2(n-1) steps in which everyone sends size/n to the next.
inline LoweredCollective ring(const std::vector<EndpointId>& ranks, Bytes size, Seconds latency) {
  LoweredCollective::Phase phase{latency, {}, 2 * (static_cast<int>(ranks.size()) - 1)};
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    phase.flows.push_back({ranks[i], ranks[(i + 1) % ranks.size()], size / static_cast<double>(ranks.size())});
  }
  return {"ring", {phase}};
}

/// A schedule of the table on the first `ranks` GPUs; servers are the host memories of the node's sockets in turn.
inline LoweredCollective scheduled(const Schedule& schedule, Bytes size, Seconds latency, const Topology& topology) {
  const auto endpoint = [&](int participant) {
    const int server = participant - schedule.ranks;
    return server < 0 ? topology.gpu(participant) : topology.host(0, server % topology.hosts_per_node());
  };
  LoweredCollective lowered{"scheduled", {}};
  for (int phase = 0; phase < schedule.phases;) {
    LoweredCollective::Phase next{latency, {}, schedule.phase_run(phase).length};
    for (const Transfer& transfer : schedule.phase(phase)) {
      next.flows.push_back({endpoint(transfer.source), endpoint(transfer.destination),
                            chunk_range_size(size, schedule.chunks, transfer.first_chunk, transfer.chunks)});
    }
    phase += next.repeat;
    lowered.phases.push_back(std::move(next));
  }
  return lowered;
}

/// Builds graphs task by task, one block each.
class GraphMaker {
 public:
  explicit GraphMaker(const Topology& topology) : topology_(topology) {}

  ResourceId stream() { return builder_.add_resource({"stream", Resource::Kind::device_stream, 0}); }
  TaskId compute(ResourceId on, Seconds duration, const std::vector<TaskId>& after = {}) {
    return repeat(on, compute_block(duration), after);
  }
  BlockId compute_block(Seconds duration) { return builder_.add_block({"compute", Category::compute, duration}); }
  TaskId communicate(ResourceId on, const LoweredCollective& work, const std::vector<TaskId>& after = {}) {
    return repeat(on, communication_block(work), after);
  }
  BlockId communication_block(const LoweredCollective& work) {
    return builder_.add_block({"communicate", Category::communication, uncontended(work), work});
  }
  BlockId communication_block(LoweredCollective work, Seconds uncontended) {
    return builder_.add_block({"communicate", Category::communication, uncontended, std::move(work)});
  }
  TaskId repeat(ResourceId on, BlockId block, const std::vector<TaskId>& after = {}) {
    return builder_.add_task({block, on}, after);
  }
  TaskGraph graph() { return std::move(builder_).build(); }

 private:
  /// Per phase: latency + the busiest link's bytes over its bandwidth, as the interface of LoweredCollective says.
  [[nodiscard]] Seconds uncontended(const LoweredCollective& work) const {
    Seconds total;
    for (const LoweredCollective::Phase& phase : work.phases) {
      std::vector<Bytes> load(static_cast<std::size_t>(topology_.links()));
      for (const Flow& flow : phase.flows) {
        for (const LinkId link : topology_.route(flow.source, flow.destination).links) {
          load[static_cast<std::size_t>(link)] += flow.bytes;
        }
      }
      Seconds busiest;
      for (LinkId link = 0; link < topology_.links(); ++link) {
        busiest = std::max(busiest, load[static_cast<std::size_t>(link)] / topology_.link_bandwidth(link));
      }
      total += (phase.latency + busiest) * phase.repeat;
    }
    return total;
  }

  const Topology& topology_;
  TaskGraph::Builder builder_;
};

}  // namespace foretrain::test_graphs
