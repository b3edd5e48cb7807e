#include "model/memory/allocator.hpp"

#include <algorithm>
#include <cmath>

#include "model/parallelism/layout.hpp"

namespace foretrain {

namespace {

constexpr double mib = 1048576.0;
constexpr double smallest_block = 512.0;  // kMinBlockSize
constexpr double small_block = mib;       // kSmallSize
constexpr double small_segment = 2.0 * mib;
constexpr double large_block = 10.0 * mib;  // kMinLargeAlloc
constexpr double large_segment = 20.0 * mib;
constexpr double segment_grain = 2.0 * mib;  // kRoundLarge

double round_up(double value, double grain) { return std::ceil(value / grain - 1e-9) * grain; }

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

Bytes segments_of(const std::vector<TensorSizes>& tensors) {
  double small = 0.0;  // bytes in segments of 2 MiB
  double segments = 0.0;
  for (const TensorSizes& tensor : tensors) {
    const double block = round_up(tensor.size.value(), smallest_block);
    if (block <= small_block) {
      small += block * tensor.count;
    } else if (block < large_block) {
      segments += std::ceil(tensor.count / std::floor(large_segment / block)) * large_segment;
    } else {
      segments += tensor.count * round_up(block, segment_grain);
    }
  }
  return Bytes(segments + round_up(small, small_segment));
}

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
