// Which constants which points determine.
#include <set>
#include <string>

#include "model/cost/power.hpp"
#include "model/job/calibrated_uncertainty.hpp"
#include "validate/fit/gpu_fit.hpp"

namespace foretrain {

namespace {

const std::size_t every_point = FitStage{}.most_points;

/// Whether a record is of a kernel that foretrain-gpu once had of its own where every framework has another. These tell
/// of no framework and, written for clarity, not of the GPU (on an H200 norms and pooling take 1.2 to ten times as long
/// as the bandwidth allows, where copies and sums reach it).
bool stands_for_a_framework(const PredictedPoint& point) {
  static const std::set<std::string> kinds = {"batch_norm",    "layer_norm", "pooling",          "softmax",
                                              "cross_entropy", "optimizer",  "gradient_clipping"};
  return kinds.contains(point.raw->workload("operator.kind"));
}

}  // namespace

std::string family_of(const PredictedPoint& point) {
  if (point.raw->record.suite == replay_suite) return "kernel in steps";
  if (point.op && stands_for_a_framework(point)) return "kernel of a framework";
  return point.op ? std::string(operator_family(point.op->op)) : point.kind;
}

bool is_sustained(const PredictedPoint& point) { return point.raw->parameter("sustained") == "true"; }

std::string stage_family(const PredictedPoint& point) {
  if (is_sustained(point)) return family_of(point) + " sustained";
  return family_of(point) + (point.scenario.cluster.nodes > 1 ? " between nodes" : "");
}

std::vector<FitStage> fit_stages(const Gpu& gpu, const MeasuredKinds& measured) {
  const bool sustained = measured.sustained;
  const std::size_t generation = generation_of(gpu.compute_capability);
  const auto of_part = [](std::initializer_list<const char*> prefixes) {
    std::vector<std::string> names;
    for (const ConstantRow& row : calibration_rows()) {
      for (const char* prefix : prefixes) {
        if (row.name.starts_with(prefix)) names.push_back(row.name);
      }
    }
    return names;
  };
  std::vector<std::string> products = of_part({"matmul."});
  std::erase(products, "matmul.issue_share");  // times vector_efficiency: one GPU does not tell them apart
  const std::vector<std::string> energies = {energy_name(generation, false), energy_name(generation, true)};
  if (!sustained) products.insert(products.end(), energies.begin(), energies.end());
  return {{"streaming",
           {"streaming"},
           {"streaming.bandwidth_efficiency", "streaming.gather_efficiency", "streaming.kernel_us"}},
          {"memory access", {"memory_access"}, of_part({"access."})},
          {"GEMM", {"matmul"}, products},
          {"sustained product", {"matmul sustained"}, sustained ? energies : std::vector<std::string>()},
          {"convolution", {"convolution"}, of_part({"convolution."})},
          {"attention",
           {"attention"},
           {"attention.exposed_share", "attention.softmax_instructions", "attention.block_start_us",
            "attention.warp_mma_share", "attention.memory_efficient_share", "attention.unfused_softmax_slowdown",
            "attention.mask_passes"}},
          {"collective",
           {"collective"},
           {"collective.launch_us", "collective.hopper_share", "collective.early_launch_us", "collective.start_us",
            "collective.ll_step_us", "collective.ll128_step_us", "collective.simple_step_us",
            "collective.low_latency_share", "collective.ll128_share", "collective.nvlink_efficiency",
            "collective.pcie_efficiency", "collective.nvls_efficiency", "collective.nvls_us", "collective.message_gbps",
            "collective.message_fill", "collective.peer_channel_gbps"},
           120},
          {"collective between nodes",
           {"collective between nodes"},
           {"collective.network_efficiency", "collective.network_ll_step_us", "collective.network_ll128_step_us",
            "collective.network_simple_step_us", "collective.tree_efficiency"},
           120},
          // Kernels of a stack's own steps; without them, those of replays.
          {"kernel in replayed steps",
           {"kernel in steps"},
           measured.steps ? std::vector<std::string>() : std::vector<std::string>{"step.kernel_stretch"},
           every_point,
           true},
          {"training step",
           {"step"},
           {"host.dispatch_us", "host.compiled_dispatch_us", "host.step_us", "step.kernel_stretch"},
           every_point,
           true}};
}

}  // namespace foretrain
