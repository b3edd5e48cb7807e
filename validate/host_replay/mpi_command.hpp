// How mpirun reaches hosts that are namespaces, and which algorithm Open MPI is told to use.
#pragma once

#include <string>
#include <vector>

#include "validate/host_replay/namespaces.hpp"
#include "validate/host_replay/worker_task.hpp"

namespace foretrain {

/// The number that Open MPI 4 gives an all-reduce algorithm (ompi_info --param coll tuned --level 5). Throws UsageError
/// for algorithms that it has not.
int open_mpi_algorithm(const std::string& algorithm);

/// The command line to start in the first rank's namespace; writes a host file and a launch agent into the task's
/// folder.
std::vector<std::string> mpi_command(const HostLab& lab, const std::string& program, const WorkerTask& task);

}  // namespace foretrain
