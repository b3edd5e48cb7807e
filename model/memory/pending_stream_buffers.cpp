#include "model/memory/pending_stream_buffers.hpp"

#include <algorithm>

#include "model/parallelism/layout.hpp"

namespace foretrain {

namespace {

constexpr double without_backward = 0.4;  // share of the tensors where no forward pass follows a backward pass
constexpr double long_pipeline = 8.0;     // stages whose GPUs wait for each other as long as the queue is
constexpr double reached_rate = 0.25;     // of the datasheet's matrix rate, by a block's pass and its collectives

/// A block's pass, forward and backward alike, on the device over the trainer's code on the host.
double device_over_host(const Scenario& scenario, const TrainWorkload& train, const Layer& block) {
  const Plan& plan = scenario.plan;
  const bool laid_out = RankLayout(plan).gpus() == plan_gpus(plan, scenario.cluster);  // not what remedies try
  const Seconds host = laid_out ? framework_overhead(plan, scenario.cluster, train) : train.layer_dispatch;
  if (!(host > Seconds(0.0))) return 2.0;  // the GPU is far slower
  Flops both;
  for (const Operator& op : block.forward) both += flops(op);
  for (const Operator& op : block.backward) both += flops(op);
  const FlopsPerSecond rate = scenario.cluster.node.gpu.matrix_rate(train.precision) * reached_rate;
  return both * 0.5 / rate / host;
}

}  // namespace

Bytes pending_stream_buffers(const Scenario& scenario, const TrainWorkload& train, const Layer& block) {
  const Plan& plan = scenario.plan;
  if (plan.tensor == 1 || !(train.pending_stream_buffers > 0.0)) return Bytes(0.0);
  double share = micro_batches(train, plan) > plan.pipeline ? 1.0 : without_backward;
  if (plan.pipeline > 1) {
    const double ahead = std::clamp(device_over_host(scenario, train, block) - 0.5, 0.0, 1.0);
    share = std::max(share * ahead, std::min((plan.pipeline - 1.0) / (long_pipeline - 1.0), 1.0));
  }
  return block.output * (train.pending_stream_buffers * share);
}

}  // namespace foretrain
