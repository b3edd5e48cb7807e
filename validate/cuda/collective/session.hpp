// Measures collective operations over one or several processes: rank 0 says what comes next, all do it.
#pragma once

#ifdef FORETRAIN_HAS_NCCL

#include <memory>
#include <string>
#include <vector>

#include "validate/cuda/collective/design.hpp"
#include "validate/cuda/collective/nccl.hpp"
#include "validate/measure/sampling.hpp"

namespace foretrain::gpu {

class CollectiveSession {
 public:
  /// `devices`: the GPUs that this process drives: all of them when it is alone, else one. Their buffers take what is
  /// free, up to the largest size. Throws GpuError, and WorldError when two processes drive the same GPU.
  CollectiveSession(World& world, const std::vector<int>& devices);
  ~CollectiveSession();

  /// GPUs of all processes.
  [[nodiscard]] int ranks() const;
  /// Elements of fp32 that a buffer holds, at every rank.
  [[nodiscard]] std::uint64_t capacity() const { return capacity_; }
  [[nodiscard]] const std::vector<std::string>& hosts() const { return hosts_; }

  /// Rank 0: seconds per operation, the slowest rank's; each value is one batch. Whether results are right nccl-tests
  /// tells.
  Sampled measure(const CollectivePoint& point, const StoppingRule& rule);
  /// Other ranks: takes part in what rank 0 measures until it says that this was all.
  void follow();
  /// Whether the processes have lost each other: nothing can be measured any more.
  [[nodiscard]] bool broken() const { return broken_; }
  /// Rank 0: that was all.
  void finish();

 private:
  struct Buffers;
  struct Command;

  Sampled carry_out(const CollectivePoint& point, const StoppingRule& rule);
  void connect(int ranks);
  double batch(const CollectivePoint& point, int count);
  void launch(const CollectivePoint& point);
  /// An error of any process becomes an error of all of them.
  void agree(const std::string& error);

  World& world_;
  std::vector<int> devices_;
  std::vector<std::string> hosts_;
  std::uint64_t capacity_ = 0;
  std::uint64_t turn_ = 0;
  double hold_s_ = 100e-6;  ///< for which streams are held before a batch: as long as the last one took to hand over
  bool broken_ = false;
  std::vector<Buffers> buffers_;
  std::unique_ptr<Communicators> communicators_;
};

}  // namespace foretrain::gpu

#endif
