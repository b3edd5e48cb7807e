// Copies between host and device. No scenario states them: parameter `what` names the quantity:
//   host_copy        `direction` to_device, to_host or both (one each way at once, until both are done), `memory`
//                    pinned or pageable, `bytes` each way; `timing` stream: many in a row, host: one call and its wait
//   pinned_allocate  cudaMallocHost
//   fresh_copy       to pageable memory that was never touched, as frameworks copy a result to the host
#include <algorithm>
#include <fstream>
#include <memory>
#include <string>

#include "validate/cuda/core/suite.hpp"
#include "validate/cuda/suites/points.hpp"
#include "validate/measure/clock.hpp"

namespace foretrain::gpu {

namespace {

constexpr std::size_t mib = 1024 * 1024;
constexpr std::size_t gib = 1024 * mib;

/// Host memory for a buffer: a quarter of the available memory.
std::size_t host_room() {
  std::ifstream in("/proc/meminfo");
  for (std::string word; in >> word;) {
    std::size_t kilobytes = 0;
    if (word == "MemAvailable:" && in >> kilobytes) return kilobytes * 1024 / 4;
  }
  return gib;
}

/// One way between host and device, and its buffers: kept while they are large enough, since making gigabytes takes
/// longer than copying them.
class Way {
 public:
  Way(bool to_device, bool pinned) : to_device_(to_device), pinned_(pinned) {}

  void make_room(std::size_t bytes) {
    if (host_ && host_->size() >= bytes) return;
    host_.reset();
    device_ = DeviceBuffer();
    host_ = std::make_unique<HostBuffer>(bytes, pinned_);
    device_ = DeviceBuffer(bytes);
    const Stream filling;
    device_.fill(Format::int8, filling.get());
    filling.synchronize();
  }
  void copy(std::size_t bytes, cudaStream_t stream) const {
    GPU_CHECK(to_device_ ? cudaMemcpyAsync(device_.data(), host_->data(), bytes, cudaMemcpyHostToDevice, stream)
                         : cudaMemcpyAsync(host_->data(), device_.data(), bytes, cudaMemcpyDeviceToHost, stream));
  }

 private:
  bool to_device_, pinned_;
  std::unique_ptr<HostBuffer> host_;
  DeviceBuffer device_;
};

class CopySuite {
 public:
  explicit CopySuite(SuiteRun& run) : run_(run), most_(std::min({host_room() / 2, usable_memory() / 2, 4 * gib})) {
    if (run.quick()) most_ = std::min(most_, 256 * mib);
  }

  void copies(bool pinned) {
    Way there(true, pinned), back(false, pinned);
    for (std::size_t bytes = 4; bytes <= most_; bytes *= run_.quick() ? 16 : 4) {
      if (pinned) streamed("to_device", bytes, there);
      if (pinned) streamed("to_host", bytes, back);
      if (!pinned || bytes <= 64 * mib) {
        waited_for("to_device", bytes, pinned, {&there});
        waited_for("to_host", bytes, pinned, {&back});
      }
      waited_for("both", bytes, pinned, {&there, &back});
    }
  }

  void page_locks() {
    timed("pinned_allocate", mib, {}, [](std::size_t bytes) {
      void* memory = nullptr;
      const double start = now();
      GPU_CHECK(cudaMallocHost(&memory, bytes));
      const double taken = now() - start;
      GPU_CHECK(cudaFreeHost(memory));
      return taken;
    });
  }

  void fresh_copies() {
    timed("fresh_copy", 64 * mib, {{"direction", "to_host"}}, [](std::size_t bytes) {
      const DeviceBuffer device(bytes);
      const std::unique_ptr<char[]> fresh(new char[bytes]);  // not set to anything
      const double start = now();
      GPU_CHECK(cudaMemcpy(fresh.get(), device.data(), bytes, cudaMemcpyDeviceToHost));
      return now() - start;
    });
  }

 private:
  static Record record(const char* direction, std::size_t bytes, bool pinned, const char* timing) {
    return plain_point("host_copy", {{"direction", direction},
                                     {"bytes", std::to_string(bytes)},
                                     {"memory", pinned ? "pinned" : "pageable"},
                                     {"timing", timing}});
  }

  /// Many copies one after the other.
  void streamed(const char* direction, std::size_t bytes, Way& way) {
    run_.point(record(direction, bytes, true, "stream"), [&] {
      way.make_room(bytes);
      const Stream stream;
      return time_stream(
          stream, [&](cudaStream_t s, int) { way.copy(bytes, s); }, rule(bytes));
    });
  }

  void waited_for(const char* direction, std::size_t bytes, bool pinned, const std::vector<Way*>& ways) {
    run_.point(record(direction, bytes, pinned, "host"), [&] {
      for (Way* way : ways) way->make_room(bytes);
      const Stream streams[2];
      const auto copies = [&] {
        for (std::size_t i = 0; i < ways.size(); ++i) ways[i]->copy(bytes, streams[i].get());
        for (const Stream& stream : streams) stream.synchronize();
      };
      return time_host(copies, rule(bytes));
    });
  }

  /// Times an operation of the host, by size.
  template <typename Once>
  void timed(const char* what, std::size_t least, Fields fields, const Once& once) {
    for (std::size_t bytes = least; bytes <= std::min(most_, gib); bytes *= 4) {
      Fields all = fields;
      all.insert(all.end(), {{"bytes", std::to_string(bytes)}, {"timing", "host"}});
      run_.point(plain_point(what, all), [&] { return sample([&] { return once(bytes); }, rule(bytes)); });
    }
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
};

}  // namespace

void run_copy(SuiteRun& run) {
  CopySuite suite(run);
  for (const bool pinned : {true, false}) suite.copies(pinned);
  suite.page_locks();
  suite.fresh_copies();
}

}  // namespace foretrain::gpu
