#include "reports/cli/job_array.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string_view>

#include "model/base/error.hpp"
#include "model/base/files.hpp"
#include "model/base/text.hpp"
#include "model/base/units.hpp"
#include "model/base/utf8.hpp"
#include "reports/print/table.hpp"

namespace foretrain {

/// What a batch system calls that which a job of an array needs.
struct BatchSystem {
  std::string_view name;
  std::string_view directives;  ///< what the file begins with, {0} the number of jobs, {1} the folder as JSON
  std::string_view index;       ///< the variable that says which job this is
  int first;                    ///< its value in the first job
  std::string_view processors;  ///< the variable that says how many a job has
  std::string_view submit;      ///< the command that takes the file
  std::string_view advice;      ///< what else there is to say
  std::size_t least = 1;        ///< jobs of an array
  bool is_yaml = false;         ///< else a script of the shell
};

namespace {

constexpr std::size_t most_jobs = 1'000'000;

constexpr std::array<BatchSystem, 4> batch_systems = {{
    {"slurm",
     R"(#!/bin/sh
#SBATCH --job-name=foretrain
#SBATCH --array=1-{0}
)",
     "SLURM_ARRAY_TASK_ID", 1, "SLURM_CPUS_PER_TASK", "sbatch SCRIPT",
     "more processors for each: sbatch --cpus-per-task=16 SCRIPT."},
    {"pbs",
     R"(#!/bin/sh
#PBS -S /bin/sh
#PBS -N foretrain
#PBS -J 1-{0}
)",
     "PBS_ARRAY_INDEX", 1, "NCPUS", "qsub SCRIPT", "more processors for each: qsub -l select=1:ncpus=16 SCRIPT.", 2},
    {"lsf",
     R"(#!/bin/sh
#BSUB -J "foretrain[1-{0}]"
#BSUB -o foretrain.%J.%I.out
)",
     "LSB_JOBINDEX", 1, "LSB_DJOB_NUMPROC", "bsub < SCRIPT",
     "more processors for each: bsub -n 16 -R 'span[hosts=1]' < SCRIPT."},
    {"kubernetes",
     R"(apiVersion: batch/v1
kind: Job
metadata:
  name: foretrain
spec:
  completionMode: Indexed
  completions: {0}
  parallelism: {0}
  backoffLimitPerIndex: 2
  template:
    spec:
      restartPolicy: Never
      volumes:
        - name: folder
          persistentVolumeClaim: {{ claimName: foretrain }}
      containers:
        - name: foretrain
          image: foretrain
          resources: {{ requests: {{ cpu: 1 }}, limits: {{ cpu: 1 }} }}
          env:
            - name: PROCESSORS
              valueFrom: {{ resourceFieldRef: {{ resource: limits.cpu }} }}
          volumeMounts:
            - {{ name: folder, mountPath: {1} }}
          command:
            - sh
            - -c
            - |
)",
     "JOB_COMPLETION_INDEX", 0, "PROCESSORS", "kubectl replace --force -f FILE",
     "yours to say are the image, which has foretrain, the claim to a volume with this folder, which many may write "
     "to, and "
     "more processors for each.",
     1, true},
}};

const BatchSystem* system_named(std::string_view name) {
  const auto found = std::ranges::find(batch_systems, name, &BatchSystem::name);
  return found == batch_systems.end() ? nullptr : &*found;
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

/// The command line of this process, without what is about its jobs; program name first.
std::vector<std::string> own_arguments() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  std::vector<std::string> arguments;
  for (std::string argument; std::getline(file, argument, '\0');) arguments.push_back(argument);
  for (const char* option : {"--slurm", "--job-array", "--jobs"}) arguments = without(arguments, option);
  return arguments;
}

