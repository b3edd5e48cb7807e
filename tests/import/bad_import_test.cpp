
#include "model/base/error.hpp"
#include "tests/catch.hpp"
#include "tests/import/samples.hpp"

using namespace foretrain;
using namespace foretrain::test;

namespace {

/// A file that is refused; `^` marks the guilty place, and is taken out before it is read. Without one the complaint is
/// about the file as a whole.
struct BadFile {
  std::string_view importer;
  std::string text, wrong, right;
};

void check_refused(const BadFile& bad) {
  std::string text = bad.text;
  SourcePosition where{"file", 0, 0};
  if (const std::size_t mark = text.find('^'); mark != std::string::npos) {
    text.erase(mark, 1);
    const std::string before = text.substr(0, mark);
    where.line = static_cast<int>(std::count(before.begin(), before.end(), '\n')) + 1;
    where.column = static_cast<int>(before.size() - (before.rfind('\n') + 1)) + 1;
  }
  INFO(bad.importer << ": " << bad.text);
  try {
    import_text(bad.importer, text);
    FAIL("not refused");
  } catch (const ScenarioError& error) {
    CHECK_THAT(error.got(), Catch::Contains(bad.wrong));
    CHECK_THAT(error.expected(), Catch::Contains(bad.right));
    CHECK(error.where().text() == where.text());
  }
}

}  // namespace

TEST_CASE("machines that cannot be are refused where the file says them") {
  check_refused({"nccl-topology", "<system><cpu^>", "", "XML that NCCL wrote"});
  check_refused({"nccl-topology", "<graphs/>", "this element is missing", "NCCL's topology"});
  check_refused({"nccl-topology", "<^system version=\"1\"><cpu/></system>", "no GPU", "at least one <gpu>"});
  check_refused({"nccl-topology", "<system><cpu><pci busid=\"a\">\n<^gpu dev=\"0\" sm=\"12\"/></pci></cpu></system>",
                 "no GPU of the catalogue has compute capability 12", "foretrain list"});
  check_refused({"nccl-topology",
                 "<system><cpu><pci busid=\"a\"><gpu dev=\"0\" sm=\"90\">"
                 "<^nvlink target=\"b\" count=\"-3\"/></gpu></pci></cpu></system>",
                 "-3 links", "1 to 1024"});
  check_refused({"nvidia-smi", "^", "no complete matrix", "nvidia-smi topo -m"});
  check_refused({"nvidia-smi", "\tGPU0\tGPU1\tCPU Affinity\nGPU0\tX\tNV4\t0-3\n^GPU2\tNV4\tX\t0-3\n",
                 "a row of \"GPU2\"", "this one's row"});
  check_refused(
      {"nvidia-smi", "\tGPU0\tGPU1\tCPU Affinity\n^GPU0\tX\tNEAR\t0-3\nGPU1\tPIX\tX\n", "says \"NEAR\"", "PIX, PXB"});
  check_refused({"slurm", "# nothing\n", "no switches", "SwitchName="});
  check_refused({"slurm", "\n^SwitchName=s0 Nodes=tux[3-1]\n", "is no list of hosts", "tux[0-3"});
  check_refused({"slurm", "^SwitchName=s0 Switches=s1\n", "there is no switch s1", "a line of its own"});
  check_refused({"slurm", "SwitchName=a Switches=b\n^SwitchName=b Switches=a\n", "in a circle", "a tree"});
  check_refused({"slurm", "^BlockName=b0 Nodes=n[0-7]\n", "blocks of machines", "topology/tree"});
}

