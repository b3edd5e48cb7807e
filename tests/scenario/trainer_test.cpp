// plan.trainer: framework settings as defaults.
#include "model/scenario/plan/trainer_reader.hpp"

#include "model/base/words.hpp"
#include "model/scenario/catalogue.hpp"
#include "model/scenario/load/load.hpp"
#include "tests/base/temporary_folder.hpp"
#include "tests/catch.hpp"
#include "tests/complaint.hpp"

using namespace foretrain;

namespace {

/// 24 layers, data parallelism alone, nothing said about synchronisation.
constexpr const char* silent = R"(
cluster: { node: dgx-a100-80gb, nodes: 2 }
workload:
  train:
    model: { family: gpt, layers: 24, hidden: 1024, heads: 16, vocabulary: 51200, sequence: 1024 }
)";

Scenario with(const std::string& trainer, std::vector<std::string> overrides = {}) {
  overrides.push_back("plan.trainer=" + trainer);
  return load_scenario_text(silent, "silent.yaml", overrides);
}

KernelSet kernels_of(const Scenario& scenario) { return std::get<TrainWorkload>(scenario.workload).code.kernels; }

/// The setting's constant in the provenance; fails where there is none.
Constant provenance_of(const Scenario& scenario, const std::string& name) {
  const std::vector<Constant>& all = scenario.calibration.constants;
  const auto found = std::ranges::find(all, name, &Constant::name);
  INFO(name);
  REQUIRE(found != all.end());
  return *found;
}

/// The error of reading the silent scenario with this framework file.
std::string complaint_about_file(const std::string& trainer) {
  const TemporaryFolder folder;
  const std::string file = folder.write("mine.yaml", trainer).string();
  return test::complaint_of([&] { load_scenario_text(silent, "silent.yaml", {"plan.trainer=" + file}); });
}

}  // namespace

TEST_CASE("Every trainer's file is read, with peers and with parameter servers, for transformers and networks") {
  const std::vector<CatalogueEntry> trainers = list_trainers();
  REQUIRE_FALSE(trainers.empty());
  for (const CatalogueEntry& trainer : trainers) {
    INFO(trainer.name);
    CHECK_FALSE(trainer.description.empty());
    CHECK_NOTHROW(with(trainer.name));
    CHECK_NOTHROW(with(trainer.name, {"workload.train.model=resnet-50"}));
    CHECK_NOTHROW(with(trainer.name, {"plan.zero=0", "plan.sync.algorithm=parameter_server"}));
  }
}

TEST_CASE("A trainer's settings are what the scenario leaves out") {
  const Scenario ddp = with("ddp");
  CHECK(ddp.plan.sync.bucket == 25.0_MiB);
  CHECK(ddp.plan.sync.first_bucket == 1.0_MiB);
  CHECK(ddp.plan.sync.bucketing == Sync::Bucketing::by_tensor);
  CHECK(kernels_of(ddp) == KernelSet::unfused);

  // Sixteen replicas: 16 million elements are less than 40 million, but without overlap all go at once.
  const Scenario megatron = with("megatron");
  CHECK_FALSE(megatron.plan.sync.overlap);
  CHECK(megatron.plan.sync.bucket == Bytes::infinity());
  CHECK(kernels_of(megatron) == KernelSet::fused);

  CHECK(with("fsdp").plan.zero == 3);
  CHECK(with("horovod").plan.sync.bucket == 128.0_MiB);

  const auto fused_loss = [](const std::string& trainer, const std::vector<std::string>& more = {}) {
    return std::get<TrainWorkload>(with(trainer, more).workload).code.loss.kind == Loss::Kind::fused;
  };
  CHECK(fused_loss("llm-foundry"));
  CHECK_FALSE(fused_loss("fsdp"));
  CHECK(fused_loss("fsdp", {"plan.execution=compiled"}));
  CHECK_FALSE(fused_loss("llm-foundry", {"workload.train.loss=eager"}));
}

