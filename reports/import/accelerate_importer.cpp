// Files of `accelerate config` (huggingface/accelerate, commands/config): how processes are started and what shards
// the model; neither the model nor its batches.

#include "model/base/text.hpp"
#include "reports/import/importer.hpp"
#include "reports/import/settings.hpp"

namespace foretrain {

namespace {

TrainingSize accelerate_size(Settings& settings) {
  TrainingSize size;
  for (const auto& [key, count] : {std::pair("num_processes", &size.gpus), std::pair("num_machines", &size.nodes)}) {
    *count = settings.whole(key);
    if (const ForeignSetting* setting = settings.find(key)) size.said_by(*setting);
  }
  const ForeignSetting* type = settings.find("distributed_type");
  if (!size.gpus && !size.nodes && type != nullptr && type->value == "NO") {
    size.gpus = 1;
    size.said_by(*type);
  }
  return size;
}

/// Sequences are divided by ring attention (cp), which FSDP's ranks have, or by DeepSpeed's Ulysses (sp).
void set_ulysses(Settings& settings, Draft& draft) {
  const std::string prefix = "parallelism_config.parallelism_config_";
  const ForeignSetting* ulysses = settings.find(prefix + "sp_size");
  if (settings.whole(prefix + "sp_size").value_or(1) == 1) return;
  if (settings.whole(prefix + "cp_size").value_or(1) > 1) {
    fail(*ulysses, "sequences are divided twice, by cp_size as well", "one of the two");
  }
  draft.set("plan.context", *whole_number(*ulysses), *ulysses);
  draft.set("plan.context_method", "ulysses", *ulysses);
}

/// Shards are a part of all ranks where replicas of them are described; those of a sequence are among them.
void set_accelerate_shards(Settings& settings, Draft& draft) {
  const auto replicas = settings.whole("parallelism_config.parallelism_config_dp_replicate_size");
  const ForeignSetting* shard = settings.find("parallelism_config.parallelism_config_dp_shard_size");
  if (shard == nullptr || replicas.value_or(1) == 1) return;
  const std::int64_t ranks = std::stoll(*whole_number(*shard)) * number_of(draft, "plan.context");
  draft.set("plan.zero", yaml_entries({{"stage", "3"}, {"shard", std::to_string(ranks)}}, shard->where), *shard);
}

/// Micro-batches that are accumulated, or fill a pipeline; how large one is stands in the training script.
void set_accumulation(Settings& settings, Draft& draft) {
  draft.assume("workload.train.micro_batch", "1", "set in the training script");
  for (const char* key : {"deepspeed_config.gradient_accumulation_steps", "gradient_accumulation_steps",
                          "megatron_lm_config.megatron_lm_num_micro_batches"}) {
    const auto steps = settings.whole(key);
    if (!steps) continue;
    set_batch_of_rank(draft, *steps * number_of(draft, "workload.train.micro_batch"), *settings.find(key));
  }
}

}  // namespace

std::string import_accelerate(const ImportInput& input) {
  const YamlNode config = parse_config(input, "what `accelerate config` writes: compute_environment: …");
  Settings settings(flat_settings(config));
  Draft draft(input);
  draft.set("name", file_stem(input), draft.nowhere(), "");
  if (const ForeignSetting* file = settings.find("deepspeed_config.deepspeed_config_file")) {
    fail(*file, "ZeRO, batch and offloading are in that file", "foretrain import deepspeed " + file->value);
  }
  set_cluster(draft, accelerate_size(settings));
  assume_model(draft);
  set_ulysses(settings, draft);
  set_rows(settings, "accelerate", draft);
  draft.assume("workload.train.precision", "fp32", "no mixed_precision");
  set_accumulation(settings, draft);
  set_rows(settings, "accelerate_trainer", draft);
  draft.assume("plan.framework", "ddp", "no distributed_type");
  if (draft.scalar("plan.framework") == "fsdp") {
    set_accelerate_shards(settings, draft);
    draft.assume("plan.zero", "3", "fully sharded, FSDP's default");
    if (const ForeignSetting* reshard = settings.find("fsdp_config.fsdp_reshard_after_forward")) {
      if (to_lower(reshard->value) == "true" || to_lower(reshard->value) == "false") {
        draft.set("plan.reshard_after_forward", *true_or_false(*reshard), *reshard);
      }
    }
  }
  if (settings.flag("fsdp_config.fsdp_offload_params")) {
    const ForeignSetting& all = *settings.find("fsdp_config.fsdp_offload_params");
    draft.set("plan.offload", yaml_list({"optimizer", "parameters"}, all.where), all);
  }
  set_offload(settings, draft, "deepspeed_config.offload_optimizer_device", "deepspeed_config.offload_param_device");
  if (const ForeignSetting* backend = settings.find("dynamo_config.dynamo_backend");
      backend && backend->value == "INDUCTOR") {
    draft.set("plan.execution", "compiled", *backend);
  }
  return finished_training(settings, draft, "accelerate");
}

}  // namespace foretrain
