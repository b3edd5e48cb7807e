// Embeddings, optimizers and gradient clipping.
#include "validate/cuda/kernels/vector.cuh"
#include "validate/cuda/math/streaming_kernels.hpp"

namespace foretrain::gpu {

namespace {

constexpr std::int64_t chunks = 2048;

template <typename T, int width>
__global__ void embedding_kernel(const T* table, const std::int64_t* tokens, T* y, std::int64_t count,
                                 std::int64_t packs) {
  for (std::int64_t i = global_thread(); i < count * packs; i += all_threads()) {
    const std::int64_t token = i / packs, pack = i % packs;
    store<T, width>(y + i * width, load<T, width>(table + (tokens[token] * packs + pack) * width));
  }
}

__device__ void add_pair(float* place, Pack<float, 2> pair) {
  atomicAdd(place, pair.value[0]);
  atomicAdd(place + 1, pair.value[1]);
}
__device__ void add_pair(__half* place, Pack<__half, 2> pair) {
  atomicAdd(reinterpret_cast<__half2*>(place), __halves2half2(pair.value[0], pair.value[1]));
}
__device__ void add_pair(__nv_bfloat16* place, Pack<__nv_bfloat16, 2> pair) {
#if __CUDA_ARCH__ >= 800
  atomicAdd(reinterpret_cast<__nv_bfloat162*>(place), __halves2bfloat162(pair.value[0], pair.value[1]));
#else
  __trap();  // bf16 is refused before it comes here
#endif
}

template <typename T>
__global__ void embedding_gradient_kernel(const T* dy, const std::int64_t* tokens, T* gradient, std::int64_t count,
                                          std::int64_t width) {
  const std::int64_t pairs = width / 2;
  for (std::int64_t i = global_thread(); i < count * pairs; i += all_threads()) {
    const std::int64_t token = i / pairs, pair = i % pairs;
    add_pair(gradient + tokens[token] * width + 2 * pair, load<T, 2>(dy + 2 * i));
  }
}

__device__ float decayed(float state, float gradient, float decay) {
  return state + (1.0F - decay) * (gradient - state);
}

/// New weight of one parameter; its states are changed in place.
template <UpdateRule rule>
__device__ float updated(float weight, float gradient, float& first, float& second, UpdateCoefficients c) {
  if constexpr (rule == UpdateRule::sgd) return weight - c.rate * gradient;
  if constexpr (rule == UpdateRule::momentum) {
    first = c.first_decay * first + gradient;
    return weight - c.rate * first;
  }
  if constexpr (rule == UpdateRule::adamw) weight *= 1.0F - c.rate * c.weight_decay;
  first = decayed(first, gradient, c.first_decay);
  second = c.second_decay * second + (1.0F - c.second_decay) * gradient * gradient;
  return weight - c.rate * first / (sqrtf(second) + c.epsilon);
}

template <UpdateRule rule, int width, typename T>
__device__ void update_pack(const UpdateOperands& o, T* copy, std::int64_t at, UpdateCoefficients c) {
  constexpr bool has_first = rule != UpdateRule::sgd;
  constexpr bool has_second = rule == UpdateRule::adam || rule == UpdateRule::adamw;
  auto weights = load<float, width>(o.weights + at);
  const auto gradients = load<float, width>(o.gradients + at);
  Pack<float, width> first{}, second{};
  if constexpr (has_first) first = load<float, width>(o.first + at);
  if constexpr (has_second) second = load<float, width>(o.second + at);
  for (int e = 0; e < width; ++e) {
    weights.value[e] = updated<rule>(weights.value[e], gradients.value[e], first.value[e], second.value[e], c);
  }
  store<float, width>(o.weights + at, weights);
  if constexpr (has_first) store<float, width>(o.first + at, first);
  if constexpr (has_second) store<float, width>(o.second + at, second);
  if (copy == nullptr) return;
  Pack<T, width> narrow;
  for (int e = 0; e < width; ++e) narrow.value[e] = from_float<T>(weights.value[e]);
  store<T, width>(copy + at, narrow);
}

template <UpdateRule rule, typename T>
__global__ void update_kernel(UpdateOperands operands, UpdateCoefficients coefficients) {
  constexpr int width = 4;
  const std::int64_t packs = operands.count / width, i = global_thread(), rest = packs * width + i;
  T* const copy = static_cast<T*>(operands.copy);
  if (i < packs) update_pack<rule, width>(operands, copy, i * width, coefficients);
  if (rest < operands.count) update_pack<rule, 1>(operands, copy, rest, coefficients);
}

// Elementary operations of an update, x op y op z. Named as PyTorch's.
struct Lerp {
  __device__ float operator()(float x, float y, float) const { return x + factor * (y - x); }
  float factor;
};
struct Scale {
  __device__ float operator()(float x, float, float) const { return factor * x; }
  float factor;
};
struct AddScaled {
  __device__ float operator()(float x, float y, float) const { return x + factor * y; }
  float factor;
};
struct AddProduct {
  __device__ float operator()(float x, float y, float z) const { return x + factor * y * z; }
  float factor;
};
struct AddQuotient {
  __device__ float operator()(float x, float y, float z) const { return x + factor * y / z; }
  float factor;
};
struct SquareRoot {
  __device__ float operator()(float x, float, float) const { return sqrtf(x); }
};
struct AddNumber {
  __device__ float operator()(float x, float, float) const { return x + number; }
  float number;
};

/// out = operation(x, y, z); y and z are read where they are given and are no copies of each other.
template <typename Operation>
__global__ void operation_kernel(Operation operation, const float* x, const float* y, const float* z, float* out,
                                 std::int64_t count) {
  constexpr int width = 4;
  const std::int64_t packs = count / width, i = global_thread(), rest = packs * width + i;
  if (i < packs) {
    auto result = load<float, width>(x + i * width);
    Pack<float, width> second{}, third{};
    if (y != nullptr) second = load<float, width>(y + i * width);
    if (z != nullptr) third = z == y ? second : load<float, width>(z + i * width);
    for (int e = 0; e < width; ++e) {
      result.value[e] = operation(result.value[e], second.value[e], third.value[e]);
    }
    store<float, width>(out + i * width, result);
  }
  if (rest < count) {
    out[rest] = operation(x[rest], y != nullptr ? y[rest] : 0.0F, z != nullptr ? z[rest] : 0.0F);
  }
}

template <typename T>
__global__ void norm_kernel(const T* gradients, std::int64_t count, float* sums) {
  constexpr int width = full_width<T>;
  const std::int64_t packs = count / width;
  float sum = 0.0F;
  for (std::int64_t i = global_thread(); i < packs; i += all_threads()) {
    const auto pack = load<T, width>(gradients + i * width);
    for (int e = 0; e < width; ++e) sum += to_float(pack.value[e]) * to_float(pack.value[e]);
  }
  const std::int64_t rest = packs * width + global_thread();
  if (rest < count) sum += to_float(gradients[rest]) * to_float(gradients[rest]);
  sum = over_block(sum, Add());
  if (threadIdx.x == 0) sums[blockIdx.x] = sum;
}

__global__ void sum_kernel(const float* numbers, std::int64_t count, float* total) {
  float sum = 0.0F;
  for (std::int64_t i = threadIdx.x; i < count; i += blockDim.x) sum += numbers[i];
  sum = over_block(sum, Add());
  if (threadIdx.x == 0) *total = sum;
}

__global__ void factor_kernel(const float* total, float* factor, float largest) {
  *factor = fminf(1.0F, largest / (sqrtf(*total) + 1e-6F));
}

template <typename T>
__global__ void scale_kernel(T* numbers, std::int64_t count, const float* factor) {
  constexpr int width = full_width<T>;
  const std::int64_t packs = count / width, i = global_thread(), rest = packs * width + i;
  const float by = *factor;
  if (i < packs) {
    auto pack = load<T, width>(numbers + i * width);
    for (int e = 0; e < width; ++e) pack.value[e] = from_float<T>(to_float(pack.value[e]) * by);
    store<T, width>(numbers + i * width, pack);
  }
  if (rest < count) numbers[rest] = from_float<T>(to_float(numbers[rest]) * by);
}

template <typename Work>
void with_rule(UpdateRule rule, Work work) {
  switch (rule) {
    case UpdateRule::sgd:
      return work.template operator()<UpdateRule::sgd>();
    case UpdateRule::momentum:
      return work.template operator()<UpdateRule::momentum>();
    case UpdateRule::adam:
      return work.template operator()<UpdateRule::adam>();
    case UpdateRule::adamw:
      return work.template operator()<UpdateRule::adamw>();
  }
}

}  // namespace

void embedding_forward(Format format, const void* table, const std::int64_t* tokens, void* y, std::int64_t count,
                       std::int64_t width, cudaStream_t stream) {
  with_type(format, [&]<typename T>() {
    const auto launch = [&]<int w>() {
      embedding_kernel<T, w><<<blocks_for(count * (width / w)), block_size, 0, stream>>>(
          static_cast<const T*>(table), tokens, static_cast<T*>(y), count, width / w);
    };
    if (width % full_width<T> == 0) return launch.template operator()<full_width<T>>();
    return launch.template operator()<1>();
  });
  GPU_CHECK(cudaGetLastError());
}

void embedding_backward(Format format, const void* dy, const std::int64_t* tokens, void* gradient, std::int64_t count,
                        std::int64_t width, std::int64_t vocabulary, cudaStream_t stream) {
  if (width % 2 != 0) throw GpuError(Fault::unsupported, "the embedding's gradient needs an even width");
  GPU_CHECK(cudaMemsetAsync(gradient, 0, static_cast<std::size_t>(vocabulary * width) * size_of(format), stream));
  with_type(format, [&]<typename T>() {
    embedding_gradient_kernel<T><<<blocks_for(count * (width / 2)), block_size, 0, stream>>>(
        static_cast<const T*>(dy), tokens, static_cast<T*>(gradient), count, width);
  });
  GPU_CHECK(cudaGetLastError());
}

void fused_update(UpdateRule rule, Format copy_format, const UpdateOperands& operands, cudaStream_t stream) {
  with_type(copy_format, [&]<typename T>() {
    with_rule(rule, [&]<UpdateRule update>() {
      update_kernel<update, T>
          <<<blocks_for(operands.count / 4 + 4), block_size, 0, stream>>>(operands, UpdateCoefficients());
    });
  });
  GPU_CHECK(cudaGetLastError());
}

void separate_update(UpdateRule rule, Format copy_format, const UpdateOperands& o, cudaStream_t stream) {
  const UpdateCoefficients c;
  const auto apply = [&](auto operation, const float* x, const float* y, const float* z, float* out) {
    operation_kernel<<<blocks_for(o.count / 4 + 4), block_size, 0, stream>>>(operation, x, y, z, out, o.count);
    GPU_CHECK(cudaGetLastError());
  };
  if (rule == UpdateRule::sgd) {
    apply(AddScaled{-c.rate}, o.weights, o.gradients, nullptr, o.weights);
  } else if (rule == UpdateRule::momentum) {
    apply(Scale{c.first_decay}, o.first, nullptr, nullptr, o.first);
    apply(AddScaled{1.0F}, o.first, o.gradients, nullptr, o.first);
    apply(AddScaled{-c.rate}, o.weights, o.first, nullptr, o.weights);
  } else {
    if (rule == UpdateRule::adamw) {
      apply(Scale{1.0F - c.rate * c.weight_decay}, o.weights, nullptr, nullptr, o.weights);
    }
    apply(Lerp{1.0F - c.first_decay}, o.first, o.gradients, nullptr, o.first);
    apply(Scale{c.second_decay}, o.second, nullptr, nullptr, o.second);
    apply(AddProduct{1.0F - c.second_decay}, o.second, o.gradients, o.gradients, o.second);
    apply(SquareRoot{}, o.second, nullptr, nullptr, o.scratch);
    apply(Scale{1.0F}, o.scratch, nullptr, nullptr, o.scratch);  // division by the bias correction's root
    apply(AddNumber{c.epsilon}, o.scratch, nullptr, nullptr, o.scratch);
    apply(AddQuotient{-c.rate}, o.weights, o.first, o.scratch, o.weights);
  }
  if (o.copy != nullptr) cast(copy_format, o.weights, o.copy, o.count, stream);
}

std::int64_t norm_chunks() { return chunks; }

void norm_of_chunks(Format format, const void* gradients, std::int64_t count, float* sums, cudaStream_t stream) {
  with_type(format, [&]<typename T>() {
    // Always all of the chunks: those without work write 0.
    norm_kernel<T>
        <<<static_cast<unsigned>(chunks), block_size, 0, stream>>>(static_cast<const T*>(gradients), count, sums);
  });
  GPU_CHECK(cudaGetLastError());
}

void clipping_factor(const float* sums, std::int64_t count, float* total, float* factor, float largest,
                     cudaStream_t stream) {
  sum_kernel<<<1, 1024, 0, stream>>>(sums, count, total);
  GPU_CHECK(cudaGetLastError());
  factor_kernel<<<1, 1, 0, stream>>>(total, factor, largest);
  GPU_CHECK(cudaGetLastError());
}

void scale_by(Format format, void* gradients, std::int64_t count, const float* factor, cudaStream_t stream) {
  with_type(format, [&]<typename T>() {
    scale_kernel<T><<<blocks_for(count / full_width<T> + full_width<T>), block_size, 0, stream>>>(
        static_cast<T*>(gradients), count, factor);
  });
  GPU_CHECK(cudaGetLastError());
}

}  // namespace foretrain::gpu
