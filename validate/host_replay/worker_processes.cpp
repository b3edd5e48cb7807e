#include "validate/host_replay/worker_processes.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "model/base/error.hpp"
#include "model/base/files.hpp"
#include "model/base/number.hpp"
#include "model/base/process.hpp"
#include "model/base/text.hpp"
#include "validate/host_replay/worker.hpp"
#include "validate/measure/signals.hpp"

namespace foretrain {

namespace {

/// Other programs on the machine shall not be part of the measurement.
constexpr int before_others = -20;

/// A process on a host, ended (with whatever it started) when this object goes.
class HostProcess {
 public:
  HostProcess(const HostLab& lab, int host, std::string label, const std::vector<std::string>& command,
              const std::string& errors_file)
      : label_(std::move(label)), errors_file_(errors_file) {
    std::vector<char*> arguments;
    arguments.reserve(command.size() + 1);
    for (const std::string& argument : command) arguments.push_back(const_cast<char*>(argument.c_str()));
    arguments.push_back(nullptr);
    try {
      process_ = Process::copy([&] { run(lab.name(host), arguments); });
    } catch (const std::system_error& error) {
      throw UsageError(fmt::format("no process for {}: {}", label_, error.code().message()));
    }
  }
  ~HostProcess() {
    if (process_.running()) kill(-process_.number(), SIGKILL);
  }
  HostProcess(const HostProcess&) = delete;
  HostProcess& operator=(const HostProcess&) = delete;

  /// Whether it has ended; `how` then says how, unless its status is 0.
  bool ended(std::string& how) {
    const std::optional<ProcessEnd> end = process_.ended();
    if (!end) return false;
    if (end->status != 0) how = fmt::format("exit status {}", end->status);
    if (end->signal != 0) how = fmt::format("signal {} ({})", end->signal, strsignal(end->signal));
    return true;
  }

  [[nodiscard]] const std::string& label() const { return label_; }
  /// The end of what it wrote.
  [[nodiscard]] std::string said() const {
    std::ifstream file(errors_file_);
    std::ostringstream text;
    text << file.rdbuf();
    std::string all = text.str();
    if (all.size() > 2000) all = "…" + all.substr(all.size() - 2000);
    return std::string(trim(all));
  }

