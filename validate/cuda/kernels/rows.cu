// Softmax, cross-entropy and layer norm: a block for each row, which is read from device memory once and again from the
// caches.
#include "validate/cuda/kernels/vector.cuh"
#include "validate/cuda/math/streaming_kernels.hpp"

namespace foretrain::gpu {

namespace {

template <int width, typename Visit, typename... Packs>
__device__ void visit_packs(Visit visit, std::int64_t first, std::int64_t limit, const Packs&... packs) {
  for (int e = 0; e < width; ++e) {
    if (first + e < limit) visit(first + e, to_float(packs.value[e])...);
  }
}

/// Calls `visit(column, value of each row)` for the columns of this thread below `limit`; packs of `width` are loaded.
template <int width, typename Visit, typename... T>
__device__ void over_row(std::int64_t limit, Visit visit, const T*... rows) {
  for (std::int64_t i = static_cast<std::int64_t>(threadIdx.x) * width; i < limit;
       i += static_cast<std::int64_t>(blockDim.x) * width) {
    visit_packs<width>(visit, i, limit, load<T, width>(rows + i)...);
  }
}

/// Writes compute(column, value of each row) for all columns.
template <int width, typename U, typename Compute, typename... T>
__device__ void map_row(U* out, std::int64_t columns, Compute compute, const T*... rows) {
  for (std::int64_t i = static_cast<std::int64_t>(threadIdx.x) * width; i < columns;
       i += static_cast<std::int64_t>(blockDim.x) * width) {
    Pack<U, width> result;
    visit_packs<width>([&](std::int64_t column,
                           auto... values) { result.value[column - i] = from_float<U>(compute(column, values...)); },
                       i, columns, load<T, width>(rows + i)...);
    store<U, width>(out + i, result);
  }
}

/// `queries` > 0: causal, see masked_softmax_forward(). `logarithm`: of the probabilities.
template <typename T, typename U, int width, bool logarithm>
__global__ void softmax_kernel(const T* x, U* y, std::int64_t columns, std::int64_t queries) {
  const auto row = static_cast<std::int64_t>(blockIdx.x);
  const T* from = x + row * columns;
  const std::int64_t seen = queries > 0 ? columns - queries + row % queries + 1 : columns;
  float largest = Largest::neutral;
  over_row<width>(
      seen, [&](std::int64_t, float value) { largest = fmaxf(largest, value); }, from);
  largest = over_block(largest, Largest());
  float sum = 0.0F;
  over_row<width>(
      seen, [&](std::int64_t, float value) { sum += __expf(value - largest); }, from);
  sum = over_block(sum, Add());
  const float inverse = 1.0F / sum, shift = largest + __logf(sum);
  const auto probability = [&](std::int64_t column, float value) {
    if constexpr (logarithm) return value - shift;
    return column < seen ? __expf(value - largest) * inverse : 0.0F;
  };
  map_row<width>(y + row * columns, columns, probability, from);
}

/// The largest magnitude that fp16 has too.
constexpr float masked = -65504.0F;

template <typename T, int width>
__global__ void mask_kernel(T* x, std::int64_t columns, std::int64_t queries) {
  const auto row = static_cast<std::int64_t>(blockIdx.x);
  T* const numbers = x + row * columns;
  const std::int64_t seen = columns - queries + row % queries + 1;
  map_row<width>(
      numbers, columns, [&](std::int64_t column, float value) { return column < seen ? value : masked; },
      static_cast<const T*>(numbers));
}

template <typename T, int width>
__global__ void softmax_gradient_kernel(const T* y, const T* dy, T* dx, std::int64_t columns) {
  const std::int64_t start = static_cast<std::int64_t>(blockIdx.x) * columns;
  float product = 0.0F;
  over_row<width>(
      columns, [&](std::int64_t, float value, float gradient) { product += value * gradient; }, y + start, dy + start);
  product = over_block(product, Add());
  map_row<width>(
      dx + start, columns, [&](std::int64_t, float value, float gradient) { return value * (gradient - product); },
      y + start, dy + start);
}

__global__ void loss_kernel(const float* log_probabilities, const std::int64_t* labels, float* loss, std::int64_t rows,
                            std::int64_t columns) {
  float sum = 0.0F;
  for (std::int64_t row = threadIdx.x; row < rows; row += blockDim.x) {
    sum -= log_probabilities[row * columns + labels[row]];
  }
  sum = over_block(sum, Add());
  if (threadIdx.x == 0) *loss = sum / static_cast<float>(rows);
}

__global__ void loss_gradient_kernel(const std::int64_t* labels, float* gradient, std::int64_t rows,
                                     std::int64_t columns) {
  const std::int64_t row = global_thread();
  if (row < rows) gradient[row * columns + labels[row]] = -1.0F / static_cast<float>(rows);
}

/// dx = g - exp(y) · sum(g), with y the logarithms of probabilities.
template <int width>
__global__ void log_softmax_gradient_kernel(const float* y, const float* gradient, float* dx, std::int64_t columns) {
  const std::int64_t start = static_cast<std::int64_t>(blockIdx.x) * columns;
  float sum = 0.0F;
  over_row<width>(
      columns, [&](std::int64_t, float value) { sum += value; }, gradient + start);
  sum = over_block(sum, Add());
  map_row<width>(
      dx + start, columns, [&](std::int64_t, float value, float g) { return g - __expf(value) * sum; }, y + start,
      gradient + start);
}

template <typename T, int width>
__global__ void layer_norm_kernel(const T* x, const float* scale, const float* shift, T* y, NormStatistics statistics,
                                  std::int64_t columns) {
  const auto row = static_cast<std::int64_t>(blockIdx.x);
  const T* from = x + row * columns;
  float sum = 0.0F, squares = 0.0F;
  over_row<width>(
      columns, [&](std::int64_t, float value) { sum += value; }, from);
  const float mean = over_block(sum, Add()) / static_cast<float>(columns);
  over_row<width>(
      columns, [&](std::int64_t, float value) { squares += (value - mean) * (value - mean); }, from);
  const float inverse = rsqrtf(over_block(squares, Add()) / static_cast<float>(columns) + 1e-5F);
  map_row<width>(
      y + row * columns, columns,
      [&](std::int64_t, float value, float factor, float offset) { return (value - mean) * inverse * factor + offset; },
      from, scale, shift);
  if (threadIdx.x == 0) {
    statistics.mean[row] = mean;
    statistics.inverse_deviation[row] = inverse;
  }
}

/// dx = r · (g - mean(g) - x̂ · mean(g · x̂)), with g = dy · scale and x̂ = (x - mean) · r.
template <typename T, int width>
__global__ void layer_norm_gradient_kernel(const T* x, const T* dy, const float* scale, NormStatistics statistics,
                                           T* dx, std::int64_t columns) {
  const auto row = static_cast<std::int64_t>(blockIdx.x);
  const std::int64_t start = row * columns;
  const float mean = statistics.mean[row], inverse = statistics.inverse_deviation[row];
  float sum = 0.0F, product = 0.0F;
  const auto add = [&](std::int64_t, float value, float gradient, float factor) {
    sum += gradient * factor;
    product += gradient * factor * (value - mean) * inverse;
  };
  over_row<width>(columns, add, x + start, dy + start, scale);
  const float part = 1.0F / static_cast<float>(columns);
  const float of_g = over_block(sum, Add()) * part, of_product = over_block(product, Add()) * part;
  const auto compute = [&](std::int64_t, float value, float gradient, float factor) {
    return inverse * (gradient * factor - of_g - (value - mean) * inverse * of_product);
  };
  map_row<width>(dx + start, columns, compute, x + start, dy + start, scale);
}

/// Sums over a share of the rows (blockIdx.y) for `width` columns a thread, added to those of the other shares.
template <typename T, int width>
__global__ void layer_norm_parameters_kernel(const T* x, const T* dy, NormStatistics statistics, float* scale_gradient,
                                             float* shift_gradient, std::int64_t rows, std::int64_t columns) {
  const std::int64_t column = global_thread() * width;
  if (column >= columns) return;
  float scale[width], shift[width];
  for (int e = 0; e < width; ++e) scale[e] = shift[e] = 0.0F;
  for (std::int64_t row = blockIdx.y; row < rows; row += gridDim.y) {
    const auto value = load<T, width>(x + row * columns + column);
    const auto gradient = load<T, width>(dy + row * columns + column);
    const float mean = statistics.mean[row], inverse = statistics.inverse_deviation[row];
    for (int e = 0; e < width; ++e) {
      const float g = to_float(gradient.value[e]);
      scale[e] += g * (to_float(value.value[e]) - mean) * inverse;
      shift[e] += g;
    }
  }
  for (int e = 0; e < width; ++e) {
    atomicAdd(scale_gradient + column + e, scale[e]);
    atomicAdd(shift_gradient + column + e, shift[e]);
  }
}

/// Calls `work` with how many numbers of each row can be read at once: 16 bytes' worth where rows begin at such places.
template <typename T, typename Work>
void with_width(std::int64_t columns, Work work) {
  if (columns % full_width<T> == 0) return work.template operator()<full_width<T>>();
  return work.template operator()<1>();
}

template <typename Work>
void over_rows(Format format, std::int64_t columns, Work work) {
  with_type(format,
            [&]<typename T>() { with_width<T>(columns, [&]<int width>() { work.template operator()<T, width>(); }); });
  GPU_CHECK(cudaGetLastError());
}

}  // namespace

void masked_softmax_forward(Format format, const void* x, void* y, std::int64_t rows, std::int64_t columns,
                            std::int64_t queries, cudaStream_t stream) {
  over_rows(format, columns, [&]<typename T, int w>() {
    softmax_kernel<T, T, w, false><<<static_cast<unsigned>(rows), threads_for_row(columns / w), 0, stream>>>(
        static_cast<const T*>(x), static_cast<T*>(y), columns, queries);
  });
}

void mask_scores(Format format, void* x, std::int64_t rows, std::int64_t columns, std::int64_t queries,
                 cudaStream_t stream) {
  over_rows(format, columns, [&]<typename T, int w>() {
    mask_kernel<T, w><<<static_cast<unsigned>(rows), threads_for_row(columns / w), 0, stream>>>(static_cast<T*>(x),
                                                                                                columns, queries);
  });
}

void softmax_forward(Format format, const void* x, void* y, std::int64_t rows, std::int64_t columns,
                     cudaStream_t stream) {
  masked_softmax_forward(format, x, y, rows, columns, 0, stream);
}

void softmax_backward(Format format, const void* y, const void* dy, void* dx, std::int64_t rows, std::int64_t columns,
                      cudaStream_t stream) {
  over_rows(format, columns, [&]<typename T, int w>() {
    softmax_gradient_kernel<T, w><<<static_cast<unsigned>(rows), threads_for_row(columns / w), 0, stream>>>(
        static_cast<const T*>(y), static_cast<const T*>(dy), static_cast<T*>(dx), columns);
  });
}

void cross_entropy_forward(Format format, const void* logits, const std::int64_t* labels, float* log_probabilities,
                           float* loss, std::int64_t rows, std::int64_t columns, cudaStream_t stream) {
  over_rows(format, columns, [&]<typename T, int w>() {
    softmax_kernel<T, float, w, true><<<static_cast<unsigned>(rows), threads_for_row(columns / w), 0, stream>>>(
        static_cast<const T*>(logits), log_probabilities, columns, 0);
  });
  loss_kernel<<<1, 1024, 0, stream>>>(log_probabilities, labels, loss, rows, columns);
  GPU_CHECK(cudaGetLastError());
}

void cross_entropy_backward(Format format, const float* log_probabilities, const std::int64_t* labels, float* sparse,
                            float* wide, void* gradient, std::int64_t rows, std::int64_t columns, cudaStream_t stream) {
  const std::int64_t elements = rows * columns;
  GPU_CHECK(cudaMemsetAsync(sparse, 0, static_cast<std::size_t>(elements) * sizeof(float), stream));
  loss_gradient_kernel<<<blocks_for(rows), block_size, 0, stream>>>(labels, sparse, rows, columns);
  GPU_CHECK(cudaGetLastError());
  with_width<float>(columns, [&]<int w>() {
    log_softmax_gradient_kernel<w><<<static_cast<unsigned>(rows), threads_for_row(columns / w), 0, stream>>>(
        log_probabilities, sparse, wide, columns);
  });
  GPU_CHECK(cudaGetLastError());
  if (format != Format::fp32) cast(format, wide, gradient, elements, stream);
}

void layer_norm_forward(Format format, const void* x, const float* scale, const float* shift, void* y,
                        NormStatistics statistics, std::int64_t rows, std::int64_t columns, cudaStream_t stream) {
  over_rows(format, columns, [&]<typename T, int w>() {
    layer_norm_kernel<T, w><<<static_cast<unsigned>(rows), threads_for_row(columns / w), 0, stream>>>(
        static_cast<const T*>(x), scale, shift, static_cast<T*>(y), statistics, columns);
  });
}

void layer_norm_backward(Format format, const void* x, const void* dy, const float* scale, NormStatistics statistics,
                         void* dx, float* scale_gradient, float* shift_gradient, std::int64_t rows,
                         std::int64_t columns, cudaStream_t stream) {
  const std::size_t bytes = static_cast<std::size_t>(columns) * sizeof(float);
  GPU_CHECK(cudaMemsetAsync(scale_gradient, 0, bytes, stream));
  GPU_CHECK(cudaMemsetAsync(shift_gradient, 0, bytes, stream));
  over_rows(format, columns, [&]<typename T, int w>() {
    layer_norm_gradient_kernel<T, w><<<static_cast<unsigned>(rows), threads_for_row(columns / w), 0, stream>>>(
        static_cast<const T*>(x), static_cast<const T*>(dy), scale, statistics, static_cast<T*>(dx), columns);
    GPU_CHECK(cudaGetLastError());
    constexpr unsigned threads = 64;
    const auto across = static_cast<unsigned>((columns / w + threads - 1) / threads);
    const std::int64_t shares = 16LL * multiprocessors() / across + 1;
    const dim3 grid(across, static_cast<unsigned>(rows < shares ? rows : shares));
    layer_norm_parameters_kernel<T, w><<<grid, threads, 0, stream>>>(
        static_cast<const T*>(x), static_cast<const T*>(dy), statistics, scale_gradient, shift_gradient, rows, columns);
  });
}

}  // namespace foretrain::gpu
