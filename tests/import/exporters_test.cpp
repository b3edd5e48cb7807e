// Files of trainers that are imported again as what they were written from.
#include "reports/export/exporter.hpp"

#include "model/job/job.hpp"
#include "model/scenario/catalogue.hpp"
#include "model/scenario/load/load.hpp"
#include "tests/catch.hpp"
#include "tests/import/samples.hpp"

using namespace foretrain;
using namespace foretrain::test;

namespace {

const Exporter& exporter_named(std::string_view word) { return *std::ranges::find(exporters(), word, &Exporter::word); }

Scenario catalogue_run(const std::string& run) {
  setenv("FORETRAIN_SCENARIOS", FORETRAIN_SOURCE_DIR "/scenarios", 1);
  return load_scenario(run);
}

std::string key_of(const std::string& unsaid) { return unsaid.substr(0, unsaid.find(':')); }

/// Keys of plans, of training and of models that a trainer's file has words for; of some keys not for every value.
const std::map<std::string_view, std::set<std::string>> always_said = {
    {"megatron",
     {"plan.data",
      "plan.tensor",
      "plan.pipeline",
      "plan.context",
      "plan.expert",
      "plan.interleave",
      "workload.train.global_batch",
      "workload.train.micro_batch",
      "workload.train.model.layers",
      "workload.train.model.hidden",
      "workload.train.model.heads",
      "workload.train.model.kv_heads",
      "workload.train.model.ffn_hidden",
      "workload.train.model.head_dim",
      "workload.train.model.sequence",
      "workload.train.model.gated_ffn",
      "workload.train.model.experts",
      "workload.train.model.biases",
      "workload.train.model.tied_embeddings",
      "workload.train.model.kv_lora_rank",
      "workload.train.model.dense_layers"}},
    {"torchtitan",
     {"plan.data", "plan.tensor", "plan.pipeline", "plan.context", "plan.expert", "workload.train.global_batch",
      "workload.train.micro_batch", "workload.train.model.sequence"}},
    {"deepspeed",
     {"plan.tensor", "plan.zero", "plan.offload", "workload.train.global_batch", "workload.train.micro_batch"}},
    {"accelerate", {"plan.data"}},
    {"nemo",
     {"plan.tensor", "plan.pipeline", "plan.context", "plan.expert", "plan.interleave", "plan.zero",
      "workload.train.global_batch", "workload.train.micro_batch", "workload.train.model.layers"}}};

std::string random_plan(std::mt19937& random, std::string_view framework) {
  const auto one_of = [&](std::initializer_list<int> all) { return all.begin()[random() % all.size()]; };
  const int tensor = one_of({1, 2, 4, 8}), pipeline = one_of({1, 2, 4}), context = one_of({1, 2});
  const int data = 128 / (tensor * pipeline * context), micro = one_of({1, 2});
  const int steps = pipeline * one_of({1, 2}), interleave = pipeline > 1 ? one_of({1, 2}) : 1;
  const char* recompute = std::array{"none", "selective", "full"}[random() % 3];
  return fmt::format(R"(name: random
cluster: {{ node: dgx-h100, nodes: 16 }}
workload:
  train: {{ model: llama3-8b, global_batch: {}, micro_batch: {}, precision: {}, recompute: {}, optimizer: adamw }}
plan:
  {{ framework: {}, data: {}, tensor: {}, pipeline: {}, context: {}, interleave: {}, sequence_parallel: {}, zero: {},
    sync: {{ overlap: {}, bucket: {} }} }}
)",
                     data * micro * steps, micro, one_of({0, 1}) != 0 ? "bf16" : "fp8", recompute, framework, data,
                     tensor, pipeline, context, interleave, tensor > 1, one_of({0, 1}), one_of({0, 1}) != 0,
                     one_of({0, 1}) != 0 ? "100 MB" : "40 MB");
}

}  // namespace

