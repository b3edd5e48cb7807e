// foretrain-gpu measure: suites one after the other, each in a process of its own.
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>

#include "model/base/descriptor.hpp"
#include "validate/cuda/child_process.hpp"
#include "validate/cuda/collective/world.hpp"
#include "validate/cuda/commands.hpp"
#include "validate/cuda/core/suite.hpp"
#include "validate/cuda/probe.hpp"
#include "validate/measure/clock.hpp"
#include "validate/measure/json_object.hpp"
#include "validate/measure/signals.hpp"

namespace foretrain::gpu {

namespace {

struct MeasureTask {
  SuiteTask common;  ///< of all suites
  std::vector<const Suite*> suites;
  int processes = 1;           ///< that measure together, one GPU each
  double point_limit_s = 0.0;  ///< a child that says nothing for longer hangs
};

constexpr const char* collective_suite = "collective";

/// Two runs into one folder would write over each other, and slow each other down. Held until its end.
Descriptor lock_of(const std::string& folder) {
  const std::string path = folder + "/lock";
  Descriptor file(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
  if (!file.open()) throw_system_error(path);
  if (flock(file.number(), LOCK_EX | LOCK_NB) == 0) return file;
  throw UsageError(folder + ": another run measures into this folder; wait for it, or choose another folder");
}

/// Writes what the machine is made of beside the measurements. Returns how many GPUs there are.
int probe_into(const std::string& folder) {
  const Machine machine = probe_in_child();
  const std::string path = folder + "/machine.json";
  const std::string before = json_text_field(file_text(path), "identity");
  const std::string identity = json_text_field(machine.json, "identity");
  if (!before.empty() && before != identity) {
    throw UsageError(folder + " holds measurements of another machine (" + before + "; this one is " + identity +
                     "): choose another folder");
  }
  replace_file(path, machine.json + "\n");
  return machine.gpus;
}

int measure_suite(const SuiteTask& task, SuiteProgress& progress) {
  const Nvml nvml;
  const std::string bus_id = bus_id_of(0);
  const auto errors = nvml.describe(bus_id).uncorrected_ecc_errors;
  if (!task.suite->needs_several_gpus) bind_to_node_of(bus_id);
  warm_clocks(Seconds(task.quick ? 0.3 : 1.0));
  Journal journal(task.journal_path());
  SuiteRun run(task, journal, nvml, progress);
  task.suite->run(run);
  progress.memory_errors = nvml.describe(bus_id).uncorrected_ecc_errors - errors;
  return journal.failures() > 0 ? exit_status::incomplete : exit_status::done;
}

/// The work of a process of rank 1 and above.
int follow(const Meeting* meeting, int rank) {
  catch_signals();
  follow_collective(meeting, rank);
  return exit_status::done;
}

/// The work of a suite's process.
int run_suite(const SuiteTask& task, SuiteProgress& progress) {
  catch_signals();
  try {
    return measure_suite(task, progress);
  } catch (const Interrupted&) {
    return exit_status::interrupted;
  } catch (const GpuError& error) {
    progress.fatal = short_text(error.what());
    if (error.fault() == Fault::unavailable) return exit_status::unusable;
    return error.fault() == Fault::device_lost ? exit_status::device_lost : exit_status::incomplete;
  } catch (const std::exception& error) {
    progress.fatal = short_text(error.what());
    return exit_status::incomplete;
  }
}

/// Outcome of a suite, as far as its processes reported it.
struct SuiteOutcome {
  std::vector<std::string> notes;  ///< to be listed at the end
  double seconds = 0.0;
  bool late = false;        ///< whether time was up before its last point
  bool incomplete = false;  ///< beyond points that failed
  bool unusable = false;    ///< the GPU has gone: nothing more can be measured
};

/// The last line of a tidy terminal, or nothing.
void show(const std::string& text) {
  static const bool terminal = isatty(STDERR_FILENO) == 1;
  if (terminal) std::fprintf(stderr, "\r\033[K%.110s", text.c_str());
}

/// Processes of rank 1 and above, which end with that of rank 0 or are ended, also where the user ends the work.
struct Followers {
  std::vector<Process> processes = {};
  ~Followers() {
    for (Process& process : processes) end_process(process, 5.0);
  }
};

class SuiteSupervisor {
 public:
  SuiteSupervisor(const MeasureTask& task, const Suite& suite, int gpus) : task_(task), suite_task_(task.common) {
    suite_task_.suite = &suite;
    if (suite.name == collective_suite && task.processes == 1) ranks_ = gpus;
  }

  SuiteOutcome run() {
    constexpr int most_processes = 4;  // a GPU that fails more often than that needs a person
    const double start = now();
    // Processes that a launcher started do not come back.
    const int most = task_.processes > 1 ? 1 : most_processes;
    for (int process = 0; process < most && run_process(); ++process) {
    }
    outcome_.seconds = now() - start;
    return outcome_;
  }

 private:
  /// True where another process should go on with the points that are left.
  bool run_process() {
    const SharedMemory memory(sizeof(SuiteProgress));
    SuiteProgress& progress = memory.as<SuiteProgress>(1).front();
    const auto signs = [&, shown = 0U]() mutable {
      if (shown != progress.signs) show(std::string(suite_task_.suite->name) + ": " + progress.at_work.data());
      return shown = progress.signs;
    };
    // One process a GPU of this machine, as training has it: who drives all GPUs from one thread launches their
    // collectives one after the other. That of rank 0 is watched; one that loses the others ends by itself.
    const Meeting meeting(ranks_);
    suite_task_.meeting = task_.processes > 1 ? nullptr : &meeting;
    Followers others;
    for (int rank = 1; rank < ranks_; ++rank) {
      others.processes.push_back(Process::copy([&] {
        setpgid(0, 0);  // signals of the terminal reach the parent alone
        reported([&] { return follow(&meeting, rank); });
      }));
    }
    const ChildEnd end = run_in_child([&] { return run_suite(suite_task_, progress); }, task_.point_limit_s, signs);
    show("");
    outcome_.late = progress.late;
    if (progress.throttled) {
      outcome_.notes.emplace_back(
          "warning: clocks were lowered by heat or by the power supply: check cooling, then measure into a new folder");
    }
    if (progress.memory_errors > 0) {
      outcome_.notes.push_back("warning: " + std::to_string(progress.memory_errors) +
                               " uncorrectable memory errors while it ran: see nvidia-smi -q -d ECC");
    }
    return judge(end, progress.at_work.data(), progress.fatal.data());
  }

  bool judge(const ChildEnd& end, const std::string& at_work, const std::string& fatal) {
    outcome_.unusable = end.hangs || end.status == exit_status::unusable;
    if (end.status == exit_status::device_lost && !at_work.empty()) {
      suite_task_.passed_over.push_back(at_work);  // the child wrote it down itself
      return true;
    }
    if (end.status == exit_status::interrupted) throw Interrupted();
    if (!end.status && !end.hangs && !at_work.empty()) {
      write_down(at_work, end.why);
      return true;
    }
    // Without a point that was at work another try would be the same.
    const std::string& why = end.status ? fatal : end.why;
    if (why.empty()) return false;
    outcome_.notes.push_back(why);
    outcome_.incomplete = true;
    return false;
  }

  /// The point that was at work when a process ended as it should not.
  void write_down(const std::string& point, const std::string& why) {
    Record record;
    record.suite = suite_task_.suite->name;
    record.name = point;
    record.status = RecordStatus::failed;
    record.note = why;
    Journal(suite_task_.journal_path()).append(record);
    suite_task_.passed_over.push_back(point);
  }

  const MeasureTask& task_;
  SuiteTask suite_task_;
  int ranks_ = 1;  ///< processes of this machine that measure the suite together
  SuiteOutcome outcome_;
};

/// One row of the table at the end, and what is to be said below it. True where something could not be measured.
bool summarise(SuiteTask task, const Suite& suite, const SuiteOutcome& outcome) {
  task.suite = &suite;
  const Journal journal(task.journal_path());
  const auto count = [&](RecordStatus status) { return static_cast<int>(journal.count(status)); };
  std::fprintf(stderr, "%-12s %9d %9d %9d %9.1f\n", std::string(suite.name).c_str(), count(RecordStatus::measured),
               count(RecordStatus::failed), count(RecordStatus::skipped), outcome.seconds);
  for (const auto& [name, why] : journal.failed())
    std::fprintf(stderr, "  failed: %s: %s\n", name.c_str(), why.c_str());
  for (const std::string& text : outcome.notes) std::fprintf(stderr, "  %s\n", text.c_str());
  if (outcome.late) std::fputs("  its time was up: run again for the points that are left\n", stderr);
  return outcome.incomplete || outcome.unusable || outcome.late || journal.failures() > 0;
}

/// Measures what the folder does not hold yet; progress and a summary go to standard error. Returns an exit_status.
/// Throws GpuError (no usable GPU), UsageError (the folder is in use, or holds another machine), std::system_error.
int measure(const MeasureTask& task) {
  catch_signals();
  std::filesystem::create_directories(task.common.folder);
  const Descriptor lock = lock_of(task.common.folder);
  const int gpus = probe_into(task.common.folder);
  std::vector<SuiteOutcome> outcomes;
  while (outcomes.size() < task.suites.size() && !interrupted() && (outcomes.empty() || !outcomes.back().unusable)) {
    const Suite& suite = *task.suites[outcomes.size()];
    std::fprintf(stderr, "%zu/%zu %s: %s\n", outcomes.size() + 1, task.suites.size(), std::string(suite.name).c_str(),
                 std::string(suite.description).c_str());
    if (suite.needs_several_gpus && gpus < 2 && task.processes == 1) {
      outcomes.push_back({.notes = {"not measured: it needs two GPUs"}});
      continue;
    }
    try {
      outcomes.push_back(SuiteSupervisor(task, suite, gpus).run());
    } catch (const Interrupted&) {
      show("");
      outcomes.push_back({.notes = {"interrupted"}, .incomplete = true});
    }
  }
  std::fprintf(stderr, "\n%-12s %9s %9s %9s %9s\n", "suite", "measured", "failed", "skipped", "seconds");
  const std::size_t left = task.suites.size() - outcomes.size();
  bool incomplete = left > 0;
  for (std::size_t i = 0; i < outcomes.size(); ++i) incomplete |= summarise(task.common, *task.suites[i], outcomes[i]);
  throw_if_interrupted();
  if (left > 0) std::fprintf(stderr, "no GPU is usable any more: %zu suites were not run\n", left);
  return incomplete ? exit_status::incomplete : exit_status::done;
}

const Suite& suite_named(const std::string& name) {
  std::string known;
  for (const Suite& suite : suites()) {
    if (suite.name == name) return suite;
    known += (known.empty() ? "" : ", ") + std::string(suite.name);
  }
  throw UsageError("there is no suite " + name + "; there are " + known);
}

}  // namespace

// Under mpirun or srun, one process per GPU measures `collective` across machines: rank 0 as usual, the others with it.
int measure_command(const std::vector<std::string>& words) {
  const Options options = read_options(words, {"output", "quick", "only", "point-limit"}, false);
  const Launched who = launched();
  // Other suites measure one machine, which processes beside them would disturb.
  if (who.size > 1 && !options.only.empty() && options.only != std::vector<std::string>{collective_suite}) {
    throw UsageError("several processes were launched: together they measure the suite collective, and nothing else");
  }
  if (who.rank > 0) return follow(nullptr, who.rank);
  MeasureTask task{.common = {.folder = options.folder, .quick = options.quick}, .suites = {}, .processes = who.size};
  task.point_limit_s = options.limit > 0 ? options.limit : who.size > 1 ? 300 : options.quick ? 60 : 180;
  for (const std::string& name : who.size > 1 ? std::vector<std::string>{collective_suite} : options.only) {
    task.suites.push_back(&suite_named(name));
  }
  if (task.suites.empty()) {
    for (const Suite& suite : suites()) task.suites.push_back(&suite);
  }
  return measure(task);
}

}  // namespace foretrain::gpu
