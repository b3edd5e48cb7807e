// Point-to-point patterns in one phase: all-to-all (everybody sends a part to everybody) and the send-receive of
// nccl-tests (everybody sends its whole buffer to the next rank). The message of the schedule is all ranks' buffers
// together (message_size), so that every part has one chunk of its own: part (s → d) of an all-to-all is chunk s·n + d.
#include "model/collectives/algorithms.hpp"

namespace foretrain {

Schedule direct_all_to_all(int ranks, const ScheduleShape& /*shape*/) {
  const auto phase = [ranks](int) {
    Phase transfers;
    transfers.reserve(static_cast<std::size_t>(ranks) * static_cast<std::size_t>(ranks));
    for (int source = 0; source < ranks; ++source) {
      for (int destination = 0; destination < ranks; ++destination) {
        if (source == destination) continue;
        transfers.push_back({source, destination, source * ranks + destination, 1, TransferKind::copy});
      }
    }
    return transfers;
  };
  return {.ranks = ranks, .chunks = ranks * ranks, .phases = ranks > 1 ? 1 : 0, .phase = phase, .run_length = [](int) {
            return 1;
          }};
}

Schedule direct_send_receive(int ranks, const ScheduleShape& /*shape*/) {
  const auto phase = [ranks](int) {
    Phase transfers;
    transfers.reserve(ranks);
    for (int rank = 0; rank < ranks; ++rank) {
      transfers.push_back({rank, (rank + 1) % ranks, rank, 1, TransferKind::copy});
    }
    return transfers;
  };
  return {.ranks = ranks, .chunks = ranks, .phases = ranks > 1 ? 1 : 0, .phase = phase, .run_length = [](int) {
            return 1;
          }};
}

}  // namespace foretrain
