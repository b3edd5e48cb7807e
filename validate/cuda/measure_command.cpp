#include <stdexcept>

#include "validate/cuda/arguments.hpp"
#include "validate/cuda/collective/launcher.hpp"
#include "validate/cuda/commands.hpp"
#include "validate/cuda/suite_process.hpp"
#include "validate/cuda/supervisor.hpp"
#include "validate/measure/signals.hpp"

namespace foretrain::gpu {

namespace {

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
  if (!arguments.has("--only") || arguments.text("--only") == "collective") return;
  throw UsageError("several processes were launched: together they measure the suite collective, and nothing else");
}

}  // namespace

// Under mpirun or srun, one process per GPU measures `collective` across machines: rank 0 as usual, the others with it.
// --suite and --pass-over are how the program calls itself: one suite in this process. --unverified is for tests on
// machines without a GPU: own kernels are not checked against the host before they are timed.
int measure_command(const std::vector<std::string>& words) {
  const Arguments arguments(words,
                            {.flags = {"--quick", "--unverified"},
                             .values = {"--output", "--only", "--device", "--point-limit", "--suite", "--pass-over"}});
  SuiteTask common{.folder = arguments.text("--output"),
                   .quick = arguments.has("--quick"),
                   .verify = !arguments.has("--unverified"),
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
    follow_collective(common.verify);
    return exit_status::done;
  }
  MeasureTask task{.common = common, .suites = {}, .processes = who.size};
  task.point_limit_s = arguments.integer("--point-limit", who.size > 1 ? 300 : common.quick ? 60 : 180, 1);
  if (who.size > 1) {
    check_together(arguments);
    task.suites.push_back(&suite_named("collective"));
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
