// Configurations of torchtitan, Accelerate and DeepSpeed of a few lines, and the scenarios that they become.
#include <zlib.h>

#include <filesystem>
#include <fstream>

#include "model/scenario/load/load.hpp"
#include "tests/catch.hpp"
#include "tests/import/samples.hpp"

using namespace foretrain;
using namespace foretrain::test;

namespace {

/// What is written of keys that have a value, without what is assumed.
std::string told_of(const std::string& importer, const std::string& text,
                    const std::vector<std::string>& overrides = {}) {
  const std::string whole = import_text(importer, text, overrides), all = whole.substr(0, whole.find("\nassumed:") + 1);
  std::string told = "\n";
  for (std::size_t at = all.find("\nname: ") + 1; at < all.size(); at = all.find('\n', at) + 1) {
    const std::string line = all.substr(at, all.find('\n', at) + 1 - at);
    if (line.starts_with("name: ") || line.ends_with(":\n")) continue;
    if (line.starts_with("  nodes: ") || line.find("# assumed") == std::string::npos) told += line;
  }
  return told;
}

std::string titan(const std::string& text) { return told_of("torchtitan", text); }
std::string accelerate(const std::string& text) { return told_of("accelerate", text); }
std::string deepspeed(const std::string& text) { return told_of("deepspeed", text); }

}  // namespace

TEST_CASE("torchtitan's degrees make replicas, and GPUs where the shards are told") {
  // 2 · 4 · 2 for a replica, twice two of these: 64.
  CHECK(titan("[parallelism]\ntensor_parallel_degree = 2\npipeline_parallel_degree = 4\ncontext_parallel_degree = 2\n"
              "data_parallel_replicate_degree = 2\ndata_parallel_shard_degree = 2\n") == R"(
  nodes: 8  # the product of the degrees of parallelism
  tensor: 2  # line 2: parallelism.tensor_parallel_degree: 2
  pipeline: 4  # line 3: parallelism.pipeline_parallel_degree: 4
  context: 2  # line 4: parallelism.context_parallel_degree: 2
  trainer: torchtitan  # line 6: parallelism.data_parallel_shard_degree: 2
  zero: { stage: 3, shard: 4 }  # line 6: parallelism.data_parallel_shard_degree: 2
  sequence_parallel: true  # torchtitan's tensor parallelism has it
)");
  // All that are left shard: the least whole machines that hold a replica and its copies, 4 · 3, are 24 GPUs.
  CHECK(titan("[parallelism]\ntensor_parallel_degree = 4\ndata_parallel_replicate_degree = 3\n") == R"(
  nodes: 3  # assumed: the least that hold a replica of the model; the file does not tell
  tensor: 4  # line 2: parallelism.tensor_parallel_degree: 4
  trainer: torchtitan  # data_parallel_shard_degree is all unless stated
  zero: { stage: 3, shard: 2 }  # data_parallel_shard_degree is all unless stated
  sequence_parallel: true  # torchtitan's tensor parallelism has it
)");
  // None is left: replicas alone.
  CHECK(titan("[parallelism]\ndata_parallel_replicate_degree = 8\n") == R"(
  nodes: 1  # assumed: the least that hold a replica of the model; the file does not tell
  trainer: ddp  # data_parallel_shard_degree is all unless stated
)");
  CHECK(titan("[parallelism]\ndata_parallel_shard_degree = 1\ndata_parallel_replicate_degree = 8\n") == R"(
  nodes: 1  # the product of the degrees of parallelism
  trainer: ddp  # line 2: parallelism.data_parallel_shard_degree: 1
)");
  CHECK(titan("[parallelism]\ndata_parallel_shard_degree = 8\nfsdp_reshard_after_forward = \"always\"\n[training]\n"
              "enable_cpu_offload = true\n") == R"(
  nodes: 1  # the product of the degrees of parallelism
  trainer: torchtitan  # line 2: parallelism.data_parallel_shard_degree: 8
  zero: 3  # line 2: parallelism.data_parallel_shard_degree: 8
  reshard_after_forward: true  # line 3: parallelism.fsdp_reshard_after_forward: always
  offload: [optimizer, parameters]  # line 5: training.enable_cpu_offload: true
)");
}

