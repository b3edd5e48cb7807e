// One call of a model (its forward pass, or forward and backward) as the kernels that a host thread launches.
#pragma once

#include "model/cost/launches.hpp"
#include "model/scenario/scenario.hpp"
#include "model/workload/model.hpp"

namespace foretrain {

/// Every operator of the forward pass in order; with `backward` the loss and the backward pass as well.
std::vector<Operator> operators_of(const Model& model, bool backward);

/// Operators of a workload.tasks call of a model. Throws ScenarioError for impossible shapes.
std::vector<Operator> operators_of(const ModelCall& call);

/// The launches of these operators, a whole model's, each kernel stretched as in a training step
/// (StepConstants::kernel_stretch). Without a backward pass weights count as constant.
LaunchPlan plan_call(const std::vector<Operator>& ops, bool backward, ExecutionMode mode, const Gpu& gpu,
                     const Calibration& calibration);

/// A workload.tasks call of a model. Throws ScenarioError for impossible shapes.
LaunchPlan plan_call(const ModelCall& call, ExecutionMode mode, const Gpu& gpu, const Calibration& calibration);

/// Execution mode of a model's operators; times and bytes of one call.
struct ModelCallResult {
  ExecutionMode execution = ExecutionMode::eager;
  int operators = 0;
  int kernels = 0;      ///< launched
  int fused = 0;        ///< operators done in another one's kernel
  int folded = 0;       ///< operators that depend on weights alone, done once when the code was compiled
  Seconds host;         ///< the front end's time to launch them
  Seconds device;       ///< the kernels' time
  Bytes intermediates;  ///< results in device memory between the kernels
  /// Which of the two the calls wait for when there are many: the front end, or the device.
  [[nodiscard]] bool front_end_bound() const { return host > device; }
};

ModelCallResult summary_of(const LaunchPlan& plan, ExecutionMode mode);

}  // namespace foretrain