/// What each job runs: the same whatever the batch system, but for two variables. A shard that is done is not predicted
/// again, so that any job may be run any number of times.
std::string shell_lines(const JobArray& array, const std::string& program, const std::string& folder) {
  const BatchSystem& system = *array.system;
  std::string command = shell_quoted(program);
  const std::vector<std::string> arguments = own_arguments();
  for (std::size_t i = 1; i < arguments.size(); ++i) command += " " + shell_quoted(arguments[i]);
  const std::string number = system.first == 1 ? fmt::format("${}", system.index)
                                               : fmt::format("$(({} + {}))", system.index, 1 - system.first);
  return fmt::format(R"(cd {} || exit
exec {} \
  --shard "{}/{}" --jobs "${{{}:-1}}"
)",
                     shell_quoted(folder), command, number, array.jobs, system.processors);
}

/// As the lines of a YAML block in a container's command. Throws UsageError for what neither YAML nor a line's end can
/// be.
std::string yaml_lines(const std::string& lines) {
  if (printable(lines) != lines || lines.find("\xE2\x80\xA8") != std::string::npos ||
      lines.find("\xE2\x80\xA9") != std::string::npos) {
    throw UsageError("--job-array: YAML cannot hold the control characters of this command line; use none");
  }
  std::string text;
  for (const std::string& line : split(lines, '\n')) {
    if (!line.empty()) text += std::string(14, ' ');
    for (const char c : line) text += c == '$' ? "$$" : std::string(1, c);  // else Kubernetes reads $(NAME)
    text += '\n';
  }
  text.pop_back();
  return text;
}

/// What to do with the file, as its comment.
std::string comment(const BatchSystem& system, std::size_t jobs, const std::string& merge) {
  constexpr int width = 116;
  const std::string told = fmt::format(
      "{} runs {} jobs; {} Run again, it goes on where it stopped. Once all jobs are done, this makes the table:",
      system.submit, jobs, system.advice);
  std::string text;
  for (const std::string& line : split(wrap(told, width, 0), '\n')) text += "# " + line + "\n";
  return text + "#   " + merge + "\n";
}

}  // namespace

JobArray slurm_array(std::size_t jobs) { return {system_named("slurm"), jobs}; }

std::string batch_system_names() {
  std::string names;
  for (const BatchSystem& one : batch_systems) names += (names.empty() ? "" : "|") + std::string(one.name);
  return names;
}

JobArray parse_job_array(const std::string& text) {
  const std::size_t colon = text.find(':');
  const BatchSystem* system = system_named(text.substr(0, colon));
  if (system != nullptr && colon != std::string::npos) {
    try {
      const std::int64_t jobs =
          parse_integer(text.substr(colon + 1), static_cast<std::int64_t>(system->least), most_jobs);
      return {system, static_cast<std::size_t>(jobs)};
    } catch (const UnitError&) {
      // Said below, in the words of the option.
    }
  }
  throw UsageError(fmt::format("--job-array {}: write {}:N, N jobs of that batch system, from {} to {}", text,
                               system != nullptr ? std::string(system->name) : batch_system_names(),
                               system != nullptr ? system->least : 1, most_jobs));
}

std::string job_array_script(const JobArray& array, const std::string& output) {
  const BatchSystem& system = *array.system;
  const std::string own = std::filesystem::read_symlink("/proc/self/exe").string();
  const std::string program = system.is_yaml ? "foretrain" : own;  // an image has its own
  const std::string folder = std::filesystem::current_path().string();
  require_plain_name(program);  // a line end would leave the comment
  require_plain_name(output);
  const std::string merge = fmt::format("{} sweep merge {}", shell_quoted(program), shell_quoted(output));
  const std::string lines = shell_lines(array, program, folder);
  const std::string body = system.is_yaml ? yaml_lines(lines) : lines;
  const std::string quoted = nlohmann::json(folder).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  const std::string head = fmt::format(fmt::runtime(system.directives), array.jobs, quoted);
  const std::string told = comment(system, array.jobs, merge);
  return system.is_yaml ? told + head + body : head + told + body;
}

}  // namespace foretrain
