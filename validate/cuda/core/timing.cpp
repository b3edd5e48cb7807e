#include "validate/cuda/core/timing.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "model/base/statistics.hpp"
#include "validate/cuda/core/idle.hpp"
#include "validate/measure/clock.hpp"

namespace foretrain::gpu {

namespace {

/// A stream takes about a thousand launches before the host has to wait.
constexpr int longest_batch = 512;
constexpr double longest_hold_s = 20e-3;

/// Times batches of launches, each handed over while the device is kept busy.
class BatchTimer {
 public:
  BatchTimer(const Stream& stream, const Launch& launch) : stream_(stream.get()), launch_(launch) {}

  /// Seconds per launch.
  double batch(int count) {
    constexpr int most_attempts = 8;
    for (int attempt = 0;; ++attempt) {
      if (!given_up_) keep_busy(Seconds(hold_s_), stream_);
      start_.record(stream_);
      const double begin = now();
      for (int i = 0; i < count; ++i) launch_(stream_, turn_++);
      const double taken = now() - begin;
      end_.record(stream_);
      ahead_ = !start_.happened();
      end_.synchronize();
      const bool again = !ahead_ && !given_up_ && attempt < most_attempts && hold_s_ < longest_hold_s;
      hold_s_ = std::max(1.5 * taken + 10e-6, again ? 2.0 * hold_s_ : 0.0);
      if (again) continue;
      given_up_ = given_up_ || !ahead_;
      return elapsed(start_, end_) / count;
    }
  }
  [[nodiscard]] bool host_bound() const { return given_up_; }
  void forget() { given_up_ = false; }

 private:
  cudaStream_t stream_;
  const Launch& launch_;
  Event start_, end_;
  int turn_ = 0;
  double hold_s_ = 20e-6;  ///< for which the device is kept busy before a batch
  bool ahead_ = false, given_up_ = false;
};

}  // namespace

void keep_busy(Seconds duration, cudaStream_t stream) {
  const double cycles = std::min(duration.value(), longest_hold_s) * 1e3 * device_attribute(cudaDevAttrClockRate);
  launch_spin(static_cast<std::int64_t>(cycles), stream);
}

Sampled time_stream(const Stream& stream, const Launch& launch, const StoppingRule& rule, Seconds least_batch) {
  BatchTimer timer(stream, launch);
  timer.batch(1);  // loads the kernel and fills caches of the libraries
  timer.forget();
  const double once = std::max(timer.batch(2), 1e-7);
  const int count = static_cast<int>(std::clamp(std::ceil(least_batch.value() / once), 1.0, double{longest_batch}));
  Sampled sampled = sample([&] { return timer.batch(count); }, rule);
  if (timer.host_bound()) sampled.note = "launched more slowly than it runs: the time may be the host's";
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
