#include "validate/cuda/collective/launcher.hpp"

#include <charconv>
#include <cstdlib>
#include <stdexcept>

namespace foretrain::gpu {

namespace {

struct Launcher {
  const char* name;
  const char* rank;
  const char* size;
  const char* local_rank;
};

// Sources: Open MPI's FAQ "running", section "environment variables"; MPICH's Hydra and Intel MPI's developer reference
// (PMI_*, MPI_LOCALRANKID); srun's manual, section "output environment variables".
constexpr Launcher launchers[] = {
    {"FORETRAIN_RANK", "FORETRAIN_RANK", "FORETRAIN_SIZE", "FORETRAIN_LOCAL_RANK"},
    {"Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK"},
    {"PMI", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID"},
    {"Slurm", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID"},
};

std::optional<int> number(const Environment& of, const char* name) {
  const std::optional<std::string> text = of(name);
  if (!text) return std::nullopt;
  int value = 0;
  const char* end = text->data() + text->size();
  const auto [stop, error] = std::from_chars(text->data(), end, value);
  if (error != std::errc() || stop != end || value < 0) {
    throw std::invalid_argument(std::string(name) + "=" + *text + ": no whole number of at least 0");
  }
  return value;
}

}  // namespace

std::optional<std::string> environment(const std::string& name) {
  const char* text = std::getenv(name.c_str());
  if (text == nullptr) return std::nullopt;
  return std::string(text);
}

Launched launched(const Environment& of) {
  for (const Launcher& launcher : launchers) {
    const std::optional<int> rank = number(of, launcher.rank);
    const std::optional<int> size = number(of, launcher.size);
    if (!rank || !size) continue;
    if (*rank >= *size) {
      throw std::invalid_argument(std::string(launcher.rank) + "=" + std::to_string(*rank) + ", but " + launcher.size +
                                  "=" + std::to_string(*size) + ": ranks go from 0 to size - 1");
    }
    return {.by = launcher.name, .rank = *rank, .size = *size, .local_rank = number(of, launcher.local_rank)};
  }
  return {};
}

int device_of(int local_rank, int visible) {
  if (visible == 1) return 0;
  if (local_rank < visible) return local_rank;
  throw std::invalid_argument("process " + std::to_string(local_rank + 1) + " of this machine has no GPU of its own: " +
                              std::to_string(visible) + " are visible; start one process per GPU");
}

}  // namespace foretrain::gpu
