// DeepSpeed's configuration (deepspeed.ai, "DeepSpeed Configuration JSON"). It says how a model is trained, not which.
#include <fmt/format.h>

#include "reports/import/importer.hpp"
#include "reports/import/input_text.hpp"
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
    draft.set("plan.sync.bucket", fmt::format("{} B", std::stoll(*elements) * bytes), bucket->where,
              named(*bucket) + fmt::format(", elements of {} bytes", bytes));
  }
}

void set_deepspeed_offload(Settings& settings, Draft& draft) {
  std::vector<std::string> parts;
  const ForeignSetting* says = nullptr;
  for (const auto& [theirs, ours] : {std::pair("zero_optimization.offload_optimizer", "optimizer"),
                                     std::pair("zero_optimization.offload_param", "parameters")}) {
    const std::string prefix = theirs;
    const ForeignSetting* device = settings.find(prefix + ".device");
    if (device == nullptr) continue;
    if (device->value == "nvme") draft.set("plan.offload_to", "disks", device->where, named(*device));
    if (device->value != "cpu" && device->value != "nvme") fail(*device, "an unknown device", "cpu, nvme or none");
    if (const ForeignSetting* pinned = settings.find(prefix + ".pin_memory")) {
      draft.set("plan.pinned_offload", pinned->value, pinned->where, named(*pinned));
    }
    settings.ignore(prefix);
    parts.emplace_back(ours);
    says = device;
  }
  if (says != nullptr) draft.set("plan.offload", yaml_list(parts, says->where), says->where, named(*says));
}

void set_deepspeed_batch(Settings& settings, Draft& draft) {
  draft.assume("workload.train.micro_batch", "1", "train_micro_batch_size_per_gpu is missing, or auto");
  const auto steps = settings.whole("gradient_accumulation_steps");
  if (!steps) return;
  set_batch_of_rank(draft, *steps * number_of(draft, "workload.train.micro_batch"),
                    *settings.find("gradient_accumulation_steps"));
}

}  // namespace

std::string import_deepspeed(const ImportInput& input) {
  const YamlNode config = parse_config(input, "a configuration of DeepSpeed: { \"train_batch_size\": …, … }");
  Settings settings(flat_settings(config));
  Draft draft(input);
  draft.set("name", file_stem(input), draft.nowhere(), "");
  TrainingSize size;
  size.replica = settings.whole("tensor_parallel.autotp_size", 0).value_or(1);
  size.replica = std::max<std::int64_t>(size.replica, 1);
  set_cluster(draft, size);
  assume_model(draft);
  set_rows(settings, "deepspeed", draft);
  set_rows(settings, "deepspeed_precision", draft);
  draft.assume("workload.train.precision", "fp32", "neither bf16 nor fp16 is enabled");
  set_deepspeed_batch(settings, draft);
  set_deepspeed_bucket(settings, draft);
  set_deepspeed_offload(settings, draft);
  draft.set("plan.trainer", "deepspeed", draft.nowhere(), "its habits, where the file does not say otherwise");
  settings.ignore_without_time("deepspeed");
  settings.leave_out_rest(draft);
  return finished_scenario(draft, fmt::format("Written by `foretrain import deepspeed {}`.", input.file));
}

}  // namespace foretrain