 private:
  /// In the child.
  void run(const std::string& name, const std::vector<char*>& arguments) const {
    setpgid(0, 0);
    setpriority(PRIO_PROCESS, 0, before_others);
    for (const int number : {SIGINT, SIGTERM, SIGHUP}) signal(number, SIG_DFL);
    const int errors = open(errors_file_.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
    const int nothing = open("/dev/null", O_RDWR);
    dup2(nothing, STDIN_FILENO);
    dup2(errors, STDOUT_FILENO);
    dup2(errors, STDERR_FILENO);
    if (!enter_namespace(name)) _exit(126);
    execvp(arguments[0], arguments.data());
    _exit(127);
  }

  Process process_;
  std::string label_, errors_file_;
};

using Processes = std::vector<std::unique_ptr<HostProcess>>;

std::string label_of(const WorkerTask& task, int participant) {
  const int host = task.participants[at_index(participant)].host;
  return participant < task.ranks ? fmt::format("rank {} (host {})", participant, host)
                                  : fmt::format("server {} (host {})", participant - task.ranks, host);
}

Processes start(const HostLab& lab, const std::string& program, const WorkerTask& task) {
  Processes processes;
  for (int i = 0; i < static_cast<int>(task.participants.size()); ++i) {
    const std::vector<std::string> command = {program, task.folder, std::to_string(i)};
    processes.push_back(std::make_unique<HostProcess>(lab, task.participants[at_index(i)].host, label_of(task, i),
                                                      command, fmt::format("{}/stderr-{}", task.folder, i)));
  }
  return processes;
}

/// Whether a process failed only because another one did.
bool is_victim(const std::string& said) {
  return said == "another process failed" || said.find("hung up") != std::string::npos ||
         said.find("reset by peer") != std::string::npos;
}

void wait_for(Processes& running, double timeout) {
  const double deadline = now() + timeout;
  std::string victim;
  double first_failure = 0.0;
  while (!running.empty()) {
    throw_if_interrupted();
    for (auto process = running.begin(); process != running.end();) {
      std::string how;
      if (!(*process)->ended(how)) {
        ++process;
        continue;
      }
      if (!how.empty()) {
        const std::string said = (*process)->said();
        const std::string failure = fmt::format("{}: {}{}{}", (*process)->label(), how, said.empty() ? "" : ": ", said);
        if (!is_victim(said)) throw ReplayError(failure);
        if (victim.empty()) victim = failure;
        if (first_failure == 0.0) first_failure = now();
      }
      process = running.erase(process);
    }
    if (first_failure > 0.0 && (running.empty() || now() > first_failure + 1.0)) throw ReplayError(victim);
    if (now() > deadline && !running.empty()) {
      std::string who;
      for (const auto& process : running) who += (who.empty() ? "" : ", ") + process->label();
      const std::string said = running.front()->said();
      throw ReplayError(
          fmt::format("not finished after {:.0f} s: {}{}{}", timeout, who, said.empty() ? "" : ": ", said));
    }
    usleep(2000);
  }
}

Processes start_background(const HostLab& lab, const HostPrograms& programs, const std::string& folder,
                           const std::vector<BackgroundTraffic>& background, double seconds) {
  Processes processes;
  for (const BackgroundTraffic& traffic : background) {
    const auto command = [&](const char* side) {
      return std::vector<std::string>{programs.at(HostExecutor::own).string(), side, host_address(traffic.to),
                                      fmt::format("{:.0f}", traffic.rate.value()), fmt::format("{:.0f}", seconds)};
    };
    processes.push_back(std::make_unique<HostProcess>(lab, traffic.to, "background receiver", command("receive"),
                                                      folder + "/background-receive"));
    processes.push_back(
        std::make_unique<HostProcess>(lab, traffic.from, "background sender", command("send"), folder + "/background"));
  }
  if (!background.empty()) usleep(300'000);  // until the traffic is steady
  return processes;
}

Samples collect(const WorkerTask& task) {
  Samples samples;
  for (int i = 0; i < static_cast<int>(task.participants.size()); ++i) {
    const ProcessTimes times = read_times(task.folder, i);
    if (i == 0) samples.busy = times.busy;
    samples.seconds.resize(times.seconds.size());
    for (std::size_t k = 0; k < times.seconds.size(); ++k) {
      samples.seconds[k] = std::max(samples.seconds[k], times.seconds[k]);
    }
  }
  if (!task.steps.empty()) samples.spans = read_spans(task.folder, task.ranks);
  return samples;
}

std::string how_to_build(HostExecutor executor) {
  struct Library {
    const char *name, *packages;
  };
  constexpr Library libraries[] = {
#define EXECUTOR(name, program, installed_as, library, packages) {library, packages},
#include "validate/host_replay/executors.def"
  };
  const Library& library = libraries[static_cast<std::size_t>(executor)];
  return fmt::format("foretrain was built without {}: install {} and build again", library.name, library.packages);
}

}  // namespace

HostPrograms find_host_programs() {
  namespace fs = std::filesystem;
  const char* stated = std::getenv("FORETRAIN_HOST_PROGRAMS");
  std::error_code ignored;
  const fs::path folder =
      stated != nullptr ? fs::path(stated) : fs::read_symlink("/proc/self/exe", ignored).parent_path();
  const auto find = [&](const char* name) { return fs::exists(folder / name, ignored) ? folder / name : fs::path(); };
  HostPrograms programs = {
#define EXECUTOR(name, program, ...) {HostExecutor::name, find(program)},
#include "validate/host_replay/executors.def"
  };
  if (programs.at(HostExecutor::own).empty()) {
    throw UsageError(
        fmt::format("{}: there is no foretrain-host-worker: build it, or say where it is in "
                    "FORETRAIN_HOST_PROGRAMS",
                    folder.string()));
  }
  return programs;
}

Samples run_workers(const HostLab& lab, const HostPrograms& programs, WorkerTask task,
                    const std::vector<BackgroundTraffic>& background) {
  const std::filesystem::path& program = programs.at(task.executor);
  if (program.empty()) throw UsageError(how_to_build(task.executor));
  const ScratchFolder folder;
  task.folder = folder.path();
  write_file(task.folder + "/task.json", to_json(task));
  ProcessBarrier::make(task.folder);
  const Processes beside = start_background(lab, programs, task.folder, background, task.timeout + 5.0);
  Processes processes = start(lab, program.string(), task);
  wait_for(processes, task.timeout + 5.0);
  return collect(task);
}

}  // namespace foretrain