TEST_CASE("measurements that cannot be read are refused") {
  check_refused({"nccl-tests", "hello", "no measurements", "nccl-tests prints"});
  check_refused({"nccl-tests", "# size count time algbw busbw time algbw busbw\n 1024 256 20.1 0.05^", "4 columns",
                 "8, as in the header"});
  check_refused({"nccl-tests", "# size count time algbw busbw\n 1024 256 ^fast 0.05 0.1\n", "fast", ""});
  check_refused({"nccl-tests", "# size count time algbw busbw\n 1024 256 20.1 0.05 0.1\n", "no line names a device",
                 "--set cluster.node=NAME"});
  const std::string header = "# size count time algbw busbw #wrong time algbw busbw #wrong\n";
  check_refused({"nccl-tests", header + " 1024 256 20.1 0.05 0.1 0 20.1 0.05 0.1 ^12\n", "12 wrong results",
                 "checked and right"});
  check_refused({"nccl-tests", header + " 1024 256 ^0.00 0.05 0.1 0 20.1 0.05 0.1 0\n", "takes no time", ""});
  check_refused({"kineto", "{\"traceEvents\": [\n  {\"ph\": \"X\" ^\"dur\": 3}]}", "this is no JSON", "to its end"});
  check_refused({"kineto", "{}", "no list of events", "torch.profiler"});
  check_refused({"kineto", "{\"traceEvents\": []}", "neither kernels nor operators", "ProfilerActivity"});
  check_refused({"chakra", "\x05hello", "no nodes", "MLCommons Chakra"});
  check_refused({"chakra", "\x01z\x07hello", "7 bytes are announced", "behind its length"});
  check_refused({"chakra", "\n^{\"type\": \"COMP_NODE\", \"id\": 1e999}", "a number that no double holds", ""});
  check_refused({"chakra", "^{\"schema\": \"1.0.2\", \"nodes\": []}", "of PyTorch itself", "chakra_converter"});
  check_refused({"chakra", "{\"type\": \"COMP_NODE\", \"id\": \"1\", \"dataDeps\": [\"1\"]}", "it waits for itself",
                 "without circles"});
}

TEST_CASE("configurations that mean nothing are refused where they are written") {
  const std::string_view model = "--num-layers 24 --hidden-size 1024 --num-attention-heads 16 --seq-length 1024 ";
  check_refused({"megatron", "torchrun --nnodes 4", "this argument is missing", "Megatron-LM's arguments"});
  check_refused({"megatron", "--num-layers ^'24", "a quote that is not closed", "a closing quote"});
  check_refused(
      {"megatron", std::string(model) + "\n  ^--micro-batch-size $MBS", "$MBS is not set in this file", "--set"});
  check_refused({"megatron", std::string(model) + "^--tensor-model-parallel-size 5", "5", ""});
  check_refused({"megatron", std::string(model) + "^--optimizer lion", "\"lion\" is not modelled", "adam or sgd"});
  check_refused({"deepspeed", "^[1, 2]", "no mapping", "a configuration of DeepSpeed"});
  check_refused(
      {"deepspeed", "{ \"bf16\": {\n  ^\"enabled\": \"perhaps\" } }", "neither true nor false", "true or false"});
  check_refused({"deepspeed", "{ \"zero_optimization\": { ^\"stage\": 7 } }", "7", "3"});
  check_refused({"torchtitan", "[training^\n", "", "TOML"});
  check_refused(
      {"torchtitan", "[parallelism]\n^pipeline_parallel_schedule = \"LIFO\"", "\"LIFO\" is not modelled", "1F1B"});
  check_refused({"torchtitan", "[parallelism]\n^tensor_parallel_degree = 1.5", "1.5", "whole number"});
  check_refused({"megatron", std::string(model) + " --context-parallel-size 2 ^--cp-comm-type p2p a2a",
                 "\"p2p a2a\" is not modelled", "the same for all layers"});
  check_refused(
      {"accelerate",
       "distributed_type: DEEPSPEED\nnum_processes: 8\ndeepspeed_config:\n  ^deepspeed_config_file: ds.json\n",
       "stand in that file", "foretrain import deepspeed ds.json"});
  check_refused({"accelerate", "num_machines: 1\n^distributed_type: TPU\n", "\"TPU\" is not modelled", "MEGATRON_LM"});
  check_refused({"hf", "^{ \"hidden_size\": 4096 }", "this key is missing", "config.json"});
}
