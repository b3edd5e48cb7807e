#include "validate/cuda/suite_process.hpp"

#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "validate/cuda/commands.hpp"
#include "validate/cuda/core/suite.hpp"
#include "validate/measure/clock.hpp"
#include "validate/measure/signals.hpp"

namespace foretrain::gpu {

namespace {

void say(const std::string& word, std::string text) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  const std::string line = word + " " + text + "\n";
  for (std::size_t written = 0; written < line.size();) {
    const ssize_t n = write(status_descriptor, line.data() + written, line.size() - written);
    if (n < 0 && errno != EINTR) return;  // nobody listens any more
    if (n > 0) written += static_cast<std::size_t>(n);
  }
}

const char* word_of(RecordStatus status) {
  if (status == RecordStatus::measured) return "measured";
  return status == RecordStatus::failed ? "failed" : "skipped";
}

class StatusPipe : public SuiteWatch {
 public:
  void point_begins(const std::string& name) override { say("begin", name); }
  void point_ends(const Record& record) override {
    say("end", std::string(word_of(record.status)) + " " + record.name);
    if (!record.state) return;
    for (const std::string& reason : record.state->throttle) {
      if (reason == "thermal" || reason == "hardware_thermal" || reason == "power_brake" || reason == "hardware") {
        throttled_ = true;
      }
    }
  }
  void out_of_time(const std::string& name) override { say("late", name); }
  [[nodiscard]] bool throttled() const { return throttled_; }

 private:
  bool throttled_ = false;
};

int measure_suite(const SuiteTask& task, const Suite& suite) {
  GPU_CHECK(cudaSetDevice(task.device));
  const Nvml nvml;
  const std::string bus_id = bus_id_of(task.device);
  const auto errors = nvml.describe(bus_id).uncorrected_ecc_errors.value_or(0);
  Journal journal(journal_path(task.folder, task.suite));
  StatusPipe watch;
  SuiteOptions options{.quick = task.quick,
                       .device = task.device,
                       .deadline = now() + (task.quick ? suite.quick_budget_s : suite.budget_s),
                       .passed_over = {task.passed_over.begin(), task.passed_over.end()},
                       .verify = task.verify,
                       .watch = &watch};
  SuiteRun run(suite.name, std::move(options), journal, nvml);
  suite.run(run);
  const auto more_errors = nvml.describe(bus_id).uncorrected_ecc_errors.value_or(0) - errors;
  if (more_errors > 0) {
    say("warn", std::to_string(more_errors) + " uncorrectable memory errors while it ran: see nvidia-smi -q -d ECC");
  }
  if (watch.throttled()) {
    say("warn", "clocks were lowered by heat or by the power supply: check cooling, then measure into a new folder");
  }
  return journal.failures() > 0 ? exit_status::incomplete : exit_status::done;
}

}  // namespace

std::string journal_path(const std::string& folder, const std::string& suite) {
  return folder + "/" + suite + ".jsonl";
}

int run_suite_process(const SuiteTask& task) {
  prctl(PR_SET_PDEATHSIG, SIGTERM);  // a killed parent leaves nothing behind
  signal(SIGPIPE, SIG_IGN);
  catch_signals();
  const Suite* suite = find_suite(task.suite);
  try {
    return measure_suite(task, *suite);
  } catch (const Interrupted&) {
    return exit_status::interrupted;
  } catch (const GpuError& error) {
    say("fatal", error.what());
    if (error.fault() == Fault::unavailable) return exit_status::unusable;
    const bool lost = error.fault() == Fault::device_lost || error.fault() == Fault::timeout;
    return lost ? exit_status::device_lost : exit_status::incomplete;
  } catch (const std::exception& error) {
    say("fatal", error.what());
    return exit_status::incomplete;
  }
}

}  // namespace foretrain::gpu