TEST_CASE("torchtitan's degrees multiply to 10⁹ GPUs at most") {
  const std::vector<const char*> keys = {"tensor_parallel_degree", "pipeline_parallel_degree",
                                         "context_parallel_degree", "data_parallel_replicate_degree",
                                         "data_parallel_shard_degree"};
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const std::string first = keys[i], second = keys[(i + 1) % keys.size()];
    CHECK_THROWS_WITH(titan("[parallelism]\n" + first + " = 40_000\n" + second + " = 40_000\n"),
                      Catch::Contains("degrees for more than 10⁹ GPUs"));
  }
  CHECK_NOTHROW(
      titan("[parallelism]\ndata_parallel_replicate_degree = 1000\ndata_parallel_shard_degree = 1000\n"
            "[training]\nglobal_batch_size = 1_000_000\n"));
}

TEST_CASE("torchtitan's models are the catalogue's by name and flavor") {
  const auto model = [](const std::string& text) {
    const std::string all = import_text("torchtitan", text);
    const std::size_t at = all.find("preset: ");
    return all.substr(at + 8, all.find('\n', at) - at - 8);
  };
  CHECK(model("[model]\nname = \"llama3\"\nflavor = \"70B\"\n") ==
        R"(llama3-70b  # line 2: model.name: llama3, model.flavor: 70B)");
  CHECK(model("[model]\nname = \"llama3-70b\"\n") == R"(llama3-70b  # line 2: model.name: llama3-70b)");
  CHECK(model("[model]\nname = \"deepseek_v3\"\nflavor = \"671B\"\n") ==
        R"(deepseek-v3  # line 2: model.name: deepseek_v3, model.flavor: 671B)");
  CHECK_THROWS_WITH(model("[model]\nname = \"deepseek_v3\"\nflavor = \"16B\"\n"),
                    Catch::Contains(":2:1: model.name: the catalogue has no deepseek-v3-16b; deepseek-v3"));
  CHECK_THROWS_WITH(model("[model]\nflavor = \"8B\"\n"), Catch::Contains("model.flavor: the catalogue has no 8b"));
  CHECK(model("") == R"(llama3-8b  # assumed: the file names no model; --set workload.train.model.preset=NAME)");
}

TEST_CASE("torchtitan's batches, recomputation and schedules follow whether there is a pipeline") {
  const std::string pipeline = "[parallelism]\npipeline_parallel_degree = 2\n";
  CHECK(titan("[training]\nlocal_batch_size = 4\n[compile]\nenable = true\n[activation_checkpoint]\n"
              "mode = \"none\"\n") == R"(
  nodes: 1  # assumed: the least that hold a replica of the model; the file does not tell
    micro_batch: 4  # line 2: training.local_batch_size: 4
  execution: compiled  # line 4: compile.enable: true
  trainer: torchtitan  # data_parallel_shard_degree is all unless stated
  zero: 3  # data_parallel_shard_degree is all unless stated
)");
  CHECK(titan(pipeline + "pipeline_parallel_schedule = \"GPipe\"\n[training]\nlocal_batch_size = 4\n"
                         "[activation_checkpoint]\nmode = \"selective\"\nselective_ac_option = \"2\"\n") == R"(
  nodes: 1  # assumed: the least that hold a replica of the model; the file does not tell
    global_batch_per_gpu: 2  # line 5: training.local_batch_size: 4
    recompute: selective_operators  # line 7: activation_checkpoint.mode: selective
  pipeline: 2  # line 2: parallelism.pipeline_parallel_degree: 2
  schedule: gpipe  # line 3: parallelism.pipeline_parallel_schedule: GPipe
  trainer: torchtitan  # data_parallel_shard_degree is all unless stated
  zero: 3  # data_parallel_shard_degree is all unless stated
)");
  CHECK(
      titan(pipeline +
            "pipeline_parallel_schedule = \"ZBVZeroBubble\"\ndata_parallel_shard_degree = 1\n[activation_checkpoint]\n"
            "mode = \"selective\"\nselective_ac_option = \"op\"\n[compile]\nenable = true\n"
            "components = [\"loss\"]\n[model]\nconverters = [\"float8\"]\n") == R"(
  nodes: 1  # the product of the degrees of parallelism
  gpus_per_node: 2  # the product of the degrees of parallelism
    precision: fp8  # line 12: model.converters: [ 'float8' ]
    recompute: selective_operators  # line 6: activation_checkpoint.mode: selective
  pipeline: 2  # line 2: parallelism.pipeline_parallel_degree: 2
  schedule: zero_bubble  # line 3: parallelism.pipeline_parallel_schedule: ZBVZeroBubble
  trainer: ddp  # line 4: parallelism.data_parallel_shard_degree: 1
)");
  CHECK_THROWS_WITH(titan("[activation_checkpoint]\nmode = \"some\"\n"), Catch::Contains("unknown mode \"some\""));
  CHECK_THROWS_WITH(titan("[a\n"), !Catch::Contains("Error while") && Catch::Contains("file:1:3: "));
}

