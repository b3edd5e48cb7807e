#include "validate/cuda/collective/world.hpp"

#include <unistd.h>

#include <charconv>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <fstream>
#include <optional>

#include "model/base/descriptor.hpp"
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
constexpr Launcher launchers[] = {{"foretrain-gpu", "FORETRAIN_RANK", "FORETRAIN_SIZE"},
                                  {"Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
                                  {"PMI", "PMI_RANK", "PMI_SIZE"},
                                  {"Slurm", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS"}};

std::optional<int> number(const char* name) {
  const char* text = std::getenv(name);
  if (text == nullptr) return std::nullopt;
  int value = 0;
  const char* end = text + std::strlen(text);
  const auto [stop, error] = std::from_chars(text, end, value);
  if (error == std::errc() && stop == end && value >= 0) return value;
  throw UsageError(std::string(name) + "=" + text + ": no whole number of at least 0");
}

class FileWorld final : public World {
 public:
  FileWorld(const Launched& who, const std::string& folder, double timeout) : World(who), timeout_(timeout) {
    for (int other = 0; other < size; ++other) {
      const std::string path = folder + "/" + std::to_string(other);
      files_.emplace_back(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
      if (!files_.back().open()) throw_system_error(path);
    }
  }

  [[nodiscard]] std::string transport() const override { return "files"; }

 private:
  void exchange(const void* own, std::size_t bytes, void* all) override {
    const int file = files_[static_cast<std::size_t>(rank)].number();
    if (!write_all(file, {static_cast<const char*>(own), bytes})) throw_system_error("where the processes meet");
    auto* at = static_cast<char*>(all);
    for (int other = 0; other < size; ++other, at += bytes) hear(other, at, bytes);
    said_ += static_cast<off_t>(bytes);
  }

  /// What the other writes behind all that was said before.
  void hear(int other, char* into, std::size_t bytes) const {
    constexpr useconds_t polling_us = 50;
    const int file = files_[static_cast<std::size_t>(other)].number();
    for (const double deadline = now() + timeout_; pread(file, into, bytes, said_) < static_cast<ssize_t>(bytes);) {
      throw_if_interrupted();
      if (now() > deadline) {
        throw WorldError("the process of rank " + std::to_string(other) + " did not answer within " +
                         std::to_string(static_cast<int>(timeout_)) + " s");
      }
      usleep(polling_us);
    }
  }

  double timeout_;
  std::vector<Descriptor> files_;  ///< by rank
  off_t said_ = 0;                 ///< bytes of each
};

#ifdef FORETRAIN_HAS_MPI

/// What fails in MPI, or does not answer, ends all processes with its message: its handler of errors is the usual one.
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

ShortText short_text(const std::string& text) {
  ShortText cut = {};
  text.copy(cut.data(), cut.size() - 1);
  return cut;
}

std::unique_ptr<World> make_world(const Launched& who, double timeout) {
  if (const char* folder = std::getenv("FORETRAIN_MEETING")) return std::make_unique<FileWorld>(who, folder, timeout);
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
