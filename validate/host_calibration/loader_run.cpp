#include "validate/host_calibration/loader_run.hpp"

#include <semaphore.h>
#include <unistd.h>

#include <chrono>
#include <deque>
#include <numeric>
#include <stdexcept>
#include <thread>
#include <vector>

#include "model/base/number.hpp"
#include "model/base/process.hpp"
#include "validate/measure/clock.hpp"
#include "validate/measure/signals.hpp"

namespace foretrain {

namespace {

/// A worker's process and its batches, which it fills round and round in memory that it shares.
class LoaderWorker {
 public:
  LoaderWorker(const LoaderRun& run, int number)
      : run_(run),
        batch_(run.sample * at_index(run.batch)),
        memory_(sizeof(Queue) + batch_ * at_index(run.prefetch) * sizeof(float)),
        queue_(memory_.as<Queue>(1).front()) {
    sem_init(&queue_.room, 1, static_cast<unsigned>(run.prefetch));
    sem_init(&queue_.filled, 1, 0);
    process_ = Process::copy([this, number] { work(at_index(number) * 7919U); });
  }

  /// Waits for the next batch; the one after it is then begun.
  void take() {
    timespec until{};
    do {
      throw_if_interrupted();
      if (process_.ended()) throw std::runtime_error("a worker process ended");
      clock_gettime(CLOCK_MONOTONIC, &until);
      ++until.tv_sec;
    } while (sem_clockwait(&queue_.filled, CLOCK_MONOTONIC, &until) != 0);
    if (queue_.failed) throw std::runtime_error("a worker process could not read its samples");
    sem_post(&queue_.room);
  }

 private:
  struct Queue {
    sem_t room, filled;
    bool failed;
  };

  void work(std::size_t next) {
    std::vector<std::uint8_t> stored(run_.sample);
    float* batches = reinterpret_cast<float*>(&queue_ + 1);
    for (int k = 0; !queue_.failed; ++k) {
      while (sem_wait(&queue_.room) != 0) continue;
      float* out = batches + at_index(k % run_.prefetch) * batch_;
      for (int i = 0; i < run_.batch; ++i, next += 104'729U) {
        const auto offset = static_cast<off_t>(next % run_.samples * run_.sample);
        const ssize_t count = pread(run_.file, stored.data(), run_.sample, offset);
        queue_.failed = queue_.failed || count != static_cast<ssize_t>(run_.sample);
        decode_sample(stored, {out + at_index(i) * run_.sample, run_.sample});
      }
      sem_post(&queue_.filled);
    }
  }

  const LoaderRun& run_;
  std::size_t batch_;  ///< numbers
  SharedMemory memory_;
  Queue& queue_;
  Process process_;
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
    const SharedMemory memory(at_index(count) * sizeof(double));
    const std::span<double> samples = memory.as<double>(at_index(count));
    std::vector<Process> children;
    for (double& own : samples) {
      children.push_back(Process::copy([&own, sample, duration] {
        const std::vector<std::uint8_t> stored(sample, 3);
        std::vector<float> decoded(sample);
        for (const double end = now() + duration.value(); now() < end; ++own) decode_sample(stored, decoded);
      }));
    }
    for (Process& child : children) child.wait();
    throw_if_interrupted();
    return std::accumulate(samples.begin(), samples.end(), 0.0);
  };
  const double alone = decoded_by(1);
  return alone > 0.0 ? decoded_by(workers) / alone : 1.0;
}

}  // namespace foretrain
