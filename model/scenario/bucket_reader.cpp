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
// runtime/zero/config.py (reduce_bucket_size, in elements). What is assumed where no trainer is named is as small as
// the first, so that little is left behind the backward pass, and grows with the ranks as the second does, so that a
// bucket never takes a ring longer to start than to send.
void set_bucket(Plan& plan) {
  using Rule = Sync::BucketRule;
  Sync& sync = plan.sync;
  if (plan.zero == 3) {
    sync.bucket_rule = Rule::layer;
    return;
  }
  const Bytes each = bytes_per_element(sync.gradient_precision);
  const double ranks = static_cast<double>(plan.data) * plan.context;
  // Where nothing runs beside them, cutting gains nothing but memory.
  const bool whole = !sync.overlap && !divides_gradients(plan);
  switch (sync.bucket_rule) {
    case Rule::ddp:
      sync.bucket = 25.0_MiB;
      if (!(sync.first_bucket > Bytes(0.0))) sync.first_bucket = 1.0_MiB;
      break;
    case Rule::megatron:
      sync.bucket = whole ? Bytes::infinity() : each * std::max(40e6, 1e6 * ranks);
      break;
    case Rule::deepspeed:
      sync.bucket = each * 5e8;
      break;
    case Rule::whole:
      sync.bucket = Bytes::infinity();
      break;
    case Rule::automatic:
      sync.bucket = whole ? Bytes::infinity() : std::max(25.0_MiB, each * 1e6 * ranks);
      break;
    case Rule::stated:
    case Rule::layer:
      break;
  }
}

}  // namespace foretrain
