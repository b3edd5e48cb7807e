#include "model/cost/operator_cost.hpp"

#include <algorithm>
#include <cmath>

#include "model/cost/attention.hpp"
#include "model/cost/kernels.hpp"

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

namespace {

constexpr double warm_up = 3.0, counted = 6.0;  // executions of a burst

Seconds total(const std::vector<OperatorCost>& costs) {
  Seconds sum;
  for (const OperatorCost& cost : costs) sum += cost.device;
  return sum;
}

std::vector<OperatorCost> costs_on(const Gpu& gpu, const std::vector<Operator>& ops, const Calibration& calibration) {
  std::vector<OperatorCost> costs;
  costs.reserve(ops.size());
  for (const Operator& op : ops) costs.push_back(operator_cost(op, gpu, calibration));
  const auto* product = std::get_if<Matmul>(&ops.back().work);
  if (product != nullptr && ops.size() > 1 && !gpu.processor) {  // casts before it are an engine's
    costs.back().device = engine_product_time(*product, ops.back().precision, gpu, calibration);
  }
  return costs;
}

/// The GPU as operands in rotation see it: part of their traffic meets the L2.
Gpu with_rotating_operands(const Operator& op, Gpu gpu, const Calibration& calibration) {
  const Bytes own = minimum_traffic(op), rotated(calibration.access.rotated_mb * 1e6);
  if (own > gpu.l2_cache || !(gpu.l2_bandwidth > gpu.memory_bandwidth)) return gpu;
  const double held = std::min(1.0, std::pow(gpu.l2_cache / std::max(own, rotated), 2.0));
  gpu.memory_bandwidth = 1.0 / (held / gpu.l2_bandwidth + (1.0 - held) / gpu.memory_bandwidth);
  return gpu;
}

std::vector<OperatorCost> burst_costs(const std::vector<Operator>& ops, const Gpu& gpu,
                                      const Calibration& calibration) {
  Gpu boosted = gpu;
  boosted.board_power_watts *= calibration.power.burst_power;
  std::vector<OperatorCost> costs = costs_on(gpu, ops, calibration);
  const Seconds slow = total(costs), fast = total(costs_on(boosted, ops, calibration));
  // Executions that count and come before the board's power is held to its limit.
  const double early = std::clamp(calibration.power.settle_ms * 1e-3 / fast.value() - warm_up, 0.0, counted);
  const Seconds mean = (early * fast + (counted - early) * slow) / counted;
  for (OperatorCost& cost : costs) cost.device *= mean / slow;
  return costs;
}

}  // namespace

std::vector<OperatorCost> costs_alone(const OperatorWorkload& workload, const Gpu& gpu,
                                      const Calibration& calibration) {
  std::vector<Operator> ops = workload.operators();
  auto* streaming = std::get_if<Streaming>(&ops.back().work);
  if (streaming != nullptr) streaming->repeated = true;
  const bool burst = workload.conditions.clock == Clock::boost && !gpu.processor;
  const Gpu seen = with_rotating_operands(ops.back(), gpu, calibration);
  std::vector<OperatorCost> costs = burst ? burst_costs(ops, seen, calibration) : costs_on(seen, ops, calibration);
  if (workload.conditions.launch == Launched::stream) {
    const HostConstants& host = calibration.host;
    const Seconds call((streaming != nullptr ? host.framework_call_us : host.loop_call_us) * 1e-6);
    for (OperatorCost& cost : costs) cost.device += call * (streaming != nullptr ? 1 : cost.kernels);
  }
  return costs;
}

OperatorCost cost_alone(const OperatorWorkload& workload, const Gpu& gpu, const Calibration& calibration) {
  const std::vector<OperatorCost> costs = costs_alone(workload, gpu, calibration);
  OperatorCost sum = costs.back();
  sum.device = total(costs);
  for (std::size_t i = 0; i + 1 < costs.size(); ++i) {
    sum.bytes += costs[i].bytes;
    sum.kernels += costs[i].kernels;
  }
  return sum;
}

}  // namespace foretrain
