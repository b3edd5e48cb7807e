#ifdef FORETRAIN_HAS_CUDNN
#include "validate/cuda/math/convolution_graph.hpp"

#include <algorithm>
#include <stdexcept>
#include <tuple>

#include "model/base/words.hpp"

namespace foretrain::gpu {

namespace {

ImageTensor add(CudnnGraph& graph, Format format, std::int64_t a, std::int64_t b, std::int64_t c, std::int64_t d) {
  ImageTensor image{format, {a, b, c, d}, {b * c * d, c * d, d, 1}};
  if (size_of(format) == 2) image.strides = {b * c * d, 1, d * b, b};
  image.id = graph.tensor({.type = cudnn_type(format), .sizes = image.sizes, .strides = image.strides});
  return image;
}

struct PassAttributes {
  cudnnBackendDescriptorType_t operation;
  cudnnBackendAttributeName_t alpha, beta, convolution, input, filter, output;
};
/// By ConvolutionPass.
constexpr PassAttributes passes[] = {
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y},
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY},
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY}};

}  // namespace

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
  const std::string word = spec.text_or("pass", "forward");
  const auto pass = value_of<ConvolutionPass>(word);
  if (!pass) throw std::invalid_argument("convolution: pass: unknown word \"" + word + "\"");
  shape.pass = *pass;
  shape.precision = spec.text_or("precision", "fp32");
  return shape;
}

ConvolutionTensors convolution_graph(CudnnGraph& graph, const ConvolutionShape& s, Format format) {
  const ConvolutionTensors tensors{add(graph, format, s.n, s.c, s.h, s.w),
                                   add(graph, format, s.k, s.c / s.groups, s.r, s.s),
                                   add(graph, format, s.n, s.k, s.p, s.q)};
  CudnnDescriptor& convolution = graph.keep(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
  const std::vector<std::int64_t> pads = {s.pad_h, s.pad_w};
  convolution.set(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64, std::int64_t{2})
      .set(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT)
      .set(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, CUDNN_CROSS_CORRELATION)
      .set(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, pads)
      .set(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, pads)
      .set(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, {s.stride, s.stride})
      .set(CUDNN_ATTR_CONVOLUTION_DILATIONS, {1, 1})
      .finish();
  const PassAttributes& names = passes[static_cast<std::size_t>(s.pass)];
  graph.operation(names.operation)
      .set(names.convolution, convolution)
      .set(names.input, graph.descriptor(tensors.input.id))
      .set(names.filter, graph.descriptor(tensors.filter.id))
      .set(names.output, graph.descriptor(tensors.output.id))
      .set(names.alpha, CUDNN_TYPE_FLOAT, 1.0F)
      .set(names.beta, CUDNN_TYPE_FLOAT, 0.0F)
      .finish();
  return tensors;
}

EngineFilter engine_filter(const ConvolutionShape& shape) {
  return {.no_tensor_cores = shape.precision == "fp32",
          .no_narrower_inputs = shape.precision == "fp32" || shape.precision == "tf32"};
}

}  // namespace foretrain::gpu
#endif
