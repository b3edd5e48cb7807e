// Which of several processes this one is, as mpirun, srun or the user told it in environment variables.
#pragma once

#include <functional>
#include <optional>
#include <string>

namespace foretrain::gpu {

struct Launched {
  std::string by;  ///< "Open MPI", "Slurm", …; empty when this process was started alone
  int rank = 0;
  int size = 1;
  std::optional<int> local_rank = std::nullopt;  ///< among the processes of this machine, where the launcher tells
};

/// An environment variable's text; nothing when it is not set.
using Environment = std::function<std::optional<std::string>(const std::string&)>;
/// This process's own.
std::optional<std::string> environment(const std::string& name);

/// Known launchers in turn: FORETRAIN_RANK and FORETRAIN_SIZE (set by hand), Open MPI, PMI (MPICH, Intel MPI), Slurm's
/// steps. Slurm's batch script alone is no launch of several processes, although it knows of tasks. Throws
/// std::invalid_argument when a variable is no number, or the rank is none of the size.
Launched launched(const Environment& of = environment);

/// The GPU that a process drives, of `visible` ones, as the n-th process of its machine: GPU n, or the only one where
/// the launcher shows each process its own. Throws std::invalid_argument when there are too few.
int device_of(int local_rank, int visible);

}  // namespace foretrain::gpu
