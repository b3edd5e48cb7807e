// A sweep as a job array: what a batch system is given to run its shards, each a job. One table has the batch systems.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace foretrain {

struct BatchSystem;

/// So many jobs of a batch system.
struct JobArray {
  const BatchSystem* system = nullptr;
  std::size_t jobs = 0;
};

/// Reads "pbs:100". Throws UsageError.
JobArray parse_job_array(const std::string& text);
/// Slurm's, with so many jobs.
JobArray slurm_array(std::size_t jobs);
/// "slurm|pbs|…", of the table.
std::string batch_system_names();

/// The script, or for Kubernetes the Job, that runs this process's own command in shards: whatever else its command
/// line says, without --slurm, --job-array and --jobs. `output`: where the table goes. Throws UsageError for names and
/// arguments that such a file cannot hold.
std::string job_array_script(const JobArray& array, const std::string& output);

}  // namespace foretrain