TEST_CASE("Hugging Face's Trainer is DistributedDataParallel without ZeRO and DeepSpeed with it, under many names") {
  const Scenario plain = with("huggingface");
  CHECK(plain.plan.sync.bucket == 25.0_MiB);
  CHECK(plain.plan.sync.overlap);
  CHECK(std::get<TrainWorkload>(plain.workload).module_dispatch == Seconds(0.0));
  const Scenario sharded = with("axolotl", {"plan.zero=3", "plan.offload=optimizer"});
  CHECK(sharded.trainer == "huggingface");
  CHECK(kernels_of(sharded) == KernelSet::unfused);
  CHECK(std::get<TrainWorkload>(sharded.workload).module_dispatch > Seconds(0.0));
  CHECK_FALSE(sharded.plan.pinned_offload);
  CHECK(sharded.plan.host_threads == 1);  // torchrun's; DeepSpeed's own launcher leaves OpenMP all cores
  // Models without kernels of their own are started by torchrun; tuned ones by DeepSpeed's launcher, with pinned
  // memory.
  for (const bool fused : {false, true}) {
    const std::string kernels = fused ? "workload.train.kernels=fused" : "workload.train.kernels=plain";
    const Scenario own = with("deepspeed", {"plan.zero=3", "plan.offload=optimizer", kernels});
    CHECK(own.plan.pinned_offload == fused);
    CHECK(own.plan.host_threads == (fused ? 0 : 1));
    CHECK(own.assumed.size() == 2);
    CHECK(with("deepspeed",
               {"plan.zero=3", "plan.offload=optimizer", kernels, "plan.host_threads=4", "plan.pinned_offload=true"})
              .assumed.empty());
  }
  // A file's settings override its base's: updates are fused in both, weights cast in the first alone.
  CHECK(std::get<TrainWorkload>(plain.workload).code.cache_cast_weights);
  CHECK_FALSE(std::get<TrainWorkload>(sharded.workload).code.cache_cast_weights);
}

TEST_CASE("plan.framework is plan.trainer, and what is stated later holds") {
  CHECK(load_scenario_text(silent, "silent.yaml", {"plan.framework=fsdp"}).trainer == "fsdp");
  const std::string text = std::string(silent) + "plan: { trainer: ddp }\n";
  CHECK(load_scenario_text(text, "silent.yaml", {"plan.framework=fsdp"}).trainer == "fsdp");
  const std::string newer = std::string(silent) + "plan: { framework: ddp }\n";
  CHECK(load_scenario_text(newer, "silent.yaml", {}).trainer == "ddp");
  CHECK(load_scenario_text(newer, "silent.yaml", {"plan.trainer=fsdp"}).trainer == "fsdp");
  CHECK(load_scenario_text(newer, "silent.yaml", {"plan.trainer=megatron", "plan.framework=fsdp"}).trainer == "fsdp");
  CHECK(load_scenario_text(newer, "silent.yaml", {"plan.framework=megatron", "plan.trainer=fsdp"}).trainer == "fsdp");
  CHECK_THROWS_AS(
      load_scenario_text(std::string(silent) + "plan: { framework: ddp, trainer: ddp }\n", "silent.yaml", {}),
      ScenarioError);
}

TEST_CASE("Rules for buckets are entries of a file: a size, elements, or elements for each rank, whichever is most") {
  const auto bucket = [](const std::string& rule, std::vector<std::string> more = {}) {
    more.push_back("plan.sync.bucket=" + rule);
    return load_scenario_text(silent, "silent.yaml", more).plan.sync;
  };
  // Gradients of four bytes over 16 ranks: 25 MiB are less than 16 million elements.
  CHECK(bucket("auto").bucket == Bytes(64e6));
  CHECK(bucket("auto", {"plan.tensor=8"}).bucket == 25.0_MiB);  // over two ranks
  CHECK(bucket("deepspeed").bucket == Bytes(2e9));
  CHECK(bucket("megatron").bucket == Bytes(160e6));
  CHECK(bucket("ddp").first_bucket == 1.0_MiB);
  CHECK(bucket("ddp", {"plan.sync.first_bucket=2 MiB"}).first_bucket == 2.0_MiB);
  CHECK(bucket("whole").bucket == Bytes::infinity());
  CHECK(bucket("auto", {"plan.sync.overlap=false"}).bucket == Bytes::infinity());
  CHECK(bucket("ddp", {"plan.sync.overlap=false"}).bucket == 25.0_MiB);
  CHECK(bucket("10 MB").bucket_rule.empty());
}

