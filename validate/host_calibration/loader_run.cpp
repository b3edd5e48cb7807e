#include "validate/host_calibration/loader_run.hpp"

#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <stdexcept>
#include <system_error>
#include <vector>

#include "validate/host_replay/session.hpp"
#include "validate/measure/signals.hpp"

namespace foretrain {

namespace {

[[noreturn]] void fail(const char* what) { throw std::system_error(errno, std::generic_category(), what); }

class Pipe {
 public:
  Pipe() {
    if (pipe(ends_) != 0) fail("a pipe to a worker");
  }
  ~Pipe() {
    close_reader();
    close_writer();
  }
  Pipe(Pipe&& other) noexcept {
    std::swap(ends_[0], other.ends_[0]);
    std::swap(ends_[1], other.ends_[1]);
  }
  Pipe& operator=(Pipe&&) = delete;
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;

  void close_reader() { close_end(ends_[0]); }
  void close_writer() { close_end(ends_[1]); }

  /// False when the other end is closed.
  [[nodiscard]] bool take(std::uint8_t& token) const {
    for (;;) {
      const ssize_t n = read(ends_[0], &token, 1);
      if (n == 1) return true;
      if (n == 0 || errno != EINTR) return false;
      if (interrupted()) return false;
    }
  }
  [[nodiscard]] bool give(std::uint8_t token) const {
    ssize_t n = -1;
    while ((n = write(ends_[1], &token, 1)) < 0 && errno == EINTR) {
    }
    return n == 1;
  }

 private:
  static void close_end(int& end) {
    if (end >= 0) close(end);
    end = -1;
  }
  int ends_[2] = {-1, -1};
};

class SharedBytes {
 public:
  explicit SharedBytes(std::size_t size) : size_(size) {
    memory_ = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory_ == MAP_FAILED) fail("memory shared with workers");
  }
  ~SharedBytes() { munmap(memory_, size_); }
  SharedBytes(const SharedBytes&) = delete;
  SharedBytes& operator=(const SharedBytes&) = delete;
  [[nodiscard]] float* floats() const { return static_cast<float*>(memory_); }

 private:
  void* memory_ = nullptr;
  std::size_t size_ = 0;
};

/// Children, none of which outlives this.
class Children {
 public:
  template <typename Work>
  void start(const Work& work) {
    const pid_t child = fork();
    if (child < 0) fail("starting a worker");
    if (child == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      work();
      _exit(0);
    }
    children_.push_back(child);
  }
  ~Children() {
    for (const pid_t child : children_) kill(child, SIGKILL);
    for (const pid_t child : children_) waitpid(child, nullptr, 0);
  }

 private:
  std::vector<pid_t> children_;
};

/// One worker's queue: which slot to fill next, and which is full.
struct Queue {
  Pipe orders, done;
};

std::size_t slot_floats(const LoaderRun& run) {
  return run.sample * floats_per_byte * static_cast<std::size_t>(run.batch);
}

/// Fills slots as they are ordered, until there are no more orders.
void work(const LoaderRun& run, int worker, Queue& queue, float* slots) {
  std::vector<std::uint8_t> stored(run.sample);
  std::size_t next = static_cast<std::size_t>(worker) * 7919U;
  std::uint8_t slot = 0;
  while (queue.orders.take(slot)) {
    float* out = slots + slot * slot_floats(run);
    for (int i = 0; i < run.batch; ++i, next += 104'729U) {
      const auto offset = static_cast<off_t>(next % run.samples * run.sample);
      if (pread(run.file, stored.data(), run.sample, offset) != static_cast<ssize_t>(run.sample)) _exit(1);
      const std::size_t floats = run.sample * floats_per_byte;
      decode_sample(stored, {out + static_cast<std::size_t>(i) * floats, floats});
    }
    if (!queue.done.give(slot)) break;
  }
}

void pass(Seconds time) {
  if (!(time > Seconds(0.0))) return;
  timespec duration{};
  duration.tv_sec = static_cast<time_t>(time.value());
  duration.tv_nsec = static_cast<long>((time.value() - static_cast<double>(duration.tv_sec)) * 1e9);
  nanosleep(&duration, nullptr);
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
  const SharedBytes memory(slot_floats(run) * sizeof(float) * static_cast<std::size_t>(run.workers * run.prefetch));
  std::vector<Queue> queues(static_cast<std::size_t>(run.workers));
  Children children;
  for (int w = 0; w < run.workers; ++w) {
    children.start([&] {
      for (int other = 0; other < run.workers; ++other) {
        Queue& queue = queues[static_cast<std::size_t>(other)];
        queue.orders.close_writer();
        queue.done.close_reader();
        if (other == w) continue;
        queue.orders.close_reader();
        queue.done.close_writer();
      }
      float* slots = memory.floats() + static_cast<std::size_t>(w * run.prefetch) * slot_floats(run);
      work(run, w, queues[static_cast<std::size_t>(w)], slots);
    });
  }
  for (Queue& queue : queues) {
    queue.orders.close_reader();
    queue.done.close_writer();
    for (int slot = 0; slot < run.prefetch; ++slot) {
      if (!queue.orders.give(static_cast<std::uint8_t>(slot))) throw std::runtime_error("a worker process ended");
    }
  }
  // Whole rounds: every worker has given as many batches when the clock stops as when it started.
  const int settle = run.workers * (run.prefetch + 1);
  const int timed = (run.batches + run.workers - 1) / run.workers * run.workers;
  double start = 0.0;
  for (int k = 0; k < settle + timed; ++k) {
    if (k == settle) start = now();
    Queue& queue = queues[static_cast<std::size_t>(k % run.workers)];
    std::uint8_t slot = 0;
    if (!queue.done.take(slot)) {
      throw_if_interrupted();
      throw std::runtime_error("a worker process ended");
    }
    // The next batch is ordered when one is taken; the step that uses it comes after.
    if (!queue.orders.give(slot)) throw std::runtime_error("a worker process ended");
    pass(run.step);
  }
  return Seconds((now() - start) / timed);
}

double measure_parallel_decoding(int processes, std::size_t sample, Seconds duration) {
  const auto decoded_by = [&](int count) {
    Pipe results;
    Children children;
    for (int p = 0; p < count; ++p) {
      children.start([&] {
        std::vector<std::uint8_t> stored(sample, 3);
        std::vector<float> decoded(sample * floats_per_byte);
        const double end = now() + duration.value();
        std::uint8_t tenths = 0;
        for (std::size_t samples = 1; now() < end; ++samples) {
          decode_sample(stored, decoded);
          if (samples % 4 == 0 && !results.give(tenths)) break;
        }
      });
    }
    results.close_writer();
    std::uint8_t token = 0;
    double four_samples = 0.0;
    while (results.take(token)) ++four_samples;
    throw_if_interrupted();
    return four_samples;
  };
  const double alone = decoded_by(1);
  return alone > 0.0 ? decoded_by(processes) / alone : 1.0;
}

int usable_processors() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) != 0) return 1;
  return std::max(1, CPU_COUNT(&set));
}

}  // namespace foretrain
