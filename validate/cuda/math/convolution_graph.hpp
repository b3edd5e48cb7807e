// A convolution, or one of its gradients, as a graph of cuDNN's.
#pragma once

#ifdef FORETRAIN_HAS_CUDNN
#include <cstdint>
#include <string>
#include <vector>

#include "validate/cuda/math/cudnn_graph.hpp"
#include "validate/cuda/math/operator_spec.hpp"

namespace foretrain::gpu {

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
  std::int64_t id = 0;  ///< in its graph
  [[nodiscard]] std::size_t bytes() const {
    return static_cast<std::size_t>(sizes[0] * sizes[1] * sizes[2] * sizes[3]) * size_of(format);
  }
};

struct ConvolutionTensors {
  ImageTensor input, filter, output;
};

/// Reads the fields of a `convolution`. Throws std::invalid_argument.
ConvolutionShape convolution_shape(const OperatorSpec& spec);
/// Adds the operation and its tensors to an empty graph.
ConvolutionTensors convolution_graph(CudnnGraph& graph, const ConvolutionShape& shape, Format format);
/// Which engines keep to the arithmetic of the shape's precision.
EngineFilter engine_filter(const ConvolutionShape& shape);

}  // namespace foretrain::gpu
#endif
