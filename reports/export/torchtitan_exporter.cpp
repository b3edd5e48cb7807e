// torchtitan's configuration (torchtitan/config/job_config.py).

#include <algorithm>
#include <cctype>

#include "reports/export/exporter.hpp"
#include "reports/export/outgoing.hpp"

namespace foretrain {

namespace {

/// The catalogue's llama3-8b is flavor 8B of llama3. torchtitan has few families.
void put_torchtitan_model(Outgoing& out) {
  const YamlNode* stated = out.scenario().where.document.at("workload.train.model");
  const YamlNode* preset = stated != nullptr && stated->is_mapping() ? stated->at("preset") : stated;
  std::string word = preset != nullptr && preset->is_scalar() ? preset->scalar : std::string();
  if (word == "deepseek-v3") word = "deepseek_v3-671b";
  const std::size_t dash = word.find('-');
  const std::string family = word.substr(0, dash);
  constexpr std::string_view known[] = {"llama3", "deepseek_v3", "qwen3"};
  if (std::ranges::find(known, family) == std::end(known) || dash == std::string::npos) {
    return out.leave_out({"workload.train.model"});
  }
  std::string flavor = word.substr(dash + 1);
  std::ranges::transform(flavor, flavor.begin(), [](unsigned char c) { return std::toupper(c); });
  out.put("model.name", family);
  out.put("model.flavor", flavor);
}

void put_torchtitan_batch(Outgoing& out) {
  out.put("training.global_batch_size", std::to_string(out.train().global_batch));
  if (out.plan().pipeline == 1) return out.put_rows("torchtitan_rank");
  out.put("training.local_batch_size", std::to_string(out.train().global_batch / out.plan().data));
  out.put_rows("torchtitan_pipeline");
  if (out.stated("plan.schedule")) return out.put_rows("torchtitan_schedule");
  if (out.plan().interleave > 1) out.put("parallelism.pipeline_parallel_schedule", "Interleaved1F1B");
}

void put_torchtitan_sharding(Outgoing& out) {
  const Plan& plan = out.plan();
  const int shards = plan.zero == 3 ? std::clamp(shards_of(plan) / plan.context, 1, plan.data) : 1;
  out.put("parallelism.data_parallel_replicate_degree", std::to_string(plan.data / shards));
  out.put("parallelism.data_parallel_shard_degree", std::to_string(shards));
  const bool has_others = plan.tensor > 1 || plan.pipeline > 1 || plan.context > 1 || plan.expert > 1;
  if (shards == 1 && plan.data > 1 && has_others) {
    out.refuse(
        "torchtitan refuses whole replicas beside tensor, pipeline, expert or context ranks (DDP has not "
        "supported > 1D parallelism)");
  }
  if (const auto reshard = out.stated("plan.reshard_after_forward")) {
    out.put("parallelism.fsdp_reshard_after_forward", *reshard == "true" ? "always" : "never");
  }
  if (plan.offload.optimizer && plan.offload.parameters) out.put("training.enable_cpu_offload", "true");
}

void put_torchtitan_recomputation(Outgoing& out) {
  if (!out.stated("workload.train.recompute")) return;
  const Recompute recompute = out.train().recompute;
  const bool by_operator = recompute == Recompute::selective_operators;
  if (!by_operator && recompute != Recompute::full && recompute != Recompute::none) return;
  const bool by_layer = out.stated("workload.train.recompute_layers") && out.train().recompute_layers.layers == 1;
  const char* mode = by_operator || by_layer ? "selective" : recompute == Recompute::full ? "full" : "none";
  out.put("activation_checkpoint.mode", mode);
  if (!by_operator && !by_layer) return;
  out.put("activation_checkpoint.selective_ac_option",
          by_operator ? "op" : std::to_string(out.train().recompute_layers.of));
}

}  // namespace

std::string export_torchtitan(Outgoing& out) {
  out.leave_out({"workload.train.samples"});
  put_torchtitan_model(out);
  if (out.states("workload.train.precision", "fp8")) out.put("model.converters", "[\"float8\"]");
  if (out.states("workload.train.fp8.scaling", "row")) out.put("float8.recipe_name", "rowwise");
  // Gradients are reduced in float32 alone.
  const bool in_fp32 = out.plan().sync.gradient_precision == Precision::fp32;
  out.put_rows("torchtitan", {"training.global_batch_size", in_fp32 ? "none" : "training.mixed_precision_reduce"});
  if (casts_operands(out.train().precision)) out.put("training.mixed_precision_param", "bfloat16");
  put_torchtitan_batch(out);
  put_torchtitan_sharding(out);
  put_torchtitan_recomputation(out);
  if (out.states("plan.execution", "compiled")) out.put_rows("torchtitan_execution");
  return as_toml(out);
}

}  // namespace foretrain
