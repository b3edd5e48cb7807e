// A sweep as a job array of Slurm. Other schedulers run `--shard` with their own number of a job.
#pragma once

#include <cstddef>
#include <string>

namespace foretrain {

/// The script that runs this process's own command in so many shards: whatever else its command line says, without
/// --slurm and --jobs. `output`: where the table goes. Throws UsageError for names that a script cannot hold.
std::string slurm_script(std::size_t jobs, const std::string& output);

}  // namespace foretrain
