// 2-D convolutions and their gradients by cuDNN.
#ifdef FORETRAIN_HAS_CUDNN
#include <algorithm>
#include <cmath>
#include <vector>

#include "validate/cuda/math/convolution_graph.hpp"
#include "validate/cuda/math/operator_runner.hpp"

namespace foretrain::gpu {

namespace {

constexpr std::int64_t most_workspace = std::int64_t{1} << 30;
constexpr int most_candidates = 4;

/// With what cuDNN's heuristics name, until the fastest alone is left.
using Planned = PlannedGraph<ConvolutionTensors>;

/// Seconds of a plan, from a few launches. Infinite where it fails for want of anything but the GPU itself.
double trial(const GraphPlan& plan, const CudnnDescriptor& pack, const Stream& stream) {
  constexpr int launches = 3;
  const Event start, end;
  try {
    run_plan(plan, pack, stream.get());
    start.record(stream.get());
    for (int i = 0; i < launches; ++i) run_plan(plan, pack, stream.get());
    end.record(stream.get());
    end.synchronize();
    return elapsed(start, end) / launches;
  } catch (const GpuError& error) {
    if (error.fault() == Fault::device_lost) throw;
    return HUGE_VAL;
  }
}

class ConvolutionRunner final : public OperatorRunner {
 public:
  /// Of the first plans that cuDNN's heuristic (mode A) offers with at most 1 GiB of workspace, the one that is fastest
  /// on these operands, as trainers that let cuDNN search get it. fp32 keeps to fp32 arithmetic, tf32 may use tensor
  /// cores.
  ConvolutionRunner(const OperatorSpec& spec, const RunnerSetting& setting) {
    const ConvolutionShape shape = convolution_shape(spec);
    plan_ = planned<ConvolutionTensors>(name_of(spec), [&shape](Planned& fresh) {
      fresh.tensors = convolution_graph(fresh.graph, shape, format_of(shape.precision));
      fresh.plans = fresh.graph.plans(most_candidates, most_workspace, engine_filter(shape));
    });
    const ConvolutionTensors& tensors = plan_->tensors;
    std::int64_t needed = 0;
    for (const GraphPlan& plan : plan_->plans) needed = std::max(needed, plan.workspace);
    void* const workspace = setting.memory.workspace(static_cast<std::size_t>(needed));
    const auto operand = [&](const ImageTensor& image, ConvolutionPass writer) {
      return Operand{image.bytes(), image.format, shape.pass == writer ? Use::written : Use::read};
    };
    take(setting, {operand(tensors.input, ConvolutionPass::data_gradient),
                   operand(tensors.filter, ConvolutionPass::weight_gradient),
                   operand(tensors.output, ConvolutionPass::forward)});
    for (int i = 0; i < operand_sets(); ++i) {
      const OperandSet& set = operands(i);
      packs_.push_back(variant_pack(
          {{tensors.input.id, set[0]}, {tensors.filter.id, set[1]}, {tensors.output.id, set[2]}}, workspace));
    }
    if (plan_->plans.size() > 1) keep_fastest(plan_->plans);
  }

  void launch(cudaStream_t stream, int turn) override {
    run_plan(plan_->plans.front(), packs_[static_cast<std::size_t>(turn) % packs_.size()], stream);
  }
  [[nodiscard]] std::map<std::string, std::string> parameters() const override {
    return {{"engine", std::to_string(plan_->plans.front().engine)},
            {"workspace_bytes", std::to_string(plan_->plans.front().workspace)}};
  }

 private:
  void keep_fastest(std::vector<GraphPlan>& plans) const {
    GPU_CHECK(cudaDeviceSynchronize());  // the memory may fill on a stream of its own
    const Stream stream;
    std::vector<double> times;
    for (const GraphPlan& plan : plans) times.push_back(trial(plan, packs_.front(), stream));
    const auto best = std::ranges::min_element(times);
    if (*best == HUGE_VAL) throw GpuError(Fault::failed, "no plan of cuDNN for this convolution runs");
    std::swap(plans.front(), plans[static_cast<std::size_t>(best - times.begin())]);
    plans.erase(plans.begin() + 1, plans.end());
  }

  std::shared_ptr<Planned> plan_;
  std::vector<CudnnDescriptor> packs_;
};

}  // namespace

std::unique_ptr<OperatorRunner> make_convolution(const OperatorSpec& spec, const RunnerSetting& setting) {
  return std::make_unique<ConvolutionRunner>(spec, setting);
}

}  // namespace foretrain::gpu
#endif
