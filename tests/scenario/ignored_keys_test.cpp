// Keys of synchronisation: honoured, refused, or said to mean nothing.
#include "model/scenario/load/checks.hpp"

#include "model/scenario/load/load.hpp"
#include "tests/catch.hpp"

using namespace foretrain;

namespace {

constexpr const char* silent = R"(
cluster: { node: dgx-a100-80gb, nodes: 2 }
workload:
  train:
    model: { family: gpt, layers: 4, hidden: 1024, heads: 16, vocabulary: 51200, sequence: 1024 }
)";

std::vector<std::string> unheeded(const std::vector<std::string>& overrides) {
  return ignored_keys(load_scenario_text(silent, "silent.yaml", overrides));
}

}  // namespace

TEST_CASE("What a plan has no use for is said, key by key") {
  struct Row {
    std::vector<std::string> plan;
    const char* key;
    const char* value;
    const char* why;  ///< empty: it means something
  };
  const std::vector<std::string> servers = {"plan.sync.algorithm=parameter_server"}, zero3 = {"plan.zero=3"},
                                 zero2 = {"plan.zero=2"}, kept = {"plan.zero={ stage: 2, gradients: kept }"},
                                 zero1 = {"plan.zero=1"}, stages = {"plan.pipeline=2"}, tensor = {"plan.tensor=2"},
                                 again = {"workload.train.recompute=full"}, fp32 = {"workload.train.precision=fp32"},
                                 none = {}, alone = {"cluster.nodes=1", "cluster.gpus_per_node=1"};
  const Row rows[] = {{servers, "plan.sync.bucket", "10 MB", "key by key"},
                      {servers, "plan.sync.first_bucket", "10 MB", "key by key"},
                      {servers, "plan.sync.bucketing", "by_tensor", "key by key"},
                      {servers, "plan.sync.overlap", "false", ""},
                      {servers, "plan.sync.split", "1 MB", ""},
                      {servers, "plan.sync.parameter_precision", "fp32", ""},
                      {none, "plan.sync.bucket", "10 MB", ""},
                      {zero3, "plan.sync.bucket", "10 MB", "each layer"},
                      {zero3, "plan.sync.first_bucket", "10 MB", "each layer"},
                      {zero3, "plan.sync.overlap", "false", ""},
                      {zero3, "plan.sync.sync_each_micro_batch", "false", "every micro-batch"},
                      {zero3, "plan.sync.gradient_precision", "fp16", ""},
                      {zero3, "plan.sync.algorithm", "ring", ""},
                      {zero3, "plan.sync.fp32_accumulation", "true", "its own part"},
                      {zero2, "plan.sync.fp32_accumulation", "true", "its own part"},
                      {zero2, "plan.sync.sync_each_micro_batch", "false", "ZeRO-2 scatters"},
                      {kept, "plan.sync.sync_each_micro_batch", "false", ""},
                      {kept, "plan.sync.fp32_accumulation", "true", ""},
                      {none, "plan.sync.accumulation", "added", "one micro-batch"},
                      {{"workload.train.global_batch=32"}, "plan.sync.accumulation", "added", ""},
                      {zero3, "plan.sync.gather", "owners", "ZeRO-3 has no updated weights"},
                      {none, "plan.sync.gather", "owners", "ZeRO-0 has no updated weights"},
                      {none, "plan.sync.gather_overlap", "true", "ZeRO-0 has no updated weights"},
                      {zero1, "plan.sync.gather", "owners", ""},
                      {zero1, "plan.sync.gather_overlap", "true", ""},
                      {zero1, "plan.sync.compression", "fp16", ""},
                      {alone, "plan.sync.bucket", "10 MB", "one replica"},
                      {alone, "plan.sync.overlap", "false", "one replica"},
                      {alone, "plan.sync.compression", "fp16", "one replica"},
                      {alone, "plan.sync.separate_bucket_buffers", "true", "one replica"},
                      {none, "plan.split", "proportional", "all nodes are alike"},
                      {none, "plan.pipeline_messages", "blocking", "one stage"},
                      {none, "plan.embedding_in_pipeline", "true", "one stage"},
                      {none, "plan.stage_layers", "by_speed", "one stage"},
                      {stages, "plan.pipeline_messages", "blocking", ""},
                      {none, "workload.train.message_overhead", "1 ms", "one stage"},
                      {stages, "workload.train.message_overhead", "1 ms", ""},
                      {none, "workload.train.p2p_dispatch_overhead", "1 ms", "one stage"},
                      {stages, "workload.train.p2p_dispatch_overhead", "1 ms", "no others"},
                      {none, "workload.train.pending_stream_buffers", "50", "no others"},
                      {tensor, "workload.train.pending_stream_buffers", "50", ""},
                      {none, "workload.train.inplace_cross_entropy", "true", ""},
                      {none, "workload.train.fusions", "norm", "fused kernels do all of that"},
                      {none, "plan.sequence_parallel", "true", "divides no sequence"},
                      {none, "plan.sequence_parallel", "false", ""},
                      {tensor, "plan.sequence_parallel", "true", ""},
                      {none, "plan.expert_tensor", "1", "no experts"},
                      {none, "plan.order", "pipeline-data-tensor-context-expert", "one dimension"},
                      {stages, "plan.order", "pipeline-data-tensor-context-expert", ""},
                      {servers, "workload.train.master_weights", "true", "the servers hold"},
                      {fp32, "workload.train.master_weights", "true", "fp32 themselves"},
                      {none, "workload.train.master_weights", "true", ""},
                      {none, "workload.train.recompute_early_stop", "true", "nothing is recomputed"},
                      {again, "workload.train.recompute_early_stop", "true", ""}};
  for (const Row& row : rows) {
    CAPTURE(row.plan, row.key, row.value);
    std::vector<std::string> plan = row.plan;
    plan.push_back(fmt::format("{}={}", row.key, row.value));
    const std::vector<std::string> said = unheeded(plan);
    if (std::string_view(row.why).empty()) {
      CHECK(said.empty());
      continue;
    }
    REQUIRE(said.size() == 1);
    CHECK(said.front().starts_with(row.key));
    CHECK(said.front().find(row.why) != std::string::npos);
  }
}

