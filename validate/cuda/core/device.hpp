// A GPU's memory, streams and events as objects that clean up after themselves.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "validate/cuda/core/error.hpp"

namespace foretrain::gpu {

class Stream {
 public:
  Stream();
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  [[nodiscard]] cudaStream_t get() const { return stream_; }
  void synchronize() const;

 private:
  cudaStream_t stream_ = nullptr;
};

class Event {
 public:
  /// Without timing where it only orders streams.
  explicit Event(bool timing = true);
  ~Event();
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  [[nodiscard]] cudaEvent_t get() const { return event_; }
  void record(cudaStream_t stream) const;
  void synchronize() const;

 private:
  cudaEvent_t event_ = nullptr;
};

/// Seconds between two recorded events that have happened.
double elapsed(const Event& start, const Event& end);

/// How random data is laid down.
enum class Fill { uniform_fp64, uniform_fp32, uniform_fp16, uniform_bf16, uniform_fp8, uniform_int8, bytes };

/// Memory of the current device. Its contents are random: zeros take less power, and hide what was never written.
class DeviceBuffer {
 public:
  DeviceBuffer() = default;
  /// Throws GpuError with Fault::out_of_memory when it does not fit.
  explicit DeviceBuffer(std::size_t bytes);
  ~DeviceBuffer();
  DeviceBuffer(DeviceBuffer&& other) noexcept;
  DeviceBuffer& operator=(DeviceBuffer&& other) noexcept;
  [[nodiscard]] void* data() const { return data_; }
  [[nodiscard]] std::size_t size() const { return size_; }
  template <typename T>
  [[nodiscard]] T* as() const {
    return static_cast<T*>(data_);
  }
  /// Uniform in [-1, 1] (int8: the whole range), the same for the same seed. In stream order.
  void fill(Fill format, cudaStream_t stream, std::uint64_t seed = 1) const;

 private:
  void* data_ = nullptr;
  std::size_t size_ = 0;
};

/// Host memory, page-locked or not, filled with random bytes.
class HostBuffer {
 public:
  HostBuffer(std::size_t bytes, bool pinned);
  ~HostBuffer();
  HostBuffer(const HostBuffer&) = delete;
  HostBuffer& operator=(const HostBuffer&) = delete;
  [[nodiscard]] void* data() const { return data_; }
  [[nodiscard]] std::size_t size() const { return size_; }
  template <typename T>
  [[nodiscard]] T* as() const {
    return static_cast<T*>(data_);
  }

 private:
  void* data_ = nullptr;
  std::size_t size_ = 0;
  bool pinned_;
};

/// What of the device's memory a measurement may take: nine tenths of what is free now.
std::size_t usable_memory();

}  // namespace foretrain::gpu
