// Measures collective operations over several processes: rank 0 says what comes next, all do it.
#pragma once

#ifdef FORETRAIN_HAS_NCCL

#include <memory>
#include <string>
#include <vector>

#include "validate/cuda/collective/design.hpp"
#include "validate/cuda/collective/nccl.hpp"
#include "validate/cuda/collective/world.hpp"
#include "validate/measure/sampling.hpp"

namespace foretrain::gpu {

class CollectiveSession {
 public:
  /// Takes a GPU for this process, and for its two buffers what is free there, up to the largest size. Throws GpuError,
  /// and WorldError when two processes drive the same GPU.
  explicit CollectiveSession(World& world);

  /// Elements of fp32 that a buffer holds, at every rank.
  [[nodiscard]] std::uint64_t capacity() const { return capacity_; }
  /// By rank.
  [[nodiscard]] const std::vector<std::string>& machines() const { return machines_; }

  /// Rank 0: seconds per operation, the slowest rank's; each value is one batch. Whether results are right nccl-tests
  /// tells. Throws GpuError with Fault::device_lost: after an error the other processes are somewhere else.
  Sampled measure(const CollectivePoint& point, const StoppingRule& rule);
  void finish() { world_.broadcast(Batch{}); }
  /// Other ranks: takes part in what rank 0 measures until it says that this was all.
  void follow();

 private:
  struct Batch {
    CollectivePoint point;
    int count = 0;  ///< of operations; 0: that was all
  };

  int take_device();
  void connect(int ranks);
  /// Puts the point's operation on the stream, from and to the next stretch of the buffers, so that large caches do not
  /// keep what was just sent.
  void launch(const CollectivePoint& point);
  double carry_out(const Batch& batch);

  World& world_;
  std::vector<std::string> machines_;
  int device_;
  Stream stream_;
  Event start_, end_;
  std::uint64_t capacity_ = 0;
  DeviceBuffer send_, receive_;
  std::uint64_t turn_ = 0;
  double hold_s_ = 100e-6;  ///< for which the stream is held before a batch: as long as the last took to hand over
  int ranks_ = 0;           ///< of the communicator, which those of higher rank have no part in
  std::unique_ptr<Communicators> communicator_;
};

}  // namespace foretrain::gpu

#endif
