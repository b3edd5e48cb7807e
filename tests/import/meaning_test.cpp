
#include "model/job/job.hpp"
#include "model/scenario/hardware/hardware_reader.hpp"
#include "model/scenario/load/cases.hpp"
#include "model/scenario/load/load.hpp"
#include "reports/import/kineto_trace.hpp"
#include "reports/import/shell_arguments.hpp"
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

TEST_CASE("Megatron-LM counts a bucket of gradients in numbers of four bytes") {
  ImportInput input = input_of({"megatron", "megatron_mixtral.txt"});
  input.text += " --ddp-bucket-size 40000000\n";
  const Scenario scenario = load_scenario_text(import_with("megatron", input), "imported.yaml");
  CHECK(scenario.plan.sync.bucket == Bytes(160e6));
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
  // Two of Chakra, one of Hugging Face, three of Megatron, two of DeepSpeed, four each of torchtitan and Accelerate.
  CHECK(scenarios == 16);
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

TEST_CASE("shell: quotes, continued lines, variables, defaults and arithmetic") {
  const auto value_of_last = [](const std::string& text) { return shell_arguments(text, "file").back().value; };
  CHECK(value_of_last("--a 1 --b '2 3'") == "2 3");
  CHECK(value_of_last("A=4\nB=\"$A\"\nrun --b ${B}5") == "45");
  CHECK(value_of_last("run --b ${N:-16}") == "16");
  CHECK(value_of_last("N=3; run --b $((N * (2 + 4) / 9))") == "2");
  CHECK(value_of_last("run --b $((1 / 0))") == "$((1 / 0))");
  CHECK(value_of_last("run \\\n  --b=7 # --b 8") == "7");
  CHECK(value_of_last("run --flag \\\n --b $UNKNOWN") == "$UNKNOWN");
  CHECK(value_of_last("srun bash -c \"run --a 1 --b 9\"") == "9");
  CHECK(value_of_last("#SBATCH --nodes=4\n# --nodes 5") == "4");
  CHECK(value_of_last("run --b 2\\") == "2\\");  // nothing follows that it could quote
  // A string of options is read where it is assigned, at the places of its words.
  const std::vector<ForeignSetting> settings = shell_arguments("ARGS=\"\n  --a 1 \\\n  --b 2\n\"\nrun $ARGS", "file");
  REQUIRE(settings.size() == 2);
  CHECK(settings[1].value == "2");
  CHECK(settings[1].where.text() == "file:3:3");
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

TEST_CASE("A switch on which nothing hangs but cards that are left out is left out, too") {
  // Two GPUs and a card of 400 Gbit/s on one switch; on another, below a third, a card of 10 Gbit/s for the machine
  // itself.
  const std::string slot = R"( link_speed="32.0 GT/s PCIe" link_width="16")";
  const auto gpu = [&](int number) {
    return fmt::format(
        R"(<pci busid="0000:0{0}:00.0" class="0x030200" device="0x2330"{1}><gpu dev="{0}" sm="90"/></pci>)", number,
        slot);
  };
  const auto card = [&](const char* bus, int speed) {
    return fmt::format(R"(<pci busid="{}" class="0x020700"{}><nic><net name="mlx5" speed="{}"/></nic></pci>)", bus,
                       slot, speed);
  };
  const std::string text = R"(<system version="1"><cpu numaid="0"><pci busid="0000:10:00.0" class="0x060400")" + slot +
                           ">" + gpu(0) + gpu(1) + card("0000:11:00.0", 400'000) +
                           R"(</pci><pci busid="0000:20:00.0" class="0x060400")" + slot +
                           R"(><pci busid="0000:21:00.0" class="0x060400")" + slot + ">" +
                           card("0000:22:00.0", 10'000) + "</pci></pci></cpu></system>";
  const YamlNode document =
      parse_yaml(import_with("nccl-topology", {.file = "two.xml", .text = text, .overrides = {}, .scenario = {}}),
                 "imported.yaml");
  const Node node = read_node(Field(document, ""));
  CHECK(node.network.nics_per_node == 1);
  CHECK(node.links.size() == 3);  // both GPUs and their switch
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

TEST_CASE("tables of nccl-tests have two cases for each size") {
  const std::string table = import_with("nccl-tests", input_of({"nccl-tests", "nccl_tests_all_reduce.txt"}));
  const std::vector<Case> cases = read_cases_text(table, "table.csv");
  REQUIRE(cases.size() % 2 == 0);
  const Scenario scenario = scenario_of(cases.back());
  CHECK(scenario.cluster.node.name == "dgx-h100");
  const auto& collective = std::get<CollectiveWorkload>(scenario.workload);
  // Nothing in the file names the program: the bus carries more than the message, as only an all-reduce's does.
  CHECK(collective.operation == CollectiveOperation::all_reduce);
  CHECK(collective.size.value() == 4294967296.0);
  CHECK(
      std::get<CollectiveWorkload>(
          scenario_of(read_cases_text(import_with("nccl-tests", input_of({"nccl-tests", "nccl_tests_all_gather.log"})),
                                      "table.csv")
                          .front())
              .workload)
          .operation == CollectiveOperation::all_gather);
}

TEST_CASE("a table of nccl-tests that names no device is of the machine that one says") {
  ImportInput input = input_of({"nccl-tests", "nccl_tests_all_reduce.txt"});
  for (std::size_t at; (at = input.text.find("#  Rank")) != std::string::npos;) {
    input.text.erase(at, input.text.find('\n', at) + 1 - at);
  }
  CHECK_THROWS_WITH(import_with("nccl-tests", input), Catch::Contains("no line names a device"));
  input.overrides = {"cluster.node=dgx-h100", "workload.collective.operation=all_reduce"};
  const std::string table = import_with("nccl-tests", input);
  CHECK(scenario_of(read_cases_text(table, "table.csv").front()).cluster.gpus() == 8);
}

TEST_CASE("a collective that no program names is told by its reduction, its root and what the bus carries") {
  const ImportInput all_reduce = input_of({"nccl-tests", "nccl_tests_all_reduce.txt"});
  const auto operation_of = [&](const char* redop, const char* root, double bus_share) {
    ImportInput input = all_reduce;
    const std::size_t rows = input.text.find("           8             2");
    input.text.resize(rows);
    input.text += fmt::format("1073741824 268435456 float {} {} 4000.0 268.44 {:.2f} 0 4000.0 268.44 {:.2f} 0\n", redop,
                              root, 268.44 * bus_share, 268.44 * bus_share);
    const std::vector<Case> cases = read_cases_text(import_with("nccl-tests", input), "table.csv");
    return std::get<CollectiveWorkload>(scenario_of(cases.front()).workload).operation;
  };
  CHECK(operation_of("sum", "-1", 1.75) == CollectiveOperation::all_reduce);
  CHECK(operation_of("sum", "-1", 0.875) == CollectiveOperation::reduce_scatter);
  CHECK(operation_of("sum", "0", 1.0) == CollectiveOperation::reduce);
  CHECK(operation_of("none", "0", 1.0) == CollectiveOperation::broadcast);
  CHECK_THROWS_WITH(operation_of("none", "-1", 0.875), Catch::Contains("does not tell what was measured"));
}

TEST_CASE("a trace of a GPU is summed up by kinds of kernels, for one step") {
  const ImportInput input = input_of({"kineto", "kineto_gpu.json"});
  const KinetoSummary trace = summarise_kineto(input.text, input.file);
  CHECK(trace.steps == 2);
  CHECK(trace.step.value() == Approx(10e-3));
  // Two products of 800 us forward and two of 1600 us backward.
  CHECK(trace.kernels.at(KernelKind::matmul).time.value() == Approx(4.8e-3));
  CHECK(trace.kernels.at(KernelKind::matmul).count == 4.0);
  CHECK(trace.kernels.at(KernelKind::communication).time.value() == Approx(3e-3));
  // The all-reduce begins 2300 us into a backward pass of 4600 us, which ends 700 us before it.
  CHECK(trace.exposed_communication.value() == Approx(700e-6));
  // 40 us of copies, 2500 forward, 4600 backward, 700 of communication alone, 400 of optimizer.
  CHECK(trace.idle.value() == Approx((10000 - 40 - 2500 - 4600 - 700 - 400) * 1e-6));
}

TEST_CASE("packed traces are the same as plain ones") {
  ImportInput packed = input_of({"kineto", "kineto_gpu.json.gz"}), plain = input_of({"kineto", "kineto_gpu.json"});
  packed.file = plain.file;
  CHECK(import_with("kineto", packed) == import_with("kineto", plain));
}

TEST_CASE("Chakra's two forms say the same") {
  ImportInput wire = input_of({"chakra", "chakra_step.0.et"}), json = input_of({"chakra", "chakra_step.0.json"});
  json.file = wire.file;
  CHECK(import_with("chakra", wire) == import_with("chakra", json));
  const Scenario scenario = imported("chakra", "chakra_step.0.et");
  CHECK(std::get<TasksWorkload>(scenario.workload).tasks.size() == 9);
}

TEST_CASE("Megatron pads GPT-2's vocabulary, and latent attention has its defaults beside what is said") {
  const auto text_with = [](const std::string& more) {
    return import_text("megatron",
                       "--num-layers 2 --hidden-size 1024 --num-attention-heads 8 --seq-length 128 "
                       "--max-position-embeddings 128 --micro-batch-size 1 --global-batch-size 8 " +
                           more);
  };
  // Of 50,257 words: the next multiple, which may be the number itself, or nearly twice as much.
  CHECK_THAT(text_with(""), Catch::Contains("vocabulary: 50304 "));
  CHECK_THAT(text_with("--make-vocab-size-divisible-by 50257"), Catch::Contains("vocabulary: 50257 "));
  CHECK_THAT(text_with("--make-vocab-size-divisible-by 50256"), Catch::Contains("vocabulary: 100512 "));
  const std::string latent = text_with("--multi-latent-attention --kv-lora-rank 512");
  CHECK_THAT(latent, Catch::Contains("kv_lora_rank: 512 ") && Catch::Contains("\n      head_dim: 128 ") &&
                         Catch::Contains("rope_head_dim: 64 ") && Catch::Contains("v_head_dim: 128 ") &&
                         Catch::Contains("--multi-latent-attention, its default"));
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