TEST_CASE("What else plain code does follows from its kernels, unless the scenario says otherwise") {
  const auto code = [](std::vector<std::string> overrides) {
    const Scenario scenario = load_scenario_text(silent, "silent.yaml", overrides);
    return std::get<TrainWorkload>(scenario.workload).code;
  };
  CHECK((code({}).fused_qkv && code({}).fused_optimizer));
  const TrainerCode plain = code({"workload.train.kernels=plain"});
  CHECK_FALSE((plain.fused_qkv || plain.native_attention || plain.fused_optimizer || plain.fp8_all_gather));
  CHECK((plain.cache_cast_weights && plain.context_sharding == ContextSharding::contiguous));
  CHECK(code({"workload.train.kernels=plain", "workload.train.fused_optimizer=true"}).fused_optimizer);
  CHECK((code({"plan.trainer=ddp"}).cache_cast_weights &&
         code({"plan.trainer=ddp"}).keep_gathered_inputs));  // kernels: plain
  // Stated without a framework, fused is what own code fuses first: norms, in every format. A framework's fused is all.
  for (const char* precision : {"workload.train.precision=bf16", "workload.train.precision=fp8"}) {
    const TrainerCode own = code({"cluster.node=dgx-h100", "workload.train.kernels=fused", precision});
    CHECK(
        (own.fuses(Fusion::norm) && own.cache_cast_weights && !own.keep_gathered_inputs && !own.fuses(Fusion::rotary)));
  }
  CHECK(code({"workload.train.kernels=fused", "plan.trainer=megatron"}).fuses(Fusion::rotary));
  // A framework's file may say what it stands for, and that this hangs on attention; what the scenario states counts.
  const std::string fused = "workload.train.kernels=fused", of = "plan.trainer=scaling";
  const TrainerCode flash = code({fused, of, "workload.train.attention=flash_2"});
  CHECK((flash.kernels == KernelSet::unfused && flash.fusions == Fusions{Fusion::norm}));
  CHECK(code({fused, of, "workload.train.attention=standard"}).fusions == Fusions{Fusion::softmax});
  CHECK(code({fused, "plan.trainer=well-tuned", "workload.train.attention=standard"}).kernels == KernelSet::fused);
  CHECK(code({"workload.train.kernels=plain", of, "workload.train.fusions=rotary"}).fusions == Fusions{Fusion::rotary});
}

TEST_CASE("Without a trainer, gradients beside stated kernels and ZeRO's fp32 parts are autograd's, as bf16 weights") {
  const auto gradients = [](const std::string& plan) {
    return load_scenario_text(silent, "silent.yaml",
                              {"workload.train.precision=bf16", "plan=" + plan, "workload.train.kernels=fused"})
        .plan.sync.gradient_precision;
  };
  CHECK(gradients("{ zero: 1 }") == Precision::bf16);
  CHECK((gradients("{}") == Precision::fp32 && gradients("{ zero: 1, trainer: nanotron }") == Precision::fp32));
}

TEST_CASE("Gradients are clipped, but those that SGD follows; a scenario says otherwise") {
  const auto clips = [](std::vector<std::string> overrides) {
    const Scenario scenario = load_scenario_text(silent, "silent.yaml", overrides);
    return std::get<TrainWorkload>(scenario.workload).code.clip_gradients;
  };
  for (const char* optimizer : {"adam", "adamw", "adamw_8bit"}) {
    CHECK(clips({std::string("workload.train.optimizer=") + optimizer}));
  }
  CHECK(clips({}));  // by AdamW
  CHECK_FALSE(clips({"workload.train.optimizer=sgd"}));
  CHECK_FALSE(clips({"workload.train.optimizer=momentum"}));
  CHECK(clips({"workload.train.optimizer=momentum", "workload.train.clip_gradients=true"}));
  CHECK_FALSE(clips({"workload.train.clip_gradients=false"}));
}

TEST_CASE("What the scenario or the command line says wins over the trainer") {
  const Scenario megatron = with("megatron", {"plan.sync.overlap=true"});
  CHECK(megatron.plan.sync.overlap);
  CHECK(megatron.plan.sync.bucket == Bytes(4.0) * 40e6);  // gradients in fp32
  const Scenario ddp = with("ddp", {"plan.sync={ bucket: 10 MB }", "workload.train.kernels=fused"});
  CHECK(ddp.plan.sync.bucket == Bytes(10e6));
  CHECK(ddp.plan.sync.bucketing == Sync::Bucketing::by_tensor);  // still the trainer's
  CHECK(kernels_of(ddp) == KernelSet::fused);
  CHECK(with("fsdp", {"plan.zero=2"}).plan.zero == 2);
}

