#include "model/scenario/hardware/hardware_reader.hpp"

#include "model/scenario/catalogue.hpp"
#include "model/scenario/load/load.hpp"
#include "tests/base/temporary_folder.hpp"
#include "tests/catch.hpp"
#include "tests/complaint.hpp"

using namespace foretrain;

namespace {

/// A node that needs nothing of the catalogue; line 6 is its wiring.
std::string inline_node(const std::string& wiring =
                            "[ { between: [gpu0..gpu1, plx0], link: slot }, "
                            "{ between: [plx0, cpu0], link: slot, count: 2 } ]") {
  return "gpu: { architecture: volta, compute_capability: 7.0, sms: 80, boost_clock: 1530 MHz, "
         "vector_rate: { fp32: 15.7 TFLOP/s }, tensor_rate: { fp16: 125 TFLOP/s }, memory: 16 GiB, "
         "memory_bandwidth: 900 GB/s, memory_latency: 400 ns, l2_cache: 6 MiB, l2_bandwidth: 2155 GB/s, "
         "shared_memory_per_sm: 96 KiB, board_power: 300 W }\n"
         "gpus: 2\n"
         "cpu: { cores: 16, clock: 2.4 GHz, memory: 64 GiB, memory_bandwidth: 80 GB/s, fp32_rate: 600 GFLOP/s }\n"
         "link_types: { slot: { kind: pcie, bandwidth: 12 GB/s, latency: 1 us } }\n"
         "peer_to_peer: false\n"
         "wiring: " +
         wiring + "\n";
}

Node read(const std::string& yaml) {
  const YamlNode node = parse_yaml(yaml, "n.yaml");
  return read_node(Field(node, "cluster.node"));
}

std::string complaint(const std::string& yaml) {
  return test::complaint_of([&] { read(yaml); });
}

const Constant& constant(const std::vector<Constant>& constants, const std::string& name) {
  const auto found = std::ranges::find_if(constants, [&](const Constant& c) { return c.name == name; });
  REQUIRE(found != constants.end());
  return *found;
}

}  // namespace

TEST_CASE("An inline node: figures, vertices and links") {
  const Node node = read(inline_node());
  CHECK(node.gpu.sms == 80);
  CHECK(node.gpu.vector_rate[static_cast<std::size_t>(Precision::fp32)].value() == 15.7e12);
  CHECK(node.gpu.tensor_rate[static_cast<std::size_t>(Precision::fp16)].value() == 125e12);
  CHECK(node.gpu.tensor_rate[static_cast<std::size_t>(Precision::bf16)].value() == 0.0);
  CHECK(node.gpu.board_power_watts == 300.0);
  CHECK(node.peer_to_peer == false);
  REQUIRE(node.vertices.size() == 4);  // two GPUs, one CPU, one switch
  CHECK(node.vertices[0].name == "gpu0");
  CHECK(node.vertices[1].kind == VertexKind::gpu);
  CHECK(node.vertices[2].kind == VertexKind::cpu);
  CHECK(node.vertices[3].name == "plx0");
  CHECK(node.vertices[3].kind == VertexKind::pcie_switch);
  REQUIRE(node.links.size() == 3);  // the range stands for two links
  CHECK(node.links[1].a == 1);
  CHECK(node.links[1].b == 3);
  CHECK(node.links[2].count == 2);
  REQUIRE(node.link_types.size() == 1);
  CHECK(node.link_types[0].bandwidth.value() == 12e9);
  CHECK(node.link_types[0].full_duplex);
  CHECK_FALSE(node.link_types[0].in_network_reduction);
}

TEST_CASE("GPUs of an inline node reach each other over PCIe, unless it says that they do not") {
  std::string text = inline_node();
  const std::string line = "peer_to_peer: false\n";
  CHECK_FALSE(read(text.erase(text.find(line), line.size())).peer_to_peer);  // as the GPU and the wiring have it
}

TEST_CASE("Every figure has its source; what a scenario states is an assumption") {
  const Node own = read(inline_node());
  const Constant& stated = constant(own.constants, "node.cpu.memory_bandwidth");
  CHECK(stated.value == 80.0);  // as written
  CHECK(stated.unit == "GB/s");
  CHECK(stated.kind == ConstantKind::assumption);
  CHECK(stated.source == "stated in n.yaml:3:69");

  const Node catalogue = read("{ preset: dgx-a100-80gb, gpu: { memory: 96 GiB } }");
  CHECK(constant(catalogue.constants, "a100-sxm-80gb.memory").kind == ConstantKind::assumption);
  CHECK(constant(catalogue.constants, "a100-sxm-80gb.sms").kind == ConstantKind::datasheet);
}