TEST_CASE("Accelerate's machines, shards and offloading are those that it says") {
  CHECK(accelerate("distributed_type: FSDP\nnum_processes: 16\nfsdp_config: { fsdp_offload_params: true, "
                   "fsdp_reshard_after_forward: false }\n") == R"(
  nodes: 2  # line 2: num_processes: 16
  trainer: fsdp  # line 1: distributed_type: FSDP
  reshard_after_forward: false  # line 3: fsdp_config.fsdp_reshard_after_forward: false
  offload: [optimizer, parameters]  # line 3: fsdp_config.fsdp_offload_params: true
)");
  CHECK(accelerate("distributed_type: FSDP\nnum_processes: 16\nparallelism_config: { "
                   "parallelism_config_dp_replicate_size: 1, parallelism_config_dp_shard_size: 4 }\n"
                   "fsdp_config: { fsdp_reshard_after_forward: FULL_SHARD }\n") == R"(
  nodes: 2  # line 2: num_processes: 16
  trainer: fsdp  # line 1: distributed_type: FSDP
)");
  CHECK(accelerate("distributed_type: FSDP\nnum_processes: 16\nparallelism_config: { "
                   "parallelism_config_dp_replicate_size: 2, parallelism_config_cp_size: 2, "
                   "parallelism_config_dp_shard_size: 4 }\n") == R"(
  nodes: 2  # line 2: num_processes: 16
  context: 2  # line 3: parallelism_config.parallelism_config_cp_size: 2
  trainer: fsdp  # line 1: distributed_type: FSDP
  zero: { stage: 3, shard: 8 }  # line 3: parallelism_config.parallelism_config_dp_shard_size: 4
)");
  CHECK(accelerate("distributed_type: FSDP\nnum_processes: 16\nparallelism_config: { "
                   "parallelism_config_dp_replicate_size: 2 }\n") == R"(
  nodes: 2  # line 2: num_processes: 16
  trainer: fsdp  # line 1: distributed_type: FSDP
)");
  CHECK(accelerate("distributed_type: DEEPSPEED\nnum_machines: 2\ndeepspeed_config: { zero_stage: 3, "
                   "offload_param_device: cpu, offload_optimizer_device: cpu, gradient_accumulation_steps: 2, "
                   "train_micro_batch_size_per_gpu: 3 }\ndynamo_config: { dynamo_backend: INDUCTOR }\n") == R"(
  nodes: 2  # line 2: num_machines: 2
    micro_batch: 3  # line 3: deepspeed_config.train_micro_batch_size_per_gpu: 3
    global_batch_per_gpu: 6  # line 3: deepspeed_config.gradient_accumulation_steps: 2
  zero: 3  # line 3: deepspeed_config.zero_stage: 3
  trainer: deepspeed  # line 1: distributed_type: DEEPSPEED
  offload: [optimizer, parameters]  # line 3: deepspeed_config.offload_param_device: cpu
  execution: compiled  # line 4: dynamo_config.dynamo_backend: INDUCTOR
)");
  CHECK(accelerate("distributed_type: \"NO\"\ndynamo_config: { dynamo_backend: EAGER }\n") == R"(
  nodes: 1  # line 1: distributed_type: NO
  gpus_per_node: 1  # line 1: distributed_type: NO
  trainer: ddp  # line 1: distributed_type: NO
)");
  CHECK(accelerate("distributed_type: \"NO\"\nnum_processes: 2\n") == R"(
  nodes: 1  # line 2: num_processes: 2
  gpus_per_node: 2  # line 2: num_processes: 2
  trainer: ddp  # line 1: distributed_type: NO
)");
  CHECK(accelerate("distributed_type: MULTI_GPU\n") == R"(
  nodes: 1  # assumed: the least that hold a replica of the model; the file does not tell
  trainer: ddp  # line 1: distributed_type: MULTI_GPU
)");
  CHECK(accelerate("distributed_type: MEGATRON_LM\nnum_processes: 8\nmegatron_lm_config: { megatron_lm_tp_degree: 2, "
                   "megatron_lm_pp_degree: 2, megatron_lm_num_micro_batches: 4 }\n") == R"(
  nodes: 1  # line 2: num_processes: 8
    global_batch_per_gpu: 1  # line 3: megatron_lm_config.megatron_lm_num_micro_batches: 4
  tensor: 2  # line 3: megatron_lm_config.megatron_lm_tp_degree: 2
  pipeline: 2  # line 3: megatron_lm_config.megatron_lm_pp_degree: 2
  trainer: megatron  # line 1: distributed_type: MEGATRON_LM
)");
  CHECK_THROWS_WITH(accelerate("deepspeed_config: { offload_param_device: tape }\n"),
                    Catch::Contains("cpu, nvme or none"));
}

