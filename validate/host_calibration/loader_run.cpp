#include "validate/host_calibration/loader_run.hpp"

#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <stdexcept>
#include <thread>
#include <vector>

#include "model/base/descriptor.hpp"
#include "model/base/number.hpp"
#include "model/base/process.hpp"
#include "validate/measure/clock.hpp"
#include "validate/measure/signals.hpp"

namespace foretrain {

namespace {

/// Reads one token; false when the other end is closed.
bool take(const Descriptor& reader, std::uint8_t& token) {
  for (;;) {
    const ssize_t n = read(reader.number(), &token, 1);
    if (n == 1) return true;
    if (n == 0 || errno != EINTR) return false;
    if (interrupted()) return false;
  }
}

bool give(const Descriptor& writer, std::uint8_t token) {
  ssize_t n = -1;
  while ((n = write(writer.number(), &token, 1)) < 0 && errno == EINTR) continue;
  return n == 1;
}

/// One worker's queue: which slot to fill next, and which is full.
struct Queue {
  Pipe orders, done;
};

std::size_t slot_floats(const LoaderRun& run) { return run.sample * at_index(run.batch); }

/// Fills slots as they are ordered, until there are no more orders.
void work(const LoaderRun& run, int worker, Queue& queue, float* slots) {
  std::vector<std::uint8_t> stored(run.sample);
  std::size_t next = at_index(worker) * 7919U;
  std::uint8_t slot = 0;
  while (take(queue.orders.reader, slot)) {
    float* out = slots + slot * slot_floats(run);
    for (int i = 0; i < run.batch; ++i, next += 104'729U) {
      const auto offset = static_cast<off_t>(next % run.samples * run.sample);
      if (pread(run.file, stored.data(), run.sample, offset) != static_cast<ssize_t>(run.sample)) _exit(1);
      decode_sample(stored, {out + at_index(i) * run.sample, run.sample});
    }
    if (!give(queue.done.writer, slot)) break;
  }
}

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
  const SharedMemory memory(slot_floats(run) * sizeof(float) * at_index(run.workers) * at_index(run.prefetch));
  std::vector<Queue> queues(at_index(run.workers));
  std::vector<Process> children;
  for (int w = 0; w < run.workers; ++w) {
    children.push_back(Process::copy([&] {
      for (int other = 0; other < run.workers; ++other) {
        Queue& queue = queues[at_index(other)];
        queue.orders.writer.close();
        queue.done.reader.close();
        if (other == w) continue;
        queue.orders.reader.close();
        queue.done.writer.close();
      }
      float* slots = memory.as<float>(1).data() + at_index(w) * at_index(run.prefetch) * slot_floats(run);
      work(run, w, queues[at_index(w)], slots);
    }));
  }
  for (Queue& queue : queues) {
    queue.orders.reader.close();
    queue.done.writer.close();
    for (int slot = 0; slot < run.prefetch; ++slot) {
      if (!give(queue.orders.writer, static_cast<std::uint8_t>(slot)))
        throw std::runtime_error("a worker process ended");
    }
  }
  // Whole rounds: every worker has given as many batches when the clock stops as when it started.
  const int settle = run.workers * (run.prefetch + 1);
  const int timed = (run.batches + run.workers - 1) / run.workers * run.workers;
  double start = 0.0;
  for (int k = 0; k < settle + timed; ++k) {
    if (k == settle) start = now();
    Queue& queue = queues[at_index(k % run.workers)];
    std::uint8_t slot = 0;
    if (!take(queue.done.reader, slot)) {
      throw_if_interrupted();
      throw std::runtime_error("a worker process ended");
    }
    // The next batch is ordered when one is taken; the step that uses it comes after.
    if (!give(queue.orders.writer, slot)) throw std::runtime_error("a worker process ended");
    std::this_thread::sleep_for(std::chrono::duration<double>(run.step.value()));
  }
  return Seconds((now() - start) / timed);
}

double measure_parallel_decoding(int processes, std::size_t sample, Seconds duration) {
  const auto decoded_by = [&](int count) {
    Pipe results;
    std::vector<Process> children;
    for (int p = 0; p < count; ++p) {
      children.push_back(Process::copy([&] {
        std::vector<std::uint8_t> stored(sample, 3);
        std::vector<float> decoded(sample);
        const double end = now() + duration.value();
        const std::uint8_t token = 0;
        for (std::size_t samples = 1; now() < end; ++samples) {
          decode_sample(stored, decoded);
          if (samples % 4 == 0 && !give(results.writer, token)) break;
        }
      }));
    }
    results.writer.close();
    std::uint8_t token = 0;
    double four_samples = 0.0;
    while (take(results.reader, token)) ++four_samples;
    throw_if_interrupted();
    return four_samples;
  };
  const double alone = decoded_by(1);
  return alone > 0.0 ? decoded_by(processes) / alone : 1.0;
}

}  // namespace foretrain
