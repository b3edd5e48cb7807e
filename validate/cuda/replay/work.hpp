// Executors of a graph's blocks, made ready before timing: runners with their operands, buffers of copies,
// synchronisation.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "validate/cuda/replay/streams.hpp"
#include "validate/measure/clock.hpp"
#include "validate/replay/graph.hpp"

namespace foretrain::gpu {

/// Until this moment on now()'s clock the host is busy.
inline void busy_until(double moment) {
  while (now() < moment) {
  }
}

/// The pace at which a framework hands kernels over, kept by a program that could do so faster.
class LaunchPace {
 public:
  /// The launches that follow, as many as `kernels`, take the host `seconds` together at least, from now on. For no
  /// kernels the time passes here.
  void begin(double seconds, int kernels) {
    moment_ = now();
    each_ = kernels > 0 ? seconds / kernels : 0.0;
    if (kernels == 0) busy_until(moment_ + seconds);
  }
  /// To be called before each launch: returns when the host would have prepared it.
  void before_launch() {
    if (each_ <= 0.0) return;
    moment_ += each_;
    busy_until(moment_);
  }

 private:
  double moment_ = 0.0, each_ = 0.0;
};

/// An item of a block's work, as often as a task on this resource does it.
struct WorkItem {
  const Work& work;
  int block = 0;
  std::size_t index = 0;  ///< in the block
  int resource = 0;
  LaunchPace& pace;  ///< of the host thread that launches it
};

/// Executes the items of one kind of work on devices; each kind in a file of its own, NAME_work.cpp.
class Doer {
 public:
  virtual ~Doer() = default;
  /// Of every item of the graph, before anything runs; then make_ready(), once. Throw GpuError: Fault::out_of_memory
  /// saying what did not fit, Fault::unsupported for what this GPU or build cannot run, naming it.
  virtual void see(const WorkItem& item) = 0;
  virtual void make_ready() {}
  /// Puts the item on the resource's stream of every GPU that has it. `turn` counts steps.
  virtual void put(const WorkItem& /*item*/, int /*turn*/) {}
  /// Gives memory back that the last step allocated on the host.
  virtual void end_step() {}
  /// Waits until all GPUs have finished, watching for errors.
  virtual void wait() {}
  /// Throws GpuError with Fault::failed where results are not finite.
  virtual void check_finite() const {}
  /// The library that does it ("nccl 2.28.9", …), where that is a choice.
  [[nodiscard]] virtual std::string description() const { return ""; }
};

std::unique_ptr<Doer> make_kernel_doer(const ReplayStreams& streams);
std::unique_ptr<Doer> make_copy_doer(const ReplayStreams& streams, int gpus);
std::unique_ptr<Doer> make_collective_doer(const ReplayStreams& streams);

inline std::size_t to_size(Bytes size) { return static_cast<std::size_t>(size.value()); }

}  // namespace foretrain::gpu
