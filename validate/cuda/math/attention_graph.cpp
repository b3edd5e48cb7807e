#ifdef FORETRAIN_HAS_CUDNN
#include "validate/cuda/math/attention_graph.hpp"

#include <utility>

namespace foretrain::gpu {

namespace {

using Sizes = std::vector<std::int64_t>;

/// Adds elementary operations whose results are virtual tensors.
class Builder {
 public:
  Builder(CudnnGraph& graph, const AttentionShape& s, Format format)
      : type(cudnn_type(format)),
        queries{s.batch, s.heads, s.queries, s.head_dim},
        keys{s.batch, s.kv_heads, s.keys, s.head_dim},
        rows{s.batch, s.heads, s.queries, 1},
        scores{s.batch, s.heads, s.queries, s.keys},
        graph_(graph) {}

  const cudnnDataType_t type;  ///< the attention's format: what products take as their factors
  const Sizes queries, keys, rows, scores;

  /// Given at launch; `transposed`: the last two extents exchanged in a view of the same memory.
  std::int64_t real(const Sizes& sizes, cudnnDataType_t of, bool transposed = false) {
    return add(sizes, of, transposed, false);
  }
  /// A result that only other operations read.
  std::int64_t inner(const Sizes& sizes, cudnnDataType_t of = CUDNN_DATA_FLOAT, bool transposed = false) {
    return add(sizes, of, transposed, true);
  }
  std::int64_t number() { return graph_.tensor({.sizes = {1, 1, 1, 1}, .strides = {1, 1, 1, 1}, .by_value = true}); }

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
  std::int64_t causal_mask(std::int64_t x, std::int64_t lowest) {
    const std::int64_t row = index_along(x, 2), column = index_along(x, 3);
    const std::int64_t kept =
        pointwise(CUDNN_POINTWISE_CMP_GE, row, column, inner(scores, CUDNN_DATA_BOOLEAN), CUDNN_DATA_BOOLEAN);
    const std::int64_t y = inner(scores);
    pointwise_operation(CUDNN_POINTWISE_BINARY_SELECT, CUDNN_DATA_FLOAT, -1)
        .set(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, graph_.descriptor(x))
        .set(CUDNN_ATTR_OPERATION_POINTWISE_BDESC, graph_.descriptor(lowest))
        .set(CUDNN_ATTR_OPERATION_POINTWISE_TDESC, graph_.descriptor(kept))
        .set(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, graph_.descriptor(y))
        .finish();
    return y;
  }

