// Memory of operands.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <vector>

#include "validate/cuda/core/device.hpp"

namespace foretrain::gpu {

/// Uses of an operand.
enum class Use {
  read,     ///< random numbers of [-1, 1], which nothing writes
  handed,   ///< first the previous operator's output, if that is large enough; else as `read`
  written,  ///< a result, which nothing reads
  kept      ///< contents that matter from launch to launch (sums, probabilities): no other operator's
};

/// Operators read the buffers that those before them read, in turn, once `limit` bytes are allocated, and write those
/// that they wrote. A step's operators then need little more than the largest of them, and still meet operands that
/// have left the L2, but for what the kernel right before them wrote where they read that (`handed`), as the model has
/// it of streaming operators. No result is ever an input of a product: products of products would be infinite after a
/// few steps, and arithmetic on such numbers takes less power than on others. Operators that may run at once (on
/// different streams) need a pool each. Without a limit every operand is a buffer of its own.
class OperandPool {
 public:
  explicit OperandPool(cudaStream_t stream, std::size_t limit = std::numeric_limits<std::size_t>::max())
      : stream_(stream), limit_(limit) {}
  /// To be called before the operands of an operator are taken: no two of one operator share memory.
  void begin_operator();
  /// At least this many bytes, 256-byte aligned, at first random numbers of the format; valid as long as this object.
  /// Throws GpuError with Fault::out_of_memory.
  void* take(std::size_t bytes, Format format, Use use);
  /// Scratch memory that operators share when they run one after the other, as on one stream.
  void* workspace(std::size_t bytes);
  /// Throws GpuError with Fault::failed where a result holds what is no finite number. Looks at the beginning, the
  /// middle and the end of each; synchronises.
  void check_finite() const;

 private:
  struct Slot {
    DeviceBuffer buffer;
    Format format;
    Use use;
    long last_operator;
  };
  /// The slot of this use and format that the longest was not taken; null where none is free and large enough.
  [[nodiscard]] Slot* oldest(std::size_t bytes, Format format, Use use);

  cudaStream_t stream_;
  std::size_t limit_;
  std::map<Use, std::size_t> allocated_;
  std::vector<Slot> slots_;
  std::vector<DeviceBuffer> workspaces_;
  long operator_ = 0;
  std::optional<std::size_t> written_before_, written_now_;  ///< slots of first results
  std::uint64_t seed_ = 1;
};

}  // namespace foretrain::gpu
