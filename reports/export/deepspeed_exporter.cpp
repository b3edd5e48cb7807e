// DeepSpeed's configuration (deepspeed.ai, "DeepSpeed Configuration JSON").
#include <fmt/format.h>

#include "reports/export/exporter.hpp"
#include "reports/export/outgoing.hpp"

namespace foretrain {

std::string export_deepspeed(Outgoing& out) {
  out.leave_out({"workload.train.model", "workload.train.samples", "workload.train.recompute", "plan.pipeline",
                 "plan.interleave", "plan.schedule", "plan.expert", "plan.expert_tensor", "plan.sequence_parallel",
                 "plan.stage_layers", "plan.embedding_in_pipeline"});
  out.put_rows("deepspeed");
  out.put_rows("deepspeed_precision");
  if (casts_operands(out.train().precision)) out.put("bf16.enabled", "true");  // format of the rest
  out.put("gradient_accumulation_steps", std::to_string(accumulated(out)));
  if (out.stated("plan.sync.bucket") && out.plan().sync.bucket_rule.empty()) {
    const double each = bytes_per_element(out.plan().sync.gradient_precision).value();
    out.put("zero_optimization.reduce_bucket_size", fmt::format("{:.0f}", out.plan().sync.bucket.value() / each));
    out.say_unread({"plan.sync.bucket"});  // read as elements of the training's precision
  }
  put_offload(out, "zero_optimization.offload_optimizer.device", "zero_optimization.offload_param.device");
  return as_json(out);
}

}  // namespace foretrain