TEST_CASE("DeepSpeed's buckets are of elements, its batches of a rank") {
  CHECK(deepspeed("{ \"bf16\": { \"enabled\": true }, \"zero_optimization\": { \"stage\": 2, \"reduce_bucket_size\": "
                  "5e8 }, \"tensor_parallel\": { \"autotp_size\": 4 } }") == R"(
  nodes: 1  # assumed: the least that hold a replica of the model; the file does not tell
    precision: bf16  # line 1: bf16.enabled: true
  tensor: 4  # line 1: tensor_parallel.autotp_size: 4
  zero: 2  # line 1: zero_optimization.stage: 2
    bucket: 1000000000 B  # line 1: zero_optimization.reduce_bucket_size: 5e8, elements of 2 bytes
  trainer: deepspeed  # its habits, where the file does not say otherwise
)");
  CHECK(deepspeed("{ \"zero_optimization\": { \"reduce_bucket_size\": 1000 }, \"train_micro_batch_size_per_gpu\": 3, "
                  "\"gradient_accumulation_steps\": 5, \"tensor_parallel\": { \"autotp_size\": 0 } }") == R"(
  nodes: 1  # assumed: the least that hold a replica of the model; the file does not tell
    micro_batch: 3  # line 1: train_micro_batch_size_per_gpu: 3
    global_batch_per_gpu: 15  # line 1: gradient_accumulation_steps: 5
    bucket: 4000 B  # line 1: zero_optimization.reduce_bucket_size: 1000, elements of 4 bytes
  trainer: deepspeed  # its habits, where the file does not say otherwise
)");
  CHECK(deepspeed("{ \"zero_optimization\": { \"offload_optimizer\": { \"device\": \"cpu\" }, \"offload_param\": { "
                  "\"device\": \"cpu\", \"pin_memory\": true }, \"stage\": 3 } }") == R"(
  nodes: 1  # assumed: the least that hold a replica of the model; the file does not tell
  zero: 3  # line 1: zero_optimization.stage: 3
  pinned_offload: true  # line 1: zero_optimization.offload_param.pin_memory: true
  offload: [optimizer, parameters]  # line 1: zero_optimization.offload_param.device: cpu
  trainer: deepspeed  # its habits, where the file does not say otherwise
)");
  CHECK_THROWS_WITH(deepspeed("{ \"zero_optimization\": { \"reduce_bucket_size\": 1e13 } }"),
                    Catch::Contains("1000000000000"));
  CHECK_THROWS_WITH(deepspeed("{ \"zero_optimization\": { \"reduce_bucket_size\": e } }"),
                    Catch::Contains("\"e\" is no number"));
  CHECK_THAT(deepspeed("{ \"zero_optimization\": { \"offload_param\": { \"device\": \"nvme\" } } }"),
             Catch::Contains("offload_to: disks"));
}

TEST_CASE("DeepSpeed's three batches tell how many GPUs there are") {
  // 32 samples are four replicas' eight micro-batches of one, each on four GPUs: 16 GPUs, two machines of eight.
  const std::string batches =
      "{ \"train_micro_batch_size_per_gpu\": 1, \"gradient_accumulation_steps\": 8, "
      "\"sequence_parallel_size\": 4, \"train_batch_size\": ";
  CHECK_THAT(deepspeed(batches + "32 }"), Catch::Contains("nodes: 2  # line 1: train_batch_size: 32"));
  CHECK_THROWS_WITH(deepspeed(batches + "33 }"), Catch::Contains("a multiple of 8"));
}