TEST_CASE("what a trainer's file has words for is the same once it is imported again, over the catalogue",
          "[exhaustive]") {
  setenv("FORETRAIN_SCENARIOS", FORETRAIN_SOURCE_DIR "/scenarios", 1);
  std::map<std::string_view, int> written;
  for (const CatalogueEntry& run : list_scenarios()) {
    const Scenario scenario = catalogue_run(run.file);
    const auto* train = std::get_if<TrainWorkload>(&scenario.workload);
    if (train == nullptr || !std::holds_alternative<TransformerConfig>(train->model.shape)) continue;
    for (const Exporter& exporter : exporters()) {
      INFO(run.name << ", " << exporter.word);
      try {
        const ExportedFile file = export_scenario(exporter, scenario);
        ++written[exporter.word];
        for (const std::string& line : file.unsaid) {
          INFO(line);
          CHECK_FALSE(always_said.at(exporter.word).contains(key_of(line)));
          // A trainer may refuse a plan, as DeepSpeed a pipeline with ZeRO-3.
          CHECK((line.find("a plan that the trainer could have") == std::string::npos ||
                 line.find("refuses") != std::string::npos));
        }
      } catch (const ScenarioError& error) {
        CHECK(error.key() == "workload.train.model");
      }
    }
  }
  for (const Exporter& exporter : exporters()) CHECK(written[exporter.word] > 20);
}

TEST_CASE("random plans of Megatron-LM and NeMo predict the same to the last digit once they are imported again",
          "[exhaustive]") {
  std::mt19937 random(60);
  for (int i = 0; i < 60; ++i) {
    const char* trainer = i % 2 == 0 ? "megatron" : "nemo";
    const std::string text = random_plan(random, trainer);
    INFO(text);
    const Scenario scenario = load_scenario_text(text, "random.yaml");
    const ExportedFile file = export_scenario(exporter_named(trainer), scenario);
    INFO(file.text);
    for (const std::string& line : file.unsaid) CHECK(key_of(line) == "plan.framework");
    CHECK(file.otherwise.empty());
    const std::string again = import_text(trainer, file.text, {"cluster.node=dgx-h100", "cluster.nodes=16"});
    CHECK(estimate(load_scenario_text(again, "again.yaml")).time().value() ==
          Approx(estimate(scenario).time().value()).epsilon(1e-9));
  }
}

TEST_CASE("a file that names no machines is imported on as few as hold the model and its experts") {
  for (const char* run : {"deepseek-v3-2048-h800", "qwen3-235b-256-h100"}) {
    const ExportedFile file = export_scenario(exporter_named("nemo"), catalogue_run(run));
    INFO(file.text);
    const Scenario again = load_scenario_text(import_text("nemo", file.text, {}), "again.yaml");
    CHECK(again.plan.expert == catalogue_run(run).plan.expert);
  }
}

TEST_CASE("files have what is stated in the words of their trainers, and name what they have no words for") {
  const std::string scenario = R"(name: stated
cluster: { node: dgx-h100, nodes: 2 }
workload:
  train: { model: llama3-8b, global_batch: 32, micro_batch: 1, recompute: selective_operators, precision: bf16 }
plan: { data: 16, zero: { stage: 3, shard: 8 }, execution: compiled, offload: [optimizer, parameters] }
)";
  const auto exported = [&](std::string_view word) {
    return export_scenario(exporter_named(word), load_scenario_text(scenario, "stated.yaml"));
  };
  const auto has = [](const std::string& text, std::initializer_list<const char*> pieces) {
    for (const char* piece : pieces) {
      INFO(text);
      CHECK(text.find(piece) != std::string::npos);
    }
  };
  has(exported("megatron").text, {"torchrun --nnodes 2 --nproc-per-node 8", "--group-query-attention", "--swiglu",
                                  "--data-parallel-sharding-strategy optim_grads_params", "--num-query-groups 8"});
  has(exported("torchtitan").text,
      {"name = \"llama3\"\nflavor = \"8B\"", "data_parallel_replicate_degree = 2", "data_parallel_shard_degree = 8",
       "mode = \"selective\"", "enable_cpu_offload = true", "[compile]\nenable = true"});
  // 32 samples on 16 replicas, one at a time: two micro-batches each.
  has(exported("deepspeed").text, {"\"stage\": 3", "\"gradient_accumulation_steps\": 2", "\"device\": \"cpu\"",
                                   "\"train_batch_size\": 32", "\"bf16\": {\n    \"enabled\": true"});
  has(exported("accelerate").text, {"distributed_type: FSDP", "fsdp_version: 2", "dp_shard_size: 8",
                                    "num_processes: 16", "dynamo_backend: INDUCTOR", "fsdp_offload_params: true"});
  has(exported("nemo").text, {"  num_query_groups: 8", "mixed_precision: bf16_mixed", "gated_linear_unit: true"});
  const std::vector<std::string> unsaid = exported("megatron").unsaid;
  CHECK(std::ranges::count(unsaid, "workload.train.recompute: selective_operators") == 1);
  CHECK(std::ranges::count(exported("deepspeed").unsaid, "workload.train.model: llama3-8b") == 1);
}

