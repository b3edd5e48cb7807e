#include "validate/cuda/core/timing.hpp"

#include <algorithm>
#include <cmath>

#include "validate/measure/clock.hpp"

namespace foretrain::gpu {

namespace {

/// A stream takes about a thousand launches before the host has to wait.
constexpr int longest_batch = 512;

}  // namespace

Sampled time_stream(const Stream& stream, const Launch& launch, const StoppingRule& rule, Seconds least_batch) {
  const Event start;
  const Event end;
  int turn = 0;
  const auto batch = [&](int count) {
    start.record(stream.get());
    for (int i = 0; i < count; ++i) launch(stream.get(), turn++);
    end.record(stream.get());
    end.synchronize();
    return elapsed(start, end) / count;
  };
  batch(1);  // loads the kernel and fills caches of the libraries
  const double once = std::max(batch(2), 1e-7);
  const int count = static_cast<int>(std::clamp(std::ceil(least_batch.value() / once), 1.0, double{longest_batch}));
  return sample([&] { return batch(count); }, rule);
}

Sampled time_host(const std::function<void()>& work, const StoppingRule& rule) {
  return sample(
      [&] {
        const double start = now();
        work();
        return now() - start;
      },
      rule);
}

int rotation_for(std::size_t bytes_per_turn) {
  const std::size_t wanted = 4 * l2_bytes();
  return static_cast<int>(std::clamp<std::size_t>(wanted / std::max<std::size_t>(bytes_per_turn, 1) + 1, 1, 64));
}

}  // namespace foretrain::gpu
