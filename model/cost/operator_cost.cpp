#include "model/cost/operator_cost.hpp"

#include <algorithm>

#include "model/cost/attention.hpp"
#include "model/cost/kernels.hpp"
#include "model/cost/processor_cost.hpp"

namespace foretrain {

Seconds roofline(const Operator& op, const Gpu& gpu) {
  Flops work = flops(op);
  if (const auto* convolution = std::get_if<Convolution>(&op.work)) {
    work /= transform_saving(*convolution, op.precision);
  }
  const Bytes traffic = std::max(Bytes(0), minimum_traffic(op) - gpu.l2_cache);
  return std::max(work / gpu.matrix_rate(op.precision), traffic / gpu.memory_bandwidth);
}

OperatorCost operator_cost(const Operator& op, const Gpu& gpu, const Calibration& calibration, bool fused) {
  if (gpu.processor) {
    const KernelTime time = processor_time(op, gpu);
    return {time.device, flops(op), minimum_traffic(op), time.bound, op.kernels};
  }
  if (const auto* streaming = std::get_if<Streaming>(&op.work); fused && streaming && streaming->fusible) {
    // The producer writes this result in place of its own, which is as large: only further inputs are extra traffic.
    Streaming extra = *streaming;
    extra.read = std::max(Bytes(0), extra.read - extra.written);
    extra.written = Bytes(0);
    extra.singles = 0.0;
    const KernelTime time = kernel_time(extra, op.precision, 0, gpu, calibration);
    return {time.device, flops(op), extra.read, time.bound, 0};
  }
  const KernelTime time = std::visit(
      [&](const auto& work) { return kernel_time(work, op.precision, op.kernels, gpu, calibration); }, op.work);
  const auto* attention = std::get_if<Attention>(&op.work);
  const Bytes traffic = attention ? attention_traffic(*attention, op.precision, gpu) : minimum_traffic(op);
  return {time.device, flops(op), traffic, time.bound, op.kernels};
}

}  // namespace foretrain
