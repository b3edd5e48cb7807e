// A sweep as a job array for the batch system Slurm.
#pragma once

#include <string>
#include <vector>

namespace foretrain {

/// A script for sbatch that runs this command in `shards` tasks; `arguments` are those of the command line, program
/// name first.
std::string slurm_script(const std::vector<std::string>& arguments, std::size_t shards, const std::string& output);

/// The command line of this process.
std::vector<std::string> own_arguments();

}  // namespace foretrain
