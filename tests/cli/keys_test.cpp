#include "tests/catch.hpp"
#include "tests/cli/program.hpp"
#include "tests/golden.hpp"

namespace foretrain::test {

TEST_CASE("A first scenario is written with the program's help alone") {
  // Llama 3 70B on 64 H100, 512 samples of 8,192 tokens, eight cards of 400 Gbit/s a machine.
  const TemporaryFolder folder;
  const std::string file = folder.file("first.yaml");
  const FilterResult init = run_program({"init", "--model", "llama3-70b", "--node", "h100", "--gpus", "64", "--batch",
                                         "512", "--sequence", "8192", "--tokens", "15T tokens", "-o", file});
  INFO(init.errors);
  REQUIRE(init.status == 0);
  const std::string text = text_of(file);
  INFO(text);
  check_has(text, {"  nodes: 8 ", "    global_batch: 512 ",
                   "# Tensor-parallel ranks: each holds a part of every layer's matrices."});
  // Six operations for each of 70.6 billion parameters and 512 x 8,192 tokens are 1.8 EFLOP; 64 GPUs at 989 TFLOP/s
  // take 28 s at least, and as it fits, not ten times as long.
  const std::string predicted = output_of({"predict", file, "--fidelity", "estimate"});
  CHECK_THAT(predicted, Catch::Contains("Peak memory"));
  CHECK_THAT(predicted, Catch::Matches("(.|\n)*Step time +[2-9][0-9]\\.[0-9] s(.|\n)*"));
  // It overwrites nothing.
  CHECK(run_program({"init", "--model", "gpt2", "-o", file}).status == 2);
  CHECK(text_of(file) == text);
}

TEST_CASE("A first scenario says where its batch comes from, and how many tokens it is") {
  // GPT-2's 512 sequences of 1,024 are 524 K tokens, on one GPU as on eight.
  check_has(output_of({"init", "--model", "gpt2", "--gpus", "1"}),
            {"    # 524 K tokens a step; its makers: 512 sequences, Radford et al. 2019", "    global_batch: 512 "});
  // A stated value needs no reason: 64 x 1,024.
  const FilterResult stated = run_program({"init", "--model", "gpt2", "--gpus", "1", "--batch", "64"});
  CHECK_THAT(stated.output, Catch::Contains("    # 65.5 K tokens a step\n    global_batch: 64 "));
}

TEST_CASE("A model begins on the least machines that hold it, and what is too few is reported") {
  // Llama 3 70B, 70.6 billion parameters of 14 bytes (bf16, its gradients, fp32 states) and more, are 988 GB: more than
  // one machine of 640 GB holds. Two hold them with what a sample needs.
  check_has(output_of({"init", "--model", "llama3-70b"}),
            {"# 2 machines: the fewest with a plan that fits in memory.", "  nodes: 2 "});
  const FilterResult few = run_program({"init", "--model", "llama3-70b", "--gpus", "4"});
  CHECK(few.status == 2);
  CHECK(few.output.empty());
  CHECK_THAT(few.errors,
             Catch::Contains("no plan of llama3-70b fits the memory of 4 of the GPUs of dgx-h100; the least "
                             "that one fits on is 2 x dgx-h100, 16 GPUs: --gpus 16"));
  // The planner says the same of a scenario.
  const TemporaryFolder folder;
  const FilterResult plan =
      run_program({"plan", folder.file("few.yaml", R"(cluster: { node: dgx-h100, nodes: 1 }
workload: { train: { model: llama3-70b, global_batch: 384, precision: bf16 } }
)"),
                   "--fix", "algorithm,bucket,overlap,order,schedule,interleave,offload,servers"});
  INFO(plan.output << plan.errors);
  CHECK_THAT(plan.output, Catch::Contains("No plan fits; smallest cluster on which a plan fits: 2 nodes, 16 GPUs."));
}

TEST_CASE("A scenario in the words of others is mended by what the program answers") {
  const TemporaryFolder folder;
  const FilterResult first = run_program({"predict", folder.file("mine.yaml", R"(cluster: { node: h100, num_nodes: 8 }
workload: { train: { model: llama3-70b, global_batch_size: 512, precision: bf16 } }
plan: { tp: 8, pp: 4 }
)")});
  CHECK(first.status == 2);
  CHECK(first.output.empty());
  check_has(first.errors, {"mine.yaml:1:24: cluster.num_nodes: unknown key; foretrain calls it cluster.nodes",
                           "mine.yaml:2:41: workload.train.global_batch_size: unknown key; foretrain calls it "
                           "workload.train.global_batch",
                           "mine.yaml:3:9: plan.tp: unknown key; foretrain calls it plan.tensor",
                           "mine.yaml:3:16: plan.pp: unknown key; foretrain calls it plan.pipeline"});
  output_of({"predict", folder.file("mine.yaml", R"(cluster: { node: h100, nodes: 8 }
workload: { train: { model: llama3-70b, global_batch: 512, precision: bf16 } }
plan: { tensor: 8, pipeline: 4 }
)"),
             "--fidelity", "estimate"});
}

TEST_CASE("Help explains a key by its path, its last word, and what others call it") {
  const std::string path = output_of({"help", "plan.tensor"});
  CHECK_THAT(path,
             Catch::StartsWith("plan.tensor\n  Tensor-parallel ranks: each holds a part of every layer's matrices.\n"));
  CHECK_THAT(path, Catch::Contains("default    1") && Catch::Contains("Megatron-LM --tensor-model-parallel-size"));
  const FilterResult word = run_program({"help", "nic_bandwidth"});
  CHECK_THAT(word.output, Catch::StartsWith("cluster.network.nic_bandwidth\n"));
  CHECK_THAT(word.output, Catch::Contains("Gbit/s"));
  CHECK_THAT(run_program({"help", "plan.sync.bucket"}).output, Catch::Contains("units      B, kB, KB, MB, GB, TB, "));
  const FilterResult batch = run_program({"help", "storage"});
  check_has(batch.output, {"cluster.node.storage\n", "workload.train.checkpoint.storage\n"});
  const FilterResult foreign = run_program({"help", "gradient_accumulation_steps"});
  CHECK_THAT(foreign.output,
             Catch::StartsWith("foretrain calls gradient_accumulation_steps workload.train.global_batch:"));
  CHECK_THAT(foreign.output, Catch::Contains("Global batch: samples per step."));
  CHECK_THAT(output_of({"help"}), Catch::Contains("foretrain help plan.tensor") && Catch::Contains("\n  workload "));
  check_refused({"help", "tensr"}, {"no key tensr; did you mean tensor?"});
}

TEST_CASE("Keys are listed below a prefix, for people and for programs") {
  const FilterResult plan = run_program({"keys", "plan"});
  REQUIRE(plan.status == 0);
  CHECK_THAT(plan.output, Catch::Contains("plan.sync.bucket\n    Gradient bucket: a size"));
  CHECK_THAT(plan.output, !Catch::Contains("workload.train"));
  check_has(output_of({"keys", "workload.train.optimizer", "--json"}),
            {"\"key\": \"workload.train.optimizer\"", "\"adamw\""});
  CHECK(run_program({"keys", "plam"}).status == 2);
}

TEST_CASE("The page of reference says what the program reads") {
  // `make keys` writes it anew.
  CHECK(output_of({"keys", "--markdown"}) == text_of(FORETRAIN_SOURCE_DIR "/reports/docs/keys.md"));
}

TEST_CASE("help explains values, also by their former names") {
  check_has(output_of({"help", "dualpipe"}), {"plan.schedule"});
  check_has(output_of({"help", "plain"}), {"foretrain calls plain unfused", "workload.train.kernels"});
}

TEST_CASE("Schemas know keys, words and names") {
  check_has(output_of({"keys", "--schema", "scenario"}),
            {"\"additionalProperties\": false", "\"llama3-70b\"", "\"adamw\"", "#/definitions/training"});
  for (const char* file : {"hardware", "model", "calibration", "framework", "result"}) {
    output_of({"keys", "--schema", file});
  }
  CHECK(run_program({"keys", "--schema", "recipe"}).status == 2);
}

TEST_CASE("A name is shown with its file, and what follows from it") {
  check_has(output_of({"models", "show", "llama3.1-70b"}), {"70.6 B", "kv_heads: 8"});
  check_has(output_of({"hardware", "show", "h100"}), {"gpu0", "nvswitch", "kind: node"});
  check_has(output_of({"hardware", "show", "a100-sxm-80gb"}), {"kind: gpu", "312"});
  CHECK_THAT(run_program({"scenarios", "show", ring_of_four}).output, Catch::Contains("collective:"));
  CHECK_THAT(run_program({"frameworks", "show", "megatron"}).output, Catch::Contains("plan.sync.bucket"));
  CHECK_THAT(run_program({"trainers", "show", "well-tuned"}).output, Catch::Contains("kind: framework"));
  check_refused({"hardware", "show", "dgx-h1000"}, {"did you mean dgx-h100?"});
}

TEST_CASE("A first scenario says what is wrong with what was asked for") {
  const FilterResult gpus = run_program({"init", "--model", "gpt2", "--node", "dgx-h100", "--gpus", "12"});
  CHECK(gpus.status == 2);
  CHECK_THAT(gpus.errors, Catch::Contains("dgx-h100 has 8 GPUs; write 8 or 16"));
  output_of({"init", "--model", "gpt2", "--gpus", "2"});
}

}  // namespace foretrain::test
