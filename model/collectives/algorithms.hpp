// The builders behind the table of algorithms: one file for each algorithm, the operations it has a textbook form for.
#pragma once

#include "model/collectives/schedule.hpp"

namespace foretrain {

Schedule naive_all_reduce(int ranks, const ScheduleShape& shape);
Schedule naive_reduce(int ranks, const ScheduleShape& shape);
Schedule naive_broadcast(int ranks, const ScheduleShape& shape);
Schedule naive_reduce_scatter(int ranks, const ScheduleShape& shape);
Schedule naive_all_gather(int ranks, const ScheduleShape& shape);

Schedule tree_all_reduce(int ranks, const ScheduleShape& shape);
Schedule tree_reduce(int ranks, const ScheduleShape& shape);
Schedule tree_broadcast(int ranks, const ScheduleShape& shape);

Schedule double_tree_all_reduce(int ranks, const ScheduleShape& shape);
Schedule double_tree_reduce(int ranks, const ScheduleShape& shape);
Schedule double_tree_broadcast(int ranks, const ScheduleShape& shape);

Schedule ring_all_reduce(int ranks, const ScheduleShape& shape);
Schedule ring_all_gather(int ranks, const ScheduleShape& shape);
Schedule ring_reduce_scatter(int ranks, const ScheduleShape& shape);
Schedule ring_broadcast(int ranks, const ScheduleShape& shape);
Schedule ring_reduce(int ranks, const ScheduleShape& shape);

Schedule bidirectional_ring_all_reduce(int ranks, const ScheduleShape& shape);
Schedule bidirectional_ring_all_gather(int ranks, const ScheduleShape& shape);
Schedule bidirectional_ring_reduce_scatter(int ranks, const ScheduleShape& shape);
Schedule bidirectional_ring_broadcast(int ranks, const ScheduleShape& shape);
Schedule bidirectional_ring_reduce(int ranks, const ScheduleShape& shape);

Schedule multi_ring_all_reduce(int ranks, const ScheduleShape& shape);
Schedule multi_ring_all_gather(int ranks, const ScheduleShape& shape);
Schedule multi_ring_reduce_scatter(int ranks, const ScheduleShape& shape);
Schedule multi_ring_broadcast(int ranks, const ScheduleShape& shape);
Schedule multi_ring_reduce(int ranks, const ScheduleShape& shape);

Schedule halving_doubling_all_reduce(int ranks, const ScheduleShape& shape);
Schedule halving_doubling_reduce_scatter(int ranks, const ScheduleShape& shape);
Schedule halving_doubling_all_gather(int ranks, const ScheduleShape& shape);
Schedule halving_doubling_broadcast(int ranks, const ScheduleShape& shape);
Schedule halving_doubling_reduce(int ranks, const ScheduleShape& shape);

Schedule hierarchical_all_reduce(int ranks, const ScheduleShape& shape);
Schedule hierarchical_reduce_scatter(int ranks, const ScheduleShape& shape);
Schedule hierarchical_all_gather(int ranks, const ScheduleShape& shape);
Schedule hierarchical_broadcast(int ranks, const ScheduleShape& shape);
Schedule hierarchical_reduce(int ranks, const ScheduleShape& shape);
Schedule hierarchical_all_to_all(int ranks, const ScheduleShape& shape);

Schedule hierarchical_leader_all_reduce(int ranks, const ScheduleShape& shape);
Schedule hierarchical_leader_broadcast(int ranks, const ScheduleShape& shape);
Schedule hierarchical_leader_reduce(int ranks, const ScheduleShape& shape);

Schedule pairwise_all_reduce(int ranks, const ScheduleShape& shape);
Schedule pairwise_reduce_scatter(int ranks, const ScheduleShape& shape);
Schedule pairwise_all_gather(int ranks, const ScheduleShape& shape);
Schedule pairwise_all_to_all(int ranks, const ScheduleShape& shape);

Schedule in_network_all_reduce(int ranks, const ScheduleShape& shape);
Schedule in_network_reduce_scatter(int ranks, const ScheduleShape& shape);
Schedule in_network_all_gather(int ranks, const ScheduleShape& shape);
Schedule in_network_broadcast(int ranks, const ScheduleShape& shape);
Schedule in_network_reduce(int ranks, const ScheduleShape& shape);

Schedule parameter_server_all_reduce(int ranks, const ScheduleShape& shape);
Schedule hierarchical_parameter_server_all_reduce(int ranks, const ScheduleShape& shape);

Schedule direct_all_to_all(int ranks, const ScheduleShape& shape);
Schedule direct_send_receive(int ranks, const ScheduleShape& shape);

}  // namespace foretrain
