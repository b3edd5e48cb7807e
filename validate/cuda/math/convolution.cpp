// 2-D convolutions and their gradients by cuDNN.
#include "validate/cuda/math/operator_runner.hpp"

#ifdef FORETRAIN_HAS_CUDNN
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <stdexcept>
#include <vector>

#include "validate/cuda/math/cudnn_graph.hpp"
#include "validate/cuda/math/probe.hpp"
#endif

namespace foretrain::gpu {

#ifdef FORETRAIN_HAS_CUDNN

namespace {

enum class ConvolutionPass { forward, data_gradient, weight_gradient };

/// Input [n, c, h, w], filter [k, c / groups, r, s], output [n, k, p, q], as in Convolution
/// (model/workload/operator.hpp).
struct ConvolutionShape {
  std::int64_t n = 1, c = 1, h = 1, w = 1, k = 1, r = 1, s = 1, p = 1, q = 1;
  std::int64_t stride = 1, pad_h = 0, pad_w = 0, groups = 1;
  ConvolutionPass pass = ConvolutionPass::forward;
  std::string precision = "fp32";
};

/// A tensor of four extents, of which the second is channels: they lie last in memory for 16-bit formats, as cuDNN's
/// tensor-core kernels want them, and image by image otherwise.
struct ImageTensor {
  Format format = Format::fp32;
  std::vector<std::int64_t> sizes, strides;
  [[nodiscard]] std::size_t bytes() const {
    return static_cast<std::size_t>(sizes[0] * sizes[1] * sizes[2] * sizes[3]) * size_of(format);
  }
  [[nodiscard]] std::int64_t place(std::int64_t a, std::int64_t b, std::int64_t c, std::int64_t d) const {
    return a * strides[0] + b * strides[1] + c * strides[2] + d * strides[3];
  }
};

struct ConvolutionTensors {
  ImageTensor input, filter, output;
};

/// Identifiers of a convolution's tensors in its graph.
struct ConvolutionIds {
  std::int64_t input = 0, filter = 0, output = 0;
};

class ConvolutionRunner final : public OperatorRunner {
 public:
  /// Of the first plans that cuDNN's heuristic (mode A) offers with at most 1 GiB of workspace, the one that is fastest
  /// on these operands, as trainers that let cuDNN search get it; parameters() says which it was and how much slower
  /// the first was. fp32 keeps to fp32 arithmetic, tf32 may use tensor cores.
  ConvolutionRunner(const ConvolutionShape& shape, const RunnerSetting& setting);

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

  void choose(const RunnerSetting& setting);
  [[nodiscard]] SumOfProducts sum_at(const std::vector<std::int64_t>& place, cudaStream_t stream) const;

