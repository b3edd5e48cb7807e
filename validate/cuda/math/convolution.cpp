// 2-D convolutions and their gradients by cuDNN.
#include "validate/cuda/math/operator_runner.hpp"

#ifdef FORETRAIN_HAS_CUDNN
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <stdexcept>
#include <vector>

#include "validate/cuda/core/per_device.hpp"
#include "validate/cuda/math/convolution_graph.hpp"
#include "validate/cuda/math/probe.hpp"
#endif

namespace foretrain::gpu {

#ifdef FORETRAIN_HAS_CUDNN

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
  void verify(cudaStream_t stream) override;
  [[nodiscard]] std::size_t bytes() const override {
    return tensors_.input.bytes() + tensors_.filter.bytes() + tensors_.output.bytes();
  }
  [[nodiscard]] int operand_sets() const override { return static_cast<int>(sets_.size()); }
  [[nodiscard]] std::map<std::string, std::string> parameters() const override;

 private:
  struct Operands {
    void *input, *filter, *output;
  };

  void take_operands(const RunnerSetting& setting, std::int64_t needed);
  void choose(std::vector<GraphPlan> found);
  [[nodiscard]] SumOfProducts sum_at(const std::vector<std::int64_t>& place, cudaStream_t stream) const;

  ConvolutionShape shape_;
  ConvolutionTensors tensors_;
  std::vector<Operands> sets_;
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
  setting.memory.begin_operator();
  void* const workspace = setting.memory.workspace(static_cast<std::size_t>(std::max<std::int64_t>(needed, 16)));
  const int sets = gpu::operand_sets(setting.rotation, bytes());
  for (int i = 0; i < sets; ++i) {
    const auto take = [&](const ImageTensor& image, ConvolutionPass writer) {
      return setting.memory.take(image.bytes(), image.format, shape_.pass == writer ? Use::written : Use::read);
    };
    sets_.push_back({take(tensors_.input, ConvolutionPass::data_gradient),
                     take(tensors_.filter, ConvolutionPass::weight_gradient),
                     take(tensors_.output, ConvolutionPass::forward)});
    const Operands& operands = sets_.back();
    packs_.push_back(variant_pack({{plan_->ids.input, operands.input},
                                   {plan_->ids.filter, operands.filter},
                                   {plan_->ids.output, operands.output}},
                                  workspace));
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

/// One number of the result, from the definition; sums run over a line of channels, or a plane, at once.
SumOfProducts ConvolutionRunner::sum_at(const std::vector<std::int64_t>& place, cudaStream_t stream) const {
  const ConvolutionShape& s = shape_;
  const Operands& data = sets_.front();
  const std::int64_t group_inputs = s.c / s.groups, group_outputs = s.k / s.groups;
  SumOfProducts sum;
  const auto line = [&](const ImageTensor& tensor, const void* memory, std::int64_t start, int along,
                        std::int64_t count) {
    return read_elements(tensor.format, memory, start, tensor.strides[static_cast<std::size_t>(along)], count, stream);
  };
  if (s.pass == ConvolutionPass::weight_gradient) {
    const std::int64_t k = place[0], channel = k / group_outputs * group_inputs + place[1];
    // In both layouts the numbers of a plane lie one stride apart, row by row.
    for (std::int64_t n = 0; n < s.n; ++n) {
      const auto x = line(tensors_.input, data.input, tensors_.input.place(n, channel, 0, 0), 3, s.h * s.w);
      const auto dy = line(tensors_.output, data.output, tensors_.output.place(n, k, 0, 0), 3, s.p * s.q);
      for (std::int64_t p = 0; p < s.p; ++p) {
        const std::int64_t row = p * s.stride - s.pad_h + place[2];
        if (row < 0 || row >= s.h) continue;
        for (std::int64_t q = 0; q < s.q; ++q) {
          const std::int64_t column = q * s.stride - s.pad_w + place[3];
          if (column < 0 || column >= s.w) continue;
          sum.add(x[static_cast<std::size_t>(row * s.w + column)], dy[static_cast<std::size_t>(p * s.q + q)]);
        }
      }
    }
    return sum;
  }
  const bool forward = s.pass == ConvolutionPass::forward;
  const std::int64_t group = place[1] / (forward ? group_outputs : group_inputs);
  for (std::int64_t r = 0; r < s.r; ++r) {
    for (std::int64_t t = 0; t < s.s; ++t) {
      // Forward: (row, column) is of the input. Data gradient: of the output, where the stride meets it.
      std::int64_t row = place[2] * s.stride - s.pad_h + r, column = place[3] * s.stride - s.pad_w + t;
      if (!forward) {
        row = place[2] + s.pad_h - r;
        column = place[3] + s.pad_w - t;
        if (row < 0 || column < 0 || row % s.stride != 0 || column % s.stride != 0) continue;
        row /= s.stride;
        column /= s.stride;
      }
      if (row < 0 || column < 0 || row >= (forward ? s.h : s.p) || column >= (forward ? s.w : s.q)) continue;
      std::vector<double> values, weights;
      if (forward) {
        values = line(tensors_.input, data.input, tensors_.input.place(place[0], group * group_inputs, row, column), 1,
                      group_inputs);
        weights = line(tensors_.filter, data.filter, tensors_.filter.place(place[1], 0, r, t), 1, group_inputs);
      } else {
        values = line(tensors_.output, data.output, tensors_.output.place(place[0], group * group_outputs, row, column),
                      1, group_outputs);
        weights = line(tensors_.filter, data.filter,
                       tensors_.filter.place(group * group_outputs, place[1] % group_inputs, r, t), 0, group_outputs);
      }
      for (std::size_t i = 0; i < values.size(); ++i) sum.add(values[i], weights[i]);
    }
  }
  return sum;
}

void ConvolutionRunner::verify(cudaStream_t stream) {
  launch(stream, 0);
  const bool weights = shape_.pass == ConvolutionPass::weight_gradient;
  const Operands& operands = sets_.front();
  const bool forward = shape_.pass == ConvolutionPass::forward;
  const ImageTensor& result = weights ? tensors_.filter : forward ? tensors_.output : tensors_.input;
  const void* const data = weights ? operands.filter : forward ? operands.output : operands.input;
  // Rounding of sums, and what Winograd's and Fourier's ways lose, which grows with the sums' typical size.
  const bool narrow = shape_.precision != "fp32" && shape_.precision != "fp64";
  const double of_magnitudes = narrow ? 1e-4 : 1e-5, of_size = narrow ? 0.03 : 2e-3;
  constexpr int samples = 3;
  const auto a = samples_below(result.sizes[0], samples), b = samples_below(result.sizes[1], samples),
             c = samples_below(result.sizes[2], samples), d = samples_below(result.sizes[3], samples);
  for (std::size_t i = 0; i < (weights ? 2U : 3U); ++i) {
    const SumOfProducts sum = sum_at({a[i], b[i], c[i], d[i]}, stream);
    const double rounding = 4.0 * rounding_of(result.format);
    const double tolerance = of_magnitudes * sum.magnitudes + (of_size + rounding) * std::sqrt(sum.squares) +
                             rounding * std::abs(sum.sum) + 1e-6;
    expect_close("convolution number " + std::to_string(i),
                 read_element(result.format, data, result.place(a[i], b[i], c[i], d[i]), stream), sum.sum, tolerance);
  }
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

#else

std::unique_ptr<OperatorRunner> make_convolution(const OperatorSpec&, const RunnerSetting&) {
  throw GpuError(Fault::unsupported, "this build is without cuDNN: install it and build again (CUDNN_HOME)");
}

#endif

}  // namespace foretrain::gpu
