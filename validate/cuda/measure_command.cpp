// foretrain-gpu measure: suites one after the other, each in a process of its own. Never touches CUDA itself: whatever
// a GPU does, this process lives on and says what happened.
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <memory>
#include <stdexcept>
#include <string>
#include <system_error>
#include <vector>

#include "validate/cuda/arguments.hpp"
#include "validate/cuda/child_process.hpp"
#include "validate/cuda/collective/launcher.hpp"
#include "validate/cuda/commands.hpp"
#include "validate/cuda/core/suite.hpp"
#include "validate/cuda/files.hpp"
#include "validate/cuda/local_ranks.hpp"
#include "validate/cuda/suite_process.hpp"
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
constexpr double probe_limit_s = 180.0;  ///< a driver that is not persistent takes many seconds for eight GPUs
constexpr int most_processes = 4;        ///< of one suite: a GPU that fails more often than that needs a person

/// Two runs into one folder would write over each other, and slow each other down.
class FolderLock {
 public:
  explicit FolderLock(const std::string& folder) : path_(folder + "/lock") {
    file_ = Descriptor(open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
    if (!file_.open()) throw_system_error(path_);
    if (flock(file_.number(), LOCK_EX | LOCK_NB) == 0) return;
    throw UsageError(folder + ": another run measures into this folder; wait for it, or choose another folder");
  }
  ~FolderLock() { unlink(path_.c_str()); }
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

 private:
  std::string path_;
  Descriptor file_;
};

/// Asks a child what the machine is made of, and writes it beside the measurements. Returns how many GPUs there are.
int probe_into(const std::string& folder, int device) {
  ChildProcess child({"probe", "--device", std::to_string(device)}, STDOUT_FILENO);
  std::string json;
  const auto ending = child.listen([&](const std::string& line) { json = line; }, probe_limit_s);
  if (ending == ChildProcess::Ending::silent) {
    child.end(5.0);
    throw GpuError(Fault::unavailable, "the driver does not answer: see dmesg for Xid errors; a reboot may be needed");
  }
  if (ending == ChildProcess::Ending::lingering || child.how().signal != 0) {
    const bool lingers = ending == ChildProcess::Ending::lingering;
    throw GpuError(Fault::unavailable, "the process that asks what the machine is made of " +
                                           (lingers ? "does not end" : child.how().text()));
  }
  if (child.how().status != exit_status::done) {
    throw GpuError(Fault::unavailable, "no usable GPU (see above): nothing was measured");
  }
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
      : task_(task), suite_(suite), ranks_(task.processes == 1 && suite.name == collective_suite ? gpus : 1) {}

  SuiteOutcome run() {
    const double start = now();
    for (int process = 0; process < most_processes && run_process(); ++process) {
    }
    outcome_.seconds = now() - start;
    return outcome_;
  }

 private:
  /// True where another process should go on with the points that are left.
  bool run_process() {
    at_work_.clear();
    fatal_.clear();
    std::vector<std::string> words = {"measure", "--suite", std::string(suite_.name), "-o", task_.common.folder};
    words.insert(words.end(), {"--device", std::to_string(task_.common.device)});
    if (task_.common.quick) words.emplace_back("--quick");
    for (const std::string& name : passed_over_) words.insert(words.end(), {"--pass-over", name});
    std::unique_ptr<LocalRanks> others;
    if (ranks_ > 1) others = std::make_unique<LocalRanks>(ranks_, task_.common.folder);
    ChildProcess child(words, status_descriptor);
    const auto ending = child.listen([this](const std::string& line) { hear(line); }, task_.point_limit_s);
    show("");
    if (ending == ChildProcess::Ending::silent) {
      const std::string limit = std::to_string(static_cast<int>(task_.point_limit_s)) + " s";
      if (!child.end(1.0)) {
        outcome_.unusable = true;
        note("hangs in the driver and cannot be ended: reboot the machine");
        return false;
      }
      return blame("hung: nothing was heard for " + limit + ", so its process was ended");
    }
    if (ending == ChildProcess::Ending::lingering) {
      child.end(3.0);
      return blame("does not end");
    }
    return judge(child.how());
  }

  bool judge(const ProcessEnd& end) {
    if (end.signal != 0) return blame("its process " + end.text());
    switch (end.status) {
      case exit_status::done:
      case exit_status::incomplete:
        if (!fatal_.empty()) note(fatal_);
        // Processes that lost each other at a point can be started anew for the others.
        if (ranks_ == 1 || fatal_.empty() || at_work_.empty()) return false;
        passed_over_.push_back(at_work_);
        return true;
      case exit_status::device_lost:
        if (at_work_.empty()) return blame(fatal_);
        passed_over_.push_back(at_work_);  // the child wrote it down itself
        return true;
      case exit_status::unusable:
        outcome_.unusable = true;
        note(fatal_);
        return false;
      default:
        return blame("its process " + end.text());
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
    record.suite = suite_.name;
    record.name = at_work_;
    record.device = task_.common.device;
    record.status = RecordStatus::failed;
    record.note = why;
    Journal(journal_path(task_.common.folder, suite_)).append(record);
    passed_over_.push_back(at_work_);
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
      show(std::string(suite_.name) + ": " + rest);
    } else if (word == "end" && rest.rfind("failed", 0) != 0) {
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
  const Suite& suite_;
  int ranks_;  ///< processes that measure the suite together, each started here
  SuiteOutcome outcome_;
  std::vector<std::string> passed_over_;
  std::string at_work_, fatal_;
};

/// One row of the table at the end, and what is to be said below it. True where something could not be measured.
bool summarise(const MeasureTask& task, const Suite& suite, const SuiteOutcome& outcome) {
  const Journal journal(journal_path(task.common.folder, suite));
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
  const FolderLock lock(task.common.folder);
  const int gpus = probe_into(task.common.folder, task.common.device);
  std::vector<SuiteOutcome> outcomes;
  bool ended = false;
  std::size_t done = 0;
  for (; done < task.suites.size() && !ended; ++done) {
    const Suite& suite = *task.suites[done];
    std::fprintf(stderr, "%zu/%zu %s: %s\n", done + 1, task.suites.size(), std::string(suite.name).c_str(),
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
      ended = true;
    }
    ended = ended || outcomes.back().unusable;
  }
  std::fprintf(stderr, "\n%-12s %9s %9s %9s %9s\n", "suite", "measured", "failed", "skipped", "seconds");
  bool incomplete = done < task.suites.size();
  for (std::size_t i = 0; i < outcomes.size(); ++i) incomplete |= summarise(task, *task.suites[i], outcomes[i]);
  if (interrupted()) throw Interrupted();
  if (done < task.suites.size()) {
    std::fprintf(stderr, "no GPU is usable any more: %zu suites were not run\n", task.suites.size() - done);
  }
  return incomplete ? exit_status::incomplete : exit_status::done;
}

const Suite& suite_named(const std::string& name) {
  if (const Suite* suite = find_suite(name)) return *suite;
  std::string known;
  for (const Suite& suite : suites()) known += (known.empty() ? "" : ", ") + std::string(suite.name);
  throw UsageError("there is no suite " + name + "; there are " + known);
}

Launched who_is_this() {
  try {
    return launched();
  } catch (const std::invalid_argument& error) {
    throw UsageError(error.what());
  }
}

/// Other suites measure one machine, which processes beside them would disturb.
void check_together(const Arguments& arguments) {
  if (!arguments.has("--only") || arguments.text("--only") == collective_suite) return;
  throw UsageError("several processes were launched: together they measure the suite collective, and nothing else");
}

}  // namespace

// Under mpirun or srun, one process per GPU measures `collective` across machines: rank 0 as usual, the others with it.
// --suite and --pass-over are how the program calls itself: one suite in this process.
int measure_command(const std::vector<std::string>& words) {
  const Arguments arguments(
      words,
      {.flags = {"--quick"}, .values = {"--output", "--only", "--device", "--point-limit", "--suite", "--pass-over"}});
  SuiteTask common{.folder = arguments.text("--output"),
                   .quick = arguments.has("--quick"),
                   .device = arguments.integer("--device", 0, 0),
                   .passed_over = arguments.all("--pass-over")};
  if (arguments.has("--suite")) {
    common.suite = &suite_named(arguments.text("--suite"));
    return run_suite_process(common);
  }
  const Launched who = who_is_this();
  if (who.rank > 0) {
    check_together(arguments);
    catch_signals();
    follow_collective();
    return exit_status::done;
  }
  MeasureTask task{.common = common, .suites = {}, .processes = who.size};
  task.point_limit_s = arguments.integer("--point-limit", who.size > 1 ? 300 : common.quick ? 60 : 180, 1);
  if (who.size > 1) {
    check_together(arguments);
    task.suites.push_back(&suite_named(collective_suite));
  } else if (arguments.has("--only")) {
    for (const std::string& name : split_list("--only", arguments.text("--only"))) {
      task.suites.push_back(&suite_named(name));
    }
  } else {
    for (const Suite& suite : suites()) task.suites.push_back(&suite);
  }
  return measure(task);
}

}  // namespace foretrain::gpu
