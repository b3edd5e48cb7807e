#include <algorithm>
#include <cmath>

#include "model/base/number.hpp"
#include "model/cost/kernels.hpp"

namespace foretrain {
namespace {

double relative_efficiency(StreamingKind kind, const StreamingConstants& constants) {
  if (kind == StreamingKind::reduction) return constants.reduction_efficiency;
  return kind == StreamingKind::gather ? constants.gather_efficiency : 1.0;
}

}  // namespace

double thread_blocks(const Streaming& work) { return std::ceil(std::max(work.read, work.written) / block_bytes); }

// Traffic over achieved bandwidth plus a fixed time per kernel. What the previous kernel left in the L2 is read from
// there, except by an optimizer, whose operands were last touched long ago.
KernelTime kernel_time(const Streaming& work, Precision /*precision*/, int kernels, const Gpu& gpu,
                       const Calibration& calibration) {
  const StreamingConstants& constants = calibration.streaming;
  const double efficiency = constants.bandwidth_efficiency * relative_efficiency(work.kind, constants);
  const Bytes total = work.read + work.written;
  const bool warm = work.kind == StreamingKind::elementwise || work.kind == StreamingKind::reduction;
  const Bytes cached = warm ? std::min(total, gpu.l2_cache * constants.l2_share) : Bytes(0);
  const BytesPerSecond memory = gpu.memory_bandwidth * efficiency;
  const BytesPerSecond cache = std::max(gpu.l2_bandwidth * efficiency, memory);
  const Seconds traffic = (total - cached) / memory + cached / cache;
  const Seconds arithmetic = work.flops / gpu.matrix_rate(Precision::fp32);
  const Seconds fixed = Seconds(constants.kernel_us * 1e-6) * number(kernels);
  const Seconds body = std::max(traffic, arithmetic);
  const Bound bound = fixed > body ? Bound::latency : traffic >= arithmetic ? Bound::memory : Bound::compute;
  return {fixed + body, bound};
}

}  // namespace foretrain
