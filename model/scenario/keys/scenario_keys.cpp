// Scenarios: their uppermost keys, the cluster and its network.
#include "model/hardware/cluster.hpp"
#include "model/scenario/keys/conditions.hpp"
#include "model/scenario/keys/keys.hpp"
#include "model/scenario/keys/member.hpp"

namespace foretrain::keys {

namespace {

constexpr Key background_keys[] = {
    {"from", text, "needed", "Source of the traffic: gpu3, node1, node1/cpu0 or host of gpu3."},
    {"to", text, "needed", "Destination, in the same form."},
    {"rate", quantity("Gbit/s"), "bandwidth of the route", "Rate limit."},
};

constexpr Key job_keys[] = {
    {"scenario", named(Catalogue::run), "needed", "Scenario of the other training, run on this cluster."},
    {"nodes", one_or_list(text), "needed", "Its nodes: indices and ranges such as 4..7."},
};

constexpr Key scenario_keys[] = {
    {"name", text, "the file's name", "Name of the scenario in results."},
    {"description", text, "", "One-line description for `foretrain scenarios list`."},
    {"cluster", mapping(cluster), "needed", "Nodes and network."},
    {"workload", mapping(workload), "needed", "Workload: train, collective, operator or tasks."},
    {"plan", mapping(plan), "data parallel over all GPUs", "Parallelism and gradient synchronisation."},
    {"background", list(mapping_of<background_keys, "traffic of others">), "no other traffic",
     "Background traffic on the same cluster."},
    {"jobs", list(mapping_of<job_keys, "job">), "no other jobs", "Other trainings on nodes of the same cluster."},
    {"calibration", named(Catalogue::calibration), "published",
     "Model constants: the shipped ones, or a file of `foretrain calibrate`."},
    {"assumed", by_name(text), "nothing", "Assumed keys with reasons, which predictions repeat as warnings."},
};

constexpr IntegerRange node_counts{1, 131'072};  // five times the largest machines of 2025
constexpr Key gpus_per_node =
    member<&NodeGroup::gpus_per_node>("GPUs used per node.", {.usual = "all GPUs of a node", .range = {1, 1024}});
constexpr Key group_keys[] = {
    {"node", named(Catalogue::node, node), "needed", "Node type of the group."},
    member<&NodeGroup::nodes>("Number of nodes of the group.", {.range = node_counts}),
    gpus_per_node,
    {"network", mapping(network), "the cluster's", "NICs of the group.",
     "A fabric is the cluster's: cluster.network.fabric."},
};

constexpr IntegerRange up_to_a_million{0, 1'000'000};
constexpr Key fault_keys[] = {
    member<&Fault::node>("Node index, from 0.", {.together = "Needed with gpu and card.", .range = up_to_a_million}),
    member<&Fault::gpu>("Slow GPU of that node.",
                        {.together = "With speed; not with keys of NICs and links.", .range = up_to_a_million}),
    {"speed", quantity("%"), "needed with gpu", "Remaining GPU speed."},
    member<&Fault::card>("NIC of that node.", {.together = "Instead of link.", .range = up_to_a_million}),
    member<&Fault::link>("Link of the fabric, by name.", {.together = "Instead of card."}),
    member<&Fault::failed>("NIC or link has failed.", {.together = "Instead of bandwidth."}),
    {"bandwidth", quantity("Gbit/s") | quantity("%"), "", "Remaining bandwidth of the NIC or link."},
};

constexpr Key throttle_keys[] = {
    {"share", quantity("%"), "needed", "Share of time that a GPU is throttled."},
    {"speed", quantity("%"), "needed", "Remaining speed while throttled."},
};

template <double Jitter::*spread>
void put_spread_of_times(Jitter& jitter, std::string_view text) {
  const NumberAndUnit parts = split_number_and_unit(text);
  jitter.*spread = parts.number / 100.0;
  if (parts.unit == "%" && parts.number <= 50.0) return;
  throw UnitError("no spread of times", "a share from 0 % to 50 %, for example 2 %");
}
constexpr Key jitter_keys[] = {
    parsed_by<put_spread_of_times<&Jitter::compute>>(
        {"compute", quantity("%"), "0 %", "Standard deviation of compute times, relative to the mean."}),
    parsed_by<put_spread_of_times<&Jitter::network>>(
        {"network", quantity("%"), "0 %", "Standard deviation of message times, relative to the mean."}),
    parsed_by<put_spread_of_times<&Jitter::node>>(
        {"node", quantity("%"), "0 %", "Standard deviation of a compute factor per node."}),
    parsed_by<put_spread_of_times<&Jitter::rack>>(
        {"rack", quantity("%"), "0 %", "Standard deviation of a compute factor per rack.", "With nodes_per_rack."}),
    member<&Jitter::nodes_per_rack>("Nodes per rack, in index order.",
                                    {.usual = "needed with rack", .range = {1, 1'000'000}}),
    {"throttle", mapping_of<throttle_keys, "throttling">, "none", "GPUs throttled by heat or power for whole steps."},
    member<&Jitter::seed>("Random seed: the same seed gives the same prediction.", {.range = up_to_a_million}),
};

constexpr Key cluster_keys[] = {
    {"node", named(Catalogue::node, node), "needed, unless groups", "Node type."},
    member<&NodeGroup::nodes>("Number of nodes.",
                              {.together = "Several need a network: cluster.network, or the node's.",
                               .title = "machines",
                               .range = node_counts}),
    gpus_per_node,
    {"network", mapping(network), "the node's", "Network between nodes; overrides the node's."},
    {"groups", list(mapping_of<group_keys, "group of nodes">), "one node type",
     "Node groups of several types on one network, in rank order.", "Instead of node, nodes and gpus_per_node."},
    with<servers_alone, one_gpu>(
        {"nccl", text, "2.29, or the node's; none between CPUs",
         "NCCL version, which determines algorithms, protocols and channels.",
         "none: no library; collectives run their schedules at copy bandwidth, and auto is the fastest."}),
    {"faults", list(mapping_of<fault_keys, "fault">), "none", "Slow or failed GPUs, NICs and links."},
    {"jitter", mapping_of<jitter_keys, "jitter">, "none", "Jitter: variation of times from step to step."},
    {"price", quantity("USD/GPU/hour") | text | mapping(price), "",
     "Price per GPU hour, or a purchase option; adds costs to results.",
     "2.5 USD/GPU/hour, 98 USD/node/hour, or on_demand of scenarios/hardware/prices.yaml."},
    {"failures", named(Catalogue::nothing, failures), "none", "Failure rates; adds goodput to results.",
     "A name in scenarios/hardware/failures.yaml, or preset: NAME; with train.samples and train.checkpoint."},
    {"energy", text | mapping(energy), "", "Electricity grid; adds energy and emissions to results."},
};

constexpr Key transport_keys[] = {
    member<&Transport::protocol>("Transport protocol.", {.usual = "the node's; needed where it has no transport"}),
    member<&Transport::mtu>("B", "4096 B of infiniband and roce, else 1500 B",
                            "MTU: with IP headers for TCP and UDP, payload only for InfiniBand and RoCE."),
    member<&Transport::link_layer>("Link-layer framing.", {.usual = "the protocol's"}),
    member<&Transport::message>("MB", "unlimited", "Message size, each starting a new packet."),
    member<&Transport::window>("MB", "unlimited", "TCP window."),
    member<&Transport::loss>("Packet loss rate of a TCP connection."),
    member<&Transport::streams>("TCP connections between two endpoints.", {.range = {1, 1'000'000}}),
    member<&Transport::flow_limit>("Gbit/s", "unlimited", "Bandwidth limit per TCP connection."),
};

constexpr Key network_keys[] = {
    member<&Network::nics_per_node>("NICs per node.", {.usual = "the node's", .range = {0, 1024}}),
    {"nic", named(Catalogue::card), "", "NIC type, by its name in scenarios/hardware/cards.yaml.",
     "Instead of nic_bandwidth."},
    member<&Network::nic_bandwidth, one_machine>("Gbit/s", "the node's", "Line rate per NIC and direction.",
                                                 {.title = "network speed"}),
    member<&Network::latency, one_machine>("us", "the node's", "One-way latency between nodes, smallest message.",
                                           {.title = "network latency", .zero = Zero::allowed}),
    member<&Network::oversubscription, one_machine>(
        "Oversubscription: NIC bandwidth over fabric bandwidth; 1: non-blocking.",
        {.together = "Not with a described fabric."}),
    member<&Network::efficiency, one_machine>("Payload bandwidth relative to the line rate.",
                                              above_zero.or_else("the node's, or the transport's")),
    with<one_machine>(
        {"scaling", by_name(quantity("%")), "100 %", "Measured efficiency by number of nodes: { 4: 80 %, 64: 40 % }."}),
    member<&Network::gpu_direct, one_machine>("GPUDirect RDMA: NICs access GPU memory directly.",
                                              {.usual = "the node's"}),
    member<&Network::in_network_reduction, one_machine, servers_add>("In-network reduction (SHARP)."),
    member<&Sharing::fairness, one_machine, gradients_alone>(
        "Bandwidth sharing on a full link: per connection, or per traffic class."),
    member<&Sharing::queue_pairs, one_machine, gradients_alone>(
        "Queue pairs per connection between ranks; with fairness: traffic_class, the weight of the class.",
        {.range = {1, 1024}}),
    with<one_machine>({"transport", mapping_of<transport_keys, "transport">, "",
                       "Transport protocol: headers, windows and losses.", "Determines efficiency."}),
    with<one_machine>({"fabric", named(Catalogue::fabric, fabric), "one non-blocking switch",
                       "Fabric: switches and links between NICs."}),
};

}  // namespace

constinit const Mapping scenario = {"scenario", scenario_keys};
constinit const Mapping cluster = {"cluster", cluster_keys};
constinit const Mapping network = {"network", network_keys};

}  // namespace foretrain::keys
