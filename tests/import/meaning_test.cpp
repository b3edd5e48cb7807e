#include "model/job/job.hpp"
#include "model/scenario/hardware/hardware_reader.hpp"
#include "model/scenario/load/cases.hpp"
#include "model/scenario/load/load.hpp"
#include "tests/catch.hpp"
#include "tests/import/samples.hpp"

using namespace foretrain;
using namespace foretrain::test;

namespace {

Scenario imported(std::string_view importer, std::string_view file, std::vector<std::string> overrides = {}) {
  ImportInput input = input_of({importer, file});
  input.overrides = std::move(overrides);
  return load_scenario_text(import_with(importer, input), "imported.yaml");
}

Node imported_node(std::string_view importer, std::string_view file) {
  const YamlNode document = parse_yaml(import_with(importer, input_of({importer, file})), "imported.yaml");
  return read_node(Field(document, ""));
}

int links_of(const Node& node, const std::string& part) {
  int count = 0;
  for (const NodeLink& link : node.links) {
    const bool here = node.vertices[at_index(link.a)].name == part || node.vertices[at_index(link.b)].name == part;
    if (here) count += link.count;
  }
  return count;
}

}  // namespace

TEST_CASE("a script of Megatron-LM becomes the training that it starts") {
  const Scenario scenario = imported("megatron", "megatron_gpt3.sh");
  const auto& train = std::get<TrainWorkload>(scenario.workload);
  const auto& model = std::get<TransformerConfig>(train.model.shape);
  // Sixteen machines of eight GPUs, in replicas of eight times eight: two of these.
  CHECK(scenario.cluster.gpus() == 128);
  CHECK(scenario.plan.tensor == 8);
  CHECK(scenario.plan.pipeline == 8);
  CHECK(scenario.plan.data == 2);
  // The script works it out: 128 / (8 * 8) * 48.
  CHECK(train.global_batch == 96);
  CHECK(train.recompute == Recompute::full);
  // 50,257 padded to a multiple of 128 times eight tensor ranks.
  CHECK(model.vocabulary == 51200);
  CHECK(scenario.plan.zero == 1);
  CHECK(scenario.plan.sync.overlap);
}

TEST_CASE("what a script has as a comment does not count, and quotes of defaults go") {
  const Scenario scenario = imported("megatron", "megatron_arrays.sh");
  const auto& train = std::get<TrainWorkload>(scenario.workload);
  const auto& model = std::get<TransformerConfig>(train.model.shape);
  CHECK(scenario.cluster.gpus() == 32);  // ${SLURM_NNODES:-"4"} machines of eight
  CHECK(model.sequence == 4096);
  CHECK(train.global_batch == 512);
  CHECK(scenario.plan.expert == 8);
  CHECK(scenario.plan.zero == 1);
}

TEST_CASE("every imported scenario and table is predicted as it stands") {
  int scenarios = 0;
  for (const ImportSample& sample : import_samples) {
    const std::string text = import_with(sample.importer, input_of(sample));
    INFO(sample.file);
    if (text.find("\nworkload:") != std::string::npos) {
      CHECK(estimate(load_scenario_text(text, "imported.yaml")).time() > Seconds(0.0));
      ++scenarios;
    }
    if (!text.starts_with("case,")) continue;
    for (const Case& row : read_cases_text(text, "table.csv")) CHECK(estimate(scenario_of(row)).time() > Seconds(0.0));
  }
  // Two of Chakra, one of Hugging Face, three of Megatron, one of NeMo, two of DeepSpeed, four each of torchtitan and
  // Accelerate.
  CHECK(scenarios == 17);
}

TEST_CASE("NeMo's settings are Megatron-LM's under other names, on unless they are turned off") {
  const Scenario scenario = imported("nemo", "nemo_llama3_70b.yaml", {"cluster.nodes=16"});
  const auto& train = std::get<TrainWorkload>(scenario.workload);
  const auto& model = std::get<TransformerConfig>(train.model.shape);
  CHECK(scenario.plan.interleave == 5);
  CHECK(scenario.plan.zero == 1);
  CHECK(scenario.plan.sync.overlap);
  CHECK_FALSE(scenario.plan.sync.gather_overlap);
  CHECK_FALSE(scenario.plan.tensor_overlap);
  CHECK(train.precision == Precision::fp8);
  CHECK(model.kv_heads == 8);
  CHECK_FALSE(model.biases);
  CHECK_FALSE(model.tied_embeddings);
  CHECK(model.vocabulary == 128512);  // padded to a multiple of 128 for each of four tensor ranks
}

TEST_CASE("--set says what a file does not, and replaces what it does") {
  const Scenario scenario =
      imported("megatron", "megatron_gpt3.sh",
               {"cluster.node=dgx-a100-80gb", "plan.zero=0", "workload.train.recompute=selective"});
  CHECK(scenario.cluster.node.name == "dgx-a100-80gb");
  CHECK(scenario.plan.zero == 0);
  CHECK(std::get<TrainWorkload>(scenario.workload).recompute == Recompute::selective);
}

