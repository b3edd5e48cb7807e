#include "reports/cli/slurm_array.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <vector>

#include "model/base/files.hpp"
#include "model/base/text.hpp"

namespace foretrain {

namespace {

/// The command line of this process behind the program's name, quoted, without what is about its jobs.
std::string own_arguments() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  std::string argument, text;
  std::getline(file, argument, '\0');
  while (std::getline(file, argument, '\0')) {
    if (argument == "--slurm" || argument == "--jobs") {
      std::getline(file, argument, '\0');  // its value
    } else if (!argument.starts_with("--slurm=") && !argument.starts_with("--jobs=")) {
      text += " " + shell_quoted(argument);
    }
  }
  return text;
}

}  // namespace

std::string slurm_script(std::size_t jobs, const std::string& output) {
  const std::string program = std::filesystem::read_symlink("/proc/self/exe").string();
  require_plain_name(program);  // a line end would leave the comment
  require_plain_name(output);
  return fmt::format(R"(#!/bin/sh
#SBATCH --job-name=foretrain
#SBATCH --array=1-{0}
# sbatch SCRIPT runs {0} jobs; more processors for each: sbatch --cpus-per-task=16 SCRIPT. Run again, it goes on where it
# stopped. Once all jobs are done, this makes the table:
#   {1} sweep merge {2}
cd {3} || exit
exec {1}{4} \
  --shard "$SLURM_ARRAY_TASK_ID/{0}" --jobs "${{SLURM_CPUS_PER_TASK:-1}}"
)",
                     jobs, shell_quoted(program), shell_quoted(output),
                     shell_quoted(std::filesystem::current_path().string()), own_arguments());
}

}  // namespace foretrain
