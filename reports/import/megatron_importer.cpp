// Megatron-LM's arguments (megatron/training/arguments.py of Megatron-LM), with those of torchrun and of Slurm around
// them.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "model/base/number.hpp"
#include "model/base/text.hpp"
#include "model/scenario/model/model_reader.hpp"
#include "reports/import/importer.hpp"
#include "reports/import/settings.hpp"
#include "reports/import/training_log.hpp"

namespace foretrain {

namespace {

/// The first of these arguments that is there.
const ForeignSetting* first_of(Settings& settings, std::initializer_list<const char*> keys) {
  const ForeignSetting* found = nullptr;
  for (const char* key : keys) {
    const ForeignSetting* setting = settings.find(key);
    if (found == nullptr) found = setting;
  }
  return found;
}

const ForeignSetting* says_decoder(Settings& settings) {
  return first_of(settings, {"--decoder-seq-length", "--decoder-num-layers"});
}

/// Families differ in what Megatron switches on by single arguments.
void set_family(Settings& settings, Draft& draft) {
  const std::string model = "workload.train.model.";
  const ForeignSetting* swiglu = settings.find("--swiglu");
  const ForeignSetting* norm = settings.find("--normalization");
  const bool llama = swiglu != nullptr || (norm != nullptr && norm->value == "RMSNorm");
  const ForeignSetting* decoder = says_decoder(settings);
  const ForeignSetting* says = swiglu != nullptr ? swiglu : norm;
  if (decoder != nullptr) draft.set(model + "family", "t5", *decoder);
  if (llama) {
    draft.set(model + "family", "llama", *says);
    draft.set(model + "gated_ffn", swiglu != nullptr ? "true" : "false", *says);
  }
  if ((llama || decoder != nullptr) && (norm == nullptr || norm->value != "RMSNorm")) {
    draft.set(model + "layer_norm", "true", draft.nowhere(), "no --normalization RMSNorm");
  }
  if (!llama && decoder == nullptr) {
    draft.assume(model + "family", "gpt", "neither --swiglu nor --normalization RMSNorm");
  }
  for (const auto& [key, without] : {std::pair("tied_embeddings", "--untie-embeddings-and-output-weights"),
                                     std::pair("biases", "--disable-bias-linear")}) {
    if (const ForeignSetting* off = settings.find(without)) draft.set(model + key, "false", *off);
    draft.set(model + key, "true", draft.nowhere(), std::string("no ") + without);
  }
}

void set_heads(Settings& settings, Draft& draft) {
  if (settings.flag("--group-query-attention")) set_rows(settings, "megatron_groups", draft);
  if (const ForeignSetting* latent = settings.find("--multi-latent-attention")) {
    set_rows(settings, "megatron_latent", draft);
    // Defaults of MLATransformerConfig, for what the arguments leave out.
    for (const auto& [key, usual] : {std::pair("kv_lora_rank", "32"), std::pair("head_dim", "128"),
                                     std::pair("rope_head_dim", "64"), std::pair("v_head_dim", "128")}) {
      draft.set(std::string("workload.train.model.") + key, usual, *latent, ", its default");
    }
  }
}

/// Vocabulary of the catalogue's model with this tokenizer: meta-llama/Llama-2-7b-hf, ./Mixtral-8x7B-v0.1.
std::optional<std::int64_t> vocabulary_of(const ForeignSetting* tokenizer) {
  if (tokenizer == nullptr) return std::nullopt;
  std::string name = to_lower(tokenizer->value);
  while (name.ends_with('/')) name.pop_back();
  name = name.substr(name.rfind('/') + 1);
  for (const char* end : {"-hf", "-instruct", "-base", "-v0.1"}) {
    if (name.ends_with(end)) name.resize(name.size() - std::string_view(end).size());
  }
  try {
    const ModelConfig model = read_model(Field(yaml_scalar(name, tokenizer->where), "--tokenizer-model"));
    const auto* shape = std::get_if<TransformerConfig>(&model.shape);
    return shape == nullptr ? std::nullopt : std::optional<std::int64_t>(shape->vocabulary);
  } catch (const ScenarioError&) {
    return std::nullopt;  // no model of the catalogue
  }
}

/// Vocabularies are padded, so that tensor ranks divide them (megatron/training/tokenizer: _vocab_size_with_padding).
void set_vocabulary(Settings& settings, Draft& draft) {
  const std::int64_t tensor = settings.whole("--tensor-model-parallel-size").value_or(1);
  const std::int64_t unit = settings.whole("--make-vocab-size-divisible-by").value_or(128) * tensor;
  const std::int64_t extra = settings.whole("--vocab-extra-ids", 0).value_or(0);
  const std::string key = "workload.train.model.vocabulary";
  const std::string how = fmt::format(", padded to a multiple of {}", unit);
  const auto padded = [unit, extra](std::int64_t words) {
    return std::to_string((words + extra + unit - 1) / unit * unit);
  };
  if (const auto size = settings.whole("--vocab-size")) {
    return draft.set(key, padded(*size), *settings.find("--vocab-size"), how);
  }
  const ForeignSetting* type = settings.find("--tokenizer-type");
  const std::string kind = type != nullptr ? type->value : "GPT2BPETokenizer";
  if (kind == "GPT2BPETokenizer") return draft.assume(key, padded(50257), "GPT-2's, padded");
  if (draft.has(key)) return;
  const ForeignSetting* model = settings.find("--tokenizer-model");
  if (const auto words = vocabulary_of(model)) return draft.set(key, padded(*words), *model, how);
  fail(*type, "the tokenizer decides the vocabulary, and the arguments do not state its size",
       "--vocab-size N among them, or --set workload.train.model.vocabulary=N");
}

/// "[0,0,1,1]" as "([0]*2+[1]*2)".
std::string short_form(std::string layers) {
  std::erase(layers, ' ');
  const bool is_list = layers.starts_with('[') && layers.find('0', layers.find('1')) == std::string::npos;
  if (!is_list) return layers;
  return fmt::format("([0]*{}+[1]*{})", std::ranges::count(layers, '0'), std::ranges::count(layers, '1'));
}

/// "([0]*3+[1]*58)": the first layers have no experts.
void set_dense_layers(Settings& settings, Draft& draft) {
  const ForeignSetting* layers = settings.find("--moe-layer-freq");
  const auto width = settings.whole("--ffn-hidden-size");
  if (layers == nullptr || !width) return;
  const std::string all = short_form(layers->value);
  const std::vector<std::string> parts = split(all.substr(0, all.find(')')), '+');
  const auto dense = number_behind(parts.front(), "([0]*"), others = number_behind(parts.back(), "[1]*");
  const bool is_known = dense && others && all == fmt::format("([0]*{}+[1]*{})", *dense, *others);
  if (!is_known) return draft.leave_out(layers->where, named(*layers) + ": taken as experts in all layers");
  draft.set("workload.train.model.dense_layers", std::to_string(*dense), *layers);
  draft.set("workload.train.model.dense_ffn_hidden", std::to_string(*width), *settings.find("--ffn-hidden-size"));
}

void set_experts(Settings& settings, Draft& draft) {
  set_dense_layers(settings, draft);
  const ForeignSetting* dispatcher = settings.find("--moe-token-dispatcher-type");
  const bool gathers = dispatcher != nullptr && dispatcher->value == "allgather";
  if (gathers) draft.leave_out(dispatcher->where, named(*dispatcher) + ": taken as the framework's all-to-all");
  if (!gathers && number_of(draft, "plan.expert") > 1) set_rows(settings, "megatron_dispatch", draft);
  const auto shared = settings.whole("--moe-shared-expert-intermediate-size");
  auto each = settings.whole("--moe-ffn-hidden-size");
  if (!each) each = settings.whole("--ffn-hidden-size");
  if (!shared || !each) return;
  const ForeignSetting& stated = *settings.find("--moe-shared-expert-intermediate-size");
  if (*shared % *each != 0) {
    fail(stated, fmt::format("{} is no multiple of an expert's {}", *shared, *each), "a multiple");
  }
  draft.set("workload.train.model.shared_experts", std::to_string(*shared / *each), stated);
}

/// A recipe without fp8 says nothing.
void set_recipe(Settings& settings, Draft& draft) {
  const ForeignSetting* recipe = settings.find("--fp8-recipe");
  if (recipe == nullptr || first_of(settings, {"--fp8-format", "--fp8"}) == nullptr) return;
  set_rows(settings, "megatron_recipe", draft);
  if (recipe->value != "mxfp8") set_rows(settings, "megatron_scaling", draft);
}

void set_sharding(Settings& settings, Draft& draft) {
  if (settings.flag("--use-megatron-fsdp")) set_rows(settings, "megatron_fsdp", draft);
  set_rows(settings, "megatron_zero", draft);
  const ForeignSetting* beside = settings.find("--overlap-param-gather");
  if (beside != nullptr && settings.flag("--use-distributed-optimizer")) {
    draft.set("plan.sync.gather_overlap", *true_or_false(*beside), *beside);
  }
  set_rows(settings, "megatron_sharding", draft);
}

/// Stages of the encoder come first, its layers divided evenly, and so are the decoder's
/// (megatron/training/training.py, get_model, asks for the split; later versions add stages of the encoder to those of
/// the decoder).
void set_stacks(Settings& settings, Draft& draft) {
  if (says_decoder(settings) == nullptr) return;
  const ForeignSetting* added = settings.find("--encoder-pipeline-model-parallel-size");
  const ForeignSetting* split = added != nullptr ? added : settings.find("--pipeline-model-parallel-split-rank");
  if (const auto tensor = settings.whole("--encoder-tensor-model-parallel-size");
      tensor && *tensor != settings.whole("--tensor-model-parallel-size").value_or(1)) {
    fail(*settings.find("--encoder-tensor-model-parallel-size"),
         "an encoder of another tensor parallelism is not modelled", "--tensor-model-parallel-size");
  }
  const std::int64_t first = split != nullptr ? settings.whole(split->key, 0).value_or(0) : 0;
  std::int64_t stages = settings.whole("--pipeline-model-parallel-size").value_or(1);
  if (added != nullptr) {
    stages += first;
    draft.set("plan.pipeline", std::to_string(stages), *added);
  }
  if (first == 0 && stages > 1) {
    fail(*settings.find("--pipeline-model-parallel-size"), "stages, and no split between encoder and decoder",
         "--pipeline-model-parallel-split-rank or --encoder-pipeline-model-parallel-size beside it");
  }
  if (first == 0) return;
  const ForeignSetting* encoder = first_of(settings, {"--num-layers", "--encoder-num-layers"});
  const std::int64_t layers = settings.whole(encoder->key).value_or(0);
  const std::int64_t behind = settings.whole("--decoder-num-layers").value_or(layers);
  if (first >= stages || layers % first != 0 || behind % (stages - first) != 0) {
    fail(*split, fmt::format("{} layers on {} of {} stages, and {} on the others", layers, first, stages, behind),
         "stages that divide both stacks");
  }
  std::vector<std::string> each(at_index(first), std::to_string(layers / first));
  each.resize(at_index(stages), std::to_string(behind / (stages - first)));
  draft.set("plan.stage_layers", yaml_list(each, split->where), *split);
}

void set_pipeline(Settings& settings, Draft& draft) {
  const auto each = settings.whole("--num-layers-per-virtual-pipeline-stage");
  const auto layers = settings.whole("--num-layers");
  const std::int64_t stages = settings.whole("--pipeline-model-parallel-size").value_or(1);
  if (!each || !layers) return;
  const ForeignSetting& stated = *settings.find("--num-layers-per-virtual-pipeline-stage");
  if (*layers % stages != 0 || *layers / stages % *each != 0) {
    fail(stated, fmt::format("{} layers on {} stages in parts of {}", *layers, stages, *each), "numbers that divide");
  }
  draft.set("plan.interleave", std::to_string(*layers / stages / *each), stated);
}

/// The first blocks of each chunk of a stage (megatron/core/transformer/transformer_block.py, _checkpointed_forward).
void set_recomputed_layers(Settings& settings, Draft& draft) {
  const ForeignSetting *method = settings.find("--recompute-method"), *some = settings.find("--recompute-num-layers");
  const auto wanted = settings.whole("--recompute-num-layers", 0), layers = settings.whole("--num-layers");
  if (method == nullptr || some == nullptr || !wanted || !layers) return;
  if (method->value != "block") {
    if (*wanted > 1) draft.leave_out(some->where, named(*some) + ": layers are taken one by one");
    return;
  }
  const std::int64_t each = *layers / (number_of(draft, "plan.pipeline") * number_of(draft, "plan.interleave"));
  draft.set("workload.train.recompute_layers", fmt::format("{} of {}", std::min(*wanted, each), each), *some);
}

/// "8" of "8", "gpu:8" and "gpu:h100:8"; nothing for anything else.
std::optional<std::int64_t> number_at_end(const std::string& text) {
  const auto number = number_behind("n" + text.substr(text.rfind(':') + 1), "n");
  return number && *number > 0 ? std::optional<std::int64_t>(*number) : std::nullopt;
}

/// torchrun's numbers, else Slurm's.
TrainingSize size_of(Settings& settings) {
  TrainingSize size;
  const auto number_of_first = [&](std::initializer_list<const char*> keys) {
    std::optional<std::int64_t> found;
    for (const char* key : keys) {
      const ForeignSetting* setting = settings.find(key);
      if (found || setting == nullptr) continue;
      found = number_at_end(setting->value);
      if (found && size.told_by.empty()) size.said_by(*setting);
    }
    return found;
  };
  size.nodes = number_of_first({"--nnodes", "#SBATCH --nodes"});
  size.gpus_per_node = number_of_first({"--nproc_per_node", "--nproc-per-node", "#SBATCH --gpus-per-node",
                                        "#SBATCH --gres", "#SBATCH --ntasks-per-node"});
  const auto ranks = [&](const char* key, std::int64_t usual = 1) { return settings.whole(key).value_or(usual); };
  const std::int64_t stages =
      ranks("--pipeline-model-parallel-size") + settings.whole("--encoder-pipeline-model-parallel-size", 0).value_or(0);
  const std::int64_t tensor = ranks("--tensor-model-parallel-size");
  const std::int64_t dense = tensor * ranks("--context-parallel-size");
  const std::int64_t experts =  // ranks that hold all experts are those of one replica or of several
      ranks("--expert-model-parallel-size") * ranks("--expert-tensor-parallel-size", tensor);
  constexpr std::int64_t most = 10'000'000'000;
  const bool is_large = std::max(dense, experts) > most / stages || dense > most / experts;
  size.replica = is_large ? most : stages * std::lcm(dense, experts);
  return size;
}

void set_length(Settings& settings, Draft& draft) {
  constexpr std::int64_t most_samples = 1'000'000'000'000;
  const auto samples = settings.whole("--train-samples", 1, most_samples), steps = settings.whole("--train-iters");
  const auto batch = settings.whole("--global-batch-size");
  const std::string key = "workload.train.samples";
  if (samples) {
    draft.set(key, fmt::format("{} samples", *samples), *settings.find("--train-samples"));
  } else if (steps && batch) {
    draft.set(key, fmt::format("{} samples", *steps * *batch), *settings.find("--train-iters"));
  }
}

}  // namespace

std::string import_megatron(const ImportInput& input) {
  require_config_text(input);
  return megatron_scenario(input, Settings(shell_arguments(input.text, input.file)), "megatron");
}

std::string megatron_scenario(const ImportInput& input, Settings settings, const std::string& framework) {
  if (first_of(settings, {"--num-layers", "--encoder-num-layers"}) == nullptr) {
    throw ScenarioError({input.file, 0, 0}, "--num-layers", "this argument is missing", "Megatron-LM's arguments");
  }
  Draft draft(input);
  draft.set("name", file_stem(input), draft.nowhere(), "");
  set_cluster(draft, size_of(settings));
  set_family(settings, draft);
  set_stacks(settings, draft);
  set_rows(settings, "megatron", draft);
  if (number_of(draft, "plan.context") > 1) set_rows(settings, "megatron_context", draft);
  set_heads(settings, draft);
  set_experts(settings, draft);
  set_vocabulary(settings, draft);
  set_recipe(settings, draft);
  set_rows(settings, "megatron_precision", draft);
  draft.assume("workload.train.precision", "fp32", "neither --bf16 nor --fp16");
  set_length(settings, draft);
  draft.assume("workload.train.micro_batch", "1", "no --micro-batch-size");
  set_rows(settings, "megatron_switches", draft);
  set_pipeline(settings, draft);
  set_recomputed_layers(settings, draft);
  set_sharding(settings, draft);
  draft.set("plan.framework", framework, draft.nowhere(), "its defaults");
  settings.ignore_without_time("megatron");  // NeMo's are Megatron's, too
  return finished_training(settings, draft, framework);
}

}  // namespace foretrain
