#include "validate/host_calibration/loader_run.hpp"

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <deque>
#include <numeric>
#include <semaphore>
#include <stdexcept>
#include <thread>
#include <vector>

#include "model/base/number.hpp"
#include "validate/measure/clock.hpp"
#include "validate/measure/signals.hpp"

namespace foretrain {

namespace {

/// A worker's thread and its batches, which it fills round and round.
class LoaderWorker {
 public:
  LoaderWorker(const LoaderRun& run, int number)
      : run_(run), next_(at_index(number) * 7919U), room_(run.prefetch), thread_([this] { work(); }) {}
  ~LoaderWorker() {
    stopped_ = true;
    room_.release();
  }
  LoaderWorker(const LoaderWorker&) = delete;
  LoaderWorker& operator=(const LoaderWorker&) = delete;

  /// Waits for the next batch; the one after it is then begun.
  void take() {
    filled_.acquire();
    throw_if_interrupted();
    if (failed_) throw std::runtime_error("a worker could not read its samples");
    room_.release();
  }

 private:
  void work() {
    const std::size_t batch = run_.sample * at_index(run_.batch);
    std::vector<std::uint8_t> stored(run_.sample);
    std::vector<float> batches(batch * at_index(run_.prefetch));
    for (int k = 0; !failed_; ++k) {
      room_.acquire();
      if (stopped_) return;
      float* out = batches.data() + at_index(k % run_.prefetch) * batch;
      for (int i = 0; i < run_.batch; ++i, next_ += 104'729U) {
        const auto offset = static_cast<off_t>(next_ % run_.samples * run_.sample);
        const ssize_t count = pread(run_.file, stored.data(), run_.sample, offset);
        if (count != static_cast<ssize_t>(run_.sample)) failed_ = true;
        decode_sample(stored, {out + at_index(i) * run_.sample, run_.sample});
      }
      filled_.release();
    }
  }

  const LoaderRun& run_;
  std::size_t next_;
  std::atomic<bool> stopped_ = false, failed_ = false;
  std::counting_semaphore<> room_, filled_{0};
  std::jthread thread_;
};

}  // namespace

void decode_sample(std::span<const std::uint8_t> stored, std::span<float> decoded) {
  std::uint8_t left = 0;
  float smooth = 0.0F;
  for (std::size_t i = 0; i < stored.size(); ++i) {
    left = static_cast<std::uint8_t>(left + stored[i]);
    smooth = smooth * 0.75F + static_cast<float>(left) * 0.25F;
    decoded[i] = smooth;
  }
  for (std::size_t i = decoded.size(); i-- > 1;) decoded[i] = (decoded[i] + decoded[i - 1]) * (0.5F / 255.0F) - 0.45F;
}

Seconds measure_loader(const LoaderRun& run) {
  std::deque<LoaderWorker> workers;
  for (int w = 0; w < run.workers; ++w) workers.emplace_back(run, w);
  // Whole rounds: every worker has given as many batches when the clock stops as when it started.
  const int settle = run.workers * (run.prefetch + 1);
  const int timed = (run.batches + run.workers - 1) / run.workers * run.workers;
  double start = 0.0;
  for (int k = 0; k < settle + timed; ++k) {
    if (k == settle) start = now();
    workers[at_index(k % run.workers)].take();
    // The next batch is begun when one is taken; the step that uses it comes after.
    std::this_thread::sleep_for(std::chrono::duration<double>(run.step.value()));
  }
  return Seconds((now() - start) / timed);
}

double measure_parallel_decoding(int workers, std::size_t sample, Seconds duration) {
  const auto decoded_by = [&](int count) {
    std::vector<double> samples(at_index(count));
    {
      std::vector<std::jthread> threads;
      for (double& own : samples) {
        threads.emplace_back([&own, sample, duration] {
          const std::vector<std::uint8_t> stored(sample, 3);
          std::vector<float> decoded(sample);
          double done = 0.0;
          for (const double end = now() + duration.value(); now() < end; ++done) decode_sample(stored, decoded);
          own = done;
        });
      }
    }
    throw_if_interrupted();
    return std::accumulate(samples.begin(), samples.end(), 0.0);
  };
  const double alone = decoded_by(1);
  return alone > 0.0 ? decoded_by(workers) / alone : 1.0;
}

}  // namespace foretrain
