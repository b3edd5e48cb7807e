// plan.trainer: habits of a trainer as defaults.
#include "model/scenario/trainer_reader.hpp"

#include <algorithm>

#include "model/base/words.hpp"
#include "model/scenario/catalogue.hpp"
#include "model/scenario/load.hpp"
#include "tests/base/temporary_folder.hpp"
#include "tests/catch.hpp"
#include "tests/scenario/bad_input.hpp"

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

KernelSet kernels_of(const Scenario& scenario) { return std::get<TrainWorkload>(scenario.workload).kernels; }

/// The habit's constant in the provenance; fails where there is none.
Constant provenance_of(const Scenario& scenario, const std::string& name) {
  const std::vector<Constant>& all = scenario.calibration.constants;
  const auto found = std::ranges::find(all, name, &Constant::name);
  INFO(name);
  REQUIRE(found != all.end());
  return *found;
}

/// What reading the silent scenario with this trainer's file complains about.
Complaint complaint_about_file(const std::string& trainer) {
  const TemporaryFolder folder;
  return complaint_about(silent, {"plan.trainer=" + folder.write("mine.yaml", trainer).string()});
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

TEST_CASE("A trainer's habits are what the scenario leaves out") {
  const Scenario ddp = with("ddp");
  CHECK(ddp.plan.sync.bucket == 25.0_MiB);
  CHECK(ddp.plan.sync.first_bucket == 1.0_MiB);
  CHECK(ddp.plan.sync.bucketing == Sync::Bucketing::by_tensor);
  CHECK(kernels_of(ddp) == KernelSet::plain);

  // Sixteen replicas: 16 million elements are less than 40 million, but without overlap all go at once.
  const Scenario megatron = with("megatron");
  CHECK_FALSE(megatron.plan.sync.overlap);
  CHECK(megatron.plan.sync.bucket == Bytes::infinity());
  CHECK(kernels_of(megatron) == KernelSet::fused);

  CHECK(with("fsdp").plan.zero == 3);
  CHECK(with("horovod").plan.sync.bucket == 128.0_MiB);
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

TEST_CASE("Habits belong to plans: DeepSpeed reduces every micro-batch with ZeRO-2, and overlaps with ZeRO-3 alone") {
  CHECK_FALSE(with("deepspeed").plan.sync.every_micro_batch);
  CHECK_FALSE(with("deepspeed", {"plan.zero=1"}).plan.sync.overlap);
  CHECK(with("deepspeed", {"plan.zero=2"}).plan.sync.every_micro_batch);
  CHECK_FALSE(with("deepspeed", {"plan.zero=2"}).plan.sync.overlap);
  CHECK(with("deepspeed", {"plan.zero=3"}).plan.sync.overlap);
}

TEST_CASE(
    "Habits of pipelines belong to plans that have one: Megatron-LM waits for messages unless chunks interleave") {
  const auto messages = [](const char* trainer, std::vector<std::string> plan) {
    return with(trainer, std::move(plan)).plan.pipeline_messages;
  };
  constexpr auto blocking = PipelineMessages::blocking, asynchronous = PipelineMessages::asynchronous;
  CHECK(messages("megatron", {"plan.pipeline=2"}) == blocking);
  CHECK(messages("megatron", {"plan.pipeline=2", "plan.interleave=2"}) == asynchronous);
  CHECK(messages("deepspeed", {"plan.pipeline=2", "plan.interleave=2"}) == blocking);
  CHECK(messages("horovod", {"plan.pipeline=2"}) == asynchronous);  // says nothing: the default
  CHECK(messages("megatron", {"plan.pipeline=2", "plan.pipeline_messages=asynchronous"}) == asynchronous);
  CHECK(load_scenario_text(silent, "silent.yaml", {"plan.pipeline=2"}).plan.pipeline_messages == asynchronous);
  CHECK(provenance_of(with("megatron", {"plan.pipeline=2"}), "megatron.plan.pipeline_messages=blocking").kind ==
        ConstantKind::datasheet);
  // Without stages there is nothing to send.
  const std::vector<Constant> all = with("megatron").calibration.constants;
  CHECK(std::ranges::find(all, "megatron.plan.pipeline_messages=blocking", &Constant::name) == all.end());
}

TEST_CASE("Habits of parameter servers are kept where there are servers") {
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

TEST_CASE("The provenance holds the habits that were added, with their sources") {
  const std::size_t without = load_scenario_text(silent, "silent.yaml").calibration.constants.size();
  const Scenario horovod = with("horovod", {"plan.sync.overlap=false"});
  CHECK(horovod.calibration.constants.size() == without + 3);  // overlap is the scenario's own
  const Constant bucket = provenance_of(horovod, "horovod.plan.sync.bucket");
  CHECK(bucket.value == 128.0);
  CHECK(bucket.unit == "MiB");
  CHECK_THAT(bucket.source, Catch::Contains("HOROVOD_FUSION_THRESHOLD"));
  CHECK(provenance_of(horovod, "horovod.plan.sync.bucketing=by_tensor").kind == ConstantKind::datasheet);
}

TEST_CASE("Bad trainers: unknown ones, and complaints about a habit name the trainer's file") {
  check_complaint(good_text(16, "  trainer: ^megatrom"), "plan.trainer", "unknown trainer \"megatrom\"",
                  "did you mean megatron?");
  check_complaint(good_text(16, "  trainer: ^gone.yaml"), "plan.trainer", "no file \"gone.yaml\"",
                  "the path of a file");
  check_complaint(good_text(16, "  trainer: ^[ddp]"), "plan.trainer", "a list where a single value belongs",
                  "one value");

  // ZeRO-2 of DeepSpeed reduces in every micro-batch, which a pipeline cannot.
  const Complaint pipeline = complaint_about(good_text(16, "  trainer: deepspeed\n  zero: 2"));
  CHECK(pipeline.key == "plan.sync.every_micro_batch");
  CHECK(pipeline.where.file.ends_with("trainers/deepspeed.yaml"));
}

TEST_CASE("A trainer is for training: nothing else knows the key") {
  const std::string collective =
      "cluster: { node: dgx-a100-80gb }\nworkload: { collective: { operation: all_reduce, size: 1 MB } }\n"
      "plan: { ^trainer: ddp }\n";
  check_complaint(collective, "plan.trainer", "unknown key", "sync");
}

TEST_CASE("A trainer's file states habits with their sources, and nothing else") {
  const std::string habit = "{ value: 25 MB, kind: datasheet, source: its code }";
  const auto file = [](const std::string& habits) { return "kind: trainer\nname: mine\nhabits:\n  " + habits; };
  CHECK_FALSE(complaint_about_file(file("plan.sync.bucket: " + habit)).thrown);

  for (const char* key : {"cluster.nodes", "workload.train.model", "workload.train.global_batch", "plan.data"}) {
    const Complaint complaint = complaint_about_file(file(std::string(key) + ": " + habit));
    INFO(complaint.text);
    CHECK(complaint.key == std::string("habits.") + key);
    CHECK(complaint.got == "unknown key");
    CHECK(complaint.where.line == 4);
  }
  const Complaint unsourced = complaint_about_file(file("plan.sync.bucket: { value: 25 MB, kind: datasheet }"));
  CHECK(unsourced.key == "habits.plan.sync.bucket.source");
  const Complaint empty =
      complaint_about_file(file("plan.sync.bucket: { value: 25 MB, kind: datasheet, source: \" \" }"));
  CHECK(empty.got == "an empty source");
  const Complaint value =
      complaint_about_file(file("plan.sync.bucket: { value: big, kind: datasheet, source: its code }"));
  CHECK(value.key == "plan.sync.bucket");
  CHECK(value.where.line == 4);
  CHECK(value.where.file.ends_with("mine.yaml"));
  const Complaint condition = complaint_about_file(
      file("plan.sync.bucket: { value: 25 MB, when: { zero: 4 }, kind: datasheet, source: its code }"));
  CHECK(condition.key == "habits.plan.sync.bucket.when.zero");
  CHECK(complaint_about_file("kind: node\nhabits: {}\n").got == "this file is no trainer");
}

TEST_CASE("ZeRO-1 with tensor and pipeline parallelism in fp16 is Megatron-LM's with DeepSpeed") {
  const std::vector<std::string> plan = {"plan.zero=1", "plan.tensor=4", "plan.pipeline=2",
                                         "workload.train.precision=fp16"};
  const Scenario usual = load_scenario_text(silent, "silent.yaml", plan);
  CHECK(std::get<TrainWorkload>(usual.workload).layer_overhead > Seconds(0.0));
  CHECK(provenance_of(usual, "megatron-deepspeed.workload.train.layer_overhead").kind == ConstantKind::fit);
  // Megatron-LM's own distributed optimizer trains in bf16; without pipelines both DeepSpeed and others do.
  for (const std::string change : {"workload.train.precision=bf16", "plan.pipeline=1", "plan.zero=0"}) {
    std::vector<std::string> changed = plan;
    changed.push_back(change);
    const Scenario other = load_scenario_text(silent, "silent.yaml", changed);
    CHECK(std::get<TrainWorkload>(other.workload).layer_overhead == Seconds(0.0));
  }
  std::vector<std::string> named = plan;
  named.emplace_back("plan.trainer=megatron");
  CHECK(std::get<TrainWorkload>(load_scenario_text(silent, "silent.yaml", named).workload).layer_overhead ==
        Seconds(0.0));
}

TEST_CASE("Hidden gradients, ZeRO-1 and sequence parallelism in bf16 or fp8 are what NVIDIA's recipes ask for") {
  const std::vector<std::string> plan = {"cluster.node=dgx-b200",  "plan.zero=1",
                                         "plan.tensor=4",          "plan.sequence_parallel=true",
                                         "plan.sync.overlap=true", "workload.train.precision=bf16"};
  const auto overlaps = [&](const std::string& change) {
    std::vector<std::string> changed = plan;
    changed.push_back(change);
    return load_scenario_text(silent, "silent.yaml", changed).plan.tensor_overlap;
  };
  CHECK(overlaps("workload.train.precision=fp8"));
  CHECK(overlaps("workload.train.precision=mxfp8"));
  provenance_of(load_scenario_text(silent, "silent.yaml", plan), "nemo.plan.tensor_overlap=true");
  // User buffers are for sequence parallelism, and not for nvfp4; plain code and plain Megatron-LM do without.
  for (const std::string other :
       {"plan.sequence_parallel=false", "plan.tensor=1", "plan.zero=0", "plan.sync.overlap=false",
        "workload.train.precision=nvfp4", "workload.train.kernels=plain", "plan.trainer=megatron",
        "plan.tensor_overlap=false"}) {
    INFO(other);
    CHECK_FALSE(overlaps(other));
  }
  CHECK(overlaps("plan.trainer=nemo"));
}
