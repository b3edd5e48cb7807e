// The processes that measure together: one per GPU across machines, or one alone. Rank 0 leads and writes; what it
// decides it tells the others, over MPI where it is built in, else over TCP.
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

/// All ranks make the same calls in the same order. Every call throws WorldError when another process is gone or does
/// not answer in time.
class World {
 public:
  World(int rank, int size) : rank_(rank), size_(size) {}
  virtual ~World() = default;
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  [[nodiscard]] int rank() const { return rank_; }
  [[nodiscard]] int size() const { return size_; }
  [[nodiscard]] bool leads() const { return rank_ == 0; }
  /// Rank 0's bytes, at every rank.
  virtual void broadcast(void* data, std::size_t bytes) = 0;
  /// The texts of all ranks, in their order, at every rank.
  virtual std::vector<std::string> gather(const std::string& text) = 0;
  /// The greatest of all ranks' values, at every rank.
  virtual double maximum(double value) = 0;
  void barrier() { maximum(0.0); }
  /// "MPI", "TCP"; empty for one process.
  [[nodiscard]] virtual std::string transport() const = 0;

 private:
  int rank_, size_;
};

/// Of one process.
std::unique_ptr<World> make_single_world();

/// Where the processes of a run meet, and how they know each other.
struct Rendezvous {
  std::string meeting;         ///< "host:port"
  std::string token;           ///< see Token
  std::string interface = {};  ///< at which rank 0 listens: "ib0", "10.0.0.7"; empty: where it knows the host by
};

/// Over TCP: rank 0 listens at the meeting point, the others connect to it, within `timeout` seconds, which is also the
/// longest that any later message may take. Throws WorldError.
std::unique_ptr<World> make_tcp_world(const Launched& launched, const Rendezvous& rendezvous, double timeout);

/// Over MPI; null where it is not built in. Throws WorldError when MPI sees another number of processes than the
/// launcher told. To be made once in a process.
std::unique_ptr<World> make_mpi_world(const Launched& launched);

/// What the environment asks for: alone; by TCP where FORETRAIN_RENDEZVOUS=host:port is set, with FORETRAIN_TOKEN and,
/// where the host has several networks, FORETRAIN_INTERFACE; else by MPI. Throws WorldError, saying what to set, where
/// several processes were launched and cannot meet.
std::unique_ptr<World> make_world(const Launched& launched, const Environment& of = environment);

/// This machine's name and, where the system tells it, the number of its boot: containers and clones share names.
std::string machine_name();

/// The place of a rank among those of its own machine, from all ranks' machines.
int local_rank_of(int rank, const std::vector<std::string>& machines);

}  // namespace foretrain::gpu
