// The builders behind the table of algorithms: one file each. Every builder takes the number of ranks and a second
// number that only some need (`parts`): the servers of a parameter server, the ranks per node of a hierarchical ring.
#pragma once

#include "model/collectives/schedule.hpp"

namespace foretrain {

Schedule naive_all_reduce(int ranks, int parts);
Schedule tree_all_reduce(int ranks, int parts);
Schedule double_tree_all_reduce(int ranks, int parts);
Schedule ring_all_reduce(int ranks, int parts);
Schedule ring_all_gather(int ranks, int parts);
Schedule ring_reduce_scatter(int ranks, int parts);
Schedule ring_broadcast(int ranks, int parts);
Schedule ring_reduce(int ranks, int parts);
Schedule bidirectional_ring_all_reduce(int ranks, int parts);
Schedule halving_doubling_all_reduce(int ranks, int parts);
Schedule hierarchical_all_reduce(int ranks, int ranks_per_node);
Schedule parameter_server_all_reduce(int ranks, int servers);
Schedule direct_all_to_all(int ranks, int parts);
Schedule direct_send_receive(int ranks, int parts);

}  // namespace foretrain
