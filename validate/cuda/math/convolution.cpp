// 2-D convolutions and their gradients by cuDNN.
#ifdef FORETRAIN_HAS_CUDNN
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <stdexcept>
#include <vector>

#include "validate/cuda/core/per_device.hpp"
#include "validate/cuda/math/convolution_graph.hpp"
#include "validate/cuda/math/operator_runner.hpp"

namespace foretrain::gpu {

namespace {

/// A graph and the plan that was chosen for it.
struct ConvolutionPlan {
  CudnnGraph graph;
  ConvolutionIds ids;
  std::vector<GraphPlan> chosen;  ///< one
  std::size_t rank = 0, candidates = 0;
  double first_over_best = 1.0;
};

/// Layers of one shape are planned once. Never destroyed: at the end of the process the driver may be gone before.
std::shared_ptr<ConvolutionPlan>& plan_of(const OperatorSpec& spec) {
  static auto& of_devices = *new PerDevice<std::map<std::string, std::shared_ptr<ConvolutionPlan>>>;
  return of_devices.here()[name_of(spec)];
}

class ConvolutionRunner final : public OperatorRunner {
 public:
  /// Of the first plans that cuDNN's heuristic (mode A) offers with at most 1 GiB of workspace, the one that is fastest
  /// on these operands, as trainers that let cuDNN search get it; parameters() says which it was and how much slower
  /// the first was. fp32 keeps to fp32 arithmetic, tf32 may use tensor cores.
  ConvolutionRunner(const OperatorSpec& spec, const RunnerSetting& setting);

  void launch(cudaStream_t stream, int turn) override;
  [[nodiscard]] std::map<std::string, std::string> parameters() const override;

 private:
  void take_operands(const RunnerSetting& setting, std::int64_t needed);
  void choose(std::vector<GraphPlan> found);

  ConvolutionShape shape_;
  ConvolutionTensors tensors_;
  std::shared_ptr<ConvolutionPlan> plan_;
  std::vector<CudnnDescriptor> packs_;
};

constexpr std::int64_t most_workspace = std::int64_t{1} << 30;
constexpr int most_candidates = 4;

/// Seconds of a plan, from a few launches. Infinite where it fails for want of anything but the GPU itself.
double trial(const GraphPlan& plan, const CudnnDescriptor& pack, const Stream& stream) {
  constexpr int launches = 3;
  const Event start;
  const Event end;
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

ConvolutionRunner::ConvolutionRunner(const OperatorSpec& spec, const RunnerSetting& setting)
    : shape_(convolution_shape(spec)),
      tensors_(convolution_tensors(shape_, format_of(shape_.precision))),
      plan_(plan_of(spec)) {
  if (plan_) {
    take_operands(setting, plan_->chosen.front().workspace);
    return;
  }
  plan_ = std::make_shared<ConvolutionPlan>();
  plan_->ids = convolution_graph(plan_->graph, shape_, tensors_);
  std::vector<GraphPlan> found = plan_->graph.plans(most_candidates, most_workspace, engine_filter(shape_));
  std::int64_t needed = 0;
  for (const GraphPlan& plan : found) needed = std::max(needed, plan.workspace);
  take_operands(setting, needed);
  choose(std::move(found));
  plan_of(spec) = plan_;
}

void ConvolutionRunner::take_operands(const RunnerSetting& setting, std::int64_t needed) {
  void* const workspace = setting.memory.workspace(static_cast<std::size_t>(std::max<std::int64_t>(needed, 16)));
  const auto operand = [&](const ImageTensor& image, ConvolutionPass writer) {
    return Operand{image.bytes(), image.format, shape_.pass == writer ? Use::written : Use::read};
  };
  take(setting, {operand(tensors_.input, ConvolutionPass::data_gradient),
                 operand(tensors_.filter, ConvolutionPass::weight_gradient),
                 operand(tensors_.output, ConvolutionPass::forward)});
  const ConvolutionIds& ids = plan_->ids;
  for (int i = 0; i < operand_sets(); ++i) {
    const OperandSet& set = operands(i);
    packs_.push_back(variant_pack({{ids.input, set[0]}, {ids.filter, set[1]}, {ids.output, set[2]}}, workspace));
  }
}

/// The fastest of what cuDNN's heuristics name, as frameworks' benchmark modes choose.
void ConvolutionRunner::choose(std::vector<GraphPlan> found) {
  GPU_CHECK(cudaDeviceSynchronize());  // the memory may fill on a stream of its own
  const Stream stream;
  std::vector<double> times;
  for (const GraphPlan& plan : found) times.push_back(trial(plan, packs_.front(), stream));
  const auto best = std::min_element(times.begin(), times.end());
  if (*best == HUGE_VAL) throw GpuError(Fault::failed, "no plan of cuDNN for this convolution runs");
  plan_->candidates = found.size();
  plan_->rank = static_cast<std::size_t>(best - times.begin());
  plan_->first_over_best = times.front() / *best;
  plan_->chosen.push_back(std::move(found[plan_->rank]));
}

void ConvolutionRunner::launch(cudaStream_t stream, int turn) {
  run_plan(plan_->chosen.front(), packs_[static_cast<std::size_t>(turn) % packs_.size()], stream);
}

std::map<std::string, std::string> ConvolutionRunner::parameters() const {
  char ratio[32] = "";
  std::snprintf(ratio, sizeof(ratio), "%.3f", plan_->first_over_best);
  return {{"engine", std::to_string(plan_->chosen.front().engine)},
          {"heuristic_rank", std::to_string(plan_->rank)},
          {"candidates", std::to_string(plan_->candidates)},
          {"first_choice_over_best", ratio},
          {"workspace_bytes", std::to_string(plan_->chosen.front().workspace)},
          {"layout", size_of(tensors_.input.format) == 2 ? "nhwc" : "nchw"}};
}

}  // namespace

std::unique_ptr<OperatorRunner> make_convolution(const OperatorSpec& spec, const RunnerSetting& setting) {
  return std::make_unique<ConvolutionRunner>(spec, setting);
}

}  // namespace foretrain::gpu
#endif
