// DeepSpeed's configuration (deepspeed.ai, "DeepSpeed Configuration JSON"). It says how a model is trained, not which.
#include <fmt/format.h>

#include <algorithm>

#include "model/scenario/model/model_reader.hpp"
#include "reports/import/importer.hpp"
#include "reports/import/settings.hpp"

namespace foretrain {

namespace {

/// Buckets are counted in elements of the type in which gradients are reduced.
void set_deepspeed_bucket(Settings& settings, Draft& draft) {
  const ForeignSetting* bucket = settings.find("zero_optimization.reduce_bucket_size");
  if (bucket == nullptr) return;
  ForeignSetting whole = *bucket;
  if (whole.value.find_first_of("eE.") != std::string::npos) {
    try {
      whole.value = fmt::format("{:.0f}", std::min(std::stod(whole.value), 1e12));  // 5e8, as the examples write it
    } catch (const std::logic_error&) {
      fail(*bucket, fmt::format("\"{}\" is no number", whole.value), "a number of elements, 500000000");
    }
  }
  const auto elements = positive_number(whole);
  const int bytes = draft.scalar("workload.train.precision") == "fp32" ? 4 : 2;
  if (elements) {
    draft.set("plan.sync.bucket", fmt::format("{} B", std::stoll(*elements) * bytes), *bucket,
              fmt::format(", elements of {} bytes", bytes));
  }
}

/// Values of "auto" in the file (transformers, integrations/deepspeed.py, HfTrainerDeepSpeedConfig) come from
/// the Trainer's arguments, which the file does not have: their defaults, and bf16 where the file leaves room for it.
void set_deepspeed_precision(Settings& settings, Draft& draft) {
  set_rows(settings, "deepspeed_precision", draft);
  for (const char* type : {"bf16", "fp16"}) {
    if (!settings.is_auto(std::string(type) + ".enabled")) continue;
    draft.assume("workload.train.precision", type,
                 fmt::format("{0}.enabled is auto, as the Trainer's --{0} says; without it fp32", type));
  }
  draft.assume("workload.train.precision", "fp32", "neither bf16 nor fp16 is enabled");
}

/// A batch of all, of a micro-batch and of steps tell how many replicas there are (runtime/config.py: world_size).
TrainingSize deepspeed_size(Settings& settings) {
  TrainingSize size;
  size.replica = settings.whole("tensor_parallel.autotp_size", 0).value_or(1);
  size.replica = std::max<std::int64_t>(size.replica, 1) * settings.whole("sequence_parallel_size").value_or(1);
  const auto batch = settings.whole("train_batch_size"), micro = settings.whole("train_micro_batch_size_per_gpu"),
             steps = settings.whole("gradient_accumulation_steps");
  if (!batch || !micro || !steps) return size;
  const ForeignSetting& said = *settings.find("train_batch_size");
  if (*batch % (*micro * *steps) != 0) {
    fail(said, fmt::format("{} samples in micro-batches of {}, {} of them a rank", *batch, *micro, *steps),
         fmt::format("a multiple of {}", *micro * *steps));
  }
  size.gpus = *batch / (*micro * *steps) * size.replica;
  size.said_by(said);
  return size;
}

void set_deepspeed_batch(Settings& settings, Draft& draft) {
  if (settings.is_auto("train_micro_batch_size_per_gpu")) {
    draft.assume("workload.train.micro_batch", "8",
                 "train_micro_batch_size_per_gpu is auto: the Trainer's per_device_train_batch_size, 8 by default");
  }
  draft.assume("workload.train.micro_batch", "1", "train_micro_batch_size_per_gpu is missing");
  const auto steps = settings.whole("gradient_accumulation_steps");
  if (settings.is_auto("gradient_accumulation_steps") && !draft.has("workload.train.global_batch")) {
    draft.note_assumed("workload.train.global_batch",
                       "gradient_accumulation_steps is auto: the Trainer's, 1 by default");
  }
  if (!steps) return;
  set_batch_of_rank(draft, *steps * number_of(draft, "workload.train.micro_batch"),
                    *settings.find("gradient_accumulation_steps"));
}

void set_deepspeed_autos(Settings& settings, Draft& draft) {
  if (settings.is_auto("gradient_clipping")) {
    draft.assume("workload.train.clip_gradients", "true", "gradient_clipping is auto: max_grad_norm, 1.0 by default");
  }
  if (!settings.is_auto("zero_optimization.reduce_bucket_size")) return;
  const YamlNode* model = draft.document().at("workload.train.model");
  if (model == nullptr) return;
  const ModelConfig config = read_model(Field(*model, "workload.train.model"));
  const auto* shape = std::get_if<TransformerConfig>(&config.shape);
  if (shape == nullptr) return;
  const int bytes = draft.scalar("workload.train.precision") == "fp32" ? 4 : 2;
  draft.assume("plan.sync.bucket", fmt::format("{} B", shape->hidden * shape->hidden * bytes),
               "reduce_bucket_size is auto: the square of the model's width, in elements");
}

}  // namespace

std::string import_deepspeed(const ImportInput& input) {
  const YamlNode config = parse_config(input, "a configuration of DeepSpeed: { \"train_batch_size\": …, … }");
  const std::vector<ForeignSetting> all = flat_settings(config);
  Settings settings(all);
  Draft draft(input);
  draft.set("name", file_stem(input), draft.nowhere(), "");
  set_cluster(draft, deepspeed_size(settings));
  assume_model(draft);
  set_rows(settings, "deepspeed", draft);
  set_deepspeed_precision(settings, draft);
  set_deepspeed_batch(settings, draft);
  set_deepspeed_bucket(settings, draft);
  set_deepspeed_autos(settings, draft);
  set_offload(settings, draft, "zero_optimization.offload_optimizer.device", "zero_optimization.offload_param.device");
  if (const auto left = std::ranges::find(all, "auto", &ForeignSetting::value); left != all.end()) {
    draft.set("plan.framework", "huggingface", *left, ", which transformers fills in");
  }
  draft.set("plan.framework", "deepspeed", draft.nowhere(), "its settings, where the file does not say otherwise");
  return finished_training(settings, draft, "deepspeed");
}

}  // namespace foretrain