TEST_CASE("Settings of trainers and what is assumed are no statements of the scenario's") {
  for (const char* trainer : {"ddp", "deepspeed", "megatron", "internevo", "nemo", "nanotron"}) {
    CAPTURE(trainer);
    for (const char* zero : {"0", "1", "3"}) {
      CHECK(unheeded({fmt::format("plan.framework={}", trainer), fmt::format("plan.zero={}", zero)}).empty());
    }
  }
}

TEST_CASE("A collective by itself has no buckets, no precision and no weights") {
  const char* const collective = R"(
cluster: { node: dgx-a100-80gb }
workload: { collective: { operation: all_reduce, size: 1 GB } }
)";
  for (const char* stated : {"bucket=10 MB", "overlap=false", "gradient_precision=bf16", "gather=owners"}) {
    CAPTURE(stated);
    const Scenario scenario = load_scenario_text(collective, "one.yaml", {fmt::format("plan.sync.{}", stated)});
    CHECK(ignored_keys(scenario).size() == 1);
  }
  CHECK(ignored_keys(load_scenario_text(collective, "one.yaml", {"plan.sync.algorithm=ring"})).empty());
}

TEST_CASE("Trainers say how updated weights come back") {
  struct Row {
    const char* trainer;
    Sync::Gather gather;
    bool beside;
    ZeroBy by;
  };
  using enum Sync::Gather;
  for (const Row& row :
       {Row{"nemo", buckets, true, ZeroBy::scatter}, Row{"megatron", buckets, false, ZeroBy::scatter},
        Row{"deepspeed", whole, false, ZeroBy::scatter}, Row{"ddp", tensors, false, ZeroBy::all_reduce},
        Row{"internevo", owners, false, ZeroBy::all_reduce}, Row{"nanotron", whole, false, ZeroBy::all_reduce},
        Row{"tuned", buckets, false, ZeroBy::scatter}}) {
    CAPTURE(row.trainer);
    for (const char* zero : {"1", "{ stage: 1, shard: 8 }"}) {
      const Plan plan =
          load_scenario_text(silent, "silent.yaml",
                             {fmt::format("plan.framework={}", row.trainer), fmt::format("plan.zero={}", zero)})
              .plan;
      CHECK(plan.sync.gather == row.gather);
      CHECK(plan.sync.gather_overlap == row.beside);
      CHECK(plan.zero_by == row.by);
    }
  }
  // Whatever the format, the scale and the stage: what no trainer says is the same.
  for (const char* other : {"workload.train.precision=fp16", "plan.sync.overlap=false", "plan.zero=2"}) {
    const Plan plan = load_scenario_text(silent, "silent.yaml", {"plan.zero=1", other}).plan;
    CHECK(plan.sync.gather == buckets);
    CHECK_FALSE(plan.sync.gather_overlap);
  }
}