TEST_CASE("what a file leaves to its framework is what this does by default, and stays in every answer") {
  const auto assumed = [](const char* importer, const std::string& text) {
    const YamlNode document = parse_yaml(import_text(importer, text), "imported.yaml");
    const Scenario scenario = read_scenario(document, "x");
    return fmt::format("{}", fmt::join(scenario.assumed, "\n"));
  };
  const std::string autos = assumed(
      "deepspeed", R"({ "bf16": { "enabled": "auto" }, "fp16": { "enabled": "auto" }, "gradient_clipping": "auto",
        "train_micro_batch_size_per_gpu": "auto", "zero_optimization": { "stage": 2, "reduce_bucket_size": "auto" } })");
  CHECK_THAT(autos, Catch::Contains("workload.train.precision: bf16: bf16.enabled is auto"));
  CHECK_THAT(autos, Catch::Contains("workload.train.micro_batch: 8: "));
  CHECK_THAT(autos, Catch::Contains("workload.train.clip_gradients: true: "));
  // Llama 3 8B, which stands for the model, is 4,096 wide: its square in two bytes.
  CHECK_THAT(autos, Catch::Contains("plan.sync.bucket: 33554432 B: "));
  CHECK_THAT(assumed("torchtitan", "[optimizer]\nearly_step_in_backward = true\n"),
             Catch::Contains("assumed: no_effect: line 2: optimizer.early_step_in_backward: true"));
  const std::string bf16 = titan("[training]\ndtype = \"bfloat16\"\n");
  CHECK_THAT(bf16, Catch::Contains("precision: bf16  # line 2") && Catch::Contains("master_weights: false"));
  CHECK_THAT(deepspeed(R"({ "compile": { "enabled": true } })"), Catch::Contains("execution: compiled"));
  CHECK_THAT(accelerate("distributed_type: FSDP\nnum_processes: 8\nparallelism_config: { "
                        "parallelism_config_sp_size: 2 }\n"),
             Catch::Contains("context: 2  # line 3") && Catch::Contains("context_method: ulysses  # line 3"));
  CHECK_THAT(deepspeed(R"({ "sequence_parallel_size": 2, "zero_optimization": { "stage": 3 } })"),
             Catch::Contains("context: 2  # line 1"));
  CHECK_THROWS_WITH(accelerate("num_processes: 8\nparallelism_config: { parallelism_config_sp_size: 2, "
                               "parallelism_config_cp_size: 2 }\n"),
                    Catch::Contains("sequences are divided twice"));
}

TEST_CASE("what a scenario states of an assumption is no assumption any more") {
  const std::string text = import_text("accelerate", "num_processes: 8\n");
  const auto assumed = [&](const std::vector<std::string>& overrides) {
    const Scenario scenario = load_scenario_text(text, "imported.yaml", overrides);
    return fmt::format("{}", fmt::join(scenario.assumed, "\n"));
  };
  CHECK_THAT(assumed({}), Catch::Contains("assumed: cluster.node: dgx-h100: the file does not name the machines"));
  CHECK_THAT(assumed({"cluster.node=dgx-a100-80gb"}), !Catch::Contains("cluster.node"));
  CHECK_THAT(assumed({"cluster.node.gpus=8"}), Catch::Contains("cluster.node: dgx-h100"));  // still that machine
}

TEST_CASE("text for configurations has at most 4 MB") {
  std::string most = "distributed_type: \"NO\"\n#";
  while (most.size() < 4'000'000) most += most.size() % 1000 == 0 ? "\n#" : "x";
  most.resize(4'000'000);
  CHECK_NOTHROW(accelerate(most));
  CHECK_THROWS_WITH(accelerate(most + "x"), Catch::Contains("4000001 bytes; at most 4 MB of text"));
}

TEST_CASE("packed files of many pieces, and several behind one another, are unpacked to their end") {
  const std::string path = (std::filesystem::temp_directory_path() / "foretrain_packed.gz").string();
  const auto packed = [](const std::string& text) {
    z_stream stream{};
    deflateInit2(&stream, Z_BEST_SPEED, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY);
    std::string bytes(text.size() + 1000, '\0');
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
    stream.avail_in = static_cast<uInt>(text.size());
    stream.next_out = reinterpret_cast<Bytef*>(bytes.data());
    stream.avail_out = static_cast<uInt>(bytes.size());
    deflate(&stream, Z_FINISH);
    bytes.resize(stream.total_out);
    deflateEnd(&stream);
    return bytes;
  };
  const auto read = [&](const std::string& bytes) {
    std::ofstream(path, std::ios::binary) << bytes;
    return read_imported_file(path);
  };
  std::string text;
  for (int i = 0; i < 40'000; ++i) text += std::to_string(i * 7919 % 10'007) + "\n";
  CHECK(read(packed(text)) == text);
  CHECK(read(packed("a") + packed(text) + packed("b")) == "a" + text + "b");
  CHECK(read(packed("")).empty());
  CHECK(read(text) == text);
  const std::string half = packed(text).substr(0, 1000);
  CHECK_THROWS_WITH(read(half), Catch::Contains("broken gzip data behind byte 1000"));
  CHECK_THROWS_WITH(read(packed("a") + half), Catch::Contains("broken gzip data behind byte 1021"));
  std::filesystem::remove(path);
}
