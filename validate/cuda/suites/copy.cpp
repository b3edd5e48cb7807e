// Copies between host and device. No scenario states them: parameter `what` names the quantity:
//   host_copy        `direction` to_device, to_host or both (one each way at once, until both are done), `memory`
//                    pinned or pageable, `bytes` each way; `timing` stream: many in a row, host: one call and its wait
//   pinned_allocate  cudaMallocHost
//   fresh_copy       to pageable memory that was never touched
#include <algorithm>
#include <array>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "validate/cuda/core/suite.hpp"
#include "validate/cuda/suites/points.hpp"
#include "validate/measure/clock.hpp"

namespace foretrain::gpu {

namespace {

constexpr std::size_t mib = 1024 * 1024;
constexpr std::size_t gib = 1024 * mib;

/// What the host can spare for a buffer: a quarter of what is available.
std::size_t host_room() {
  std::ifstream in("/proc/meminfo");
  for (std::string word; in >> word;) {
    std::size_t kilobytes = 0;
    if (word == "MemAvailable:" && in >> kilobytes) return kilobytes * 1024 / 4;
  }
  return gib;
}

struct Direction {
  const char* word;
  bool to_device, to_host;
};
constexpr Direction directions[] = {{"to_device", true, false}, {"to_host", false, true}, {"both", true, true}};

class CopySuite {
 public:
  explicit CopySuite(SuiteRun& run) : run_(run), most_(std::min({host_room() / 2, usable_memory() / 2, 4 * gib})) {
    if (run.quick()) most_ = std::min(most_, 256 * mib);
  }

  void copies() {
    const std::size_t factor = run_.quick() ? 16 : 4;
    for (const bool pinned : {true, false}) {
      host_ = {};
      for (std::size_t bytes = 4; bytes <= most_; bytes *= factor) {
        for (const Direction& direction : directions) {
          if (pinned) streamed(bytes, direction);
          if (!pinned || bytes <= 64 * mib || direction.to_device == direction.to_host) {
            waited_for(bytes, direction, pinned);
          }
        }
      }
    }
    host_ = {};
    device_ = {};
  }

  void page_locks() {
    for (std::size_t bytes = mib; bytes <= std::min(most_, gib); bytes *= run_.quick() ? 16 : 4) {
      run_.point(plain_point("pinned_allocate", {{"bytes", std::to_string(bytes)}, {"timing", "host"}}), [&] {
        return sample(
            [&] {
              void* memory = nullptr;
              const double start = now();
              GPU_CHECK(cudaMallocHost(&memory, bytes));
              const double taken = now() - start;
              GPU_CHECK(cudaFreeHost(memory));
              return taken;
            },
            rule(bytes));
      });
    }
  }

  /// As frameworks copy a result to the host: into memory that was never touched.
  void fresh_copies() {
    for (std::size_t bytes = 64 * mib; bytes <= std::min(most_, gib); bytes *= 4) {
      const Fields fields = {{"direction", "to_host"}, {"bytes", std::to_string(bytes)}, {"timing", "host"}};
      run_.point(plain_point("fresh_copy", fields), [&] {
        const DeviceBuffer device(bytes);
        return sample(
            [&] {
              const std::unique_ptr<char[]> fresh(new char[bytes]);  // not set to anything
              const double start = now();
              GPU_CHECK(cudaMemcpy(fresh.get(), device.data(), bytes, cudaMemcpyDeviceToHost));
              return now() - start;
            },
            rule(bytes));
      });
    }
  }

 private:
  static Record record(std::size_t bytes, const Direction& direction, Fields fields) {
    fields.insert(fields.begin(), {{"direction", direction.word}, {"bytes", std::to_string(bytes)}});
    return plain_point("host_copy", fields);
  }

  /// Many copies one after the other; both ways on two streams, of which the longer counts.
  void streamed(std::size_t bytes, const Direction& direction) {
    if (direction.to_device && direction.to_host) return;
    run_.point(record(bytes, direction, {{"memory", "pinned"}, {"timing", "stream"}}), [&] {
      const Stream stream;
      const auto copy = [&](cudaStream_t s, int) { enqueue(bytes, direction.to_device, true, s); };
      enqueue(bytes, direction.to_device, true, stream.get());  // makes the buffers
      stream.synchronize();
      return time_stream(stream, copy, rule(bytes));
    });
  }

  void waited_for(std::size_t bytes, const Direction& direction, bool pinned) {
    const Fields fields = {{"memory", pinned ? "pinned" : "pageable"}, {"timing", "host"}};
    run_.point(record(bytes, direction, fields), [&] {
      const Stream there;
      const Stream back;
      const auto copies = [&] {
        if (direction.to_device) enqueue(bytes, true, pinned, there.get());
        if (direction.to_host) enqueue(bytes, false, pinned, back.get());
        there.synchronize();
        back.synchronize();
      };
      copies();
      return time_host(copies, rule(bytes));
    });
  }

  /// One buffer for each way, kept while it is large enough, since making gigabytes takes longer than copying them.
  void enqueue(std::size_t bytes, bool to_device, bool pinned, cudaStream_t stream) {
    std::unique_ptr<HostBuffer>& host = host_[to_device ? 0 : 1];
    DeviceBuffer& device = device_[to_device ? 0 : 1];
    if (!host || host->size() < bytes) {
      host.reset();
      host = std::make_unique<HostBuffer>(bytes, pinned);
    }
    if (device.size() < bytes) {
      device = DeviceBuffer();
      device = DeviceBuffer(bytes);
      const Stream filling;
      device.fill(Format::int8, filling.get());
      filling.synchronize();
    }
    GPU_CHECK(to_device ? cudaMemcpyAsync(device.data(), host->data(), bytes, cudaMemcpyHostToDevice, stream)
                        : cudaMemcpyAsync(host->data(), device.data(), bytes, cudaMemcpyDeviceToHost, stream));
  }

  /// Many points share the suite's time, and a copy of gigabytes is long enough to need few repetitions.
  [[nodiscard]] StoppingRule rule(std::size_t bytes) const {
    StoppingRule rule = run_.rule();
    rule.budget = Seconds(run_.quick() ? 0.1 : 0.3);
    if (bytes >= gib) {
      rule.warm_up = 1;
      rule.least = 3;
    }
    return rule;
  }

  SuiteRun& run_;
  std::size_t most_;
  std::array<std::unique_ptr<HostBuffer>, 2> host_;
  std::array<DeviceBuffer, 2> device_;
};

}  // namespace

void run_copy(SuiteRun& run) {
  CopySuite suite(run);
  suite.copies();
  suite.page_locks();
  suite.fresh_copies();
}

}  // namespace foretrain::gpu
