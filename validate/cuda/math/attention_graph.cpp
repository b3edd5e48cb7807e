#ifdef FORETRAIN_HAS_CUDNN
#include "validate/cuda/math/attention_graph.hpp"

namespace foretrain::gpu {

namespace {

using Sizes = std::vector<std::int64_t>;

Sizes packed(const Sizes& s) { return {s[1] * s[2] * s[3], s[2] * s[3], s[3], 1}; }
/// The last two extents, or strides, exchanged: a transposed view of the same memory.
Sizes swapped(const Sizes& s) { return {s[0], s[1], s[3], s[2]}; }

/// Adds elementary operations whose results are virtual tensors.
class Builder {
 public:
  Builder(CudnnGraph& graph, const AttentionShape& s, Format format)
      : graph_(graph), type_(cudnn_type(format)), shape_(s), scores_{s.batch, s.heads, s.queries, s.keys} {}

  /// [batch, heads, queries, head_dim] in the attention's format.
  std::int64_t queries() { return real(query_sizes(), type_); }
  std::int64_t keys() { return real(key_sizes(), type_); }
  /// The same memory seen as [batch, kv_heads, head_dim, keys].
  std::int64_t transposed_keys() {
    return graph_.tensor({.type = type_, .sizes = swapped(key_sizes()), .strides = swapped(packed(key_sizes()))});
  }
  std::int64_t fp32_queries() { return real(query_sizes(), CUDNN_DATA_FLOAT); }
  std::int64_t fp32_rows() { return real(row_sizes(), CUDNN_DATA_FLOAT); }
  std::int64_t number() { return graph_.tensor({.sizes = {1, 1, 1, 1}, .strides = {1, 1, 1, 1}, .by_value = true}); }

  std::int64_t of_scores(cudnnDataType_t type = CUDNN_DATA_FLOAT) { return inner(scores_, packed(scores_), type); }
  std::int64_t of_rows() { return inner(row_sizes(), packed(row_sizes()), CUDNN_DATA_FLOAT); }
  std::int64_t like_queries() { return inner(query_sizes(), packed(query_sizes()), CUDNN_DATA_FLOAT); }
  /// In the attention's format: what products take as their first factor.
  std::int64_t narrow_scores() { return of_scores(type_); }
  std::int64_t transposed_scores() { return inner(swapped(scores_), swapped(packed(scores_)), type_); }
  std::int64_t plain_keys() { return inner(key_sizes(), packed(key_sizes()), type_); }
  std::int64_t keys_of_all_heads() {
    const Sizes sizes = {shape_.batch, shape_.heads, shape_.keys, shape_.head_dim};
    return inner(sizes, packed(sizes), type_);
  }