TEST_CASE("Settings belong to plans: DeepSpeed reduces every micro-batch with ZeRO-2, and overlaps with ZeRO-3 alone") {
  CHECK_FALSE(synchronises_every_micro_batch(with("deepspeed").plan));
  CHECK_FALSE(with("deepspeed", {"plan.zero=1"}).plan.sync.overlap);
  CHECK(synchronises_every_micro_batch(with("deepspeed", {"plan.zero=2"}).plan));
  CHECK_FALSE(synchronises_every_micro_batch(with("megatron", {"plan.zero=2"}).plan));
  CHECK_FALSE(with("deepspeed", {"plan.zero=2"}).plan.sync.overlap);
  CHECK(with("deepspeed", {"plan.zero=3"}).plan.sync.overlap);
}

TEST_CASE(
    "Settings of pipelines belong to plans that have one: Megatron-LM waits for messages unless chunks interleave") {
  const auto messages = [](const char* trainer, std::vector<std::string> plan) {
    return with(trainer, std::move(plan)).plan.pipeline_messages;
  };
  constexpr auto blocking = PipelineMessages::blocking, asynchronous = PipelineMessages::asynchronous;
  CHECK(messages("megatron", {"plan.pipeline=2"}) == blocking);
  CHECK(messages("megatron", {"plan.pipeline=2", "plan.interleave=2"}) == asynchronous);
  CHECK(messages("deepspeed", {"plan.pipeline=2", "plan.interleave=2"}) == blocking);
  CHECK(messages("ddp", {"plan.pipeline=2"}) == asynchronous);  // says nothing: the default
  CHECK(messages("megatron", {"plan.pipeline=2", "plan.pipeline_messages=asynchronous"}) == asynchronous);
  CHECK(load_scenario_text(silent, "silent.yaml", {"plan.pipeline=2"}).plan.pipeline_messages == asynchronous);
  CHECK(provenance_of(with("megatron", {"plan.pipeline=2"}), "megatron.plan.pipeline_messages=blocking").kind ==
        ConstantKind::datasheet);
  // Without stages there is nothing to send.
  const std::vector<Constant> all = with("megatron").calibration.constants;
  CHECK(std::ranges::find(all, "megatron.plan.pipeline_messages=blocking", &Constant::name) == all.end());
}

TEST_CASE("Settings of parameter servers are kept where there are servers") {
  const Sync peers = with("tensorflow").plan.sync;
  CHECK_FALSE(peers.barrier);
  CHECK(peers.bucket == Bytes::infinity());
  CHECK_FALSE(peers.overlap);
  const Sync servers = with("tensorflow", {"plan.sync.algorithm=parameter_server"}).plan.sync;
  CHECK(servers.barrier);
  CHECK(servers.overlap);
  CHECK(servers.split == Bytes(1e12));

  // BytePS brings its servers along.
  const Sync byteps = with("byteps").plan.sync;
  CHECK(byteps.algorithm == SyncAlgorithm::hierarchical_parameter_server);
  CHECK(byteps.split == Bytes(4096000.0));
  CHECK(byteps.priority == Sync::Priority::first_layer);
  CHECK(with("byteps", {"plan.sync.algorithm=ring"}).plan.sync.priority == Sync::Priority::arrival);
}

TEST_CASE("The provenance holds the settings that were added, with their sources") {
  const std::size_t without = load_scenario_text(silent, "silent.yaml").calibration.constants.size();
  const Scenario horovod = with("horovod", {"plan.sync.overlap=false"});
  CHECK(horovod.calibration.constants.size() == without + 5);  // overlap is the scenario's own
  const Constant bucket = provenance_of(horovod, "horovod.plan.sync.bucket");
  CHECK(bucket.value == 128.0);
  CHECK(bucket.unit == "MiB");
  CHECK_THAT(bucket.source, Catch::Contains("HOROVOD_FUSION_THRESHOLD"));
  CHECK(provenance_of(horovod, "horovod.plan.sync.bucketing=by_tensor").kind == ConstantKind::datasheet);
}

