// Scenarios: their uppermost keys, the cluster and its network.
#include "model/hardware/cluster.hpp"
#include "model/scenario/keys/conditions.hpp"
#include "model/scenario/keys/keys.hpp"
#include "model/scenario/keys/member.hpp"

namespace foretrain::keys {

namespace {

constexpr Key scenario_keys[] = {
    {"name", text, "the file's name", "What results call the scenario."},
    {"description", text, "", "A line about the scenario for people who list scenarios."},
    {"cluster", mapping(cluster), "needed", "The machines, and the network between them."},
    {"workload", mapping(workload), "needed", "What the machines do: train, collective, operator or tasks."},
    {"plan", mapping(plan), "data parallel over all GPUs",
     "How the work is spread over the GPUs and gradients are synchronised."},
    {"background", list(mapping(background)), "no other traffic", "Traffic of others on the same cluster."},
    {"jobs", list(mapping(job)), "no other jobs", "Further trainings on nodes of the same cluster."},
    {"calibration", named(Catalogue::calibration), "published",
     "The constants of the cost models: those that come with foretrain, or those that `foretrain calibrate` measured."},
    {"assumed", by_name(text), "nothing",
     "Keys that the author of the file assumed, each with the reason; predictions repeat them as warnings."},
};

constexpr Key cluster_keys[] = {
    {"node", named(Catalogue::node, node), "needed, unless groups", "The kind of machine."},
    {"nodes", whole, "1", "How many machines there are.", "Several need a network: cluster.network, or the node's.",
     "machines"},
    {"gpus_per_node", whole, "all of a machine", "How many GPUs of each machine are used."},
    {"network", mapping(network), "the node's", "The network between the machines, over what the node says of it."},
    {"groups", list(mapping(group)), "one kind of machine",
     "Machines of several kinds on one network, in the order of their ranks.",
     "Instead of node, nodes and gpus_per_node."},
    with<servers_alone, one_gpu>(
        {"nccl", text, "2.29, or the machine's; none between processors",
         "The version of NCCL whose choices of algorithm, protocol and channels hold, for all GPUs.",
         "none: no library; collectives are their schedules alone, at what large copies reach, and auto is the best of "
         "them."}),
    {"faults", list(mapping(fault)), "none", "Parts that are slow or have failed."},
    {"jitter", mapping(jitter), "none", "How much times vary from step to step."},
    {"price", quantity("USD/GPU/hour") | text | mapping(price), "",
     "What a GPU costs an hour, or a way of buying the machines: results then say what a step or a training costs.",
     "2.5 USD/GPU/hour, 98 USD/node/hour, or on_demand of scenarios/hardware/prices.yaml."},
    {"failures", named(Catalogue::nothing, failures), "none",
     "How often parts fail: results then say how much of a training's time lasts.",
     "A name in scenarios/hardware/failures.yaml, or preset: NAME; with train.samples and train.checkpoint."},
    {"energy", text | mapping(energy), "",
     "The grid: results then say what a training takes in electricity, and what that emits."},
};

constexpr Key group_keys[] = {
    {"node", named(Catalogue::node, node), "needed", "The kind of machine of this group."},
    {"nodes", whole, "1", "How many machines the group has."},
    {"gpus_per_node", whole, "all of a machine", "How many GPUs of each machine are used."},
    {"network", mapping(network), "the cluster's", "The network cards of this group.",
     "A fabric is the cluster's: cluster.network.fabric."},
};

constexpr Key network_keys[] = {
    member<&Network::nics_per_node>("How many network cards a machine has.",
                                    {.usual = "the node's", .range = {0, 1024}}),
    {"nic", named(Catalogue::card), "", "The kind of network card, by its name in scenarios/hardware/cards.yaml.",
     "Instead of nic_bandwidth."},
    member<&Network::nic_bandwidth, one_machine>(
        "The line rate of one network card, in one direction.",
        {.value = quantity("Gbit/s"), .usual = "the node's", .title = "network speed"}),
    member<&Network::latency, one_machine>(
        "Time from one machine's memory to another's for the smallest message.",
        {.value = quantity("us"), .usual = "the node's", .title = "network latency", .zero = Zero::allowed}),
    member<&Network::oversubscription, one_machine>(
        "Bandwidth of all cards over what the fabric carries: 1 where nothing is missing.",
        {.together = "A fabric that is described has its own."}),
    member<&Network::efficiency, one_machine>("Share of the line rate that payload reaches.",
                                              {.usual = "the node's, or the transport's", .zero = Zero::refused}),
    with<one_machine>({"scaling", by_name(quantity("%")), "100 %",
                       "The measured share of it that remains, by number of nodes: { 4: 80 %, 64: 40 % }."}),
    member<&Network::gpu_direct, one_machine>(
        "Whether cards read and write GPU memory without a copy through the host.", {.usual = "the node's"}),
    member<&Network::in_network_reduction, one_machine, servers_add>(
        "Whether switches add up what passes through them (SHARP)."),
    member<&Sharing::fairness, one_machine, gradients_alone>(
        "Who gets equal parts of a full link: each connection, or each kind of traffic in a lane of its own."),
    member<&Sharing::queue_pairs, one_machine, gradients_alone>(
        "Connections of a message between two ranks; with fairness: traffic_class, the weight of its lane.",
        {.range = {1, 1024}}),
    with<one_machine>(
        {"transport", mapping(transport), "", "The protocol: headers, windows and losses.", "Gives efficiency."}),
    with<one_machine>({"fabric", named(Catalogue::fabric, fabric), "one switch that never blocks",
                       "Switches and cables between the cards."}),
};

constexpr Key transport_keys[] = {
    needed<&Transport::protocol>("What carries messages."),
    member<&Transport::mtu>(
        "B", "4096 B of infiniband and roce, else 1500 B",
        "The largest packet: with IP's headers for TCP and UDP, payload alone for InfiniBand and RoCE."),
    member<&Transport::link_layer>("What surrounds a packet on the wire.", {.usual = "the protocol's"}),
    member<&Transport::message>("MB", "unlimited", "What is handed over at a time; each begins a packet of its own."),
    member<&Transport::window>("MB", "unlimited", "The most that a TCP connection has under way."),
    member<&Transport::loss>("Share of packets that are lost on the way of a TCP connection."),
    member<&Transport::streams>("TCP connections side by side between two endpoints.", {.range = {1, 1'000'000}}),
    member<&Transport::flow_limit>("Gbit/s", "unlimited", "The most that the network lets one TCP connection carry."),
};

constexpr Key fault_keys[] = {
    {"node", whole, "", "The machine, counted from 0.", "Needed with gpu and card."},
    {"gpu", whole, "", "A slow GPU of that machine.", "With speed, and none of the keys of cards and links."},
    {"speed", quantity("%"), "needed with gpu", "What is left of the GPU's speed."},
    {"card", whole, "", "A network card of that machine.", "Instead of link."},
    {"link", text, "", "A link of the fabric, by its name.", "Instead of card."},
    {"failed", flag, "false", "Whether the card or link carries nothing.", "Instead of bandwidth."},
    {"bandwidth", quantity("Gbit/s") | quantity("%"), "", "What is left of the bandwidth of the card or link."},
};

constexpr Key jitter_keys[] = {
    {"compute", quantity("%"), "0 %", "Spread of the times of computing, as a share of their mean."},
    {"network", quantity("%"), "0 %", "Spread of the times of messages, as a share of their mean."},
    {"node", quantity("%"), "0 %", "Spread of a factor on computing that all GPUs of a machine share."},
    {"rack", quantity("%"), "0 %", "Spread of a factor on computing that all GPUs of a rack share.",
     "With nodes_per_rack."},
    {"nodes_per_rack", whole, "needed with rack", "Machines of a rack, in the order of their numbers."},
    {"throttle", mapping(throttle), "none", "GPUs that heat or power slows down for minutes, through whole steps."},
    {"seed", whole, "1", "Where the random numbers begin: the same seed gives the same prediction."},
};

constexpr Key throttle_keys[] = {
    {"share", quantity("%"), "needed", "Of its time that a GPU is throttled."},
    {"speed", quantity("%"), "needed", "What is left of its speed meanwhile."},
};

constexpr Key background_keys[] = {
    {"from", text, "needed", "Where the traffic begins: gpu3, node1, node1/cpu0 or host of gpu3."},
    {"to", text, "needed", "Where it ends, said in the same way."},
    {"rate", quantity("Gbit/s"), "as much as the way carries", "The most that it takes."},
};

constexpr Key job_keys[] = {
    {"scenario", named(Catalogue::run), "needed", "The other training; its cluster is replaced by this one."},
    {"nodes", one_or_list(text), "needed", "Its machines: numbers and ranges such as 4..7."},
};

}  // namespace

constinit const Mapping scenario = {"scenario", scenario_keys};
constinit const Mapping cluster = {"cluster", cluster_keys};
constinit const Mapping group = {"group of machines", group_keys};
constinit const Mapping network = {"network", network_keys};
constinit const Mapping transport = {"transport", transport_keys};
constinit const Mapping fault = {"fault", fault_keys};
constinit const Mapping jitter = {"jitter", jitter_keys};
constinit const Mapping throttle = {"throttling", throttle_keys};
constinit const Mapping background = {"traffic of others", background_keys};
constinit const Mapping job = {"job", job_keys};

}  // namespace foretrain::keys
