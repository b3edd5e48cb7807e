// Where operators take their operands from: memory of their own, to be measured alone, or a pool that all operators of
// a training step share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "validate/cuda/core/device.hpp"

namespace foretrain::gpu {

class OperandMemory {
 public:
  virtual ~OperandMemory() = default;
  /// To be called before the operands of an operator are taken: no two of one operator share memory.
  virtual void begin_operator() = 0;
  /// At least this many bytes, 256-byte aligned, random numbers of the format; valid as long as this object.
  /// Throws GpuError with Fault::out_of_memory.
  virtual void* take(std::size_t bytes, Format format) = 0;
  /// Scratch memory that operators share when they run one after the other, as on one stream.
  virtual void* workspace(std::size_t bytes) = 0;
};

/// Every operand is a buffer of its own.
class OwnOperands final : public OperandMemory {
 public:
  explicit OwnOperands(cudaStream_t stream) : stream_(stream) {}
  void begin_operator() override {}
  void* take(std::size_t bytes, Format format) override;
  void* workspace(std::size_t bytes) override;

 private:
  cudaStream_t stream_;
  std::vector<DeviceBuffer> buffers_;
  DeviceBuffer workspace_;
  std::uint64_t seed_ = 1;
};

/// Operators reuse the buffers of those before them, in turn, once `limit` bytes are allocated: a step's operators then
/// need no more than the largest of them, and still meet operands that have left the L2. Operators that may run at
/// once (on different streams) need a pool each. What one operator writes another reads: values are not to be checked.
class OperandPool final : public OperandMemory {
 public:
  OperandPool(cudaStream_t stream, std::size_t limit) : stream_(stream), limit_(limit) {}
  void begin_operator() override;
  void* take(std::size_t bytes, Format format) override;
  void* workspace(std::size_t bytes) override;

 private:
  struct Slot {
    DeviceBuffer buffer;
    Format format;
    long last_operator;
  };
  cudaStream_t stream_;
  std::size_t limit_, allocated_ = 0;
  std::vector<Slot> slots_;
  std::vector<DeviceBuffer> workspaces_;
  long operator_ = 0;
  std::uint64_t seed_ = 1;
};

}  // namespace foretrain::gpu
