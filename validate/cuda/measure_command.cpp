// foretrain-gpu measure: suites one after the other, each in a process of its own.
#include <sys/file.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>

#include "validate/cuda/arguments.hpp"
#include "validate/cuda/child_process.hpp"
#include "validate/cuda/collective/world.hpp"
#include "validate/cuda/commands.hpp"
#include "validate/cuda/core/suite.hpp"
#include "validate/cuda/files.hpp"
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

/// One process a GPU of this machine, as training has it: who drives all GPUs from one thread launches their
/// collectives one after the other. These are of rank 1 and above; the environment tells a child that is started next
/// where to meet them, and that it is rank 0. A rank that loses the others ends by itself.
class LocalRanks {
 public:
  LocalRanks(int gpus, const std::string& folder)
      : meeting_(std::filesystem::temp_directory_path() / "foretrain-gpu-XXXXXX") {
    if (mkdtemp(meeting_.data()) == nullptr) throw_system_error(meeting_);
    setenv("FORETRAIN_MEETING", meeting_.c_str(), 1);
    setenv("FORETRAIN_SIZE", std::to_string(gpus).c_str(), 1);
    for (int rank = gpus - 1; rank >= 0; --rank) {
      setenv("FORETRAIN_RANK", std::to_string(rank).c_str(), 1);
      const std::vector<std::string> words = {"measure", "-o", folder, "--only", collective_suite};
      if (rank > 0) others_.push_back(std::make_unique<ChildProcess>(words, STDOUT_FILENO));
    }
  }
  ~LocalRanks() {
    others_.clear();
    std::error_code ignored;
    std::filesystem::remove_all(meeting_, ignored);
  }
  LocalRanks(const LocalRanks&) = delete;
  LocalRanks& operator=(const LocalRanks&) = delete;

 private:
  std::string meeting_;  ///< a folder of their own
  std::vector<std::unique_ptr<ChildProcess>> others_;
};

/// Writes what the machine is made of beside the measurements. Returns how many GPUs there are.
int probe_into(const std::string& folder) {
  const std::string json = probe_in_child();
  const std::string path = folder + "/machine.json";
  const std::string before = json_text_field(file_text(path), "identity");
  const std::string identity = json_text_field(json, "identity");
  if (!before.empty() && before != identity) {
    throw UsageError(folder + " holds measurements of another machine (" + before + "; this one is " + identity +
                     "): choose another folder");
  }
  replace_file(path, json + "\n");
  const std::string head = "\"gpu_count\":";
  const std::size_t start = json.find(head);
  return start == std::string::npos ? 0 : std::atoi(json.c_str() + start + head.size());
}

/// How a suite went, as far as its processes told.
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

class SuiteSupervisor {
 public:
  SuiteSupervisor(const MeasureTask& task, const Suite& suite, int gpus)
      : task_(task), suite_task_(task.common), ranks_(suite.name == collective_suite ? gpus : 1) {
    suite_task_.suite = &suite;
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
    at_work_.clear();
    fatal_.clear();
    std::vector<std::string> words = {"measure", "--suite", std::string(suite_task_.suite->name), "-o",
                                      suite_task_.folder};
    if (suite_task_.quick) words.emplace_back("--quick");
    for (const std::string& name : suite_task_.passed_over) words.insert(words.end(), {"--pass-over", name});
    std::unique_ptr<LocalRanks> others;
    if (task_.processes == 1 && ranks_ > 1) others = std::make_unique<LocalRanks>(ranks_, suite_task_.folder);
    ChildProcess child(words, status_descriptor);
    const auto status = child.listen([this](const std::string& line) { hear(line); }, task_.point_limit_s);
    show("");
    if (status) return judge(*status);
    if (!child.hangs()) return blame(child.why());
    outcome_.unusable = true;
    note(child.why());
    return false;
  }

  bool judge(int status) {
    switch (status) {
      case exit_status::done:
      case exit_status::incomplete:
        if (!fatal_.empty()) note(fatal_);
        return false;
      case exit_status::device_lost:
        if (at_work_.empty()) return blame(fatal_);
        suite_task_.passed_over.push_back(at_work_);  // the child wrote it down itself
        return true;
      case exit_status::unusable:
        outcome_.unusable = true;
        note(fatal_);
        return false;
      default:
        return blame("its process ended with status " + std::to_string(status));
    }
  }

  /// Notes the point that was at work when a process ended as it should not. Without one, another try would be the
  /// same.
  bool blame(const std::string& why) {
    if (at_work_.empty()) {
      note(why);
      return false;
    }
    Record record;
    record.suite = suite_task_.suite->name;
    record.name = at_work_;
    record.status = RecordStatus::failed;
    record.note = why;
    Journal(suite_task_.journal_path()).append(record);
    suite_task_.passed_over.push_back(at_work_);
    return true;
  }

  void note(const std::string& why) {
    outcome_.notes.push_back(why);
    outcome_.incomplete = true;
  }

  void hear(const std::string& line) {
    const std::size_t space = line.find(' ');
    const std::string word = line.substr(0, space);
    const std::string rest = space == std::string::npos ? "" : line.substr(space + 1);
    if (word == "begin") {
      at_work_ = rest;
      show(std::string(suite_task_.suite->name) + ": " + rest);
    } else if (word == "end" && !rest.starts_with("failed")) {
      at_work_.clear();  // a failed point may be what the process ends with
    } else if (word == "late") {
      outcome_.late = true;
    } else if (word == "warn") {
      outcome_.notes.push_back("warning: " + rest);
    } else if (word == "fatal") {
      fatal_ = rest;
    }
  }

  const MeasureTask& task_;
  SuiteTask suite_task_;
  int ranks_;  ///< processes that measure the suite together
  SuiteOutcome outcome_;
  std::string at_work_, fatal_;
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
// --suite and --pass-over are how the program calls itself: one suite in this process.
int measure_command(const std::vector<std::string>& words) {
  const Arguments arguments(words, {"--quick"}, {"--output", "--only", "--point-limit", "--suite", "--pass-over"});
  SuiteTask common{.folder = arguments.text("--output"),
                   .quick = arguments.has("--quick"),
                   .passed_over = arguments.all("--pass-over")};
  if (arguments.has("--suite")) {
    common.suite = &suite_named(arguments.text("--suite"));
    return run_suite_process(common);
  }
  const Launched who = launched();
  // Other suites measure one machine, which processes beside them would disturb.
  if (who.size > 1 && arguments.has("--only") && arguments.text("--only") != collective_suite) {
    throw UsageError("several processes were launched: together they measure the suite collective, and nothing else");
  }
  if (who.rank > 0) {
    catch_signals();
    follow_collective();
    return exit_status::done;
  }
  MeasureTask task{.common = common, .suites = {}, .processes = who.size};
  task.point_limit_s = arguments.integer("--point-limit", who.size > 1 ? 300 : common.quick ? 60 : 180, 1);
  if (who.size > 1) {
    task.suites.push_back(&suite_named(collective_suite));
  } else if (arguments.has("--only")) {
    for (const std::string& name : arguments.list("--only")) task.suites.push_back(&suite_named(name));
  } else {
    for (const Suite& suite : suites()) task.suites.push_back(&suite);
  }
  return measure(task);
}

}  // namespace foretrain::gpu
