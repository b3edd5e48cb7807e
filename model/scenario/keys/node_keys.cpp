// Machines: their wiring, network cards, storage, and the fabric behind the cards.
#include "model/hardware/cluster.hpp"
#include "model/hardware/storage.hpp"
#include "model/scenario/keys/keys.hpp"
#include "model/scenario/keys/member.hpp"

namespace foretrain::keys {

namespace {

constexpr Key node_keys[] = {
    {"kind", text, "node", "What a file describes: node."},
    {"name", text, "node", "What results call the machine."},
    {"description", text, "", "A line about the machine for people who list hardware."},
    {"gpu", named(Catalogue::gpu, gpu), "needed", "The kind of GPU."},
    {"gpus", whole, "needed", "How many GPUs the machine has."},
    {"cpu", mapping(cpu), "needed", "Its processors and their memory."},
    {"peer_to_peer", flag, "below PCIe switches, where the GPU has peer_access",
     "Whether GPUs without NVLink between them copy to each other past host memory."},
    {"nccl", text, "the cluster's",
     "The version of NCCL; none for a textbook machine, whose collectives lose nothing to a library."},
    {"link_types", by_name(mapping(link_type)), "", "Kinds of links that the catalogue does not have, by name."},
    {"wiring", list(mapping(link)), "needed", "The links between GPUs, switches and processors."},
    {"nics", mapping(nics), "on the processors", "Where the network cards hang."},
    {"network", mapping(network), "no network cards", "The network cards, and what lies behind them."},
    {"storage", named(Catalogue::storage, storage), "no storage", "The disks from which data are loaded."},
    {"assumed", by_name(text), "nothing",
     "Keys that the author of the file assumed, each with the reason; predictions repeat them as warnings."},
    {"sources", by_name(mapping(source)), "needed in files", "Where the figures come from: default, or by key."},
};

constexpr Key link_keys[] = {
    {"between", list(text), "needed",
     "The two ends: gpu<number>, cpu<number>, nvswitch…, plx… or pcie…; gpu0..gpu7 stands for eight links."},
    {"link", named(Catalogue::link), "needed", "The kind of link: a name of link_types or of the catalogue's links."},
    {"count", whole, "1", "How many such links lie side by side."},
};

constexpr Key nics_keys[] = {
    {"attached_to", one_or_list(text), "needed", "The parts of the wiring that network cards hang on, in turn."},
    {"link", named(Catalogue::link), "needed", "The kind of link by which a card hangs there."},
};

constexpr Key link_type_keys[] = {
    needed<&LinkType::kind>("What sort of link it is."),
    needed<&LinkType::bandwidth>("GB/s", "What large copies reach over one link, in one direction."),
    needed<&LinkType::latency>("us", "What one crossing adds.", {.zero = Zero::allowed}),
    member<&LinkType::full_duplex>("Whether both directions carry the bandwidth at the same time."),
    member<&LinkType::in_network_reduction>("Whether switches on such links add up what passes through them."),
    member<&LinkType::collective_efficiency>("Share of the bandwidth that rings of collective libraries reach.",
                                             {.usual = "0: as calibrated"}),
    member<&LinkType::gpu_bandwidth>(
        "GB/s", "the links' own", "Of all such links between two processors: what GPUs of one send those of the other.",
        {.together = "kind: socket"}),
    {"source", mapping(source), "an assumption", "Where the figures come from."},
};

constexpr Key links_file_keys[] = {
    {"kind", text, "", "What the file describes: links."},
    {"description", text, "", "A line about the file."},
    {"links", by_name(mapping(link_type)), "needed", "Kinds of links, by name."},
};

constexpr Key cards_file_keys[] = {
    {"kind", text, "", "What the file describes: cards."},
    {"description", text, "", "A line about the file."},
    {"cards", by_name(mapping(card)), "needed", "Kinds of network cards, by name."},
};

constexpr Key card_keys[] = {
    {"medium", one_of<"ethernet", "infiniband">, "needed", "What the card's port speaks."},
    {"bandwidth", quantity("Gbit/s"), "needed", "Data rate of one port in one direction."},
    {"source", mapping(source), "needed", "Where the bandwidth comes from."},
    {"messages", mapping(messages), "as calibrated on InfiniBand", "What collective libraries reach through the card."},
};

constexpr Key messages_keys[] = {
    member<&CardMessages::efficiency>("Share of the card's bandwidth that long messages reach.",
                                      {.usual = "as calibrated", .zero = Zero::refused}),
    member<&CardMessages::message_time>("us", "none", "What each message takes beside its bytes."),
    member<&CardMessages::step>("us", "none", "What each step of a collective takes beside its messages."),
    member<&CardMessages::largest>("KiB", "128 KiB",
                                   "The largest message to many peers, or of a reduction in switches."),
    {"source", mapping(source), "needed", "Where the figures were measured."},
};

constexpr Key storage_file_keys[] = {
    {"kind", text, "", "What the file describes: storage."},
    {"description", text, "", "A line about the file."},
    {"storage", by_name(mapping(storage)), "needed", "Kinds of storage, by name."},
};

constexpr Key storage_keys[] = {
    {"name", text, "the catalogue's name", "What results call it."},
    member<&Storage::kind>("Flash, a disk with an arm, or a server that other machines use as well."),
    needed<&Storage::read_bandwidth>("GB/s", "Of large sequential reads; of a disk, in its outer zone."),
    member<&Storage::write_bandwidth>("GB/s", "as reads", "Of large sequential writes."),
    member<&Storage::random_read_iops>(
        "Small reads a second, many at once.",
        {.usual = "needed, but of disks", .together = "Not of disks.", .zero = Zero::refused}),
    member<&Storage::random_write_iops>("Small writes a second, many at once.",
                                        {.usual = "as reads", .together = "Not of disks.", .zero = Zero::refused}),
    member<&Storage::read_latency>("us", "needed, but of disks",
                                   "One small read alone; of a disk, its controller's part.", {.zero = Zero::allowed}),
    member<&Storage::write_latency>("us", "as reads", "One small write alone.", {.zero = Zero::allowed}),
    member<&Storage::queue_depth>("Requests that it takes at once.",
                                  {.usual = "1024; of disks 32", .range = {1, 1'000'000}}),
    member<&Storage::read_ahead>("KiB", "128 KiB", "How far the kernel reads ahead of a process that reads on and on."),
    {"rotation", quantity("ms") | text, "needed of disks", "10000 rpm, or the time of a revolution.", "kind: disk"},
    member<&Storage::seek>("ms", "needed of disks", "The average seek before a read.",
                           {.together = "kind: disk", .zero = Zero::allowed}),
    member<&Storage::write_seek>("ms", "as seek", "The average seek before a write.",
                                 {.together = "kind: disk", .zero = Zero::allowed}),
    member<&Storage::track_to_track>("ms", "0", "A seek to the next track.",
                                     {.together = "kind: disk", .zero = Zero::allowed}),
    member<&Storage::inner_bandwidth>("MB/s", "read_bandwidth", "Bandwidth of the innermost zone.",
                                      {.together = "kind: disk"}),
    member<&Storage::round_trip>("us", "needed of network", "A round trip to the server.",
                                 {.together = "kind: network", .zero = Zero::allowed}),
    member<&Storage::round_trips_per_open>("Round trips to find, open and close a file.",
                                           {.together = "kind: network"}),
    member<&Storage::stream_bandwidth>("MB/s", "unlimited", "The most of one connection.",
                                       {.together = "kind: network"}),
    member<&Storage::link_bandwidth>("Gbit/s", "unlimited", "One machine's way to the server.",
                                     {.together = "kind: network"}),
    member<&Storage::clients>("Machines that use the server at the same time.",
                              {.together = "kind: network", .range = {1, 1'000'000}}),
    member<&Storage::network>(
        "Whether machines reach the server by the cards that training uses, or by others (separate).",
        {.together = "kind: network"}),
    {"source", mapping(source), "an assumption", "Where the figures come from."},
};

constexpr Key source_keys[] = {
    {"kind", word<ConstantKind>, "needed", "Whether a figure is published, measured, fitted or assumed."},
    {"text", text, "needed", "Where it was published, or how it was measured."},
};

constexpr std::string_view fabric_words[] = {SingleSwitch::word, FatTree::word, Dragonfly::word, Torus::word,
                                             Sites::word};
static_assert(std::size(fabric_words) == std::variant_size_v<decltype(Fabric::shape)>);
constexpr IntegerRange to_a_million{1, 1'000'000};
// A kind of fabric has the keys that go together with its word, and those that go with none.
constexpr Key fabric_keys[] = {
    {"kind", words(fabric_words), "needed", "The shape of the network behind the cards."},
    {"name", text, "", "What people call the fabric."},
    {"description", text, "", "A line about the fabric for people who list hardware."},
    {"sources", by_name(mapping(source)), "assumptions", "Where the figures come from: default, or by key."},
    {"switch_latency", quantity("ns"), "0", "What every switch on the way adds; of a torus, every hop."},
    member<&FatTree::nodes_per_leaf>(
        "Machines that have a card on a leaf.",
        {.usual = "needed of fat_tree", .together = "kind: fat_tree", .range = to_a_million}),
    member<&FatTree::nodes_per_pod>("Machines of a pod, which has spines of its own.",
                                    {.usual = "no pods", .together = "kind: fat_tree", .range = to_a_million}),
    member<&FatTree::oversubscription>("Cards below a leaf over its cables upward.",
                                       {.usual = "1", .together = "kind: fat_tree"}),
    member<&FatTree::pod_oversubscription>("Cables from a pod's leaves over cables to the core.",
                                           {.usual = "1", .together = "With nodes_per_pod of a fat_tree."}),
    member<&FatTree::rails>("Whether card i of every machine hangs on the group's leaf i.",
                            {.usual = "false", .together = "kind: fat_tree"}),
    member<&FatTree::uplinks>(
        "A leaf's cables to the spines, each to one of its own.",
        {.usual = "as many as are as wide as a card", .together = "kind: fat_tree", .range = to_a_million}),
    {"routing", one_of<"perfect", "adaptive", "hash", "minimal", "valiant">, "perfect; minimal of dragonfly",
     "Which way a connection takes: of a fat_tree all uplinks (perfect), one at a time (adaptive) or one by a hash of "
     "its ends; of a dragonfly the shortest (minimal), or one by another group (valiant).",
     "kind: fat_tree or dragonfly"},
    {"seed", whole, "1", "Where the numbers of hash and valiant begin: the same seed gives the same routes.",
     "routing: hash or valiant"},
    member<&Dragonfly::nodes_per_router>(
        "Machines on a router.",
        {.usual = "needed of dragonfly", .together = "kind: dragonfly", .range = to_a_million}),
    member<&Dragonfly::routers_per_group>(
        "Routers of a group, all joined to each other.",
        {.usual = "needed of dragonfly", .together = "kind: dragonfly", .range = to_a_million}),
    member<&Dragonfly::groups>("How many groups there are.",
                               {.usual = "needed of dragonfly", .together = "kind: dragonfly", .range = to_a_million}),
    member<&Dragonfly::global_links_per_router>(
        "Links of a router to other groups.",
        {.usual = "nodes_per_router", .together = "kind: dragonfly", .range = to_a_million}),
    member<&Dragonfly::local_bandwidth>("Gbit/s", "the card's", "Of a link inside a group.",
                                        {.together = "kind: dragonfly"}),
    member<&Dragonfly::global_bandwidth>("Gbit/s", "the card's", "Of a link between groups.",
                                         {.together = "kind: dragonfly"}),
    {"dimensions", one_or_list(whole), "needed of torus", "Machines along each dimension: [4, 4, 2].", "kind: torus"},
    member<&Torus::link_bandwidth>("Gbit/s", "the card's", "To one neighbour, in one direction.",
                                   {.together = "kind: torus"}),
    member<&Sites::sites>("Places over which the machines are divided evenly.",
                          {.usual = "2", .together = "kind: sites", .range = to_a_million}),
    {"distance", quantity("km"), "needed of sites", "Metres of cable between any two places.", "kind: sites"},
    member<&Sites::bandwidth>("Gbit/s", "needed of sites", "Of a place's line to the others, in one direction.",
                              {.together = "kind: sites"}),
};

}  // namespace

constinit const Mapping node = {"machine", node_keys};
constinit const Mapping link = {"link", link_keys};
constinit const Mapping nics = {"place of the network cards", nics_keys};
constinit const Mapping link_type = {"kind of link", link_type_keys};
constinit const Mapping links_file = {"file of links", links_file_keys};
constinit const Mapping cards_file = {"file of network cards", cards_file_keys};
constinit const Mapping card = {"network card", card_keys};
constinit const Mapping messages = {"messages of a card", messages_keys};
constinit const Mapping storage_file = {"file of storage", storage_file_keys};
constinit const Mapping storage = {"storage", storage_keys};
constinit const Mapping source = {"source", source_keys};
constinit const Mapping fabric = {"fabric", fabric_keys};

}  // namespace foretrain::keys
