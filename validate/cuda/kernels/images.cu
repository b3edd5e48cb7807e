// Batch norm and pooling over images whose channels lie one behind the other.
#include "validate/cuda/kernels/vector.cuh"
#include "validate/cuda/math/streaming_kernels.hpp"

namespace foretrain::gpu {

namespace {

constexpr float epsilon = 1e-5F;

struct ChannelNorm {
  float mean, inverse_deviation;
};
/// From the sum and the sum of squares over a channel of `count` numbers.
__device__ ChannelNorm norm_of(const float* sums, std::int64_t channel, float count) {
  const float mean = sums[2 * channel] / count;
  return {mean, rsqrtf(fmaxf(sums[2 * channel + 1] / count - mean * mean, 0.0F) + epsilon)};
}

/// Calls `visit` with the offset of every pack of channel blockIdx.x that is this block's: images are shared out over
/// blockIdx.y.
template <int width, typename Visit>
__device__ void over_channel(const ImageShape& shape, Visit visit) {
  for (std::int64_t image = blockIdx.y; image < shape.batch; image += gridDim.y) {
    const std::int64_t start = (image * shape.channels + blockIdx.x) * shape.plane;
    for (std::int64_t i = static_cast<std::int64_t>(threadIdx.x) * width; i < shape.plane;
         i += static_cast<std::int64_t>(blockDim.x) * width) {
      visit(start + i);
    }
  }
}

__device__ void add_to(float* place, float sum) {
  sum = over_block(sum, Add());
  if (threadIdx.x == 0) atomicAdd(place, sum);
}

template <typename T, int width>
__global__ void channel_sums_kernel(const T* x, float* sums, ImageShape shape) {
  float sum = 0.0F, squares = 0.0F;
  over_channel<width>(shape, [&](std::int64_t place) {
    const auto pack = load<T, width>(x + place);
    for (int e = 0; e < width; ++e) {
      const float value = to_float(pack.value[e]);
      sum += value;
      squares += value * value;
    }
  });
  add_to(sums + 2 * blockIdx.x, sum);
  add_to(sums + 2 * blockIdx.x + 1, squares);
}

template <typename T, int width>
__global__ void channel_norm_kernel(const T* x, const float* scale, const float* shift, T* y, const float* sums,
                                    ImageShape shape) {
  const ChannelNorm norm = norm_of(sums, blockIdx.x, static_cast<float>(shape.batch * shape.plane));
  const float factor = scale[blockIdx.x] * norm.inverse_deviation;
  const float offset = shift[blockIdx.x] - norm.mean * factor;
  over_channel<width>(shape, [&](std::int64_t place) {
    const auto pack = load<T, width>(x + place);
    Pack<T, width> result;
    for (int e = 0; e < width; ++e) result.value[e] = from_float<T>(to_float(pack.value[e]) * factor + offset);
    store<T, width>(y + place, result);
  });
}

template <typename T, int width>
__global__ void channel_gradient_sums_kernel(const T* x, const T* dy, const float* sums, float* gradients,
                                             ImageShape shape) {
  const ChannelNorm norm = norm_of(sums, blockIdx.x, static_cast<float>(shape.batch * shape.plane));
  float sum = 0.0F, product = 0.0F;
  over_channel<width>(shape, [&](std::int64_t place) {
    const auto value = load<T, width>(x + place);
    const auto gradient = load<T, width>(dy + place);
    for (int e = 0; e < width; ++e) {
      const float g = to_float(gradient.value[e]);
      sum += g;
      product += g * (to_float(value.value[e]) - norm.mean) * norm.inverse_deviation;
    }
  });
  add_to(gradients + 2 * blockIdx.x, sum);
  add_to(gradients + 2 * blockIdx.x + 1, product);
}

/// dx = scale · r · (dy - mean(dy) - x̂ · mean(dy · x̂)), with x̂ = (x - mean) · r.
template <typename T, int width>
__global__ void channel_gradient_kernel(const T* x, const T* dy, const float* scale, const float* sums,
                                        const float* gradients, T* dx, ImageShape shape) {
  const auto count = static_cast<float>(shape.batch * shape.plane);
  const ChannelNorm norm = norm_of(sums, blockIdx.x, count);
  const float factor = scale[blockIdx.x] * norm.inverse_deviation;
  const float of_gradient = gradients[2 * blockIdx.x] / count;
  const float of_product = gradients[2 * blockIdx.x + 1] / count * norm.inverse_deviation;
  over_channel<width>(shape, [&](std::int64_t place) {
    const auto value = load<T, width>(x + place);
    const auto gradient = load<T, width>(dy + place);
    Pack<T, width> result;
    for (int e = 0; e < width; ++e) {
      const float centred = to_float(value.value[e]) - norm.mean;
      result.value[e] = from_float<T>(factor * (to_float(gradient.value[e]) - of_gradient - centred * of_product));
    }
    store<T, width>(dx + place, result);
  });
}

template <typename T>
__global__ void pooling_kernel(const T* x, T* y, std::int64_t* indices, PoolingShape s, std::int64_t outputs) {
  for (std::int64_t i = global_thread(); i < outputs; i += all_threads()) {
    const std::int64_t map = i / (s.out_height * s.out_width), place = i % (s.out_height * s.out_width);
    const std::int64_t top = place / s.out_width * s.stride - s.pad, left = place % s.out_width * s.stride - s.pad;
    const T* from = x + map * s.height * s.width;
    float best = indices != nullptr ? -3.4e38F : 0.0F;
    std::int64_t found = 0;
    for (std::int64_t h = top < 0 ? 0 : top; h < top + s.kernel && h < s.height; ++h) {
      for (std::int64_t w = left < 0 ? 0 : left; w < left + s.kernel && w < s.width; ++w) {
        const float value = to_float(from[h * s.width + w]);
        if (indices == nullptr) {
          best += value;
        } else if (value > best) {
          best = value;
          found = h * s.width + w;
        }
      }
    }
    y[i] = from_float<T>(indices != nullptr ? best : best / static_cast<float>(s.kernel * s.kernel));
    if (indices != nullptr) indices[i] = found;
  }
}

/// Each number of the input collects from the windows that it lies in.
template <typename T>
__global__ void pooling_gradient_kernel(const T* dy, const std::int64_t* indices, T* dx, PoolingShape s,
                                        std::int64_t inputs) {
  for (std::int64_t i = global_thread(); i < inputs; i += all_threads()) {
    const std::int64_t map = i / (s.height * s.width), place = i % (s.height * s.width);
    const std::int64_t h = place / s.width + s.pad, w = place % s.width + s.pad;
    const std::int64_t first_h = h < s.kernel ? 0 : (h - s.kernel) / s.stride + 1;
    const std::int64_t first_w = w < s.kernel ? 0 : (w - s.kernel) / s.stride + 1;
    float sum = 0.0F;
    for (std::int64_t p = first_h; p <= h / s.stride && p < s.out_height; ++p) {
      for (std::int64_t q = first_w; q <= w / s.stride && q < s.out_width; ++q) {
        const std::int64_t out = (map * s.out_height + p) * s.out_width + q;
        if (indices == nullptr) {
          sum += to_float(dy[out]) / static_cast<float>(s.kernel * s.kernel);
        } else if (indices[out] == place) {
          sum += to_float(dy[out]);
        }
      }
    }
    dx[i] = from_float<T>(sum);
  }
}

/// A block row for each channel, and as many shares of the images as fill the GPU.
dim3 grid_of(const ImageShape& shape) {
  const std::int64_t shares = 16LL * multiprocessors() / shape.channels + 1;
  return {static_cast<unsigned>(shape.channels),
          static_cast<unsigned>(shape.batch < shares ? shape.batch
                                : shares < 65535     ? shares
                                                     : 65535),
          1};
}

template <typename Work>
void over_images(Format format, const ImageShape& shape, Work work) {
  with_type(format, [&]<typename T>() {
    if (shape.plane % full_width<T> == 0) return work.template operator()<T, full_width<T>>();
    return work.template operator()<T, 1>();
  });
  GPU_CHECK(cudaGetLastError());
}

unsigned threads_for_plane(const ImageShape& shape, int width) {
  const unsigned threads = threads_for_row(shape.plane / width);
  return threads < block_size ? threads : block_size;
}

void clear_pairs(float* pairs, const ImageShape& shape, cudaStream_t stream) {
  GPU_CHECK(cudaMemsetAsync(pairs, 0, static_cast<std::size_t>(2 * shape.channels) * sizeof(float), stream));
}

}  // namespace

void batch_norm_forward(Format format, const void* x, const float* scale, const float* shift, void* y, float* sums,
                        const ImageShape& shape, cudaStream_t stream) {
  clear_pairs(sums, shape, stream);
  over_images(format, shape, [&]<typename T, int w>() {
    const unsigned threads = threads_for_plane(shape, w);
    channel_sums_kernel<T, w><<<grid_of(shape), threads, 0, stream>>>(static_cast<const T*>(x), sums, shape);
    GPU_CHECK(cudaGetLastError());
    channel_norm_kernel<T, w><<<grid_of(shape), threads, 0, stream>>>(static_cast<const T*>(x), scale, shift,
                                                                      static_cast<T*>(y), sums, shape);
  });
}

void batch_norm_backward(Format format, const void* x, const void* dy, const float* scale, const float* sums,
                         float* gradients, void* dx, const ImageShape& shape, cudaStream_t stream) {
  clear_pairs(gradients, shape, stream);
  over_images(format, shape, [&]<typename T, int w>() {
    const unsigned threads = threads_for_plane(shape, w);
    channel_gradient_sums_kernel<T, w><<<grid_of(shape), threads, 0, stream>>>(
        static_cast<const T*>(x), static_cast<const T*>(dy), sums, gradients, shape);
    GPU_CHECK(cudaGetLastError());
    channel_gradient_kernel<T, w><<<grid_of(shape), threads, 0, stream>>>(
        static_cast<const T*>(x), static_cast<const T*>(dy), scale, sums, gradients, static_cast<T*>(dx), shape);
  });
}

void pooling_forward(Format format, const void* x, void* y, std::int64_t* indices, const PoolingShape& shape,
                     cudaStream_t stream) {
  const std::int64_t outputs = shape.maps * shape.out_height * shape.out_width;
  with_type(format, [&]<typename T>() {
    pooling_kernel<T><<<blocks_for(outputs), block_size, 0, stream>>>(static_cast<const T*>(x), static_cast<T*>(y),
                                                                      indices, shape, outputs);
  });
  GPU_CHECK(cudaGetLastError());
}

void pooling_backward(Format format, const void* dy, const std::int64_t* indices, void* dx, const PoolingShape& shape,
                      cudaStream_t stream) {
  const std::int64_t inputs = shape.maps * shape.height * shape.width;
  with_type(format, [&]<typename T>() {
    pooling_gradient_kernel<T><<<blocks_for(inputs), block_size, 0, stream>>>(static_cast<const T*>(dy), indices,
                                                                              static_cast<T*>(dx), shape, inputs);
  });
  GPU_CHECK(cudaGetLastError());
}

}  // namespace foretrain::gpu
