// What `accelerate config` writes (huggingface/accelerate, commands/config): how processes are started and what shards
// the model; neither the model nor its batches.
#include <fmt/format.h>

#include <array>

#include "model/base/text.hpp"
#include "reports/import/importer.hpp"
#include "reports/import/input_text.hpp"
#include "reports/import/settings.hpp"

namespace foretrain {

namespace {

std::optional<std::string> accelerate_precision(const ForeignSetting& setting) {
  if (setting.value == "bf16" || setting.value == "fp16" || setting.value == "fp8") return setting.value;
  if (setting.value == "no" || setting.value == "false") return "fp32";
  fail(setting, fmt::format("unknown precision \"{}\"", setting.value), "no, fp16, bf16 or fp8");
}

/// torch.distributed.fsdp.ShardingStrategy, by name or number.
std::optional<std::string> sharding_strategy(const ForeignSetting& setting) {
  const std::string word = to_lower(setting.value);
  if (word == "full_shard" || word == "1" || word == "hybrid_shard" || word == "4") return "3";
  if (word == "shard_grad_op" || word == "2" || word == "hybrid_shard_zero2" || word == "5") return "2";
  if (word == "no_shard" || word == "3") return "0";
  fail(setting, fmt::format("unknown strategy \"{}\"", setting.value), "FULL_SHARD, SHARD_GRAD_OP or NO_SHARD");
}

std::optional<std::string> recompute_all(const ForeignSetting& setting) { return if_true(setting, "full"); }

std::optional<std::string> recompute_some(const ForeignSetting& setting) { return if_true(setting, "selective"); }

std::optional<std::string> zero_1(const ForeignSetting& setting) { return if_true(setting, "1"); }

constexpr std::array<SettingRow, 14> accelerate_rows = {{
    {"mixed_precision", as_called, accelerate_precision},
    {"fsdp_config.fsdp_activation_checkpointing", "workload.train.recompute", recompute_all},
    {"megatron_lm_config.megatron_lm_recompute_activations", "workload.train.recompute", recompute_some},
    {"megatron_lm_config.megatron_lm_tp_degree", "plan.tensor", whole_number},
    {"megatron_lm_config.megatron_lm_pp_degree", "plan.pipeline", whole_number},
    {"megatron_lm_config.megatron_lm_sequence_parallelism", "plan.sequence_parallel", true_or_false},
    {"parallelism_config.parallelism_config_tp_size", "plan.tensor", whole_number},
    {"parallelism_config.parallelism_config_cp_size", "plan.context", whole_number},
    {"fsdp_config.fsdp_sharding_strategy", "plan.zero", sharding_strategy},
    {"deepspeed_config.zero_stage", as_called, as_written},
    {"megatron_lm_config.megatron_lm_use_distributed_optimizer", "plan.zero", zero_1},
    {"deepspeed_config.train_micro_batch_size_per_gpu", as_called, whole_number},
    {"megatron_lm_config.megatron_lm_num_layers", "workload.train.model.layers", whole_number},
    {"fsdp_config.fsdp_tp_size", "plan.tensor", whole_number},
}};

constexpr std::array<std::string_view, 27> accelerate_without_time = {
    "compute_environment",
    "debug",
    "downcast_bf16",
    "machine_rank",
    "main_",
    "rdzv_backend",
    "same_network",
    "tpu_",
    "use_cpu",
    "gpu_ids",
    "enable_cpu_affinity",
    "fsdp_config.fsdp_auto_wrap",
    "fsdp_config.fsdp_transformer",
    "fsdp_config.fsdp_state_dict",
    "fsdp_config.fsdp_sync_module",
    "fsdp_config.fsdp_use_orig",
    "fsdp_config.fsdp_cpu_ram",
    "fsdp_config.fsdp_version",
    "fsdp_config.fsdp_min_num",
    "fsdp_config.fsdp_backward",
    "deepspeed_config.zero3_",
    "deepspeed_config.gradient_clipping",
    "deepspeed_config.deepspeed_multinode",
    "megatron_lm_config.megatron_lm_gradient_clipping",
    "fsdp_config.fsdp_forward_prefetch",
    "dynamo_config.dynamo_mode",
    "fp8_config."};

/// Who shards and synchronises.
void set_accelerate_trainer(Settings& settings, Draft& draft) {
  struct Row {
    std::string_view type, trainer;
  };
  constexpr std::array<Row, 5> rows = {
      {{"MULTI_GPU", "ddp"}, {"NO", "ddp"}, {"FSDP", "fsdp"}, {"DEEPSPEED", "deepspeed"}, {"MEGATRON_LM", "megatron"}}};
  const ForeignSetting* type = settings.find("distributed_type");
  if (type == nullptr) return draft.assume("plan.trainer", "ddp", "no distributed_type");
  for (const Row& row : rows) {
    if (type->value == row.type) return draft.set("plan.trainer", std::string(row.trainer), type->where, named(*type));
  }
  fail(*type, fmt::format("\"{}\" is not modelled", type->value), "NO, MULTI_GPU, FSDP, DEEPSPEED or MEGATRON_LM");
}

void set_accelerate_offload(Settings& settings, Draft& draft) {
  std::vector<std::string> parts;
  const ForeignSetting* says = nullptr;
  if (settings.flag("fsdp_config.fsdp_offload_params")) {
    says = settings.find("fsdp_config.fsdp_offload_params");
    parts = {"optimizer", "parameters"};
  }
  for (const auto& [theirs, ours] : {std::pair("deepspeed_config.offload_optimizer_device", "optimizer"),
                                     std::pair("deepspeed_config.offload_param_device", "parameters")}) {
    const ForeignSetting* device = settings.find(theirs);
    if (device == nullptr) continue;
    if (device->value != "cpu") fail(*device, "offloading that is not modelled", "cpu or none");
    says = device;
    parts.emplace_back(ours);
  }
  if (says != nullptr) draft.set("plan.offload", yaml_list(parts, says->where), says->where, named(*says));
}

TrainingSize accelerate_size(Settings& settings) {
  TrainingSize size;
  size.gpus = settings.whole("num_processes");
  size.nodes = settings.whole("num_machines");
  for (const char* key : {"num_processes", "num_machines"}) {
    if (const ForeignSetting* setting = settings.find(key)) {
      size.where = setting->where;
      size.told_by = named(*setting);
    }
  }
  const ForeignSetting* type = settings.find("distributed_type");
  if (!size.gpus && !size.nodes && type != nullptr && type->value == "NO") {
    size.gpus = 1;
    size.where = type->where;
    size.told_by = named(*type);
  }
  return size;
}

/// Shards are a part of all ranks where replicas of them are told; those of a sequence are among them.
void set_accelerate_shards(Settings& settings, Draft& draft) {
  const auto replicas = settings.whole("parallelism_config.parallelism_config_dp_replicate_size");
  const ForeignSetting* shard = settings.find("parallelism_config.parallelism_config_dp_shard_size");
  if (shard == nullptr || replicas.value_or(1) == 1) return;
  const std::int64_t ranks = std::stoll(*whole_number(*shard)) * number_of(draft, "plan.context");
  draft.set("plan.zero", yaml_entries({{"stage", std::string("3")}, {"shard", std::to_string(ranks)}}, shard->where),
            shard->where, named(*shard));
}

/// Micro-batches that are accumulated, or fill a pipeline; how large one is stands in the training script.
void set_accumulation(Settings& settings, Draft& draft) {
  draft.assume("workload.train.micro_batch", "1", "the training script says it");
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
  set_cluster(draft, accelerate_size(settings));
  assume_model(draft);
  set_rows(settings, accelerate_rows, draft);
  draft.assume("workload.train.precision", "fp32", "no mixed_precision");
  set_accumulation(settings, draft);
  set_accelerate_trainer(settings, draft);
  if (draft.scalar("plan.trainer") == "fsdp") {
    set_accelerate_shards(settings, draft);
    draft.assume("plan.zero", "3", "fully sharded, as FSDP is unless something is said");
    if (const ForeignSetting* reshard = settings.find("fsdp_config.fsdp_reshard_after_forward")) {
      if (to_lower(reshard->value) == "true" || to_lower(reshard->value) == "false") {
        draft.set("plan.reshard_after_forward", *true_or_false(*reshard), reshard->where, named(*reshard));
      }
    }
  }
  set_accelerate_offload(settings, draft);
  if (const ForeignSetting* backend = settings.find("dynamo_config.dynamo_backend");
      backend && backend->value == "INDUCTOR") {
    draft.set("plan.execution", "compiled", backend->where, named(*backend));
  }
  settings.ignore(accelerate_without_time);
  settings.leave_out_rest(draft);
  return finished_scenario(draft, fmt::format("Written by `foretrain import accelerate {}`.", input.file));
}

}  // namespace foretrain
