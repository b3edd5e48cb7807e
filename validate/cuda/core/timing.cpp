#include "validate/cuda/core/timing.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "model/base/statistics.hpp"
#include "validate/measure/clock.hpp"

namespace foretrain::gpu {

namespace {

/// A stream takes about a thousand launches before the host has to wait.
constexpr int most_launches = 512;

/// Times batches of launches, each handed over while the device is kept busy.
class BatchTimer {
 public:
  BatchTimer(const Stream& stream, const Launch& launch) : stream_(stream.get()), launch_(launch) {}

  /// Seconds per launch.
  double batch(int count) {
    // If the host did not get ahead before, it may yet, but has few attempts.
    const int most_attempts = behind_ > 0 ? 1 : 8;
    for (int attempt = 0;; ++attempt) {
      keep_busy(Seconds(hold_s_), stream_);
      start_.record(stream_);
      const double begin = now();
      for (int i = 0; i < count; ++i) launch_(stream_, turn_++);
      const double taken = now() - begin;
      end_.record(stream_);
      const bool ahead = !start_.happened();
      end_.synchronize();
      const bool again = !ahead && attempt < most_attempts && hold_s_ < longest_hold_s;
      hold_s_ = std::max(1.5 * taken + 10e-6, (again ? 2.0 : 0.9) * hold_s_);
      if (again) continue;
      ++batches_;
      behind_ += ahead ? 0 : 1;
      return elapsed(start_, end_) / count;
    }
  }
  /// Whether the host was late for a quarter of the batches or more: the median may then be of these.
  [[nodiscard]] bool host_bound() const { return behind_ > 0 && 4 * behind_ >= batches_; }
  void forget() { batches_ = behind_ = 0; }

 private:
  cudaStream_t stream_;
  const Launch& launch_;
  Event start_, end_;
  int turn_ = 0;
  double hold_s_ = 20e-6;         ///< for which the device is kept busy before a batch
  int batches_ = 0, behind_ = 0;  ///< behind_: of which the device had begun before all of it was handed over
};

}  // namespace

void keep_busy(Seconds duration, cudaStream_t stream) {
  const double cycles = std::min(duration.value(), longest_hold_s) * 1e3 * device_attribute(cudaDevAttrClockRate);
  launch_spin(static_cast<std::int64_t>(cycles), stream);
}

int batch_of(double once, Seconds least, int most) {
  return static_cast<int>(std::clamp(std::ceil(least.value() / std::max(once, 1e-9)), 1.0, static_cast<double>(most)));
}

Sampled time_stream(const Stream& stream, const Launch& launch, const StoppingRule& rule, Seconds least_batch,
                    int kernels) {
  BatchTimer timer(stream, launch);
  timer.batch(1);  // loads the kernel and fills caches of the libraries
  timer.forget();
  const int count = batch_of(timer.batch(2), least_batch, std::max(1, most_launches / std::max(1, kernels)));
  Sampled sampled = sample([&] { return timer.batch(count); }, rule);
  if (timer.host_bound()) sampled.note = host_bound_note;
  return sampled;
}

Sampled time_sustained(const Stream& stream, const Launch& launch, Seconds budget, int kernels) {
  const StoppingRule rule{.warm_up = 1, .least = 10, .most = 200, .target = 0.0, .budget = budget};
  Sampled sampled = time_stream(stream, launch, rule, Seconds(20e-3), kernels);
  const auto half = static_cast<std::ptrdiff_t>(sampled.values.size() / 2);
  sampled.values.erase(sampled.values.begin(), sampled.values.begin() + half);
  return sampled;
}

Seconds time_flushed(const Stream& stream, const Launch& launch) {
  constexpr std::size_t launches = 15;
  const DeviceBuffer other(2 * l2_bytes());
  const std::array<Event, launches> starts, ends;
  const auto interval = [&](const Launch& put) {
    keep_busy(Seconds(1e-3), stream.get());
    for (std::size_t i = 0; i < launches; ++i) {
      GPU_CHECK(cudaMemsetAsync(other.data(), static_cast<int>(i), other.size(), stream.get()));
      starts[i].record(stream.get());
      put(stream.get(), static_cast<int>(i));
      ends[i].record(stream.get());
    }
    stream.synchronize();
    std::vector<double> times;
    for (std::size_t i = 0; i < launches; ++i) times.push_back(elapsed(starts[i], ends[i]));
    return Seconds(median(times));
  };
  return interval(launch) - interval([](cudaStream_t, int) {});
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

void warm_clocks(Seconds duration) {
  const Stream stream;
  for (double left = duration.value(); left > 0.0; left -= longest_hold_s) {
    keep_busy(Seconds(longest_hold_s), stream.get());
  }
  stream.synchronize();
}

}  // namespace foretrain::gpu
