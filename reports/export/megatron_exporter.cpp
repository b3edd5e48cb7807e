// Arguments of Megatron-LM (megatron/training/arguments.py), and Megatron-Bridge's configuration, which has the same
// under other names.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "reports/export/exporter.hpp"
#include "reports/export/outgoing.hpp"
#include "reports/import/training_log.hpp"

namespace foretrain {

namespace {

const std::string on = "true";

void put_family(Outgoing& out, const TransformerConfig& model) {
  if (model.gated_ffn) out.put("--swiglu", on);
  if (model.has_rms_norm()) out.put("--normalization", "RMSNorm");
  if (!model.tied_embeddings) out.put("--untie-embeddings-and-output-weights", on);
  if (!model.biases) out.put("--disable-bias-linear", on);
  if (model.family == TransformerFamily::llama) out.put("--position-embedding-type", "rope");
}

void put_attention(Outgoing& out, const TransformerConfig& model) {
  if (model.latent()) {
    out.put("--multi-latent-attention", on);
    return out.put_rows("megatron_latent");
  }
  if (model.kv_heads == model.heads) return;
  out.put("--group-query-attention", on);
  out.put_rows("megatron_groups");
}

void put_experts(Outgoing& out, const TransformerConfig& model) {
  if (model.experts == 1) return;
  const Plan& plan = out.plan();
  if (plan.expert > 1 && plan.expert_dispatch != ExpertDispatch::deduplicated) {
    const bool forwarded = plan.expert_dispatch == ExpertDispatch::forwarded;  // DeepEP unless more is said
    out.put("--moe-token-dispatcher-type", forwarded ? "flex" : "alltoall");
  }
  out.put("--moe-grouped-gemm", on);
  if (plan.expert_comm_overlap && plan.expert > 1) out.put("--overlap-moe-expert-parallel-comm", on);
  out.put("--moe-ffn-hidden-size", std::to_string(model.ffn_hidden));
  if (model.dense_layers > 0) {
    out.put("--ffn-hidden-size", std::to_string(model.dense_ffn_hidden));
    out.put("--moe-layer-freq", fmt::format("([0]*{}+[1]*{})", model.dense_layers, model.layers - model.dense_layers));
  }
  if (model.shared_experts == 0) return;
  out.put("--moe-shared-expert-intermediate-size", std::to_string(model.shared_experts * model.ffn_hidden));
}

/// "[0,0,1,1]": which layers have experts.
std::string experts_by_layer(const TransformerConfig& model) {
  std::string layers;
  for (std::int64_t i = 0; i < model.layers; ++i) layers += i < model.dense_layers ? ",0" : ",1";
  return "[" + layers.substr(1) + "]";
}

/// Megatron pads vocabularies to a multiple of 128 for each tensor rank unless it is given a smaller one.
void put_vocabulary(Outgoing& out, const TransformerConfig& model) {
  out.put("--vocab-size", std::to_string(model.vocabulary));
  constexpr std::int64_t usual = 128;
  const std::int64_t tensor = out.plan().tensor;
  if (model.vocabulary % tensor != 0) return;
  const std::int64_t unit = std::gcd(model.vocabulary / tensor, usual);
  if (unit != usual) out.put("--make-vocab-size-divisible-by", std::to_string(unit));
}

void put_precision(Outgoing& out) {
  const Precision precision = out.train().precision;
  if (!casts_operands(precision)) return out.put_rows("megatron_precision");
  const Fp8Scaling scaling = out.train().recipe.scaling;
  out.put("--bf16", on);
  if (precision == Precision::nvfp4) return out.put("--fp4-format", "e2m1");
  const bool blocks = precision == Precision::mxfp8 || scaling == Fp8Scaling::block;
  out.put("--fp8-format", blocks ? "e4m3" : "hybrid");
  if (precision == Precision::mxfp8) return out.put("--fp8-recipe", "mxfp8");
  const bool delayed = scaling == Fp8Scaling::delayed;
  if (delayed && !out.stated("workload.train.fp8.scaling")) return;
  out.put("--fp8-recipe", delayed ? "delayed" : blocks ? "blockwise" : "tensorwise");
}

/// Megatron-Bridge's recipes (megatron/bridge/training/mixed_precision.py).
std::string nemo_precision(const TrainWorkload& train) {
  switch (train.precision) {
    case Precision::fp16:
      return "fp16_mixed";
    case Precision::mxfp8:
      return "bf16_with_mxfp8_mixed";
    case Precision::nvfp4:
      return "bf16_with_nvfp4_mixed";
    case Precision::fp8:
      break;
    default:
      return "bf16_mixed";
  }
  const char* scaling = train.recipe.scaling == Fp8Scaling::block     ? "subchannel"
                        : train.recipe.scaling == Fp8Scaling::current ? "current"
                                                                      : "delayed";
  return fmt::format("bf16_with_fp8_{}_scaling_mixed", scaling);
}

/// Stages are equal; embedding and head may count as a layer each.
void check_stages(Outgoing& out, const TransformerConfig& model) {
  const Plan& plan = out.plan();
  const std::int64_t stages = static_cast<std::int64_t>(plan.pipeline) * std::max(plan.interleave, 1);
  const std::int64_t ends = out.states("plan.embedding_in_pipeline", on) ? 2 : 0;
  if (plan.pipeline == 1 || (model.layers + ends) % stages == 0) return;
  out.refuse(fmt::format("Megatron-LM refuses {} layers on {} stages of {} chunks", model.layers, plan.pipeline,
                         std::max(plan.interleave, 1)));
}

/// ZeRO-2 and 3 are Megatron-FSDP's, with what its documentation asks for beside it.
void put_sharding(Outgoing& out) {
  if (out.plan().zero >= 2) {
    out.put("--use-megatron-fsdp", on);
    out.put_rows("megatron_fsdp");
    out.put("--use-distributed-optimizer", on);
    out.put("--no-gradient-accumulation-fusion", on);
    out.put("--ckpt-format", "fsdp_dtensor");
  }
  out.put_rows("megatron_zero");
  if (out.plan().zero == 1) {
    if (const auto gather = out.stated("plan.sync.gather_overlap")) out.put("--overlap-param-gather", *gather);
  }
  if (out.plan().zero >= 1 || !out.states("plan.offload", "optimizer")) {
    out.put_rows("megatron_sharding");
    if (out.states("plan.offload", "optimizer")) out.put("--use-precision-aware-optimizer", on);
    return;
  }
  out.put_rows("megatron_sharding", {"--optimizer-cpu-offload"});  // it needs the distributed optimizer
  out.leave_out({"plan.offload"});
}

}  // namespace

void put_megatron_arguments(Outgoing& out) {
  const TransformerConfig& model = out.transformer();
  out.put_rows("megatron", {model.latent() ? "--kv-channels" : "none", model.dense_layers > 0 ? "--ffn-" : "none"});
  if (out.stated("workload.train.state_precision")) out.put("--use-precision-aware-optimizer", on);
  if (out.states("workload.train.optimizer", "adam")) {
    out.put("--optimizer", "adam");  // with its decay or without takes the same time
    out.say_unread({"workload.train.optimizer"});
  }
  check_stages(out, model);
  put_family(out, model);
  put_attention(out, model);
  put_experts(out, model);
  put_vocabulary(out, model);
  put_precision(out);
  if (out.plan().context > 1) out.put_rows("megatron_context");
  if (out.train().recompute == Recompute::full && out.stated("workload.train.recompute")) {
    const RecomputedLayers& some = out.train().recompute_layers;
    const bool by_stage =
        some.of > 0 && std::int64_t{some.of} * out.plan().pipeline * out.plan().interleave == model.layers;
    out.put("--recompute-method", by_stage ? "block" : "uniform");
    out.put("--recompute-num-layers", by_stage ? std::to_string(some.layers) : "1");
  }
  if (out.states("plan.embedding_in_pipeline", on)) out.put("--account-for-loss-in-pipeline-split", on);
  out.put_rows("megatron_switches");
  put_sharding(out);
  if (out.stated("workload.train.samples")) {
    out.put("--train-samples", fmt::format("{:.0f}", *out.train().training_samples));
  }
}

std::string export_megatron(Outgoing& out) {
  put_megatron_arguments(out);
  out.put("--max-position-embeddings", std::to_string(out.transformer().sequence));
  const std::int64_t nodes = training_nodes(out.scenario());
  const Plan& plan = out.plan();
  // Megatron-FSDP and overlapped experts want more than one connection.
  const bool single = (plan.tensor > 1 || plan.context > 1) && plan.zero < 2 && !plan.expert_comm_overlap;
  std::string text = single ? "export CUDA_DEVICE_MAX_CONNECTIONS=1\n" : "";
  text += fmt::format("torchrun --nnodes {} --nproc-per-node {} pretrain_gpt.py", nodes,
                      worker_gpus(out.plan(), out.scenario().cluster) / nodes);
  for (const auto& [argument, value] : out.settings()) {
    if (value == "false") continue;
    const bool is_plain = value.find_first_of("()[]*") == std::string::npos;
    text += fmt::format(" \\\n  {}{}", argument, value == on ? "" : is_plain ? " " + value : " '" + value + "'");
  }
  return text + "\n";
}

std::string export_nemo(Outgoing& out) {
  put_megatron_arguments(out);
  Outgoing nemo(out.scenario());
  for (const auto& [argument, value] : out.settings()) {
    if (argument == "--group-query-attention") continue;  // by the number of groups
    if (argument.starts_with("--fp8-") || argument.starts_with("--fp4-")) continue;
    if (argument == "--bf16" || argument == "--fp16") {
      nemo.put("mixed_precision", nemo_precision(out.train()));
      continue;
    }
    if (argument == "--moe-layer-freq") {
      nemo.put("model.moe_layer_freq", experts_by_layer(out.transformer()));
      continue;
    }
    bool inverse = false;
    const std::string key = nemo_key(argument, inverse);
    if (argument == "--use-megatron-fsdp") nemo.put("ddp.use_megatron_fsdp", value);  // both have it
    nemo.put(key, !inverse ? value : value == on ? "false" : on);
  }
  return as_yaml(nemo);
}

}  // namespace foretrain
