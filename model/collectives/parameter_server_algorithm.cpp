// Every rank pushes chunk s to server s, which adds up; then every rank pulls all chunks. Each server's link carries
// n·S/servers in each direction. Source: Li et al., "Scaling distributed machine learning with the parameter server",
// OSDI 2014.

#include "model/base/error.hpp"
#include "model/collectives/algorithm.hpp"

namespace foretrain {

namespace {

using enum CollectiveOperation;

Schedule push_and_pull(CollectiveOperation /*all_reduce*/, int ranks, const ScheduleShape& shape) {
  const int servers = shape.parts;
  if (servers < 1) throw ImpossiblePlan("a parameter server needs at least one server");
  const auto phase = [ranks, servers](int index) {
    Phase transfers;
    transfers.reserve(static_cast<std::size_t>(ranks) * static_cast<std::size_t>(servers));
    for (int rank = 0; rank < ranks; ++rank) {
      for (int server = 0; server < servers; ++server) {
        transfers.push_back(index == 0 ? Transfer{rank, ranks + server, server, 1, Transfer::Kind::reduce}
                                       : Transfer{ranks + server, rank, server, 1, Transfer::Kind::copy});
      }
    }
    return transfers;
  };
  return {.ranks = ranks, .servers = servers, .chunks = servers, .phases = 2, .phase = phase};
}

}  // namespace

const Algorithm parameter_server_algorithm = {
    .operations = {all_reduce},
    .build = push_and_pull,
    .shape = [](const CollectiveCall& call, const std::vector<int>&,
                const Topology&) { return ScheduleShape(call.servers); },
    .has_servers = true,
};

}  // namespace foretrain