TEST_CASE("precisions below bf16 keep the rest in bf16, in each trainer's words") {
  const auto exported = [&](std::string_view word, const char* node, const std::string& precision) {
    const std::string text = fmt::format(R"(name: short
cluster: {{ node: {}, nodes: 1 }}
workload: {{ train: {{ model: llama3-8b, global_batch: 32, micro_batch: 1, precision: {}, optimizer: adam }} }}
plan: {{ data: 4, tensor: 2, framework: megatron }}
)",
                                         node, precision);
    return export_scenario(exporter_named(word), load_scenario_text(text, "short.yaml"));
  };
  const auto has = [](const ExportedFile& file, const char* piece) {
    INFO(file.text);
    CHECK(file.text.find(piece) != std::string::npos);
  };
  const auto names = [](const ExportedFile& file, std::string_view line) {
    return std::ranges::count(file.unsaid, line) == 1;
  };
  const char *hopper = "dgx-h100", *blackwell = "dgx-b200", *block = "{ fp8: { scaling: block } }";
  has(exported("megatron", hopper, block), "--bf16 \\\n  --fp8-format e4m3 \\\n  --fp8-recipe blockwise");
  has(exported("megatron", blackwell, "mxfp8"), "--fp8-recipe mxfp8");
  has(exported("megatron", blackwell, "nvfp4"), "--bf16 \\\n  --fp4-format e2m1");
  CHECK(exported("megatron", hopper, block).unsaid.empty());  // adam among them
  CHECK(names(exported("megatron", blackwell, "{ nvfp4: { last_bf16_layers: 4 } }"),
              "workload.train.precision.nvfp4.last_bf16_layers: 4"));
  has(exported("nemo", hopper, block), "mixed_precision: bf16_with_fp8_subchannel_scaling_mixed");
  has(exported("nemo", blackwell, "mxfp8"), "mixed_precision: bf16_with_mxfp8_mixed");
  for (const auto& [word, half] : {std::pair("torchtitan", "mixed_precision_param = \"bfloat16\""),
                                   std::pair("accelerate", "mixed_precision: bf16"),
                                   std::pair("deepspeed", "\"bf16\": {\n    \"enabled\": true")}) {
    has(exported(word, blackwell, "nvfp4"), half);
    CHECK(names(exported(word, blackwell, "nvfp4"), "workload.train.precision: nvfp4"));
  }
}

TEST_CASE("an exporter names what its trainer lacks, not what training code says") {
  const Scenario scenario = load_scenario_text(R"(name: lacking
cluster: { node: dgx-h100, nodes: 2 }
workload: { train: { model: llama3-8b, global_batch: 32, micro_batch: 1, precision: bf16, recompute: selective_operators } }
plan: { data: 4, tensor: 2, pipeline: 2, zero: 1, interleave: 1 }
)",
                                               "lacking.yaml");
  const auto lacked = [&](std::string_view word) {
    std::vector<std::string> keys;
    for (const auto& [key, line] : export_scenario(exporter_named(word), scenario).lacking) keys.push_back(key);
    return keys;
  };
  CHECK(lacked("megatron") == std::vector<std::string>{"workload.train.recompute"});
  CHECK(lacked("deepspeed").empty());  // pipelines are code
  CHECK(lacked("accelerate") == std::vector<std::string>{"plan.pipeline", "plan.tensor"});
}

