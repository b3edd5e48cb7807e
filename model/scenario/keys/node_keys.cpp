// Machines: their wiring, NICs, storage, and the fabric behind the cards.
#include "model/hardware/cluster.hpp"
#include "model/hardware/storage.hpp"
#include "model/scenario/keys/keys.hpp"
#include "model/scenario/keys/member.hpp"

namespace foretrain::keys {

namespace {

constexpr Key nics_keys[] = {
    {"attached_to", one_or_list(text), "needed", "Vertices of the wiring to which NICs attach, in order."},
    {"link", named(Catalogue::link), "needed", "Link type of the attachment."},
};

constexpr Key of_disks{.together = "kind: disk", .zero = Zero::allowed};
constexpr Key of_servers{.together = "kind: network"};
constexpr Key requests{.together = "Not of disks.", .zero = Zero::refused};
constexpr Key storage_keys[] = {
    {"name", text, "the catalogue's name", "Name in results."},
    member<&Storage::kind>("Storage type: flash, hard disk, or network server."),
    needed<&Storage::read_bandwidth>("GB/s", "Bandwidth of large sequential reads; of a hard disk, in its outer zone."),
    member<&Storage::write_bandwidth>("GB/s", "as reads", "Bandwidth of large sequential writes."),
    member<&Storage::random_read_iops>("Small reads a second, many at once.", requests.or_else("needed, but of disks")),
    member<&Storage::random_write_iops>("Small writes a second, many at once.", requests.or_else("as reads")),
    member<&Storage::read_latency>("us", "needed, but of disks",
                                   "One small read alone; of a disk, its controller's part.", may_be_zero),
    member<&Storage::write_latency>("us", "as reads", "One small write alone.", may_be_zero),
    member<&Storage::queue_depth>("Largest queue depth.", {.usual = "1024; of disks 32", .range = {1, 1'000'000}}),
    member<&Storage::read_ahead>("KiB", "128 KiB", "Read-ahead of the kernel for sequential reads."),
    {"rotation", quantity("ms") | text, "needed of disks", "10000 rpm, or the time of a revolution.", "kind: disk"},
    member<&Storage::seek>("ms", "needed of disks", "The average seek before a read.", of_disks),
    member<&Storage::write_seek>("ms", "as seek", "The average seek before a write.", of_disks),
    member<&Storage::track_to_track>("ms", "0", "A seek to the next track.", of_disks),
    member<&Storage::inner_bandwidth>("MB/s", "read_bandwidth", "Bandwidth of the innermost zone.",
                                      {.together = "kind: disk"}),
    member<&Storage::round_trip>("us", "needed of network", "A round trip to the server.",
                                 of_servers.with(Zero::allowed)),
    member<&Storage::round_trips_per_open>("Round trips to find, open and close a file.", of_servers),
    member<&Storage::stream_bandwidth>("MB/s", "unlimited", "The most of one connection.", of_servers),
    member<&Storage::link_bandwidth>("Gbit/s", "unlimited", "Link of one node to the server.", of_servers),
    member<&Storage::clients>("Machines that use the server at the same time.", of_servers.in({1, 1'000'000})),
    member<&Storage::network>("Storage traffic uses the training NICs (shared), or others (separate).", of_servers),
    {"source", mapping(source), "an assumption", "Source of the values."},
};

constexpr std::string_view fabric_words[] = {SingleSwitch::word, FatTree::word, Dragonfly::word, Torus::word,
                                             Sites::word};
static_assert(std::size(fabric_words) == std::variant_size_v<decltype(Fabric::shape)>);
constexpr IntegerRange to_a_million{1, 1'000'000};
// A kind of fabric has the keys that go together with its word, and those that go with none.
constexpr Key fat_tree{.usual = "needed of fat_tree", .together = "kind: fat_tree", .range = to_a_million};
constexpr Key dragonfly{.usual = "needed of dragonfly", .together = "kind: dragonfly", .range = to_a_million};
constexpr Key torus{.usual = "needed of torus", .together = "kind: torus", .range = to_a_million};
constexpr Key sites{.usual = "needed of sites", .together = "kind: sites", .range = to_a_million};
constexpr Key fabric_keys[] = {
    {"kind", words(fabric_words), "needed", "Topology of the fabric."},
    {"name", text, "", "Name of the fabric."},
    {"description", text, "", "One-line description for `foretrain hardware list`."},
    {"sources", by_name(mapping(source)), "assumptions", "Sources of the values: default, or by key."},
    {"switch_latency", quantity("ns"), "0", "Latency per switch; of a torus, per hop."},
    member<&FatTree::nodes_per_leaf>("Nodes per leaf switch.", fat_tree),
    member<&FatTree::nodes_per_pod>("Nodes per pod; each pod has its own spines.", fat_tree.or_else("no pods")),
    member<&FatTree::oversubscription>("NICs below a leaf switch over its uplinks.", fat_tree.or_else("1")),
    member<&FatTree::pod_oversubscription>("Cables from a pod's leaves over cables to the core.",
                                           {.usual = "1", .together = "With nodes_per_pod of a fat_tree."}),
    member<&FatTree::rails>("Rail-optimised: NIC i of every node connects to leaf i.", fat_tree.or_else("false")),
    member<&FatTree::uplinks>("Uplinks per leaf, each to another spine.",
                              fat_tree.or_else("full bandwidth of the NICs")),
    {"routing", one_of<"perfect", "adaptive", "hash", "minimal", "valiant">, "perfect; minimal of dragonfly",
     "Routing. fat_tree: perfect (all uplinks), adaptive or hash (ECMP); dragonfly: minimal or valiant (by another "
     "group).",
     "kind: fat_tree or dragonfly"},
    Key{"seed", whole, "1", "Random seed of hash and valiant routes.", "routing: hash or valiant"}.in(to_a_million),
    member<&Dragonfly::nodes_per_router>("Nodes per router.", dragonfly),
    member<&Dragonfly::routers_per_group>("Routers of a group, all joined to each other.", dragonfly),
    member<&Dragonfly::groups>("Number of groups.", dragonfly),
    member<&Dragonfly::global_links_per_router>("Links of a router to other groups.",
                                                dragonfly.or_else("nodes_per_router")),
    member<&Dragonfly::local_bandwidth>("Gbit/s", "the NIC's", "Bandwidth of a link inside a group.", dragonfly),
    member<&Dragonfly::global_bandwidth>("Gbit/s", "the NIC's", "Bandwidth of a link between groups.", dragonfly),
    member<&Torus::dimensions>("Nodes along each dimension: [4, 4, 2].", torus.of(one_or_list(whole))),
    member<&Torus::link_bandwidth>("Gbit/s", "the NIC's", "Bandwidth to one neighbour, per direction.", torus),
    member<&Sites::sites>("Number of sites; nodes are divided evenly.", sites.or_else("2")),
    {"distance", quantity("km"), "needed of sites", "Cable length between any two sites.", "kind: sites"},
    member<&Sites::bandwidth>("Gbit/s", "needed of sites", "Bandwidth of a site's uplink, per direction.", sites),
};

constexpr Key node_keys[] = {
    {"kind", text, "node", "Kind of file: node."},
    member<&Node::name>("Name of the node in results.", {.usual = "node"}),
    member<&Node::description>("One-line description for `foretrain hardware list`."),
    {"gpu", named(Catalogue::gpu, gpu), "needed", "The kind of GPU."},
    needed<&Node::gpus>("GPUs per node.", {.range = {1, 1024}}),
    {"cpu", mapping(cpu), "needed", "Its processors and their memory."},
    member<&Node::peer_to_peer>("GPU peer-to-peer copies over PCIe, not through CPU memory.",
                                {.usual = "below PCIe switches, where the GPU has peer_access"}),
    {"nccl", text, "the cluster's", "NCCL version; none: collectives without library overhead (textbook nodes)."},
    {"link_types", by_name(mapping(link_type)), "", "Own link types, by name."},
    {"wiring", list(mapping(link)), "needed", "The links between GPUs, switches and processors."},
    {"nics", mapping_of<nics_keys, "attachment of NICs">, "on the CPU sockets", "PCIe attachment of NICs."},
    {"network", mapping(network), "no NICs", "NICs and the network behind them."},
    {"storage", named(Catalogue::storage, storage), "no storage", "Disks of the training data."},
    {"assumed", by_name(text), "nothing", "Assumed keys with reasons, which predictions repeat as warnings."},
    {"sources", by_name(mapping(source)), "needed in files", "Sources of the values: default, or by key."},
};

constexpr Key link_keys[] = {
    {"between", list(text), "needed",
     "The two ends: gpu<number>, cpu<number>, nvswitch…, plx… or pcie…; gpu0..gpu7 stands for eight links."},
    {"link", named(Catalogue::link), "needed", "The kind of link: a name of link_types or of the catalogue's links."},
    Key{"count", whole, "1", "Number of parallel links."}.in({1, 1024}),
};

constexpr Key link_type_keys[] = {
    needed<&LinkType::kind>("Link technology."),
    needed<&LinkType::bandwidth>("GB/s", "Copy bandwidth per link and direction."),
    needed<&LinkType::latency>("us", "Latency per link.", may_be_zero),
    member<&LinkType::full_duplex>("Full duplex: both directions carry the full bandwidth."),
    member<&LinkType::in_network_reduction>("In-network reduction by NVSwitches (NVLink SHARP)."),
    member<&LinkType::collective_efficiency>("Share of the bandwidth that rings of collective libraries reach.",
                                             {.usual = "0: as calibrated"}),
    member<&LinkType::gpu_bandwidth>("GB/s", "the links' own",
                                     "GPU-to-GPU bandwidth between two CPU sockets, all links together.",
                                     {.together = "kind: socket"}),
    {"source", mapping(source), "an assumption", "Source of the values."},
    {"sources", by_name(mapping(source)), "source", "Sources of the values: default, or by key."},
};

constexpr Key links_file_keys[] = {
    {"kind", text, "", "Kind of file: links."},
    {"description", text, "", "Description of the file."},
    {"links", by_name(mapping(link_type)), "needed", "Kinds of links, by name."},
};

constexpr Key messages_keys[] = {
    member<&CardMessages::efficiency>("Bandwidth of long messages relative to the NIC's.",
                                      {.usual = "as calibrated", .zero = Zero::refused}),
    member<&CardMessages::message_time>("us", "none", "Fixed time per message."),
    member<&CardMessages::step>("us", "none", "Fixed time per collective step."),
    member<&CardMessages::largest>("KiB", "128 KiB",
                                   "The largest message to many peers, or of a reduction in switches."),
    {"source", mapping(source), "needed", "Source of the measurements."},
};

constexpr Key card_keys[] = {
    {"medium", one_of<"ethernet", "infiniband">, "needed", "Port type of the NIC."},
    {"bandwidth", quantity("Gbit/s"), "needed", "Data rate of one port in one direction."},
    {"source", mapping(source), "needed", "Source of the bandwidth."},
    {"messages", mapping_of<messages_keys, "messages of a NIC">, "as calibrated on InfiniBand",
     "Performance of collective libraries through the NIC."},
};

constexpr Key cards_file_keys[] = {
    {"kind", text, "", "Kind of file: cards."},
    {"description", text, "", "Description of the file."},
    {"cards", by_name(mapping_of<card_keys, "NIC">), "needed", "NIC types, by name."},
};

constexpr Key storage_file_keys[] = {
    {"kind", text, "", "Kind of file: storage."},
    {"description", text, "", "Description of the file."},
    {"storage", by_name(mapping(storage)), "needed", "Kinds of storage, by name."},
};

constexpr Key source_keys[] = {
    {"kind", word<ConstantKind>, "needed", "Kind of source: published, measured, fitted or assumed."},
    {"text", text, "needed", "Publication or method of measurement."},
};

}  // namespace

constinit const Mapping node = {"machine", node_keys};
constinit const Mapping link = {"link", link_keys};
constinit const Mapping link_type = {"kind of link", link_type_keys};
constinit const Mapping links_file = {"file of links", links_file_keys};
constinit const Mapping cards_file = {"file of NICs", cards_file_keys};
constinit const Mapping storage_file = {"file of storage", storage_file_keys};
constinit const Mapping storage = {"storage", storage_keys};
constinit const Mapping source = {"source", source_keys};
constinit const Mapping fabric = {"fabric", fabric_keys};

}  // namespace foretrain::keys
