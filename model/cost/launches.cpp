#include "model/cost/launches.hpp"

#include <algorithm>
#include <utility>
#include <variant>

#include "model/base/number.hpp"
#include "model/cost/operator_cost.hpp"

namespace foretrain {

namespace {

Bytes result_size(const Operator& op) {
  return std::visit([&op](const auto& work) { return work.result(bytes_per_element(result_precision(op.precision))); },
                    op.work);
}

bool is_graphed(LayerPart part, GraphedParts parts) {
  using enum GraphedParts;
  if (parts == attention_and_router) return part == LayerPart::attention || part == LayerPart::router;
  return (part == LayerPart::attention && parts == attention) || (part == LayerPart::router && parts == router);
}

}  // namespace

// A compiler writes kernels for what is bound by memory, and calls libraries for products, convolutions and attention,
// whose results the next kernel reads (PyTorch, torch/_inductor/kernel/mm.py: ATen's unless max_autotune is asked for;
// XLA, service/gpu: custom calls of cuBLAS and cuDNN).
bool joins(const Operator& op, const Operator& before) {
  const auto* streaming = std::get_if<Streaming>(&op.work);
  return streaming != nullptr && streaming->fusible && std::holds_alternative<Streaming>(before.work);
}

Seconds host_dispatch_time(int kernels, ExecutionMode mode, const HostConstants& constants) {
  if (kernels <= 0) return Seconds(0);
  if (mode == ExecutionMode::cuda_graph) return Seconds(constants.graph_launch_us * 1e-6);
  const double us = mode == ExecutionMode::eager ? constants.dispatch_us : constants.compiled_dispatch_us;
  return Seconds(us * 1e-6) * kernels;
}

Seconds launch_latency(const HostConstants& constants) { return Seconds(constants.launch_latency_us * 1e-6); }

Seconds synchronize_time(const HostConstants& constants) { return Seconds(constants.synchronize_us * 1e-6); }

OperatorCost launched_cost(const Operator& op, ExecutionMode mode, bool fused, const Gpu& gpu,
                           const Calibration& calibration) {
  OperatorCost cost = operator_cost(op, gpu, calibration, fused);
  if (mode != ExecutionMode::cuda_graph) cost.device += Seconds(calibration.host.launch_gap_us * 1e-6) * cost.kernels;
  return cost;
}

LaunchPlan plan_launches(const std::vector<Operator>& ops, ExecutionMode mode, bool constant_weights, const Gpu& gpu,
                         const Calibration& calibration) {
  const bool compiled = mode == ExecutionMode::compiled;
  LaunchPlan plan;
  const Operator* producer = nullptr;  // the last that was launched
  plan.operators = static_cast<int>(ops.size());
  for (int index = 0; index < plan.operators; ++index) {
    const Operator& op = ops[at_index(index)];
    if (compiled && constant_weights && op.reads_weights_only) {
      ++plan.folded;
      continue;
    }
    const bool fuse = compiled && producer != nullptr && joins(op, *producer);
    producer = &op;
    const OperatorCost cost = launched_cost(op, mode, fuse, gpu, calibration);
    if (fuse) {
      Launch& launch = plan.launches.back();
      const Seconds together = launch.device + cost.device;
      // The share of a kernel is an average over its time; what is added uses the memory alone.
      const double before = launch.device / together;
      launch.share.bandwidth = std::min(1.0, launch.share.bandwidth * before + (1.0 - before));
      launch.device = together;
      launch.name += " + " + op.name;
      launch.written = result_size(op);
      launch.operators.push_back(index);
      ++plan.fused;
      continue;
    }
    const DeviceShare share = device_share(op, cost.device, gpu, calibration);
    const auto kernels = number(std::max(cost.kernels, 1));
    for (int i = 0; i < cost.kernels; ++i) {
      plan.launches.push_back(
          {op.name, cost.device / kernels, share, result_size(op) / kernels, {index}, i, cost.kernels});
    }
  }
  for (const Launch& launch : plan.launches) {
    plan.device += launch.device;
    plan.intermediates += launch.written;
  }
  if (!plan.launches.empty()) plan.intermediates = plan.intermediates - plan.launches.back().written;
  plan.host = host_dispatch_time(static_cast<int>(plan.launches.size()), mode, calibration.host);
  return plan;
}

Operator filling(const std::vector<Operator>& ops) {
  Streaming fills{StreamingKind::elementwise, Bytes(0.0), Bytes(0.0), Flops(0.0), false};
  for (const Operator& op : ops) fills.written += result_size(op);
  return {"filled results", fills, Precision::fp32, static_cast<int>(ops.size())};
}

LaunchTotals launch_totals(const std::vector<Operator>& ops, ExecutionMode mode, GraphedParts graphed, const Gpu& gpu,
                           const Calibration& calibration) {
  const bool compiled = mode == ExecutionMode::compiled;
  LaunchTotals totals;
  LayerPart graph = LayerPart::rest;   // that the operator before is a node of
  const Operator* producer = nullptr;  // elementwise, where it belongs to the layer before
  for (const Operator& op : ops) {
    const bool fuse = compiled && (producer == nullptr || joins(op, *producer));
    producer = &op;
    const OperatorCost cost = launched_cost(op, mode, fuse, gpu, calibration);
    totals.device += cost.device;
    const LayerPart before = std::exchange(graph, is_graphed(op.part, graphed) ? op.part : LayerPart::rest);
    if (graph == LayerPart::rest) totals.kernels += cost.kernels;
    if (graph != LayerPart::rest && graph != before) {
      totals.host += host_dispatch_time(1, ExecutionMode::cuda_graph, calibration.host);
    }
  }
  if (mode == ExecutionMode::cuda_graph) return {Seconds(0.0), totals.device, totals.kernels};
  totals.host += host_dispatch_time(totals.kernels, mode, calibration.host);
  return totals;
}

}  // namespace foretrain