  std::int64_t product(std::int64_t a, std::int64_t b, std::int64_t c) {
    CudnnDescriptor& math = graph_.keep(CUDNN_BACKEND_MATMUL_DESCRIPTOR);
    math.set(CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT).finish();
    graph_.operation(CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR)
        .set(CUDNN_ATTR_OPERATION_MATMUL_ADESC, graph_.descriptor(a))
        .set(CUDNN_ATTR_OPERATION_MATMUL_BDESC, graph_.descriptor(b))
        .set(CUDNN_ATTR_OPERATION_MATMUL_CDESC, graph_.descriptor(c))
        .set(CUDNN_ATTR_OPERATION_MATMUL_DESC, math)
        .finish();
    return c;
  }
  /// y = mode(x), or mode(x, b).
  std::int64_t pointwise(cudnnPointwiseMode_t mode, std::int64_t x, std::int64_t b, std::int64_t y,
                         cudnnDataType_t compute = CUDNN_DATA_FLOAT) {
    CudnnDescriptor& operation = pointwise_operation(mode, compute, -1);
    operation.set(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, graph_.descriptor(x))
        .set(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, graph_.descriptor(y));
    if (b != 0) operation.set(CUDNN_ATTR_OPERATION_POINTWISE_BDESC, graph_.descriptor(b));
    operation.finish();
    return y;
  }
  /// Sum or maximum over keys or head_dim: whatever the last extent is.
  std::int64_t reduce(cudnnReduceTensorOp_t by, std::int64_t x, std::int64_t y) {
    CudnnDescriptor& math = graph_.keep(CUDNN_BACKEND_REDUCTION_DESCRIPTOR);
    math.set(CUDNN_ATTR_REDUCTION_OPERATOR, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE, by)
        .set(CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT)
        .finish();
    graph_.operation(CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR)
        .set(CUDNN_ATTR_OPERATION_REDUCTION_XDESC, graph_.descriptor(x))
        .set(CUDNN_ATTR_OPERATION_REDUCTION_YDESC, graph_.descriptor(y))
        .set(CUDNN_ATTR_OPERATION_REDUCTION_DESC, math)
        .finish();
    return y;
  }
  std::int64_t reshape(std::int64_t x, std::int64_t y) {
    graph_.operation(CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR)
        .set(CUDNN_ATTR_OPERATION_RESHAPE_XDESC, graph_.descriptor(x))
        .set(CUDNN_ATTR_OPERATION_RESHAPE_YDESC, graph_.descriptor(y))
        .finish();
    return y;
  }
  /// Scores of keys behind the query become `lowest`.
  std::int64_t causal_mask(std::int64_t scores, std::int64_t lowest) {
    const std::int64_t row = index_along(scores, 2), column = index_along(scores, 3);
    const std::int64_t kept =
        pointwise(CUDNN_POINTWISE_CMP_GE, row, column, of_scores(CUDNN_DATA_BOOLEAN), CUDNN_DATA_BOOLEAN);
    const std::int64_t y = of_scores();
    pointwise_operation(CUDNN_POINTWISE_BINARY_SELECT, CUDNN_DATA_FLOAT, -1)
        .set(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, graph_.descriptor(scores))
        .set(CUDNN_ATTR_OPERATION_POINTWISE_BDESC, graph_.descriptor(lowest))
        .set(CUDNN_ATTR_OPERATION_POINTWISE_TDESC, graph_.descriptor(kept))
        .set(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, graph_.descriptor(y))
        .finish();
    return y;
  }

