#include "validate/cuda/collective/host_adder.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

// Each processor runs the widest version it has; elsewhere the compiler's own vector width does.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define FORETRAIN_VECTOR __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define FORETRAIN_VECTOR
#endif

namespace foretrain::gpu {

namespace {

/// Below this, waking threads takes longer than adding.
constexpr std::size_t serial_elements = 32768;
/// Sums of half-precision types are kept in fp32 over stretches that stay in the first cache.
constexpr std::size_t stretch = 2048;

FORETRAIN_VECTOR void add_fp32(float* __restrict sum, const float* __restrict a, const float* __restrict b,
                               std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) sum[i] = a[i] + b[i];
}

FORETRAIN_VECTOR void add_onto_fp32(float* __restrict sum, const float* __restrict a, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) sum[i] += a[i];
}

float from_bf16(std::uint16_t bits) { return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16); }

/// Round to nearest, ties to even; a NaN stays one.
std::uint16_t to_bf16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7fffffffU) > 0x7f800000U) return static_cast<std::uint16_t>((bits >> 16) | 0x40U);
  return static_cast<std::uint16_t>((bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16);
}

/// Shifting moves the exponent by 112 too little, which the multiplication mends, of subnormal numbers as well.
float from_fp16(std::uint16_t bits) {
  const std::uint32_t magnitude = static_cast<std::uint32_t>(bits & 0x7fffU) << 13;
  auto value = std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) * 0x1p112F);
  if ((bits & 0x7c00U) == 0x7c00U) value = magnitude | 0x7f800000U;
  return std::bit_cast<float>(value | static_cast<std::uint32_t>(bits & 0x8000U) << 16);
}

/// Round to nearest, ties to even. Adding ½ to a number below 2⁻¹⁴ leaves its subnormal half-precision bits lowest.
std::uint16_t to_fp16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const auto sign = static_cast<std::uint16_t>((bits >> 16) & 0x8000U);
  const std::uint32_t magnitude = bits & 0x7fffffffU;
  std::uint32_t half = 0;
  if (magnitude >= 0x47800000U) {
    half = magnitude > 0x7f800000U ? 0x7e00U : 0x7c00U;
  } else if (magnitude < 0x38800000U) {
    half = std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) + 0.5F) - std::bit_cast<std::uint32_t>(0.5F);
  } else {
    half = (magnitude - 0x38000000U + 0xfffU + ((magnitude >> 13) & 1U)) >> 13;
  }
  return static_cast<std::uint16_t>(half | sign);
}

void sum_fp32(float* sum, std::span<const void* const> inputs, std::size_t n) {
  if (inputs.size() == 1) {
    std::memcpy(sum, inputs[0], n * sizeof(float));
    return;
  }
  add_fp32(sum, static_cast<const float*>(inputs[0]), static_cast<const float*>(inputs[1]), n);
  for (std::size_t w = 2; w < inputs.size(); ++w) add_onto_fp32(sum, static_cast<const float*>(inputs[w]), n);
}

template <float (*From)(std::uint16_t), std::uint16_t (*To)(float)>
void sum_half(std::uint16_t* sum, std::span<const void* const> inputs, std::size_t n) {
  float wide[stretch];
  for (std::size_t start = 0; start < n; start += stretch) {
    const std::size_t count = std::min(stretch, n - start);
    std::fill_n(wide, count, 0.0F);
    for (const void* input : inputs) {
      const std::uint16_t* values = static_cast<const std::uint16_t*>(input) + start;
      for (std::size_t i = 0; i < count; ++i) wide[i] += From(values[i]);
    }
    for (std::size_t i = 0; i < count; ++i) sum[start + i] = To(wide[i]);
  }
}

}  // namespace

void add_serial(GradientType type, void* sum, std::span<const void* const> inputs, std::size_t elements) {
  switch (type) {
    case GradientType::fp32:
      return sum_fp32(static_cast<float*>(sum), inputs, elements);
    case GradientType::fp16:
      return sum_half<from_fp16, to_fp16>(static_cast<std::uint16_t*>(sum), inputs, elements);
    case GradientType::bf16:
      return sum_half<from_bf16, to_bf16>(static_cast<std::uint16_t*>(sum), inputs, elements);
  }
}

HostAdder::HostAdder(int threads) {
  if (threads <= 0) threads = std::clamp(static_cast<int>(std::thread::hardware_concurrency()) / 2, 1, 16);
  for (int i = 1; i < threads; ++i) helpers_.emplace_back([this, i] { serve(static_cast<std::size_t>(i)); });
}

HostAdder::~HostAdder() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  begin_.notify_all();
  for (std::thread& helper : helpers_) helper.join();
}

void HostAdder::serve(std::size_t index) {
  std::uint64_t seen = 0;
  while (true) {
    {
      std::unique_lock lock(mutex_);
      begin_.wait(lock, [&] { return stop_ || turn_ != seen; });
      if (stop_) return;
      seen = turn_;
    }
    work_(index);
    {
      const std::lock_guard lock(mutex_);
      --busy_;
    }
    done_.notify_one();
  }
}

void HostAdder::add(GradientType type, void* sum, std::span<const void* const> inputs, std::size_t elements) {
  const std::lock_guard one_at_a_time(callers_);
  if (helpers_.empty() || elements <= serial_elements) return add_serial(type, sum, inputs, elements);
  const std::size_t shares = helpers_.size() + 1;
  // Whole cache lines, so that no two threads write to the same one.
  const std::size_t share = ((elements + shares - 1) / shares + 31) / 32 * 32;
  const std::size_t width = bytes_of(type);
  work_ = [&](std::size_t index) {
    const std::size_t first = std::min(elements, index * share);
    const std::size_t count = std::min(elements, first + share) - first;
    if (count == 0) return;
    std::vector<const void*> parts;
    for (const void* input : inputs) parts.push_back(static_cast<const char*>(input) + first * width);
    add_serial(type, static_cast<char*>(sum) + first * width, parts, count);
  };
  {
    const std::lock_guard lock(mutex_);
    busy_ = helpers_.size();
    ++turn_;
  }
  begin_.notify_all();
  work_(0);
  std::unique_lock lock(mutex_);
  done_.wait(lock, [&] { return busy_ == 0; });
}

}  // namespace foretrain::gpu