TEST_CASE("no file of Accelerate has expert parallelism, and ZeRO is not DDP's") {
  CHECK(exporter_named("accelerate").never_has("plan.expert"));
  CHECK_FALSE(exporter_named("accelerate").never_has("plan.tensor"));  // parallelism_config_tp_size
  CHECK_FALSE(exporter_named("megatron").never_has("plan.expert"));
  for (const char* framework : {"ddp", "fsdp"}) {
    const Scenario scenario =
        load_scenario("gpt2-xl-dgx-a100", {fmt::format("plan.framework={}", framework), "plan.zero=3"});
    CHECK(export_scenario(exporter_named("accelerate"), scenario).lacking.contains("plan.zero") ==
          (framework[0] == 'd'));
  }
}

TEST_CASE("files hold what their trainers ask for, and name plans that these refuse") {
  const auto exported = [&](std::string_view word, const std::string& plan, const char* model = "llama3-8b") {
    const std::string text = fmt::format(R"(name: asked
cluster: {{ node: dgx-h100, nodes: 2 }}
workload: {{ train: {{ model: {}, global_batch: 32, micro_batch: 1, precision: bf16, recompute: selective }} }}
plan: {{ {} }}
)",
                                         model, plan);
    return export_scenario(exporter_named(word), load_scenario_text(text, "asked.yaml"));
  };
  const auto has = [](const std::string& text, std::string_view piece) {
    return text.find(piece) != std::string::npos;
  };
  const auto refuses = [&](const ExportedFile& file, std::string_view why) {
    return std::ranges::any_of(file.unsaid, [&](const std::string& line) { return has(line, why); });
  };
  const ExportedFile tensor = exported("megatron", "data: 8, tensor: 2, zero: 1, offload: [optimizer]");
  CHECK(has(tensor.text, "export CUDA_DEVICE_MAX_CONNECTIONS=1\ntorchrun"));
  CHECK(has(tensor.text, "--max-position-embeddings 8192"));
  CHECK(has(tensor.text, "--optimizer-cpu-offload \\\n  --use-precision-aware-optimizer"));
  CHECK_FALSE(has(exported("megatron", "data: 8, tensor: 2, zero: 3").text, "CUDA_DEVICE_MAX_CONNECTIONS"));
  const ExportedFile experts = exported("megatron", "data: 16, expert: 8, framework: megatron", "mixtral-8x7b");
  CHECK(has(experts.text, "--moe-token-dispatcher-type alltoall \\\n  --moe-grouped-gemm"));
  const ExportedFile replicas = exported("torchtitan", "data: 8, tensor: 2, sync: { gradient_precision: bf16 }");
  CHECK(refuses(replicas, "torchtitan refuses whole replicas"));
  CHECK(refuses(replicas, "plan.sync.gradient_precision: bf16"));
  CHECK_FALSE(has(replicas.text, "mixed_precision_reduce"));
  CHECK_FALSE(has(replicas.text, "activation_checkpoint"));
  const ExportedFile ddp = exported("accelerate", "data: 8, tensor: 2");
  CHECK(refuses(ddp, "plan.tensor: 2"));
  CHECK_FALSE(has(ddp.text, "tp_size"));
  CHECK(has(ddp.text, "gradient_accumulation_steps: 2"));  // 32 samples on 16 processes
  CHECK_FALSE(refuses(ddp, "workload.train.global_batch"));
  CHECK(has(exported("deepspeed", "data: 16, sync: { bucket: 40 MB, gradient_precision: fp32 }").text,
            "\"reduce_bucket_size\": 10000000"));
}

TEST_CASE("what does not train and what is no language model is refused by its key") {
  const Scenario collective = catalogue_run("sync-ring-4"), images = catalogue_run("resnet-50-dgx1-v100");
  CHECK_THROWS_WITH(export_scenario(exporter_named("megatron"), collective), Catch::Contains("workload: no training"));
  CHECK_THROWS_WITH(export_scenario(exporter_named("nemo"), images),
                    Catch::Contains("workload.train.model: resnet-50"));
  CHECK(export_scenario(exporter_named("deepspeed"), images).text.find("train_batch_size") != std::string::npos);
}