 private:
  std::int64_t add(Sizes sizes, cudnnDataType_t of, bool transposed, bool is_virtual) {
    Sizes strides = {sizes[1] * sizes[2] * sizes[3], sizes[2] * sizes[3], sizes[3], 1};
    if (transposed) std::swap(sizes[2], sizes[3]);
    if (transposed) std::swap(strides[2], strides[3]);
    return graph_.tensor({.type = of, .sizes = sizes, .strides = strides, .is_virtual = is_virtual});
  }
  std::int64_t index_along(std::int64_t x, std::int64_t axis) {
    const std::int64_t y = inner(scores, CUDNN_DATA_INT32);
    pointwise_operation(CUDNN_POINTWISE_GEN_INDEX, CUDNN_DATA_INT32, axis)
        .set(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, graph_.descriptor(x))
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
};

}  // namespace

AttentionIds attention_forward_graph(CudnnGraph& graph, const AttentionShape& shape, Format format) {
  Builder b(graph, shape, format);
  AttentionIds ids;
  ids.q = b.real(b.queries, b.type);
  ids.k = b.real(b.keys, b.type, true);
  ids.v = b.real(b.keys, b.type);
  ids.out = b.real(b.queries, b.type);
  ids.statistics = b.real(b.rows, CUDNN_DATA_FLOAT);
  ids.scale = b.number();
  std::int64_t scores = b.product(ids.q, ids.k, b.inner(b.scores));
  scores = b.pointwise(CUDNN_POINTWISE_MUL, scores, ids.scale, b.inner(b.scores));
  if (shape.causal) {
    ids.lowest = b.number();
    scores = b.causal_mask(scores, ids.lowest);
  }
  const std::int64_t largest = b.reduce(CUDNN_REDUCE_TENSOR_MAX, scores, b.inner(b.rows));
  const std::int64_t shifted = b.pointwise(CUDNN_POINTWISE_SUB, scores, largest, b.inner(b.scores));
  const std::int64_t exponentials = b.pointwise(CUDNN_POINTWISE_EXP, shifted, 0, b.inner(b.scores));
  const std::int64_t sum = b.reduce(CUDNN_REDUCE_TENSOR_ADD, exponentials, b.inner(b.rows));
  const std::int64_t logarithm = b.pointwise(CUDNN_POINTWISE_LOG, sum, 0, b.inner(b.rows));
  b.pointwise(CUDNN_POINTWISE_ADD, largest, logarithm, ids.statistics);
  const std::int64_t weights = b.pointwise(CUDNN_POINTWISE_DIV, exponentials, sum, b.inner(b.scores, b.type));
  b.product(weights, ids.v, ids.out);
  return ids;
}

AttentionIds attention_backward_graph(CudnnGraph& graph, const AttentionShape& shape, Format format) {
  Builder b(graph, shape, format);
  AttentionIds ids;
  ids.q = b.real(b.queries, b.type);
  ids.k = b.real(b.keys, b.type, true);
  ids.v = b.real(b.keys, b.type, true);
  ids.out = b.real(b.queries, b.type);
  ids.d_out = b.real(b.queries, b.type);
  ids.statistics = b.real(b.rows, CUDNN_DATA_FLOAT);
  ids.row_sums = b.real(b.rows, CUDNN_DATA_FLOAT);
  ids.dq_sums = b.real(b.queries, CUDNN_DATA_FLOAT);
  ids.dq = b.real(b.queries, b.type);
  ids.dk = b.real(b.keys, b.type);
  ids.dv = b.real(b.keys, b.type);
  ids.scale = b.number();
  ids.one = b.number();
  const bool shared = shape.heads != shape.kv_heads;
  // A product with transposed scores, summed over the heads that share keys.
  const auto onto_keys = [&](std::int64_t scores, std::int64_t factor, std::int64_t result) {
    const std::int64_t transposed = b.reshape(scores, b.inner(b.scores, b.type, true));
    if (!shared) return b.product(transposed, factor, result);
    return b.reduce(
        CUDNN_REDUCE_TENSOR_ADD,
        b.product(transposed, factor, b.inner({shape.batch, shape.heads, shape.keys, shape.head_dim}, b.type)), result);
  };
  const std::int64_t products = b.pointwise(CUDNN_POINTWISE_MUL, ids.d_out, ids.out, b.inner(b.queries));
  const std::int64_t sums = b.reduce(CUDNN_REDUCE_TENSOR_ADD, products, b.inner(b.rows));
  b.pointwise(CUDNN_POINTWISE_MUL, sums, ids.one, ids.row_sums);
  std::int64_t scores = b.product(ids.q, ids.k, b.inner(b.scores));
  scores = b.pointwise(CUDNN_POINTWISE_MUL, scores, ids.scale, b.inner(b.scores));
  scores = b.pointwise(CUDNN_POINTWISE_SUB, scores, ids.statistics, b.inner(b.scores));
  if (shape.causal) {
    ids.lowest = b.number();
    scores = b.causal_mask(scores, ids.lowest);
  }
  const std::int64_t weights = b.pointwise(CUDNN_POINTWISE_EXP, scores, 0, b.inner(b.scores));
  onto_keys(weights, ids.d_out, ids.dv);
  std::int64_t gradient = b.product(ids.d_out, ids.v, b.inner(b.scores));
  gradient = b.pointwise(CUDNN_POINTWISE_SUB, gradient, ids.row_sums, b.inner(b.scores));
  gradient = b.pointwise(CUDNN_POINTWISE_MUL, gradient, weights, b.inner(b.scores));
  gradient = b.pointwise(CUDNN_POINTWISE_MUL, gradient, ids.scale, b.inner(b.scores));
  onto_keys(gradient, ids.q, ids.dk);
  const std::int64_t keys = b.reshape(ids.k, b.inner(b.keys, b.type));
  b.product(gradient, keys, ids.dq_sums);
  b.pointwise(CUDNN_POINTWISE_IDENTITY, ids.dq_sums, 0, ids.dq);
  return ids;
}

}  // namespace foretrain::gpu
#endif