TEST_CASE("A machine's file may be another's with changes, which may itself be one") {
  // p4de over TCP is p4d over TCP with other GPUs, which is p4d with other cards.
  const Node node = read("p4de.24xlarge-tcp");
  CHECK(node.gpu.name == "a100-sxm-80gb");
  CHECK(node.links.size() == read("p4d.24xlarge").links.size());
  CHECK(node.network.nics_per_node == 4);
  CHECK_FALSE(node.network.gpu_direct);
  CHECK(constant(node.constants, "p4de.24xlarge-tcp.cpu.memory_bandwidth").kind == ConstantKind::datasheet);
  const TemporaryFolder folder;
  const std::string endless = folder.write("a.yaml", "kind: node\nname: a\npreset: ./a.yaml\n").string();
  CHECK(complaint("{ preset: " + endless + " }").find("presets without an end") != std::string::npos);
}

TEST_CASE("What a machine's file assumes is a warning, until a scenario states it") {
  const std::string text = inline_node() + "assumed: { cpu: as another, wiring: drawn }\n";
  CHECK(read(text).assumed ==
        std::vector<std::string>{"node: assumed: cpu: as another", "node: assumed: wiring: drawn"});
  const TemporaryFolder folder;
  const std::string file = folder.write("n.yaml", text).string();
  CHECK(read("{ preset: " + file + ", wiring: [ { between: [gpu0..gpu1, cpu0], link: slot } ] }").assumed ==
        std::vector<std::string>{"node: assumed: cpu: as another"});
  // Some cores more leave the rest as it was assumed.
  CHECK(read("{ preset: " + file + ", cpu: { cores: 20 } }").assumed.size() == 2);
}

TEST_CASE("Ranges of equal length are joined one by one") {
  const Node node =
      read(inline_node("[ { between: [gpu0..gpu1, plx0..plx1], link: slot }, "
                       "{ between: [plx0..plx1, cpu0], link: slot } ]"));
  REQUIRE(node.links.size() == 4);
  CHECK(node.vertices[static_cast<std::size_t>(node.links[1].b)].name == "plx1");
}

TEST_CASE("A catalogue file must give sources for figures that exist") {
  const std::string file = "kind: node\n" + inline_node();
  CHECK(complaint(file).find("cluster.node.sources: this key is missing") != std::string::npos);
  CHECK(complaint(file + "sources: { cpu: { kind: datasheet, text: a } }\n").find("no default source") !=
        std::string::npos);
  CHECK(complaint(file + "sources: { default: { kind: datasheet, text: a }, cpus: { kind: fit, text: b } }\n") ==
        "n.yaml:8:51: cluster.node.sources.cpus: no such figure in this file; \"default\" or a key of the file");
  CHECK(complaint(file + "sources: { default: { kind: rumour, text: a } }\n").find("unknown value \"rumour\"") !=
        std::string::npos);
}

TEST_CASE("Cards by name, transports and fabrics") {
  const auto cluster = [](const std::string& network, const std::string& node = "dgx-a100-80gb") {
    const YamlNode document = parse_yaml("{ node: " + node + ", nodes: 4, network: " + network + " }", "c.yaml");
    return read_cluster(Field(document, "cluster"));
  };
  const Cluster plain = cluster("{ nic: ethernet-100g }");
  CHECK(plain.network.nic_bandwidth.value() == 12.5e9);
  CHECK(plain.network.efficiency == plain.node.network.efficiency);
  CHECK(std::holds_alternative<SingleSwitch>(plain.network.fabric.shape));
  CHECK_FALSE(plain.network.transport);

  // The transport's payload share is the efficiency, unless that is stated too.
  const Cluster tcp = cluster("{ transport: { protocol: tcp, mtu: 9000 B, window: 64 KiB, loss: 1e-5, streams: 4 } }");
  CHECK(tcp.network.efficiency == Approx(8948.0 / 9038.0));
  CHECK(tcp.network.transport->window.value() == 65536.0);
  CHECK(tcp.network.transport->streams == 4);
  CHECK(cluster("{ efficiency: 0.8, transport: { protocol: tcp } }").network.efficiency == 0.8);
  CHECK(cluster("{ transport: { protocol: infiniband } }").network.transport->link_layer == LinkLayer::infiniband);
  // Without a protocol it changes the node's.
  const Cluster more = cluster("{ transport: { streams: 16 } }", "p3.16xlarge");
  CHECK(more.network.transport->streams == 16);
  CHECK(more.network.transport->flow_limit.value() == 5e9 / 8.0);
  CHECK(more.network.transport->mtu.value() == 9001.0);
  CHECK_THROWS_AS(cluster("{ transport: { streams: 16 } }"), ScenarioError);

  const Cluster named = cluster("{ fabric: { preset: rail-optimised, oversubscription: 2 } }");
  const auto& tree = std::get<FatTree>(named.network.fabric.shape);
  CHECK(tree.rails);
  CHECK(tree.nodes_per_leaf == 32);
  CHECK(tree.oversubscription == 2.0);
  CHECK(named.network.fabric.switch_latency.value() == Approx(0.3e-6));
  CHECK(constant(named.node.constants, "fabric.switch_latency").kind == ConstantKind::assumption);

  // Links whose bandwidth is not stated are as fast as a card.
  const Cluster torus = cluster("{ nic: ethernet-400g, fabric: { kind: torus, dimensions: [2, 2] } }");
  CHECK(std::get<Torus>(torus.network.fabric.shape).link_bandwidth.value() == 50e9);
}

