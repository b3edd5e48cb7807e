#include <signal.h>
#include <sys/prctl.h>

#include "validate/cuda/commands.hpp"
#include "validate/cuda/core/suite.hpp"
#include "validate/measure/signals.hpp"

namespace foretrain::gpu {

namespace {

int measure_suite(const SuiteTask& task) {
  const Nvml nvml;
  const std::string bus_id = bus_id_of(0);
  const auto errors = nvml.describe(bus_id).uncorrected_ecc_errors;
  if (!task.suite->needs_several_gpus) bind_to_node_of(bus_id);
  warm_clocks(Seconds(task.quick ? 0.3 : 1.0));
  Journal journal(task.journal_path());
  SuiteRun run(task, journal, nvml);
  task.suite->run(run);
  const auto more_errors = nvml.describe(bus_id).uncorrected_ecc_errors - errors;
  if (more_errors > 0) {
    tell_parent("warn",
                std::to_string(more_errors) + " uncorrectable memory errors while it ran: see nvidia-smi -q -d ECC");
  }
  if (run.throttled()) {
    tell_parent("warn",
                "clocks were lowered by heat or by the power supply: check cooling, then measure into a new folder");
  }
  return journal.failures() > 0 ? exit_status::incomplete : exit_status::done;
}

}  // namespace

int run_suite_process(const SuiteTask& task) {
  prctl(PR_SET_PDEATHSIG, SIGTERM);  // a killed parent leaves nothing behind
  signal(SIGPIPE, SIG_IGN);
  catch_signals();
  try {
    return measure_suite(task);
  } catch (const Interrupted&) {
    return exit_status::interrupted;
  } catch (const GpuError& error) {
    tell_parent("fatal", error.what());
    if (error.fault() == Fault::unavailable) return exit_status::unusable;
    return error.fault() == Fault::device_lost ? exit_status::device_lost : exit_status::incomplete;
  } catch (const std::exception& error) {
    tell_parent("fatal", error.what());
    return exit_status::incomplete;
  }
}

}  // namespace foretrain::gpu
