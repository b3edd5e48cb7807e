// Sums on the host's processors, for the parameter server in host memory.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

namespace foretrain::gpu {

/// sum[i] = inputs[0][i] + inputs[1][i] + …, in this order.
void add_serial(float* sum, std::span<const float* const> inputs, std::size_t elements);

/// Threads that share each sum. Calls from several threads are carried out one after the other.
class HostAdder {
 public:
  /// 0: as many as the host's processors warrant: half of them (hyperthreads add nothing to memory bandwidth), at most
  /// 16, which saturate the memory of one socket.
  explicit HostAdder(int threads = 0);
  ~HostAdder();
  HostAdder(const HostAdder&) = delete;
  HostAdder& operator=(const HostAdder&) = delete;

  void add(float* sum, std::span<const float* const> inputs, std::size_t elements);
  [[nodiscard]] int threads() const { return static_cast<int>(helpers_.size()) + 1; }

 private:
  void serve(std::size_t index);

  std::mutex callers_;
  std::mutex mutex_;
  std::condition_variable begin_, done_;
  std::uint64_t turn_ = 0;
  std::size_t busy_ = 0;
  bool stop_ = false;
  std::function<void(std::size_t)> work_;
  std::vector<std::thread> helpers_;
};

}  // namespace foretrain::gpu
