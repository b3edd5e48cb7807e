// 2-D convolutions and their gradients by cuDNN.
#pragma once

#ifdef FORETRAIN_HAS_CUDNN
#include <vector>

#include "validate/cuda/math/cudnn_graph.hpp"
#include "validate/cuda/math/operator_runner.hpp"
#include "validate/cuda/math/probe.hpp"

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

/// Reads the fields of a `convolution`. Throws std::invalid_argument.
ConvolutionShape convolution_shape(const OperatorSpec& spec);

/// A tensor of four extents, of which the second is channels: they lie last in memory for 16-bit formats, as cuDNN's
/// tensor-core kernels want them, and image by image otherwise.
struct ImageTensor {
  Format format = Format::fp32;
  std::vector<std::int64_t> sizes, strides;
  [[nodiscard]] std::size_t bytes() const;
  [[nodiscard]] std::int64_t place(std::int64_t a, std::int64_t b, std::int64_t c, std::int64_t d) const;
};

struct ConvolutionTensors {
  ImageTensor input, filter, output;
};
ConvolutionTensors convolution_tensors(const ConvolutionShape& shape, Format format);

/// Identifiers of a convolution's tensors in its graph.
struct ConvolutionIds {
  std::int64_t input = 0, filter = 0, output = 0;
};
/// Adds the convolution to an empty graph.
ConvolutionIds convolution_graph(CudnnGraph& graph, const ConvolutionShape& shape, const ConvolutionTensors& tensors);

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

}  // namespace foretrain::gpu
#endif
