#include "validate/cuda/collective/world.hpp"

#include <unistd.h>

#include <charconv>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <fstream>
#include <optional>

#include "model/base/error.hpp"
#include "validate/measure/clock.hpp"
#include "validate/measure/signals.hpp"

#ifdef FORETRAIN_HAS_MPI
// The C interface is all that is needed; the old one of C++ stays out.
#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>
#endif

namespace foretrain::gpu {

namespace {

struct Launcher {
  const char *name, *rank, *size;
};

// Sources: Open MPI's FAQ "running", section "environment variables"; MPICH's Hydra and Intel MPI's developer reference
// (PMI_*); srun's manual, section "output environment variables".
constexpr Launcher launchers[] = {{"Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
                                  {"PMI", "PMI_RANK", "PMI_SIZE"},
                                  {"Slurm", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS"}};

std::optional<int> number(const char* name) {
  const char* text = std::getenv(name);
  if (text == nullptr) return std::nullopt;
  int value = 0;
  const char* end = text + std::strlen(text);
  const auto [stop, error] = std::from_chars(text, end, value);
  if (error == std::errc() && stop == end && value >= 0) return value;
  throw UsageError(std::string(name) + "=" + text + ": no integer of at least 0");
}

class SharedWorld final : public World {
 public:
  SharedWorld(const Meeting& meeting, int own, double timeout)
      : World({"", own, meeting.size}), seats_(meeting.seats()), timeout_(timeout) {}

  [[nodiscard]] std::string transport() const override { return "memory"; }

 private:
  void exchange(const void* own, std::size_t bytes, void* all) override {
    const std::size_t place = turn_++ % 2;
    Meeting::Seat& mine = seats_[static_cast<std::size_t>(rank)];
    std::memcpy(mine.said[place].data(), own, bytes);
    mine.count = turn_;
    auto* at = static_cast<char*>(all);
    for (int other = 0; other < size; ++other, at += bytes) {
      wait_for(other);
      std::memcpy(at, seats_[static_cast<std::size_t>(other)].said[place].data(), bytes);
    }
  }

  void wait_for(int other) const {
    constexpr useconds_t polling_us = 50;
    const double deadline = now() + timeout_;
    for (const auto& count = seats_[static_cast<std::size_t>(other)].count; count < turn_; usleep(polling_us)) {
      throw_if_interrupted();
      if (now() < deadline) continue;
      throw WorldError("the process of rank " + std::to_string(other) + " did not answer within " +
                       std::to_string(static_cast<int>(timeout_)) + " s");
    }
  }

  std::span<Meeting::Seat> seats_;  ///< by rank
  double timeout_;
  unsigned turn_ = 0;
};

#ifdef FORETRAIN_HAS_MPI

/// Failures and timeouts in MPI end all processes with a message: its handler of errors is the usual one.
class MpiWorld final : public World {
 public:
  explicit MpiWorld(const Launched& who) : World(who), pending_(std::uncaught_exceptions()) {
    MPI_Init(nullptr, nullptr);
    int seen = 1;
    MPI_Comm_size(MPI_COMM_WORLD, &seen);
    if (seen == size) return;
    MPI_Finalize();
    throw WorldError(who.by + " launched " + std::to_string(size) + " processes, and MPI sees " + std::to_string(seen) +
                     ": use the mpirun of the MPI that this program was built with (srun: --mpi=pmix or pmi2)");
  }
  ~MpiWorld() override {
    // The others wait for a process that leaves because of an error: MPI has to end them.
    if (std::uncaught_exceptions() > pending_) MPI_Abort(MPI_COMM_WORLD, 1);
    MPI_Finalize();
  }

  [[nodiscard]] std::string transport() const override { return "MPI"; }

 private:
  void exchange(const void* own, std::size_t bytes, void* all) override {
    const int count = static_cast<int>(bytes);
    MPI_Allgather(own, count, MPI_BYTE, all, count, MPI_BYTE, MPI_COMM_WORLD);
  }

  int pending_;
};

#endif

}  // namespace

Launched launched() {
  for (const Launcher& launcher : launchers) {
    const std::optional<int> rank = number(launcher.rank), size = number(launcher.size);
    if (!rank || !size) continue;
    if (*rank < *size) return {launcher.name, *rank, *size};
    throw UsageError(std::string(launcher.rank) + "=" + std::to_string(*rank) + ", but " + launcher.size + "=" +
                     std::to_string(*size) + ": ranks go from 0 to size - 1");
  }
  return {};
}

std::unique_ptr<World> make_world(const Meeting* meeting, int rank, double timeout) {
  if (meeting != nullptr) return std::make_unique<SharedWorld>(*meeting, rank, timeout);
  const Launched who = launched();
#ifdef FORETRAIN_HAS_MPI
  return std::make_unique<MpiWorld>(who);
#else
  throw WorldError(std::to_string(who.size) + " processes were launched (" + who.by +
                   "), and this program was built without MPI: install one (libopenmpi-dev) and build again; on one " +
                   "machine it starts a process for each GPU by itself");
#endif
}

std::string machine_name() {
  char name[256] = "";
  if (gethostname(name, sizeof(name) - 1) != 0) name[0] = '\0';
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  return boot.empty() ? name : name + ("/" + boot);
}

}  // namespace foretrain::gpu
