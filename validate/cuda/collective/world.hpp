// The processes that measure together: one per GPU across machines, or one alone. Rank 0 leads and writes; what it
// decides it tells the others: over MPI where a launcher started them, else, on one machine, by files.
#pragma once

#include <cstddef>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "validate/cuda/collective/launcher.hpp"

namespace foretrain::gpu {

/// Processes that do not find each other, or lost one. The message says what to do about it.
class WorldError : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// All ranks make the same calls in the same order. Every call throws WorldError when another process does not answer.
class World {
 public:
  World(int rank, int size) : rank_(rank), size_(size) {}
  virtual ~World() = default;
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  [[nodiscard]] int rank() const { return rank_; }
  [[nodiscard]] int size() const { return size_; }
  [[nodiscard]] bool leads() const { return rank_ == 0; }
  /// The texts of all ranks, in their order, at every rank.
  virtual std::vector<std::string> gather(const std::string& text) = 0;
  /// "MPI", "files"; empty for one process.
  [[nodiscard]] virtual std::string transport() const = 0;
  /// Rank 0's bytes, at every rank.
  void broadcast(void* data, std::size_t bytes);
  /// The greatest of all ranks' values, at every rank.
  double maximum(double value);

 private:
  int rank_, size_;
};

/// Of one process.
std::unique_ptr<World> make_single_world();

/// Of processes of one machine: each leaves what it says in a file of `folder`, which nobody else uses. The others wait
/// for it for `timeout` seconds at most.
std::unique_ptr<World> make_file_world(const Launched& launched, const std::string& folder, double timeout);

/// Over MPI; null where it is not built in. Throws WorldError when MPI sees another number of processes than the
/// launcher told. To be made once in a process.
std::unique_ptr<World> make_mpi_world(const Launched& launched);

/// What the environment asks for: alone; on this machine where FORETRAIN_MEETING names a folder (local_ranks.hpp); else
/// by MPI. Throws WorldError, saying what to do, where several processes were launched and cannot meet.
std::unique_ptr<World> make_world(const Launched& launched, const Environment& of = environment);

/// This machine's name and, where the system tells it, the number of its boot: containers and clones share names.
std::string machine_name();

/// The place of a rank among those of its own machine, from all ranks' machines.
int local_rank_of(int rank, const std::vector<std::string>& machines);

}  // namespace foretrain::gpu
