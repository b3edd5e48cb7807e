#include "reports/cli/sweep_slurm.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>

namespace foretrain {

namespace {

/// As a shell reads it back.
std::string shell_quoted(const std::string& text) {
  std::string result = "'";
  for (const char c : text) result += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return result + "'";
}

/// The arguments without an option and its value.
std::vector<std::string> without(const std::vector<std::string>& arguments, const std::string& option) {
  std::vector<std::string> kept;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i] == option) {
      ++i;  // its value
    } else if (!arguments[i].starts_with(option + "=")) {
      kept.push_back(arguments[i]);
    }
  }
  return kept;
}

}  // namespace

std::vector<std::string> own_arguments() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  std::vector<std::string> arguments;
  for (std::string argument; std::getline(file, argument, '\0');) arguments.push_back(argument);
  return arguments;
}

std::string slurm_script(const std::vector<std::string>& arguments, std::size_t shards, const std::string& output) {
  const std::string program = std::filesystem::read_symlink("/proc/self/exe").string();
  const std::vector<std::string> kept = without(without(arguments, "--slurm"), "--jobs");
  std::string command = shell_quoted(program);
  for (std::size_t i = 1; i < kept.size(); ++i) command += " " + shell_quoted(kept[i]);
  return fmt::format(
      R"(#!/bin/sh
#SBATCH --job-name=foretrain
#SBATCH --array=1-{0}
# sbatch SCRIPT runs {0} tasks; more processors for each: sbatch --cpus-per-task=16 SCRIPT. Run again, it goes on where
# it stopped. Once all tasks are done, this makes the table:
#   {1} sweep merge {2}
cd {3} || exit
exec {4} \
  --shard "$SLURM_ARRAY_TASK_ID/{0}" --jobs "${{SLURM_CPUS_PER_TASK:-1}}"
)",
      shards, shell_quoted(program), shell_quoted(output), shell_quoted(std::filesystem::current_path().string()),
      command);
}

}  // namespace foretrain
