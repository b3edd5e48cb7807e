// Arguments of Megatron-LM (megatron/training/arguments.py), and Megatron-Bridge's configuration, which has the same
// under other names.
#include <fmt/format.h>

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
  out.put("--moe-ffn-hidden-size", std::to_string(model.ffn_hidden));
  if (model.dense_layers > 0) {
    out.put("--ffn-hidden-size", std::to_string(model.dense_ffn_hidden));
    out.put("--moe-layer-freq", fmt::format("([0]*{}+[1]*{})", model.dense_layers, model.layers - model.dense_layers));
  }
  if (model.shared_experts == 0) return;
  out.put("--moe-shared-expert-intermediate-size", std::to_string(model.shared_experts * model.ffn_hidden));
}

/// Megatron pads vocabularies to a multiple of 128 for each tensor rank unless it is told a smaller one.
void put_vocabulary(Outgoing& out, const TransformerConfig& model) {
  out.put("--vocab-size", std::to_string(model.vocabulary));
  constexpr std::int64_t usual = 128;
  const std::int64_t tensor = out.plan().tensor;
  if (model.vocabulary % tensor != 0) return;
  const std::int64_t unit = std::gcd(model.vocabulary / tensor, usual);
  if (unit != usual) out.put("--make-vocab-size-divisible-by", std::to_string(unit));
}

void put_precision(Outgoing& out) {
  if (out.train().precision != Precision::fp8) return out.put_rows("megatron_precision");
  out.put("--bf16", on);
  out.put("--fp8-format", "hybrid");
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
  out.put_rows("megatron_sharding");
}

}  // namespace

void put_megatron_arguments(Outgoing& out) {
  const TransformerConfig& model = out.transformer();
  out.put_rows("megatron", {model.latent() ? "--kv-channels" : "none", model.dense_layers > 0 ? "--ffn-" : "none"});
  put_family(out, model);
  put_attention(out, model);
  put_experts(out, model);
  put_vocabulary(out, model);
  put_precision(out);
  if (out.plan().context > 1) out.put_rows("megatron_context");
  if (out.train().recompute == Recompute::full && out.stated("workload.train.recompute")) {
    out.put("--recompute-method", "uniform");
    out.put("--recompute-num-layers", "1");
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
  const std::int64_t nodes = training_nodes(out.scenario());
  std::string text = fmt::format("torchrun --nnodes {} --nproc-per-node {} pretrain_gpt.py", nodes,
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
    if (argument == "--bf16" && out.train().precision == Precision::fp8) continue;
    if (argument == "--group-query-attention") continue;  // by the number of groups
    const bool fp8 = argument == "--fp8-format";
    if (fp8 || argument == "--bf16" || argument == "--fp16") {
      nemo.put("mixed_precision", fp8 ? "bf16_with_fp8_current_scaling_mixed" : argument.substr(2) + "_mixed");
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
