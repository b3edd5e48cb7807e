#include "validate/cuda/collective/host_adder.hpp"

#include <algorithm>
#include <cstring>

// Each processor runs the widest version it has; elsewhere the compiler's own vector width does. ThreadSanitizer is not
// ready yet when the loader asks which version that is.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_THREAD__)
#define FORETRAIN_VECTOR __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define FORETRAIN_VECTOR
#endif

namespace foretrain::gpu {

namespace {

/// Below this, waking threads takes longer than adding.
constexpr std::size_t serial_elements = 32768;

FORETRAIN_VECTOR void add_fp32(float* __restrict sum, const float* __restrict a, const float* __restrict b,
                               std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) sum[i] = a[i] + b[i];
}

FORETRAIN_VECTOR void add_onto_fp32(float* __restrict sum, const float* __restrict a, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) sum[i] += a[i];
}

}  // namespace

void add_serial(float* sum, std::span<const float* const> inputs, std::size_t n) {
  if (inputs.size() == 1) {
    std::memcpy(sum, inputs[0], n * sizeof(float));
    return;
  }
  add_fp32(sum, inputs[0], inputs[1], n);
  for (std::size_t w = 2; w < inputs.size(); ++w) add_onto_fp32(sum, inputs[w], n);
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

void HostAdder::add(float* sum, std::span<const float* const> inputs, std::size_t elements) {
  const std::lock_guard one_at_a_time(callers_);
  if (helpers_.empty() || elements <= serial_elements) return add_serial(sum, inputs, elements);
  const std::size_t shares = helpers_.size() + 1;
  // Whole cache lines, so that no two threads write to the same one.
  const std::size_t share = ((elements + shares - 1) / shares + 31) / 32 * 32;
  work_ = [&](std::size_t index) {
    const std::size_t first = std::min(elements, index * share);
    const std::size_t count = std::min(elements, first + share) - first;
    if (count == 0) return;
    std::vector<const float*> parts;
    for (const float* input : inputs) parts.push_back(input + first);
    add_serial(sum + first, parts, count);
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