TEST_CASE("A trainer's file states settings with their sources, and nothing else") {
  const std::string setting = "{ value: 25 MB, kind: datasheet, source: its code }";
  const auto reported = [](const std::string& settings) {
    return complaint_about_file("kind: trainer\nname: mine\nhabits:\n  " + settings);
  };
  CHECK(reported("plan.sync.bucket: " + setting) == "accepted");
  for (const std::string key : {"cluster.nodes", "workload.train.model", "workload.train.global_batch", "plan.data"}) {
    CHECK_THAT(reported(key + ": " + setting), Catch::Contains("mine.yaml:4:3: settings." + key + ": unknown key"));
  }
  const std::pair<std::string, std::string> rows[] = {
      {"{ value: 25 MB, kind: datasheet }", ": settings.plan.sync.bucket.source: this key is missing"},
      {"{ value: 25 MB, kind: datasheet, source: \" \" }", ": an empty source"},
      {"{ value: big, kind: datasheet, source: its code }", "mine.yaml:4:30: plan.sync.bucket: "},
      {"{ value: 25 MB, when: { zero: 4 }, kind: datasheet, source: its code }",
       ": settings.plan.sync.bucket.when.zero: "}};
  for (const auto& [stated, complaint] : rows) {
    CHECK_THAT(reported("plan.sync.bucket: " + stated), Catch::Contains(complaint));
  }
  CHECK_THAT(complaint_about_file("kind: node\nhabits: {}\n"), Catch::Contains("not a framework file"));
}

TEST_CASE("Without a trainer the same settings are assumed over formats, ZeRO stages, plans and GPUs") {
  const auto assumed = [](const std::vector<std::string>& overrides) {
    const Scenario scenario = load_scenario_text(silent, "silent.yaml", overrides);
    CHECK(scenario.trainer == default_trainer);
    // Nor is it guessed who trains so: Megatron-DeepSpeed loses time at each layer, NVIDIA's recipes hide collectives.
    CHECK(std::get<TrainWorkload>(scenario.workload).layer_overhead == Seconds(0.0));
    CHECK_FALSE(scenario.plan.tensor_overlap);
    std::vector<ResolvedSetting> settings = scenario.framework_settings;
    std::erase_if(settings,
                  [](const ResolvedSetting& setting) { return setting.from != ResolvedSetting::From::assumed; });
    return settings;
  };
  std::vector<ResolvedSetting> first;
  for (const char* precision : {"fp16", "bf16", "tf32", "fp32"}) {
    for (const char* zero : {"0", "1", "2", "3"}) {
      for (const char* plan : {"tensor: 1, sequence_parallel: false", "tensor: 4, pipeline: 2, sequence_parallel: true",
                               "tensor: 4, sequence_parallel: false", "pipeline: 2, sequence_parallel: true"}) {
        CAPTURE(precision, zero, plan);
        const std::vector<ResolvedSetting> settings = assumed({fmt::format("workload.train.precision={}", precision),
                                                               fmt::format("plan={{ zero: {}, {} }}", zero, plan)});
        if (first.empty()) first = settings;
        CHECK(settings == first);
      }
    }
  }
  CHECK(first.size() > 10);
}

TEST_CASE("NVIDIA's recipes hide the collectives of tensor ranks that divide the sequence, but not in nvfp4") {
  const std::vector<std::string> plan = {"cluster.node=dgx-b200", "plan.tensor=4", "plan.sequence_parallel=true"};
  const auto hides = [&](const std::string& change) {
    std::vector<std::string> changed = plan;
    changed.push_back(change);
    return with("nemo", changed).plan.tensor_overlap;
  };
  CHECK(hides("workload.train.precision=bf16"));
  CHECK(hides("workload.train.precision=mxfp8"));
  CHECK(hides("plan={ trainer: nemo, tensor: 4, sequence_parallel: true, pipeline: 2 }"));
  for (const std::string other :
       {"plan.sequence_parallel=false", "plan.tensor=1", "workload.train.precision=nvfp4",
        "workload.train.lora={ rank: 16 }", "plan.tensor_overlap=false",
        "plan={ trainer: nemo, tensor: 4, sequence_parallel: true, pipeline: 2, schedule: zero_bubble }"}) {
    INFO(other);
    CHECK_FALSE(hides(other));
  }
}

TEST_CASE("nanotron's ZeRO-2 is its ZeRO-1, whole gradients summed up once behind the backward pass") {
  const Plan first = with("nanotron", {"plan.zero=1"}).plan;
  for (const char* zero : {"2", "{ stage: 2, gradients: kept }"}) {
    const Plan plan = with("nanotron", {std::string("plan.zero=") + zero}).plan;
    CHECK_FALSE(divides_gradients(plan));
    CHECK(plan.zero_by == first.zero_by);
    CHECK(plan.sync.bucket == first.sync.bucket);
    CHECK(plan.sync.overlap == first.sync.overlap);
    CHECK(plan.sync.gather == first.sync.gather);
  }
}