  ConvolutionShape shape_;
  ConvolutionTensors tensors_;
  std::vector<Operands> sets_;
  CudnnGraph graph_;
  ConvolutionIds ids_;
  std::vector<GraphPlan> plan_;  ///< the one that was chosen
  std::vector<CudnnDescriptor> packs_;
  std::size_t rank_ = 0, candidates_ = 0;
  double first_over_best_ = 1.0;
};

constexpr std::int64_t most_workspace = std::int64_t{1} << 30;
constexpr int most_candidates = 4;

ImageTensor image_tensor(Format format, std::int64_t a, std::int64_t b, std::int64_t c, std::int64_t d) {
  ImageTensor tensor{format, {a, b, c, d}, {b * c * d, c * d, d, 1}};
  if (size_of(format) == 2) tensor.strides = {b * c * d, 1, d * b, b};
  return tensor;
}

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

struct PassAttributes {
  cudnnBackendDescriptorType_t operation;
  cudnnBackendAttributeName_t alpha, beta, convolution, input, filter, output;
};
PassAttributes attributes_of(ConvolutionPass pass) {
  switch (pass) {
    case ConvolutionPass::forward:
      return {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y};
    case ConvolutionPass::data_gradient:
      return {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY};
    case ConvolutionPass::weight_gradient:
      break;
  }
  return {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY};
}

ConvolutionShape convolution_shape(const OperatorSpec& spec) {
  ConvolutionShape shape;
  shape.n = spec.integer("batch");
  shape.c = spec.integer("channels");
  shape.h = spec.integer("height");
  shape.w = spec.integer("width");
  shape.k = spec.integer("filters");
  std::tie(shape.r, shape.s) = spec.pair_or("kernel", 1);
  std::tie(shape.pad_h, shape.pad_w) = spec.pair_or("pad", 0);
  shape.stride = spec.integer_or("stride", 1);
  shape.groups = spec.integer_or("groups", 1);
  if (std::min({shape.n, shape.c, shape.h, shape.w, shape.k, shape.r, shape.s, shape.stride, shape.groups}) < 1 ||
      std::min(shape.pad_h, shape.pad_w) < 0 || shape.h + 2 * shape.pad_h < shape.r ||
      shape.w + 2 * shape.pad_w < shape.s || shape.c % shape.groups != 0 || shape.k % shape.groups != 0) {
    throw std::invalid_argument("convolution: sizes that do not fit each other");
  }
  shape.p = (shape.h + 2 * shape.pad_h - shape.r) / shape.stride + 1;
  shape.q = (shape.w + 2 * shape.pad_w - shape.s) / shape.stride + 1;
  const std::string pass = spec.text_or("pass", "forward");
  if (pass == "data_gradient") shape.pass = ConvolutionPass::data_gradient;
  if (pass == "weight_gradient") shape.pass = ConvolutionPass::weight_gradient;
  if (pass != "forward" && shape.pass == ConvolutionPass::forward) {
    throw std::invalid_argument("convolution: pass: unknown word \"" + pass + "\"");
  }
  shape.precision = spec.text_or("precision", "fp32");
  return shape;
}

ConvolutionTensors convolution_tensors(const ConvolutionShape& s, Format format) {
  return {image_tensor(format, s.n, s.c, s.h, s.w), image_tensor(format, s.k, s.c / s.groups, s.r, s.s),
          image_tensor(format, s.n, s.k, s.p, s.q)};
}

ConvolutionIds convolution_graph(CudnnGraph& graph, const ConvolutionShape& shape, const ConvolutionTensors& tensors) {
  const auto add = [&graph](const ImageTensor& image) {
    return graph.tensor({.type = cudnn_type(image.format), .sizes = image.sizes, .strides = image.strides});
  };
  const ConvolutionIds ids{add(tensors.input), add(tensors.filter), add(tensors.output)};
  CudnnDescriptor& convolution = graph.keep(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
  const std::vector<std::int64_t> pads = {shape.pad_h, shape.pad_w};
  const Format compute = tensors.input.format == Format::fp64 ? Format::fp64 : Format::fp32;
  convolution.set(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64, std::int64_t{2})
      .set(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, cudnn_type(compute))
      .set(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, CUDNN_CROSS_CORRELATION)
      .set(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, pads)
      .set(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, pads)
      .set(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, {shape.stride, shape.stride})
      .set(CUDNN_ATTR_CONVOLUTION_DILATIONS, {1, 1})
      .finish();
  const PassAttributes names = attributes_of(shape.pass);
  CudnnDescriptor& operation = graph.operation(names.operation);
  operation.set(names.convolution, convolution)
      .set(names.input, graph.descriptor(ids.input))
      .set(names.filter, graph.descriptor(ids.filter))
      .set(names.output, graph.descriptor(ids.output));
  if (compute == Format::fp64) {
    operation.set(names.alpha, CUDNN_TYPE_DOUBLE, 1.0).set(names.beta, CUDNN_TYPE_DOUBLE, 0.0);
  } else {
    operation.set(names.alpha, CUDNN_TYPE_FLOAT, 1.0F).set(names.beta, CUDNN_TYPE_FLOAT, 0.0F);
  }
  operation.finish();
  return ids;
}

ConvolutionRunner::ConvolutionRunner(const ConvolutionShape& shape, const RunnerSetting& setting)
    : shape_(shape), tensors_(convolution_tensors(shape, format_of(shape.precision))) {
  ids_ = convolution_graph(graph_, shape_, tensors_);
  choose(setting);
}

void ConvolutionRunner::choose(const RunnerSetting& setting) {
  const EngineFilter filter{.no_tensor_cores = shape_.precision == "fp32",
                            .no_narrower_inputs = tensors_.input.format == Format::fp32};
  std::vector<GraphPlan> found = graph_.plans(most_candidates, most_workspace, filter);
  std::int64_t needed = 0;
  for (const GraphPlan& plan : found) needed = std::max(needed, plan.workspace);
  setting.memory.begin_operator();
  void* const workspace = setting.memory.workspace(static_cast<std::size_t>(std::max<std::int64_t>(needed, 16)));
  const int sets = gpu::operand_sets(setting.rotation, bytes());
  for (int i = 0; i < sets; ++i) {
    const auto take = [&](const ImageTensor& image) { return setting.memory.take(image.bytes(), image.format); };
    sets_.push_back({take(tensors_.input), take(tensors_.filter), take(tensors_.output)});
    const Operands& operands = sets_.back();
    packs_.push_back(variant_pack(
        {{ids_.input, operands.input}, {ids_.filter, operands.filter}, {ids_.output, operands.output}}, workspace));
  }
  GPU_CHECK(cudaDeviceSynchronize());  // the memory may fill on a stream of its own
  const Stream stream;
  std::vector<double> times;
  for (const GraphPlan& plan : found) times.push_back(trial(plan, packs_.front(), stream));
  const auto best = std::min_element(times.begin(), times.end());
  if (*best == HUGE_VAL) throw GpuError(Fault::failed, "no plan of cuDNN for this convolution runs");
  candidates_ = found.size();
  rank_ = static_cast<std::size_t>(best - times.begin());
  first_over_best_ = times.front() / *best;
  plan_.push_back(std::move(found[rank_]));
}

void ConvolutionRunner::launch(cudaStream_t stream, int turn) {
  run_plan(plan_.front(), packs_[static_cast<std::size_t>(turn) % packs_.size()], stream);
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
  std::snprintf(ratio, sizeof(ratio), "%.3f", first_over_best_);
  return {{"engine", std::to_string(plan_.front().engine)},
          {"heuristic_rank", std::to_string(rank_)},
          {"candidates", std::to_string(candidates_)},
          {"first_choice_over_best", ratio},
          {"workspace_bytes", std::to_string(plan_.front().workspace)},
          {"layout", size_of(tensors_.input.format) == 2 ? "nhwc" : "nchw"}};
}

}  // namespace

std::unique_ptr<OperatorRunner> make_convolution(const OperatorSpec& spec, const RunnerSetting& setting) {
  return std::make_unique<ConvolutionRunner>(convolution_shape(spec), setting);
}

#else

std::unique_ptr<OperatorRunner> make_convolution(const OperatorSpec&, const RunnerSetting&) {
  throw GpuError(Fault::unsupported, "this build is without cuDNN: install it and build again (CUDNN_HOME)");
}

#endif

}  // namespace foretrain::gpu
