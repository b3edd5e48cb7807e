// Files of `accelerate config` (huggingface/accelerate, commands/config): FSDP, replicas, or DeepSpeed.

#include <algorithm>

#include "reports/export/exporter.hpp"
#include "reports/export/outgoing.hpp"

namespace foretrain {

namespace {

/// Weights that are gathered again for the backward pass are FSDP2's usual way; ZeRO-2 is a strategy of FSDP1.
void put_accelerate_fsdp(Outgoing& out) {
  const Plan& plan = out.plan();
  const bool whole = plan.zero == 3;
  out.put("fsdp_config.fsdp_version", whole ? "2" : "1");
  out.put_rows("accelerate", {"deepspeed_config.", "megatron_lm_config.", "parallelism_config.", "mixed_precision",
                              whole ? "fsdp_config.fsdp_sharding_strategy" : "none"});
  if (const auto reshard = out.stated("plan.reshard_after_forward")) {
    out.put("fsdp_config.fsdp_reshard_after_forward", *reshard);
  }
  if (plan.offload.optimizer && plan.offload.parameters) out.put("fsdp_config.fsdp_offload_params", "true");
}

/// Replicas and DeepSpeed have no ranks of a tensor, and of a sequence DeepSpeed's Ulysses alone.
bool has_tensor(const Plan& plan, bool fsdp) { return plan.tensor > 1 && fsdp; }
bool has_context(const Plan& plan, bool fsdp, bool deepspeed) {
  const bool ulysses = plan.context_method == ContextMethod::ulysses;
  return plan.context > 1 && (fsdp || (deepspeed && ulysses));
}

/// Number of micro-batches that each rank with its own samples accumulates in the file.
std::string accumulated_in_file(Outgoing& out, bool fsdp, bool deepspeed) {
  const Plan& plan = out.plan();
  std::int64_t ranks = worker_gpus(plan, out.scenario().cluster);
  if (has_tensor(plan, fsdp)) ranks /= plan.tensor;
  if (has_context(plan, fsdp, deepspeed)) ranks /= plan.context;
  if (ranks == plan.data) return std::to_string(accumulated(out));
  const std::int64_t each = ranks * out.train().micro_batch, batch = out.train().global_batch;
  const char* key = "workload.train.global_batch";
  if (batch % each == 0) {
    out.say_unread({key});  // importers divide it by ranks that the file does not have
  } else {
    out.leave_out({key});
  }
  return std::to_string(std::max<std::int64_t>(batch / each, 1));
}

/// Shards hold a part of the ranks that are no part of a tensor or a sequence.
void put_accelerate_parallelism(Outgoing& out, bool fsdp, bool deepspeed) {
  const Plan& plan = out.plan();
  const std::string prefix = "parallelism_config.parallelism_config_";
  if (fsdp && (copies_of_shard(plan) > 1 || plan.tensor > 1 || plan.context > 1)) {
    out.put(prefix + "dp_replicate_size", std::to_string(copies_of_shard(plan)));
    out.put(prefix + "dp_shard_size", std::to_string(shards_of(plan) / plan.context));
  }
  const bool ulysses = plan.context > 1 && plan.context_method == ContextMethod::ulysses;
  if (has_tensor(plan, fsdp)) out.put(prefix + "tp_size", std::to_string(plan.tensor));
  if (has_context(plan, fsdp, deepspeed))
    out.put(prefix + (ulysses ? "sp_size" : "cp_size"), std::to_string(plan.context));
}

}  // namespace

std::string export_accelerate(Outgoing& out) {
  const Cluster& cluster = out.scenario().cluster;
  const Plan& plan = out.plan();
  const bool deepspeed = plan.zero == 1 || out.states("plan.framework", "deepspeed");
  const bool fsdp = !deepspeed && plan.zero >= 2;
  out.leave_out({"workload.train.model", "workload.train.samples", "workload.train.micro_batch",
                 "workload.train.optimizer", "plan.pipeline", "plan.interleave", "plan.schedule", "plan.expert",
                 "plan.expert_tensor", "plan.sequence_parallel", "plan.stage_layers", "plan.embedding_in_pipeline"});
  out.put("compute_environment", "LOCAL_MACHINE");
  out.put("distributed_type", deepspeed ? "DEEPSPEED" : fsdp ? "FSDP" : "MULTI_GPU");
  out.put("num_machines", std::to_string(training_nodes(out.scenario())));
  out.put("num_processes", std::to_string(worker_gpus(plan, cluster)));
  out.put_rows("accelerate", {"deepspeed_config.", "megatron_lm_config.", "parallelism_config.", "fsdp_config."});
  if (casts_operands(out.train().precision) && out.train().precision != Precision::fp8) {
    out.put("mixed_precision", "bf16");  // format of the rest
  }
  if (plan.tensor > 1 && !has_tensor(plan, fsdp)) out.leave_out({"plan.tensor", "plan.tensor_overlap"});
  if (plan.context > 1 && !has_context(plan, fsdp, deepspeed)) out.leave_out({"plan.context", "plan.context_method"});
  const std::string steps = accumulated_in_file(out, fsdp, deepspeed);
  if (deepspeed) {
    out.put_rows("accelerate", {"fsdp_config.", "megatron_lm_config.", "parallelism_config.", "mixed_precision"});
    out.put("deepspeed_config.gradient_accumulation_steps", steps);
    put_offload(out, "deepspeed_config.offload_optimizer_device", "deepspeed_config.offload_param_device");
  } else {
    if (fsdp) put_accelerate_fsdp(out);
    out.put("gradient_accumulation_steps", steps);
  }
  put_accelerate_parallelism(out, fsdp, deepspeed);
  if (out.states("plan.execution", "compiled")) out.put("dynamo_config.dynamo_backend", "INDUCTOR");
  return as_yaml(out);
}

}  // namespace foretrain