TEST_CASE("--set replaces parts of machines and their lists") {
  ImportInput input = input_of({"nvidia-smi", "nvidia_smi_one.txt"});
  input.overrides = {"gpu=rtx-4090", "wiring=[{ between: [gpu0, cpu0], link: pcie3-x8 }]"};
  const YamlNode document = parse_yaml(import_with("nvidia-smi", input), "imported.yaml");
  const Node node = read_node(Field(document, ""));
  CHECK(node.gpu.name == "rtx-4090");
  REQUIRE(node.links.size() == 1);
  CHECK(node.link_types.front().name == "pcie3-x8");
}

TEST_CASE("NCCL's topology becomes the same wiring") {
  const Node node = imported_node("nccl-topology", "nccl_topology_hgx_h100.xml");
  CHECK(node.gpu.name == "h100-sxm-80gb");
  CHECK(node.cpu.sockets == 2);
  // Eighteen NVLinks to switches, whichever of the four they lead to, and one PCIe slot.
  CHECK(links_of(node, "gpu0") == 19);
  CHECK(node.network.nics_per_node == 8);  // the ninth, of 100 Gbit/s, is not for collectives
  CHECK(node.network.nic_bandwidth.value() == Approx(50e9));
  CHECK(node.nic_attachment.size() == 8);
  // Each V100 has four links to its three peers: one, one and two. Both ends state them; they are counted once.
  CHECK(links_of(imported_node("nccl-topology", "nccl_topology_v100.xml"), "gpu1") == 5);
}

TEST_CASE("a topology that a cloud gives NCCL has places alone, by classes of PCI devices") {
  const Node node = imported_node("nccl-topology", "nccl_topology_cloud.xml");
  CHECK(node.gpu.name == "h100-sxm-80gb");  // assumed by its slot of PCIe 5
  CHECK(node.gpus == 8);
  CHECK(links_of(node, "gpu5") == 19);  // its slot, and eighteen NVLinks as the catalogue's machine has them
  CHECK(links_of(node, "plx2") == 3);   // two GPUs and the socket; cards stand in a list of their own
  CHECK(node.network.nics_per_node == 4);
  CHECK(node.nic_attachment.size() == 4);
}

TEST_CASE("cards that share a socket with a GPU are for collectives; where none does, all are") {
  const auto cards = [](const std::string& first, const std::string& second) {
    const std::string matrix = fmt::format(
        "\tGPU0\tGPU1\tmlx5_0\tmlx5_1\tCPU Affinity\tNUMA Affinity\nGPU0\t X \tPIX\t{0}\t{1}\t0-31\t0\n"
        "GPU1\tPIX\t X \t{0}\t{1}\t0-31\t0\nmlx5_0\t{0}\t{0}\t X \tSYS\nmlx5_1\t{1}\t{1}\tSYS\t X \n\n",
        first, second);
    const YamlNode document = parse_yaml(import_text("nvidia-smi", matrix, {"gpu=a40"}), "imported.yaml");
    return read_node(Field(document, "")).network.nics_per_node;
  };
  CHECK(cards("PIX", "PHB") == 2);
  CHECK(cards("NODE", "SYS") == 1);
  CHECK(cards("SYS", "NODE") == 1);
  CHECK(cards("SYS", "SYS") == 2);
}

TEST_CASE("Chakra's two forms say the same") {
  ImportInput wire = input_of({"chakra", "chakra_step.0.et"}), json = input_of({"chakra", "chakra_step.0.json"});
  json.file = wire.file;
  CHECK(import_with("chakra", wire) == import_with("chakra", json));
  const Scenario scenario = imported("chakra", "chakra_step.0.et");
  CHECK(std::get<TasksWorkload>(scenario.workload).tasks.size() == 9);
}

TEST_CASE("a trace stands beside a prediction, how far off that is by each kind of kernel") {
  const Scenario scenario = load_scenario("gpt2-xl-dgx-a100");
  const double step = estimate(scenario).time().value() * 1e6;
  // One kernel that takes half a step: the prediction is twice as long.
  ImportInput input;
  input.file = "trace";
  input.text = fmt::format(
      "[{{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"gemm\",\"ts\":0,\"dur\":{},\"tid\":1,\"args\":{{\"device\":0}}}}]",
      step / 2.0);
  input.scenario = "gpt2-xl-dgx-a100";
  input.fidelity = Fidelity::estimate;
  const std::string text = import_with("kineto", input);
  const auto row = [&](const std::string& what) {
    const std::size_t at = text.find("\n  " + what);
    return at == std::string::npos ? std::string() : text.substr(at + 1, text.find('\n', at + 1) - at - 1);
  };
  CHECK_THAT(row("step"), Catch::Contains("+100.0 %"));
  // It has kernels of other kinds, of which the trace has none.
  for (const char* kind : {"optimizer", "elementwise", "communication"}) {
    INFO(kind);
    CHECK_THAT(row(kind), Catch::Contains(" 0 s ") && !Catch::Contains("%"));
  }
  CHECK_THAT(row("matmul"), Catch::Contains("%"));
  input.scenario = "sync-ring-4";
  CHECK_THROWS_WITH(import_with("kineto", input), Catch::Contains("nothing that is trained"));
}
