#include "model/scenario/bucket_reader.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "model/base/words.hpp"

namespace foretrain {

void read_bucket(const Field& field, Sync& sync) {
  using Rule = Sync::BucketRule;
  const std::string& text = field.text();
  if (text == "auto") {
    sync.bucket_rule = Rule::automatic;
    return;
  }
  for (const Rule rule : {Rule::ddp, Rule::megatron, Rule::deepspeed, Rule::whole}) {
    if (text != name(rule)) continue;
    sync.bucket_rule = rule;
    return;
  }
  if (text.find_first_of("0123456789") == std::string::npos) {
    field.fail(fmt::format("unknown rule \"{}\"", text), "auto, ddp, megatron, deepspeed, whole, or a size: 25 MB");
  }
  sync.bucket_rule = Rule::stated;
  sync.bucket = field.quantity<Bytes>();
}

// Sources: DistributedDataParallel, torch/csrc/distributed/c10d/reducer.hpp (kDefaultBucketBytes and
// kDefaultFirstBucketBytes); Megatron-Core, distributed_data_parallel.py (bucket_size: at least 40 million parameters
// and a million for each data-parallel rank; one bucket where gradients do not overlap); DeepSpeed,
// runtime/zero/config.py (reduce_bucket_size, in elements).
void set_bucket(Plan& plan) {
  using Rule = Sync::BucketRule;
  Sync& sync = plan.sync;
  const bool model_parallel = plan.tensor * plan.pipeline * plan.context * plan.expert > 1;
  if (plan.zero == 3) {
    sync.bucket_rule = Rule::layer;
    return;
  }
  if (sync.bucket_rule == Rule::automatic) {
    sync.bucket_rule = model_parallel || plan.zero > 0 ? Rule::megatron : Rule::ddp;
  }
  const Bytes each = bytes_per_element(sync.gradient_precision);
  switch (sync.bucket_rule) {
    case Rule::ddp:
      sync.bucket = 25.0_MiB;
      if (!(sync.first_bucket > Bytes(0.0))) sync.first_bucket = 1.0_MiB;
      break;
    case Rule::megatron:
      sync.bucket = sync.overlap ? each * std::max(40e6, 1e6 * plan.data * plan.context) : Bytes::infinity();
      break;
    case Rule::deepspeed:
      sync.bucket = each * 5e8;
      break;
    case Rule::whole:
      sync.bucket = Bytes::infinity();
      break;
    case Rule::stated:
    case Rule::automatic:
    case Rule::layer:
      break;
  }
}

}  // namespace foretrain
