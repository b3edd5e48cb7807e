// Calls by name, how long they take by themselves, and what they put on links.
#pragma once

#include <map>
#include <utility>
#include <vector>

#include "model/collectives/contention.hpp"

namespace foretrain {

inline CollectiveCall call_of(SyncAlgorithm algorithm, Bytes size, std::vector<int> ranks,
                              CollectiveOperation operation = CollectiveOperation::all_reduce) {
  CollectiveCall call;
  call.operation = operation;
  call.algorithm = algorithm;
  call.size = size;
  call.groups = {std::move(ranks)};
  return call;
}

inline double milliseconds(const CollectiveCall& call, const Topology& topology) {
  return uncontended_time(lower(call, topology, Calibration{}), topology).value() * 1e3;
}

inline double milliseconds(SyncAlgorithm algorithm, Bytes size, std::vector<int> ranks, const Topology& topology,
                           CollectiveOperation operation = CollectiveOperation::all_reduce) {
  return milliseconds(call_of(algorithm, size, std::move(ranks), operation), topology);
}

/// Bytes on every link of one phase.
inline std::map<LinkId, double> loads(const LoweredCollective::Phase& phase, const Topology& topology) {
  std::map<LinkId, double> result;
  for (const Flow& flow : phase.flows) {
    for (const LinkId link : topology.route(flow.source, flow.destination).links) {
      result[link] += flow.bytes.value() * phase.repeat;
    }
  }
  return result;
}

}  // namespace foretrain
