// Chunks travel round a ring, one hop per phase. Reduce-scatter: chunk c starts at rank c+1, collects one contribution
// per hop and is complete at rank c. All-gather: each rank passes on what it got last. All-reduce is one after the
// other: 2(n-1) phases of S/n. Source: Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms", JPDC 69 (2009).
// Broadcast and reduce use the ring as a chain through which the message travels in pieces.
#include "model/collectives/exchange.hpp"
#include "model/collectives/rings.hpp"

namespace foretrain {

namespace {
std::vector<ScheduleShape::Ring> one_ring(int ranks, const ScheduleShape& /*shape*/) {
  return {{natural_order(ranks), 1}};
}
}  // namespace

const Algorithm ring_algorithm = [] {
  Algorithm ring = algorithm_over<one_ring>();
  ring.all_to_all = direct_all_to_all;
  ring.send_receive = direct_send_receive;
  ring.all_to_all_of_many = all_to_all_at_once;
  ring.order = ring_order;
  return ring;
}();

}  // namespace foretrain
