#include "model/tasks/model_call.hpp"

#include "model/cost/power.hpp"
#include "model/workload/build.hpp"

namespace foretrain {

std::vector<Operator> operators_of(const Model& model, bool backward) {
  std::vector<Operator> ops;
  for (const LayerGroup& group : model.layers) {
    for (int i = 0; i < group.repeat; ++i) {
      for (const Operator& op : group.layer.forward) {
        // A forward pass without training has no labels to compare with.
        if (backward || op.role != OperatorRole::loss) ops.push_back(op);
      }
    }
  }
  if (!backward) return ops;
  for (auto group = model.layers.rbegin(); group != model.layers.rend(); ++group) {
    for (int i = 0; i < group->repeat; ++i) {
      ops.insert(ops.end(), group->layer.backward.begin(), group->layer.backward.end());
    }
  }
  return ops;
}

LaunchPlan plan_call(const std::vector<Operator>& ops, bool backward, ExecutionMode mode, const Gpu& gpu,
                     const Calibration& calibration) {
  LaunchPlan plan = plan_launches(ops, mode, !backward, gpu_in_step(gpu, calibration.step), calibration);
  plan.device *= calibration.step.kernel_stretch;
  for (Launch& launch : plan.launches) launch.device *= calibration.step.kernel_stretch;
  return plan;
}

std::vector<Operator> operators_of(const ModelCall& call) {
  BuildOptions options;
  options.micro_batch = call.batch;
  options.precision = call.precision;
  options.attention = call.attention;
  return operators_of(build_model(call.model, options), call.backward);
}

LaunchPlan plan_call(const ModelCall& call, ExecutionMode mode, const Gpu& gpu, const Calibration& calibration) {
  return plan_call(operators_of(call), call.backward, mode, gpu, calibration);
}

ModelCallResult summary_of(const LaunchPlan& plan, ExecutionMode mode) {
  ModelCallResult result;
  result.execution = mode;
  result.operators = plan.operators;
  result.kernels = static_cast<int>(plan.launches.size());
  result.fused = plan.fused;
  result.folded = plan.folded;
  result.host = plan.host;
  result.device = plan.device;
  result.intermediates = plan.intermediates;
  return result;
}

}  // namespace foretrain
