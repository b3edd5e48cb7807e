#include "model/scenario/plan/plan_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "model/base/number.hpp"
#include "model/base/text.hpp"
#include "model/base/units.hpp"
#include "model/base/words.hpp"
#include "model/scenario/catalogue.hpp"
#include "model/scenario/keys/keys.hpp"

namespace foretrain {

namespace {

Field bucket_rules() {
  return Field(cached_yaml_file((data_directory() / "buckets.yaml").string()), "").mapping(keys::buckets_file)["rules"];
}

bool adds_up_locally(const Sync& sync) { return sync.algorithm == SyncAlgorithm::hierarchical_parameter_server; }

/// Where nothing runs beside them, cutting gains nothing but memory.
bool cut(BucketsWhole whole, const Plan& plan) {
  if (whole == BucketsWhole::without_overlap) return plan.sync.overlap || divides_gradients(plan);
  return whole == BucketsWhole::never;
}

/// The size that the plan's rule comes to, once the rest of the plan is known.
void set_bucket(Plan& plan) {
  Sync& sync = plan.sync;
  if (plan.zero == 3 || sync.bucket_rule.empty()) return;
  const MappingReader rule = bucket_rules().at(sync.bucket_rule).mapping(keys::bucket_rule);
  const double ranks = static_cast<double>(plan.data) * plan.context;
  const double elements = std::max(rule.number_or("elements", 0.0), rule.number_or("elements_per_rank", 0.0) * ranks);
  const Bytes size =
      std::max(rule.quantity_or("size", Bytes(0.0)), bytes_per_element(sync.gradient_precision) * elements);
  sync.bucket = cut(rule.choice_or("whole", BucketsWhole::never), plan) ? size : Bytes::infinity();
  if (!(sync.first_bucket > Bytes(0.0))) sync.first_bucket = rule.quantity_or("first_bucket", Bytes(0.0));
}

/// What `zero: { stage: 2, shard: 8, gradients: kept, by: scatter }` cannot say together.
void check_zero(const MappingReader& keys, const Plan& plan) {
  keys.fail_if(plan.shard > 0 && plan.zero == 0, "shard", "stage 0 divides nothing",
               "stage: 1, 2 or 3, or leave the key out");
  if (plan.zero != 2) {
    keys.refuse({"gradients"}, fmt::format("stage {} leaves no choice of when gradients are scattered", plan.zero),
                "stage: 2, or leave the key out");
  }
  if (plan.zero == 0 || plan.zero == 3) {
    keys.refuse({"by"}, fmt::format("stage {} leaves no choice of how gradients are summed", plan.zero),
                "stage: 1, or leave the key out");
  }
  keys.fail_if(plan.zero_by == ZeroBy::all_reduce && divides_gradients(plan), "by",
               "gradients of which a rank keeps its part alone, summed for all ranks",
               "by: scatter, gradients: kept or stage: 1");
}

/// `where` the rule for buckets is stated, which there may not be.
void check_bucket_rule(const SourcePosition& where, const Sync& sync) {
  if (sync.bucket_rule.empty() || bucket_rules().find(sync.bucket_rule)) return;
  const std::vector<std::string> known = bucket_rule_names();
  throw ScenarioError(where, "plan.sync.bucket", fmt::format("unknown rule \"{}\"", sync.bucket_rule),
                      did_you_mean(nearest_word(sync.bucket_rule, known), or_list(known) + ", or a size: 25 MB"));
}

/// Keys that only servers have, and rules for buckets.
void check_sync(const MappingReader& keys, const Sync& sync) {
  if (const auto bucket = keys.find("bucket")) check_bucket_rule(bucket->where(), sync);
  if (has_servers(sync.algorithm)) return;
  for (const YamlEntry& entry : keys.field().node().entries) {
    if (!keys::is_server_key(entry.key)) continue;
    keys.fail(entry.key, fmt::format("{} without a parameter server", entry.key),
              "algorithm: parameter_server, or leave the key out");
  }
}

/// How many replicas the GPUs have room for; 1 where the factors do not divide them (check_scenario complains then).
int replicas_left(const Plan& plan, const Cluster& cluster) {
  const std::int64_t replica = static_cast<std::int64_t>(plan.tensor) * plan.pipeline * plan.context;
  const std::int64_t gpus = worker_gpus(plan, cluster);
  return gpus > 0 && gpus % replica == 0 ? static_cast<int>(gpus / replica) : 1;
}

/// Experts no wider than the hidden state, which nobody divides further.
bool has_small_experts(const ModelConfig& model) {
  return model.has_experts() &&
         std::get<TransformerConfig>(model.shape).ffn_hidden <= std::get<TransformerConfig>(model.shape).hidden;
}

/// Experts over more ranks than data and context have are held whole by tensor ranks (Megatron-Core, parallel folding:
/// Liu et al. 2025, arXiv 2504.14960). So they are where `expert_tensor: 1` says so; and unless it says something,
/// where they are small (Megatron-Bridge, recipes of Qwen3 and DeepSeek-V3: expert_tensor_parallel_size = 1).
void fold_experts(const MappingReader& keys, const ModelConfig& model, Plan& plan) {
  const int stated = keys.int_or("expert_tensor", 0, {1, 1'000'000});
  keys.fail_if(stated != 0 && stated != 1 && stated != plan.tensor, "expert_tensor",
               "experts divided among {0} of {1} tensor ranks", "1 or {1}", stated, plan.tensor);
  if (plan.tensor == 1 || plan.expert == 1) return;
  const bool divides = plan.expert % plan.tensor == 0;
  const bool must = stated == 1 || (stated == 0 && plan.expert > std::int64_t{plan.data} * plan.context);
  keys.fail_if(must && !divides, "expert", "{0} ranks of experts over {1} tensor ranks and others",
               "a multiple of {1}, or expert_tensor: {1}", plan.expert, plan.tensor);
  plan.folded_experts = must || (stated == 0 && divides && has_small_experts(model));
  if (plan.folded_experts) plan.expert /= plan.tensor;
}

/// `stage_layers: by_speed`, or a number of layers for each stage.
void read_stage_layers(const Field& field, Plan& plan) {
  field.fail_if(plan.interleave > 1 || plan.schedule == PipelineSchedule::dualpipe || plan.embedding_in_pipeline,
                "stages of several chunks, or ends that count as layers", "one chunk a stage, or leave the key out");
  plan.balance_by_speed = field.is_scalar() && field.text() == "by_speed";
  if (plan.balance_by_speed) return;
  if (field.is_scalar()) field.fail("no layers", "by_speed, or a list such as [20, 12]");
  for (const Field& layers : field.list()) plan.stage_layers.push_back(static_cast<int>(layers.integer({0, 100'000})));
  field.fail_if(plan.stage_layers.size() > 2 && std::find(plan.stage_layers.begin() + 1, plan.stage_layers.end() - 1,
                                                          0) != plan.stage_layers.end() - 1,
                "a stage between others without a layer", "layers for all but the first and the last stage");
  field.fail_if(!std::cmp_equal(plan.stage_layers.size(), plan.pipeline), "layers of {0} stages", "pipeline: {1}",
                plan.stage_layers.size(), plan.pipeline);
}

/// What no key says by itself.
void check_training_plan(const MappingReader& keys, const TrainWorkload& train, const Plan& plan) {
  keys.fail_if(plan.tensor_overlap && !plan.sequence_parallel, "tensor_overlap",
               "all-reduces, which are not chunked behind products", "sequence_parallel: true, or leave the key out");
  if (const auto zero = keys.find("zero"); zero && zero->is_mapping()) check_zero(zero->mapping(keys::zero), plan);
  if (plan.zero != 3) {
    keys.refuse({"reshard_after_forward"}, fmt::format("zero: {} does not shard weights", plan.zero),
                "zero: 3, or leave the key out");
  }
  const auto offload = keys.find("offload");
  const std::vector<Field> offloaded = offload ? offload->list_or_one() : std::vector<Field>();
  for (const Field& item : offloaded) {
    item.fail_if(item.text() == "none" && offloaded.size() > 1, "none beside other words",
                 "none alone, or the other words");
  }
  if (const auto sync = keys.find("sync")) check_sync(sync->mapping(keys::sync), plan.sync);
  // How experts' tokens travel, and what is launched between their counts, are questions to models that have some.
  if (train.model.has_experts()) return;
  keys.refuse({"expert_dispatch", "expert_comm_overlap", "graphed_parts"}, "the model has no experts",
              "a model with experts, or leave the key out");
}

}  // namespace

std::vector<std::string> bucket_rule_names() {
  std::vector<std::string> names;
  for (const YamlEntry& rule : bucket_rules().node().entries) names.push_back(rule.key);
  return names;
}

Plan read_stated_plan(const Field& field) {
  Plan plan;
  plan.sync.bucket_rule = "auto";
  field.mapping(keys::plan).fill(plan);
  return plan;
}

void complete_plan(const Field& field, const Framework& framework, const TrainWorkload& train, const Cluster& cluster,
                   const std::vector<int>& taken, Plan& plan) {
  const MappingReader keys = field.mapping(keys::plan);
  if (!keys.has("schedule") && plan.interleave > 1) plan.schedule = PipelineSchedule::interleaved;
  // torchtitan keeps a pipeline stage's weights from pass to pass (fsdp_reshard_after_forward: not pp_enabled).
  if (!keys.has("reshard_after_forward")) plan.reshard_after_forward = plan.zero != 3 || plan.pipeline == 1;
  if (!framework.decides("plan.sync.local_reduce")) plan.sync.local_reduce = adds_up_locally(plan.sync);
  check_training_plan(keys, train, plan);
  if (const auto placement = keys.find("placement"); placement || !taken.empty()) {
    const double replica = number(std::int64_t{1} * plan.tensor * plan.pipeline * plan.context);
    const double replicas = number(keys.has("data") ? plan.data : cluster.gpus());
    plan.placement = read_placement(placement, cluster, replica * replicas, taken);
  }
  if (!keys.has("data")) plan.data = replicas_left(plan, cluster);
  if (const auto order = keys.find("order")) read_order(*order, plan);
  if (const auto layers = keys.find("stage_layers")) read_stage_layers(*layers, plan);
  fold_experts(keys, train.model, plan);
  for (const auto& [key, where] : framework.where) {
    if (key == "plan.sync.bucket") check_bucket_rule(where, plan.sync);
  }
  set_bucket(plan);
}

Plan read_other_plan(const Field& field, const ReadWorkload& workload) {
  Plan plan;
  if (!workload.collective) {
    field.mapping(keys::execution_plan).fill(plan);
    return plan;
  }
  const MappingReader keys = field.mapping(keys::collective_plan);
  keys.fill(plan);
  if (const auto sync = keys.find("sync")) {
    const MappingReader stated = sync->mapping(keys::sync);
    check_sync(stated, plan.sync);
    if (!stated.has("local_reduce")) plan.sync.local_reduce = adds_up_locally(plan.sync);
  }
  workload.collective->fill(plan.sync);
  return plan;
}

}  // namespace foretrain
