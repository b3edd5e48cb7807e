// Copies between host and device. No scenario states them: parameter `what` names the quantity:
//   host_copy        `direction` to_device, to_host or both (one each way at once, until both are done), `memory`
//   pinned
//                    or pageable, `bytes` each way; `timing` stream: many in a row, host: one call and its wait
//   all_gpus_copy    the same to_device or to_host on every GPU at once, bytes each, until all are done
//   page_lock, page_unlock   cudaHostRegister, cudaHostUnregister of touched memory
//   pinned_allocate  cudaMallocHost and cudaFreeHost
#include <algorithm>
#include <fstream>
#include <memory>
#include <optional>
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
      host_.clear();
      for (std::size_t bytes = 4; bytes <= most_; bytes *= factor) {
        for (const Direction& direction : directions) {
          if (pinned) streamed(bytes, direction);
          if (!pinned || bytes <= 64 * mib || direction.to_device == direction.to_host) {
            waited_for(bytes, direction, pinned);
          }
        }
      }
    }
    host_.clear();
    device_.clear();
  }

  void every_gpu() {
    int gpus = 0;
    GPU_CHECK(cudaGetDeviceCount(&gpus));
    if (gpus < 2) return;
    for (const Direction& direction : directions) {
      if (direction.to_device && direction.to_host) continue;
      const std::size_t bytes = std::min(64 * mib, most_);
      run_.point(record("all_gpus_copy", bytes, direction, {{"gpus", std::to_string(gpus)}, {"memory", "pinned"}}),
                 [&] { return at_once(gpus, bytes, direction); });
    }
  }

  void page_locks() {
    for (std::size_t bytes = mib; bytes <= std::min(most_, gib); bytes *= run_.quick() ? 16 : 4) {
      const Fields fields = {{"bytes", std::to_string(bytes)}, {"timing", "host"}};
      const auto lock_and_unlock = [&](bool time_lock) {
        const HostBuffer buffer(bytes, false);
        return sample(
            [&] {
              const double start = now();
              GPU_CHECK(cudaHostRegister(buffer.data(), bytes, cudaHostRegisterDefault));
              const double locked = now();
              GPU_CHECK(cudaHostUnregister(buffer.data()));
              return time_lock ? locked - start : now() - locked;
            },
            rule(bytes));
      };
      run_.point(plain_point("page_lock", fields), [&] { return lock_and_unlock(true); });
      run_.point(plain_point("page_unlock", fields), [&] { return lock_and_unlock(false); });
      run_.point(plain_point("pinned_allocate", fields), [&] {
        return time_host(
            [&] {
              void* memory = nullptr;
              GPU_CHECK(cudaMallocHost(&memory, bytes));
              GPU_CHECK(cudaFreeHost(memory));
            },
            rule(bytes));
      });
    }
  }

 private:
  static Record record(const char* what, std::size_t bytes, const Direction& direction, Fields fields) {
    fields.insert(fields.begin(), {{"direction", direction.word}, {"bytes", std::to_string(bytes)}});
    return plain_point(what, fields);
  }

  /// Many copies one after the other; both ways on two streams, of which the longer counts.
  void streamed(std::size_t bytes, const Direction& direction) {
    if (direction.to_device && direction.to_host) return;
    run_.point(record("host_copy", bytes, direction, {{"memory", "pinned"}, {"timing", "stream"}}), [&] {
      const Stream stream;
      const auto copy = [&](cudaStream_t s, int) { enqueue(bytes, direction.to_device, true, s); };
      enqueue(bytes, direction.to_device, true, stream.get());  // makes the buffers
      stream.synchronize();
      return time_stream(stream, copy, rule(bytes));
    });
  }

  void waited_for(std::size_t bytes, const Direction& direction, bool pinned) {
    const Fields fields = {{"memory", pinned ? "pinned" : "pageable"}, {"timing", "host"}};
    run_.point(record("host_copy", bytes, direction, fields), [&] {
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

  Sampled at_once(int gpus, std::size_t bytes, const Direction& direction) {
    struct End {
      std::unique_ptr<Stream> stream;
      DeviceBuffer device;
      std::unique_ptr<HostBuffer> host;
    };
    const OnDevice home(run_.device());
    std::vector<End> ends;
    for (int gpu = 0; gpu < gpus; ++gpu) {
      GPU_CHECK(cudaSetDevice(gpu));
      ends.push_back({std::make_unique<Stream>(), DeviceBuffer(bytes), std::make_unique<HostBuffer>(bytes, true)});
    }
    return time_host(
        [&] {
          for (int gpu = 0; gpu < gpus; ++gpu) {
            const End& end = ends[static_cast<std::size_t>(gpu)];
            GPU_CHECK(cudaSetDevice(gpu));
            GPU_CHECK(direction.to_device ? cudaMemcpyAsync(end.device.data(), end.host->data(), bytes,
                                                            cudaMemcpyHostToDevice, end.stream->get())
                                          : cudaMemcpyAsync(end.host->data(), end.device.data(), bytes,
                                                            cudaMemcpyDeviceToHost, end.stream->get()));
          }
          for (const End& end : ends) end.stream->synchronize();
        },
        rule(bytes));
  }

  void enqueue(std::size_t bytes, bool to_device, bool pinned, cudaStream_t stream) {
    void* host = host_.at_least(bytes, to_device, [&](std::size_t n) { return HostMemory(n, pinned); });
    void* device = device_.at_least(bytes, to_device, [](std::size_t n) { return DeviceMemory(n); });
    GPU_CHECK(to_device ? cudaMemcpyAsync(device, host, bytes, cudaMemcpyHostToDevice, stream)
                        : cudaMemcpyAsync(host, device, bytes, cudaMemcpyDeviceToHost, stream));
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

  /// Back to this GPU, however a point ends.
  struct OnDevice {
    explicit OnDevice(int device_number) : device(device_number) {}
    ~OnDevice() { cudaSetDevice(device); }
    OnDevice(const OnDevice&) = delete;
    OnDevice& operator=(const OnDevice&) = delete;
    int device;
  };

  struct HostMemory {
    HostMemory(std::size_t bytes, bool pinned) : buffer(std::make_unique<HostBuffer>(bytes, pinned)) {}
    [[nodiscard]] void* data() const { return buffer->data(); }
    std::unique_ptr<HostBuffer> buffer;
  };
  struct DeviceMemory {
    explicit DeviceMemory(std::size_t bytes) : buffer(bytes) {
      const Stream stream;
      buffer.fill(Format::int8, stream.get());
      stream.synchronize();
    }
    [[nodiscard]] void* data() const { return buffer.data(); }
    DeviceBuffer buffer;
  };

  /// One buffer for each way, kept while it is large enough, since making gigabytes takes longer than copying them.
  template <typename Memory>
  class Pair {
   public:
    template <typename Make>
    void* at_least(std::size_t bytes, bool first, Make make) {
      Slot& slot = slots_[first ? 0 : 1];
      if (!slot.memory || slot.bytes < bytes) {
        slot.memory.reset();
        slot.memory.emplace(make(bytes));
        slot.bytes = bytes;
      }
      return slot.memory->data();
    }
    void clear() {
      for (Slot& slot : slots_) slot.memory.reset();
    }

   private:
    struct Slot {
      std::optional<Memory> memory;
      std::size_t bytes = 0;
    };
    Slot slots_[2];
  };

  SuiteRun& run_;
  std::size_t most_;
  Pair<HostMemory> host_;
  Pair<DeviceMemory> device_;
};

}  // namespace

void run_copy(SuiteRun& run) {
  CopySuite suite(run);
  suite.copies();
  suite.every_gpu();
  suite.page_locks();
}

}  // namespace foretrain::gpu
