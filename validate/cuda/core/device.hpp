// A GPU's memory, streams and events as objects that clean up after themselves.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "validate/cuda/core/error.hpp"

namespace foretrain::gpu {

/// By it handles of libraries and plans are kept that were made for one device.
int current_device();

/// Sets the current device while it lives.
class OnDevice {
 public:
  explicit OnDevice(int device) : previous_(current_device()) { GPU_CHECK(cudaSetDevice(device)); }
  ~OnDevice() { cudaSetDevice(previous_); }
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;

 private:
  int previous_;
};

class Stream {
 public:
  Stream() { GPU_CHECK(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking)); }
  ~Stream() { cudaStreamDestroy(stream_); }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  [[nodiscard]] cudaStream_t get() const { return stream_; }
  void synchronize() const { GPU_CHECK(cudaStreamSynchronize(stream_)); }

 private:
  cudaStream_t stream_ = nullptr;
};

class Event {
 public:
  /// Without timing where it only orders streams.
  explicit Event(bool timing = true) {
    GPU_CHECK(cudaEventCreateWithFlags(&event_, timing ? cudaEventDefault : cudaEventDisableTiming));
  }
  ~Event() { cudaEventDestroy(event_); }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  [[nodiscard]] cudaEvent_t get() const { return event_; }
  void record(cudaStream_t stream) const { GPU_CHECK(cudaEventRecord(event_, stream)); }
  void synchronize() const { GPU_CHECK(cudaEventSynchronize(event_)); }
  /// Whether everything recorded before it is done.
  [[nodiscard]] bool happened() const;

 private:
  cudaEvent_t event_ = nullptr;
};

/// Seconds between two recorded events that have happened.
double elapsed(const Event& start, const Event& end);

/// Storage format of an element. tf32 is arithmetic on fp32 elements.
enum class Format { fp64, fp32, fp16, bf16, fp8, int8, int32 };

/// Memory of the current device. Its contents are random: zeros take less power, and hide what was never written.
class DeviceBuffer {
 public:
  DeviceBuffer() = default;
  /// Throws GpuError with Fault::out_of_memory when it does not fit.
  explicit DeviceBuffer(std::size_t bytes) : size_(bytes) { GPU_CHECK(cudaMalloc(&data_, bytes > 0 ? bytes : 1)); }
  ~DeviceBuffer() { cudaFree(data_); }
  DeviceBuffer(DeviceBuffer&& other) noexcept { *this = std::move(other); }
  DeviceBuffer& operator=(DeviceBuffer&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
  }
  [[nodiscard]] void* data() const { return data_; }
  [[nodiscard]] std::size_t size() const { return size_; }
  template <typename T>
  [[nodiscard]] T* as() const {
    return static_cast<T*>(data_);
  }
  /// Uniform in [-1, 1] (integers: random bytes), the same for the same seed. In stream order.
  void fill(Format format, cudaStream_t stream, std::uint64_t seed = 1) const;

 private:
  void* data_ = nullptr;
  std::size_t size_ = 0;
};

/// Host memory, pinned or not, filled with random bytes.
class HostBuffer {
 public:
  HostBuffer(std::size_t bytes, bool pinned);
  ~HostBuffer();
  HostBuffer(const HostBuffer&) = delete;
  HostBuffer& operator=(const HostBuffer&) = delete;
  [[nodiscard]] void* data() const { return data_; }
  [[nodiscard]] std::size_t size() const { return size_; }

 private:
  void* data_ = nullptr;
  std::size_t size_ = 0;
  bool pinned_;
};

/// Attribute of the current device, or of another.
int device_attribute(cudaDeviceAttr which);
int device_attribute(cudaDeviceAttr which, int device);
/// Bytes of the current device's second cache.
std::size_t l2_bytes();
/// Number of operand sets of so many bytes in a rotation: as many as exceed the L2 several times over, so that
/// none of them is found there. Where 64 are too few for that, as many as lie there all the time. At least 1.
int rotation_for(std::size_t bytes_per_turn);
/// Whether operands of this rotation come from the device's memory; else from the L2.
bool is_cold(std::size_t bytes_per_turn, int rotation);
/// PCI address of a GPU ("0000:c1:00.0"), by which NVML and Linux find it.
std::string bus_id_of(int device);
int visible_devices();
/// Keeps this process on processors of the socket that the GPU hangs on, as far as Linux tells and allows.
void bind_to_node_of(const std::string& bus_id);

/// Device memory that a measurement may take: nine tenths of the free memory.
std::size_t usable_memory();

}  // namespace foretrain::gpu
