// Own kernels bound by memory. Every function puts kernels on the stream and returns; pointers are to device memory,
// aligned to 16 bytes; `format` is of the tensors, fp32, fp16 or bf16; statistics and parameters are fp32.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "validate/cuda/math/format.hpp"

namespace foretrain::gpu {

inline constexpr int most_operands = 8;
/// Inputs and outputs of an elementwise kernel.
struct ElementwiseOperands {
  const void* inputs[most_operands] = {};
  void* outputs[most_operands] = {};
  int input_count = 1, output_count = 1;
};

/// Output j = (j + 1) / 2 · the sum of all inputs.
void elementwise(Format format, const ElementwiseOperands& operands, std::int64_t elements, cudaStream_t stream);
/// The same, and the sum of all numbers of all inputs into `result`. `scratch`: reduction_scratch() floats, the last of
/// them 0 before the first call.
void reduction(Format format, const ElementwiseOperands& operands, std::int64_t elements, float* result, float* scratch,
               cudaStream_t stream);
std::int64_t reduction_scratch();
/// Reads and writes so many bytes, each rounded down to 16; `gathered`: in rows from anywhere, as an embedding reads.
void traffic(const void* read, std::int64_t read_bytes, void* written, std::int64_t written_bytes, bool gathered,
             cudaStream_t stream);
/// The same as a norm does it: a row is read and reduced by a block, which then writes its part.
void row_traffic(Format format, const void* read, std::int64_t read_bytes, void* written, std::int64_t written_bytes,
                 cudaStream_t stream);
/// fp32 numbers in another format.
void cast(Format format, const float* from, void* to, std::int64_t elements, cudaStream_t stream);
/// Whole numbers below `limit`, the same for the same seed.
void fill_indices(std::int64_t* indices, std::int64_t count, std::int64_t limit, std::uint64_t seed,
                  cudaStream_t stream);

// Over rows. Labels and statistics are one a row.
void softmax_forward(Format format, const void* x, void* y, std::int64_t rows, std::int64_t columns,
                     cudaStream_t stream);
void softmax_backward(Format format, const void* y, const void* dy, void* dx, std::int64_t rows, std::int64_t columns,
                      cudaStream_t stream);
/// y = softmax of the row, of which row i of each `queries` rows keeps its first columns - queries + i + 1 numbers.
void masked_softmax_forward(Format format, const void* x, void* y, std::int64_t rows, std::int64_t columns,
                            std::int64_t queries, cudaStream_t stream);
/// Replaces what masked_softmax_forward() does not keep by the least number of the format.
void mask_scores(Format format, void* x, std::int64_t rows, std::int64_t columns, std::int64_t queries,
                 cudaStream_t stream);
/// Writes fp32 logarithms of probabilities, then the mean loss of the labels.
void cross_entropy_forward(Format format, const void* logits, const std::int64_t* labels, float* log_probabilities,
                           float* loss, std::int64_t rows, std::int64_t columns, cudaStream_t stream);
/// As frameworks do it: the loss's gradient cleared and set at the labels, then that of the logits in fp32, and where
/// they are shorter a cast. `sparse` and `wide`: rows · columns numbers.
void cross_entropy_backward(Format format, const float* log_probabilities, const std::int64_t* labels, float* sparse,
                            float* wide, void* gradient, std::int64_t rows, std::int64_t columns, cudaStream_t stream);
struct NormStatistics {
  float *mean, *inverse_deviation;
};
void layer_norm_forward(Format format, const void* x, const float* scale, const float* shift, void* y,
                        NormStatistics statistics, std::int64_t rows, std::int64_t columns, cudaStream_t stream);
/// dx, then in a second kernel the gradients of scale and shift.
void layer_norm_backward(Format format, const void* x, const void* dy, const float* scale, NormStatistics statistics,
                         void* dx, float* scale_gradient, float* shift_gradient, std::int64_t rows,
                         std::int64_t columns, cudaStream_t stream);

/// Images of [batch, channels, height · width].
struct ImageShape {
  std::int64_t batch, channels, plane;
};
/// Sums over each channel, then y. `sums`: two numbers a channel, left as sum and sum of squares.
void batch_norm_forward(Format format, const void* x, const float* scale, const float* shift, void* y, float* sums,
                        const ImageShape& shape, cudaStream_t stream);
/// `sums`: as the forward pass left them; `gradients`: of shift, then of scale, two numbers a channel.
void batch_norm_backward(Format format, const void* x, const void* dy, const float* scale, const float* sums,
                         float* gradients, void* dx, const ImageShape& shape, cudaStream_t stream);
struct PoolingShape {
  std::int64_t maps, height, width, out_height, out_width;
  int kernel, stride, pad;
};
/// `indices` (place of the maximum in its map): null for the average, which counts the padding.
void pooling_forward(Format format, const void* x, void* y, std::int64_t* indices, const PoolingShape& shape,
                     cudaStream_t stream);
void pooling_backward(Format format, const void* dy, const std::int64_t* indices, void* dx, const PoolingShape& shape,
                      cudaStream_t stream);

void embedding_forward(Format format, const void* table, const std::int64_t* tokens, void* y, std::int64_t count,
                       std::int64_t width, cudaStream_t stream);
/// Clears the table's gradient of `vocabulary` rows, then adds each token's row to it.
void embedding_backward(Format format, const void* dy, const std::int64_t* tokens, void* gradient, std::int64_t count,
                        std::int64_t width, std::int64_t vocabulary, cudaStream_t stream);

enum class UpdateRule { sgd, momentum, adam, adamw };
/// Weights, gradients and states of one tensor, or of all of them one behind the other. `copy`: null, or the weights in
/// the training's format; `scratch`: as many numbers, for adam and adamw tensor by tensor.
struct UpdateOperands {
  float *weights, *first, *second;
  const float* gradients;
  void* copy;
  float* scratch;
  std::int64_t count;
};
/// Coefficients of the updates, such that numbers stay in range over any number of them.
struct UpdateCoefficients {
  float rate = 1e-3F, first_decay = 0.9F, second_decay = 0.999F, epsilon = 1e-8F, weight_decay = 0.01F;
};
/// One kernel reads each input once and writes each result once.
void fused_update(UpdateRule rule, Format copy_format, const UpdateOperands& operands, cudaStream_t stream);
/// A kernel for every elementary operation, as frameworks do without fusion.
void separate_update(UpdateRule rule, Format copy_format, const UpdateOperands& operands, cudaStream_t stream);

/// Sums of squares of chunks into `sums`, one for each of norm_chunks().
void norm_of_chunks(Format format, const void* gradients, std::int64_t count, float* sums, cudaStream_t stream);
std::int64_t norm_chunks();
/// total = sum of `sums`; then factor = min(1, largest / sqrt(total)): a kernel each.
void clipping_factor(const float* sums, std::int64_t count, float* total, float* factor, float largest,
                     cudaStream_t stream);
void scale_by(Format format, void* gradients, std::int64_t count, const float* factor, cudaStream_t stream);

}  // namespace foretrain::gpu
