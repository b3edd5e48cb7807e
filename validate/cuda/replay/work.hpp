// Everything that the blocks of a graph do, made ready before the time is taken: runners with their operands, buffers
// of copies, synchronisation.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "validate/cuda/collective/synchroniser.hpp"
#include "validate/cuda/math/operator_runner.hpp"
#include "validate/cuda/replay/streams.hpp"
#include "validate/replay/graph.hpp"

namespace foretrain::gpu {

class ReplayWork {
 public:
  /// Makes everything that the graph needs. Throws GpuError: Fault::out_of_memory saying what did not fit,
  /// Fault::unsupported for an operator that this GPU or build cannot run, naming it.
  ReplayWork(const replay::Graph& graph, const ReplayStreams& streams);
  ~ReplayWork();

  /// Puts piece `index` of the task's block on the task's stream of every GPU that has it. `turn` counts steps.
  void put(int task, std::size_t index, int turn);
  /// Does what the host thread has to do; what it waits for has happened.
  void do_on_host(const HostWork& work);
  /// Gives memory back that the last step allocated on the host.
  void end_step();
  /// Waits until all GPUs have finished, watching for errors.
  void wait();
  /// Throws GpuError with Fault::failed where a kernel's results are not finite.
  void check_finite() const;

  /// "nccl 2.28.9", …; empty without synchronisation.
  [[nodiscard]] std::vector<std::string> synchronisers() const;

 private:
  struct Exchange;

  void make_kernel(const KernelWork& work, int block, std::size_t index, int resource);
  void make_exchange(const CollectiveWork& work, int resource);
  void put_copy(const CopyWork& work, const ReplayStreams::Lane& lane);
  void put_collective(const CollectiveWork& work, int resource);
  [[nodiscard]] const replay::Block& block_of(int task) const;

  const replay::Graph& graph_;
  const ReplayStreams& streams_;
  std::map<std::pair<int, int>, std::unique_ptr<OperandPool>> pools_;  ///< by resource and device
  /// By block, place in it, resource and device.
  std::map<std::tuple<int, std::size_t, int, int>, std::unique_ptr<OperatorRunner>> runners_;
  std::map<int, DeviceBuffer> copy_buffers_;  ///< by device: both ends of all copies
  std::unique_ptr<HostBuffer> pinned_, pageable_;
  std::map<std::tuple<std::string, int, int>, std::unique_ptr<Exchange>> exchanges_;  ///< by method, servers, resource
  std::vector<std::pair<void*, std::size_t>> fresh_;                                  ///< pageable memory of this step
  std::vector<void*> locked_;  ///< page-locked memory of this step
};

}  // namespace foretrain::gpu