TEST_CASE("A network that scales badly is narrower for all traffic of a larger cluster") {
  const YamlNode document =
      parse_yaml("{ node: dgx-a100-80gb, nodes: 2, network: { scaling: { 4: 80 %, 64: 40 % } } }", "c.yaml");
  const Cluster scaled = read_cluster(Field(document, "cluster"));
  const Network& network = scaled.network;
  CHECK(network.share_left(1) == 1.0);
  CHECK(network.share_left(2) == Approx(0.9));  // halfway from 1 to 4, by their logarithms
  CHECK(network.share_left(4) == Approx(0.8));
  CHECK(network.share_left(16) == Approx(0.6));
  CHECK(network.share_left(64) == Approx(0.4));
  // On as 40 % since one node is by 1/6 of ln 0.4 for each doubling: four more. From 4 to 64 nodes it fell faster.
  CHECK(network.share_left(1024) == Approx(0.4 * std::pow(0.4, 4.0 / 6.0)));
  Network of_two;
  of_two.scaling = {{2, 0.4}};
  CHECK(of_two.share_left(1024) == 0.4);
  Cluster whole = scaled, quarter = scaled;
  quarter.nodes = 4;
  whole.network.scaling.clear();
  whole.nodes = 4;
  const auto rate = [](const Cluster& one) { return Topology(one).route(0, one.gpus_per_node).bandwidth; };
  CHECK(rate(quarter) / rate(whole) == Approx(0.8));
}

TEST_CASE("What collective libraries reach through a card comes and goes with its name") {
  const auto network = [](const std::string& text) {
    const YamlNode document = parse_yaml("{ node: polaris, nodes: 2, network: " + text + " }", "c.yaml");
    return read_cluster(Field(document, "cluster")).network;
  };
  const CardMessages own = network("{ nics_per_node: 2 }").messages;
  CHECK(own.efficiency > 0.0);
  CHECK(own.message_time > Seconds(0.0));
  CHECK(own.step > Seconds(0.0));
  CHECK(own.largest.value() == 128 * 1024);  // as NCCL has it where a card states nothing
  CHECK(network("{ nic_bandwidth: 100 Gbit/s }").messages.message_time == own.message_time);
  CHECK(network("{ nic: efa-4x100g }").messages.largest.value() == 512 * 1024);
  const CardMessages other = network("{ nic: infiniband-ndr }").messages;
  CHECK(other.efficiency == 0.0);
  CHECK(other.message_time == Seconds(0.0));
  CHECK(other.step == Seconds(0.0));
}

TEST_CASE("Every card of the catalogue can be read, and every PCIe generation and width") {
  for (const YamlEntry& card : hardware_table("cards.yaml").at("cards")->entries) {
    const YamlNode document = parse_yaml("{ nic: " + card.key + ", nics_per_node: 1 }", "n.yaml");
    const Field field(document, "network");
    FigureLog log("network", field);
    CHECK(read_network(field, {}, log).nic_bandwidth > BytesPerSecond(0.0));
    CHECK(std::move(log).take().back().kind == ConstantKind::datasheet);
  }
  for (const char* generation : {"3", "4", "5", "6"}) {
    double before = 0.0;
    for (const char* width : {"4", "8", "16"}) {
      const std::string type = std::string("pcie") + generation + "-x" + width;
      const Node node = read(inline_node("[ { between: [gpu0..gpu1, cpu0], link: " + type + " } ]"));
      // Twice the lanes, twice the bandwidth.
      if (before > 0.0) CHECK(node.link_types[0].bandwidth.value() == Approx(2.0 * before));
      before = node.link_types[0].bandwidth.value();
    }
  }
}

TEST_CASE("A node is read again when a file that it names has changed") {
  const TemporaryFolder folder;
  const std::string text = inline_node();
  const std::size_t gpu_begins = text.find('{'), gpu_ends = text.find("}\n") + 1;
  const std::string gpu = text.substr(gpu_begins, gpu_ends - gpu_begins);
  folder.write("gpu.yaml", gpu);
  const std::filesystem::path file =
      folder.write("node.yaml", text.substr(0, gpu_begins) + "./gpu.yaml" + text.substr(gpu_ends));
  const YamlNode name = yaml_scalar(file.string(), {});
  const auto sms = [&] { return read_node(Field(name, "cluster.node")).gpu.sms; };
  CHECK(sms() == 80);
  folder.write("gpu.yaml", std::string(gpu).replace(gpu.find("80"), 2, "108"));
  CHECK(sms() == 108);
}
