#include "model/workload/network_operators.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

namespace foretrain {
namespace {

constexpr Bytes fp32_size = bytes_per_element(Precision::fp32);
constexpr Bytes label_size(8.0);          // int64, as PyTorch demands of class labels
constexpr Bytes pooling_index_size(8.0);  // int64, as PyTorch's max_pool2d returns
constexpr Bytes mask_size(1.0);           // one byte per element, PyTorch's bool

// Numbers that kernels take one at a time (Streaming::singles), for each of a layer's input: cuDNN's batch norm in NCHW
// (bn_fw_tr_1C11_kernel_NCHW), PyTorch's own in NHWC, max pooling. Measured on an H200, ResNet-50 and ResNet-18, the 20
// longest kernels of each (validate/measurements/2026-11-26-h200). cuDNN's batch norm in NHWC has long loads
// (CUDNN_BATCHNORM_SPATIAL_PERSISTENT).
struct Singles {
  double forward, backward;
};
constexpr Singles batch_norm_nchw{1.6, 2.6}, batch_norm_own{1.5, 1.1};

// PyTorch gives batch norm to cuDNN unless images are in bf16 (ATen/native/Normalization.cpp, _batch_norm_impl_index);
// in NHWC cuDNN does it in its persistent mode (ATen/native/cudnn/BatchNorm.cpp, getCudnnBatchNormMode).
Singles batch_norm_singles(const PassSettings& settings) {
  if (settings.code.memory_format == MemoryFormat::nchw) return batch_norm_nchw;
  const bool own = settings.activation_precision() == Precision::bf16 && !settings.fuses_norms();
  return own ? batch_norm_own : Singles{};
}

Operator streaming(std::string name, const PassSettings& settings, Streaming work, int kernels = 1) {
  return {std::move(name), work, settings.activation_precision(), kernels};
}

Flops per_element(double flops, const FeatureMap& shape, const PassSettings& settings) {
  return Flops(flops * number(settings.batch) * shape.elements());
}

/// The weights (forward) or their gradient (backward) change between fp32 and the format of the matrix units.
void append_cast(std::vector<Operator>& operators, std::string name, double weights, Bytes from, Bytes to,
                 const PassSettings& settings) {
  if (settings.casts_weights()) {
    operators.push_back(streaming(std::move(name), settings,
                                  {StreamingKind::elementwise, weights * from, weights * to, Flops(), false}));
  }
}

/// Its result depends on nothing but the weights.
void append_weight_cast(std::vector<Operator>& operators, double weights, const PassSettings& settings) {
  append_cast(operators, "cast weights", weights, fp32_size, bytes_per_element(settings.activation_precision()),
              settings);
  if (settings.casts_weights()) operators.back().reads_weights_only = true;
}

Operator bias_gradient(const FeatureMap& output, const PassSettings& settings) {
  return streaming("bias gradient", settings,
                   {StreamingKind::reduction, settings.activation_bytes(output), number(output.channels) * fp32_size,
                    per_element(1, output, settings), false});
}

/// A layer with weights: what it does forward, for the gradient of its input, and for that of its weights.
PrimitiveOperators with_weights(const std::string& name, const WeightMatrix& matrix, const NetworkLayer& layer,
                                const FeatureMap& output, const std::array<OperatorWork, 3>& works, bool input_gradient,
                                const PassSettings& settings) {
  const auto product = [&](const OperatorWork& work, std::string_view suffix) {
    return Operator{fmt::format("{}{}", name, suffix), work, settings.precision, 1};
  };
  PrimitiveOperators result;
  result.parameters = matrix.elements() + (layer.bias ? number(matrix.rows) : 0.0);
  result.matrices.push_back(matrix);
  result.keeps_input = true;
  append_weight_cast(result.forward, matrix.elements(), settings);
  result.forward.push_back(product(works[0], ""));
  if (layer.bias) result.backward.push_back(bias_gradient(output, settings));
  if (input_gradient) result.backward.push_back(product(works[1], " data gradient"));
  result.backward.push_back(product(works[2], " weight gradient"));
  append_cast(result.backward, "cast weight gradient", matrix.elements(),
              bytes_per_element(settings.activation_precision()), fp32_size, settings);
  return result;
}

PrimitiveOperators convolution(const NetworkLayer& layer, const FeatureMap& input, const FeatureMap& output,
                               bool input_gradient, const PassSettings& settings) {
  const auto work = [&](ConvolutionPass pass) {
    return Convolution{.n = settings.batch,
                       .c = input.channels,
                       .h = input.height,
                       .w = input.width,
                       .k = output.channels,
                       .r = layer.kernel_h,
                       .s = layer.kernel_w,
                       .p = output.height,
                       .q = output.width,
                       .stride = layer.stride,
                       .groups = layer.groups,
                       .pass = pass,
                       .format = settings.code.memory_format};
  };
  const std::string name =
      fmt::format("conv {}x{}, {} to {}", layer.kernel_h, layer.kernel_w, input.channels, output.channels);
  const WeightMatrix matrix{output.channels, input.channels / layer.groups * layer.kernel_h * layer.kernel_w};
  using enum ConvolutionPass;
  PrimitiveOperators result =
      with_weights(name, matrix, layer, output, {work(forward), work(data_gradient), work(weight_gradient)},
                   input_gradient, settings);
  // PyTorch adds the bias of a cuDNN convolution in a kernel of its own.
  if (layer.bias) {
    const Bytes size = settings.activation_bytes(output);
    result.forward.push_back(
        streaming("bias", settings, {StreamingKind::elementwise, size, size, per_element(1, output, settings), true}));
  }
  return result;
}

// Y[batch, out] = X[batch, in] · Wᵀ + b. The bias is part of the product's epilogue (cublasLt, addmm).
PrimitiveOperators linear(const NetworkLayer& layer, const FeatureMap& input, bool input_gradient,
                          const PassSettings& settings) {
  const std::int64_t in = input.channels, out = layer.out, batch = settings.batch;
  return with_weights(
      fmt::format("linear {} to {}", in, out), {out, in}, layer, {out, 1, 1},
      {linear_forward(batch, out, in), linear_data_gradient(batch, out, in), linear_weight_gradient(batch, out, in)},
      input_gradient, settings);
}

// One fused cuDNN kernel per pass. Forward: read for mean and variance, read again to normalise, write. Backward: input
// and output gradient are read for the two sums over the batch, then read again for the input gradient, which is
// written. Scale, shift, running and saved statistics are fp32, two numbers per channel each. PyTorch counts batches in
// a second kernel.
PrimitiveOperators batch_norm(const FeatureMap& shape, const PassSettings& settings) {
  const Bytes size = settings.activation_bytes(shape);
  const Bytes per_channel = 2.0 * number(shape.channels) * fp32_size;
  const Singles singles = batch_norm_singles(settings);
  const double numbers = number(settings.batch) * shape.elements();
  PrimitiveOperators result;
  result.parameters = 2.0 * number(shape.channels);
  result.keeps_input = true;
  result.kept = per_channel;
  result.forward.push_back(
      streaming("batch norm", settings,
                {StreamingKind::reduction, 2.0 * size + 2.0 * per_channel, size + 2.0 * per_channel,
                 per_element(5, shape, settings), false, singles.forward * numbers},
                2));
  result.backward.push_back(streaming("batch norm gradient", settings,
                                      {StreamingKind::reduction, 4.0 * size + 2.0 * per_channel, size + per_channel,
                                       per_element(9, shape, settings), false, singles.backward * numbers}));
  return result;
}

/// A layer without weights: forward it reads its input, backward its output's gradient or as much so many times.
struct Loop {
  NetworkLayer::Kind kind;
  const char* name;
  OperatorRole role;
  StreamingKind forward, backward;
  double gradient_reads;
  double flops;  ///< for each number of its input; 0: a window for each of its output
  bool fusible;
  bool keeps_input, keeps_output;
  Bytes kept = {};  ///< for each number of its output, written forward and read backward
  Singles singles = {};
};

// ReLU and sigmoid find their derivative from their output, GELU from its input. cuDNN's cross-channel normalisation is
// one kernel per pass; its gradient reads input, output and output gradient. Average pooling keeps its input for its
// shape alone, but keeps it (PyTorch).
using Layers = NetworkLayer::Kind;
using Roles = OperatorRole;
constexpr auto elementwise = StreamingKind::elementwise, reduction = StreamingKind::reduction;
constexpr Loop loops[] = {
    {Layers::relu, "relu", Roles::any, elementwise, elementwise, 2, 1, true, false, true},
    {Layers::sigmoid, "sigmoid", Roles::activation, elementwise, elementwise, 2, 10, true, false, true},
    {Layers::gelu, "gelu", Roles::activation, elementwise, elementwise, 2, 10, true, true, false},
    {Layers::max_pool,
     "max pool",
     Roles::max_pooling,
     reduction,
     reduction,
     1,
     0,
     false,
     true,
     false,
     pooling_index_size,
     {1.3, 2.9}},
    {Layers::average_pool, "average pool", Roles::average_pooling, reduction, elementwise, 1, 1, false, true, false},
    {Layers::global_average_pool, "average pool", Roles::average_pooling, reduction, elementwise, 1, 1, false, true,
     false},
    {Layers::dropout, "dropout", Roles::dropout, elementwise, elementwise, 1, 2, true, false, false, mask_size},
    {Layers::local_response_norm, "local response norm", Roles::any, reduction, reduction, 3, 10, false, true, true}};

PrimitiveOperators operators_of(const Loop& loop, const NetworkLayer& layer, const FeatureMap& input,
                                const FeatureMap& output, bool input_gradient, const PassSettings& settings) {
  const Bytes in = settings.activation_bytes(input), out = settings.activation_bytes(output);
  const Bytes kept = number(settings.batch) * output.elements() * loop.kept;
  const double numbers = number(settings.batch) * input.elements();
  const double window = number(layer.kernel_h) * number(layer.kernel_w);
  const Flops work =
      loop.flops > 0.0 ? per_element(loop.flops, input, settings) : per_element(window, output, settings);
  PrimitiveOperators result;
  result.forward.push_back(in_role(
      loop.role, streaming(loop.name, settings,
                           {loop.forward, in, out + kept, work, loop.fusible, loop.singles.forward * numbers})));
  if (!input_gradient) return result;
  result.keeps_input = loop.keeps_input;
  result.keeps_output = loop.keeps_output;
  result.kept = kept;
  result.backward.push_back(in_role(loop.role, streaming(std::string(loop.name) + " gradient", settings,
                                                         {loop.backward, loop.gradient_reads * out + kept, in, work,
                                                          loop.fusible, loop.singles.backward * numbers})));
  return result;
}

}  // namespace

PrimitiveOperators primitive_operators(const NetworkLayer& layer, const FeatureMap& input, const FeatureMap& output,
                                       bool input_gradient, const PassSettings& settings) {
  if (layer.kind == NetworkLayer::Kind::convolution) return convolution(layer, input, output, input_gradient, settings);
  if (layer.kind == NetworkLayer::Kind::linear) return linear(layer, input, input_gradient, settings);
  if (layer.kind == NetworkLayer::Kind::batch_norm) return batch_norm(input, settings);
  const auto* const loop = std::ranges::find(loops, layer.kind, &Loop::kind);
  if (loop == std::end(loops)) return {};  // a view
  return operators_of(*loop, layer, input, output, input_gradient, settings);
}

Operator sum_of_tensors(std::string name, const FeatureMap& shape, int terms, const PassSettings& settings) {
  const Bytes size = settings.activation_bytes(shape);
  const double sums = terms - 1;
  return streaming(
      std::move(name), settings,
      {StreamingKind::elementwise, 2.0 * sums * size, sums * size, per_element(sums, shape, settings), true},
      terms - 1);
}

Operator part_of_norm(std::string name, Bytes read, Bytes written, const PassSettings& settings) {
  return streaming(std::move(name), settings, {StreamingKind::elementwise, read, written, Flops(), false}, 0);
}

Operator concatenation(const FeatureMap& output, const PassSettings& settings) {
  const Bytes size = settings.activation_bytes(output);
  return streaming("concatenation", settings, {StreamingKind::elementwise, size, size, Flops(), true});
}

PrimitiveOperators loss_operators(const FeatureMap& logits, const PassSettings& settings) {
  const Bytes size = settings.activation_bytes(logits);
  const Bytes probabilities = number(settings.batch) * logits.elements() * fp32_size;
  const Bytes labels = number(settings.batch) * label_size;
  const int casts = settings.casts_weights() ? 1 : 0;
  PrimitiveOperators result;
  result.kept = probabilities + labels;
  // Forward: log-softmax, then the labelled entries are picked and averaged.
  result.forward.push_back(in_role(
      OperatorRole::loss,
      streaming("softmax and cross-entropy", settings,
                {StreamingKind::reduction, size + labels, probabilities, per_element(5, logits, settings), false},
                2 + casts)));
  // Backward: a gradient of zeros with the labelled entries set, then through log-softmax.
  result.backward.push_back(
      in_role(OperatorRole::loss, streaming("softmax and cross-entropy gradient", settings,
                                            {StreamingKind::reduction, 2.0 * probabilities + labels,
                                             probabilities + size, per_element(4, logits, settings), false},
                                            3 + casts)));
  return result;
}

}  // namespace foretrain