 private:
  [[nodiscard]] Sizes query_sizes() const { return {shape_.batch, shape_.heads, shape_.queries, shape_.head_dim}; }
  [[nodiscard]] Sizes key_sizes() const { return {shape_.batch, shape_.kv_heads, shape_.keys, shape_.head_dim}; }
  [[nodiscard]] Sizes row_sizes() const { return {shape_.batch, shape_.heads, shape_.queries, 1}; }
  std::int64_t real(const Sizes& sizes, cudnnDataType_t type) {
    return graph_.tensor({.type = type, .sizes = sizes, .strides = packed(sizes)});
  }
  std::int64_t inner(const Sizes& sizes, const Sizes& strides, cudnnDataType_t type) {
    return graph_.tensor({.type = type, .sizes = sizes, .strides = strides, .is_virtual = true});
  }
  std::int64_t index_along(std::int64_t scores, std::int64_t axis) {
    const std::int64_t y = of_scores(CUDNN_DATA_INT32);
    pointwise_operation(CUDNN_POINTWISE_GEN_INDEX, CUDNN_DATA_INT32, axis)
        .set(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, graph_.descriptor(scores))
        .set(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, graph_.descriptor(y))
        .finish();
    return y;
  }
  CudnnDescriptor& pointwise_operation(cudnnPointwiseMode_t mode, cudnnDataType_t compute, std::int64_t axis) {
    CudnnDescriptor& math = graph_.keep(CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
    math.set(CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, mode)
        .set(CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, compute);
    if (axis >= 0) math.set(CUDNN_ATTR_POINTWISE_AXIS, CUDNN_TYPE_INT64, axis);
    math.finish();
    return graph_.operation(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR)
        .set(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, math);
  }

  CudnnGraph& graph_;
  cudnnDataType_t type_;
  AttentionShape shape_;
  Sizes scores_;
};

}  // namespace

AttentionIds attention_forward_graph(CudnnGraph& graph, const AttentionShape& shape, Format format) {
  Builder b(graph, shape, format);
  AttentionIds ids;
  ids.q = b.queries();
  ids.k = b.transposed_keys();
  ids.v = b.keys();
  ids.out = b.queries();
  ids.statistics = b.fp32_rows();
  ids.scale = b.number();
  std::int64_t scores = b.product(ids.q, ids.k, b.of_scores());
  scores = b.pointwise(CUDNN_POINTWISE_MUL, scores, ids.scale, b.of_scores());
  if (shape.causal) {
    ids.lowest = b.number();
    scores = b.causal_mask(scores, ids.lowest);
  }
  const std::int64_t largest = b.reduce(CUDNN_REDUCE_TENSOR_MAX, scores, b.of_rows());
  const std::int64_t shifted = b.pointwise(CUDNN_POINTWISE_SUB, scores, largest, b.of_scores());
  const std::int64_t exponentials = b.pointwise(CUDNN_POINTWISE_EXP, shifted, 0, b.of_scores());
  const std::int64_t sum = b.reduce(CUDNN_REDUCE_TENSOR_ADD, exponentials, b.of_rows());
  const std::int64_t logarithm = b.pointwise(CUDNN_POINTWISE_LOG, sum, 0, b.of_rows());
  b.pointwise(CUDNN_POINTWISE_ADD, largest, logarithm, ids.statistics);
  const std::int64_t weights = b.pointwise(CUDNN_POINTWISE_DIV, exponentials, sum, b.narrow_scores());
  b.product(weights, ids.v, ids.out);
  return ids;
}

AttentionIds attention_backward_graph(CudnnGraph& graph, const AttentionShape& shape, Format format) {
  Builder b(graph, shape, format);
  AttentionIds ids;
  ids.q = b.queries();
  ids.k = b.transposed_keys();
  ids.v = b.transposed_keys();
  ids.out = b.queries();
  ids.d_out = b.queries();
  ids.statistics = b.fp32_rows();
  ids.row_sums = b.fp32_rows();
  ids.dq_sums = b.fp32_queries();
  ids.dq = b.queries();
  ids.dk = b.keys();
  ids.dv = b.keys();
  ids.scale = b.number();
  ids.one = b.number();
  const bool shared = shape.heads != shape.kv_heads;
  // A product with transposed scores, summed over the heads that share keys.
  const auto onto_keys = [&](std::int64_t scores, std::int64_t factor, std::int64_t result) {
    const std::int64_t transposed = b.reshape(scores, b.transposed_scores());
    if (!shared) return b.product(transposed, factor, result);
    return b.reduce(CUDNN_REDUCE_TENSOR_ADD, b.product(transposed, factor, b.keys_of_all_heads()), result);
  };
  const std::int64_t products = b.pointwise(CUDNN_POINTWISE_MUL, ids.d_out, ids.out, b.like_queries());
  const std::int64_t sums = b.reduce(CUDNN_REDUCE_TENSOR_ADD, products, b.of_rows());
  b.pointwise(CUDNN_POINTWISE_MUL, sums, ids.one, ids.row_sums);
  std::int64_t scores = b.product(ids.q, ids.k, b.of_scores());
  scores = b.pointwise(CUDNN_POINTWISE_MUL, scores, ids.scale, b.of_scores());
  scores = b.pointwise(CUDNN_POINTWISE_SUB, scores, ids.statistics, b.of_scores());
  if (shape.causal) {
    ids.lowest = b.number();
    scores = b.causal_mask(scores, ids.lowest);
  }
  const std::int64_t weights = b.pointwise(CUDNN_POINTWISE_EXP, scores, 0, b.of_scores());
  onto_keys(weights, ids.d_out, ids.dv);
  std::int64_t gradient = b.product(ids.d_out, ids.v, b.of_scores());
  gradient = b.pointwise(CUDNN_POINTWISE_SUB, gradient, ids.row_sums, b.of_scores());
  gradient = b.pointwise(CUDNN_POINTWISE_MUL, gradient, weights, b.of_scores());
  gradient = b.pointwise(CUDNN_POINTWISE_MUL, gradient, ids.scale, b.of_scores());
  onto_keys(gradient, ids.q, ids.dk);
  const std::int64_t keys = b.reshape(ids.k, b.plain_keys());
  b.product(gradient, keys, ids.dq_sums);
  b.pointwise(CUDNN_POINTWISE_IDENTITY, ids.dq_sums, 0, ids.dq);
  return ids;
}

}  // namespace foretrain::gpu
#endif
