// Everything that the blocks of a graph do, made ready before the time is taken: runners with their operands, buffers
// of copies, synchronisation.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "validate/cuda/replay/pace.hpp"
#include "validate/cuda/replay/streams.hpp"
#include "validate/replay/graph.hpp"

namespace foretrain::gpu {

/// A piece of a block's work, as often as a task on this resource does it.
struct Piece {
  const Work& work;
  int block = 0;
  std::size_t index = 0;  ///< in the block
  int resource = 0;
  LaunchPace& pace;  ///< of the host thread that launches it
};

/// What does the pieces of one kind of work; each kind in a file of its own, NAME_work.cpp.
class Doer {
 public:
  virtual ~Doer() = default;
  /// Of every piece of the graph, before anything runs; then make_ready(), once. Throw GpuError: Fault::out_of_memory
  /// saying what did not fit, Fault::unsupported for what this GPU or build cannot run, naming it.
  virtual void see(const Piece& piece) = 0;
  virtual void make_ready() {}
  /// Puts the piece on the resource's stream of every GPU that has it. `turn` counts steps.
  virtual void put(const Piece& /*piece*/, int /*turn*/) {}
  /// Does what the host thread has to do; what it waits for has happened.
  virtual void do_on_host(const Piece& /*piece*/) {}
  /// Gives memory back that the last step allocated on the host.
  virtual void end_step() {}
  /// Waits until all GPUs have finished, watching for errors.
  virtual void wait() {}
  /// Throws GpuError with Fault::failed where results are not finite.
  virtual void check_finite() const {}
  /// Who does it ("nccl 2.28.9", …), where that is a choice.
  [[nodiscard]] virtual std::string description() const { return ""; }
};

/// Defined for each kind of Work in its file.
template <typename Kind>
std::unique_ptr<Doer> make_doer(const replay::Graph& graph, const ReplayStreams& streams);

class ReplayWork {
 public:
  /// Makes everything that the graph needs. Throws GpuError as Doer::see().
  ReplayWork(const replay::Graph& graph, const ReplayStreams& streams);

  /// Puts piece `index` of the task's block on the task's stream.
  void put(int task, std::size_t index, int turn);
  void do_on_host(int task, std::size_t index);
  [[nodiscard]] LaunchPace& pace() { return pace_; }
  [[nodiscard]] const std::vector<std::unique_ptr<Doer>>& doers() const { return doers_; }

 private:
  [[nodiscard]] Piece piece_of(int task, std::size_t index);

  const replay::Graph& graph_;
  LaunchPace pace_;
  std::vector<std::unique_ptr<Doer>> doers_;  ///< by the kind's place in Work
};

inline std::size_t to_size(Bytes size) { return static_cast<std::size_t>(size.value()); }

}  // namespace foretrain::gpu
