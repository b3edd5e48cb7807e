// The processes that measure together, one per GPU. Rank 0 leads and writes. What it decides it tells the others: over
// MPI where mpirun or srun started them, in shared memory where measure_command.cpp copied itself for each GPU of this
// machine.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "model/base/process.hpp"
#include "validate/cuda/core/short_text.hpp"

namespace foretrain::gpu {

/// Processes that do not find each other, or lost one. The message says what to do about it.
class WorldError : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Which of several processes this one is.
struct Launched {
  std::string by;  ///< "Open MPI", "Slurm", …; empty when this process was started alone
  int rank = 0, size = 1;
};

/// The launch as the environment describes it: by Open MPI, PMI (MPICH, Intel MPI), Slurm's steps.
/// Slurm's batch script alone is no launch of several processes, although it knows of tasks. Throws UsageError when a
/// variable is no number, or the rank is none of the size.
Launched launched();

/// All ranks make the same calls in the same order. Values are plain bytes: all processes run the same program.
class World {
 public:
  explicit World(const Launched& who) : rank(who.rank), size(who.size) {}
  virtual ~World() = default;
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  const int rank, size;

  /// The values of all ranks, in their order, at every rank.
  template <typename Value>
  std::vector<Value> gather(const Value& own) {
    static_assert(sizeof(Value) <= sizeof(ShortText));
    std::vector<Value> all(static_cast<std::size_t>(size));
    exchange(&own, sizeof(own), all.data());
    return all;
  }
  std::vector<std::string> gather(const std::string& own) {
    std::vector<std::string> texts;
    for (const ShortText& text : gather(short_text(own))) texts.emplace_back(text.data());
    return texts;
  }
  /// Rank 0's value, at every rank.
  template <typename Value>
  Value broadcast(const Value& own) {
    return gather(own).front();
  }
  /// The greatest of all ranks' values, at every rank.
  double maximum(double own) { return std::ranges::max(gather(own)); }
  /// "MPI", "memory".
  [[nodiscard]] virtual std::string transport() const = 0;

 private:
  /// Puts the `bytes` of every rank one behind the other. Throws WorldError when another process does not answer.
  virtual void exchange(const void* own, std::size_t bytes, void* all) = 0;
};

/// A meeting of copies of a process: in memory that they share, made before them.
class Meeting {
 public:
  /// A process's text, and the number of its texts so far. There is room for two texts: a process behind by one still
  /// reads the one before.
  struct Seat {
    std::array<ShortText, 2> said;
    std::atomic<unsigned> count;
  };
  explicit Meeting(int processes) : size(processes), memory_(sizeof(Seat) * static_cast<std::size_t>(processes)) {}
  [[nodiscard]] std::span<Seat> seats() const { return memory_.as<Seat>(static_cast<std::size_t>(size)); }
  const int size;

 private:
  SharedMemory memory_;
};

/// At this meeting, where each waits for the others for `timeout` seconds at most: starting NCCL may take a minute for
/// one of them. Without one by MPI, once in a process, with the rank that its launcher tells. Throws WorldError, saying
/// what to do, where the processes cannot meet.
std::unique_ptr<World> make_world(const Meeting* meeting, int rank, double timeout = 300.0);

/// This machine's name and, where the system tells it, the number of its boot: containers and clones share names.
std::string machine_name();

}  // namespace foretrain::gpu
