#include "reports/cli/gpu_program.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <limits>
#include <system_error>

#include "model/base/error.hpp"
#include "model/base/process.hpp"
#include "model/base/text.hpp"
#include "validate/measure/clock.hpp"
#include "validate/measure/signals.hpp"

namespace foretrain {

namespace {

constexpr const char* program_name = "foretrain-gpu";

}  // namespace

std::optional<std::filesystem::path> find_gpu_program() {
  namespace fs = std::filesystem;
  std::error_code ignored;
  const char* stated = std::getenv("FORETRAIN_GPU_PROGRAMS");
  const fs::path folder =
      stated != nullptr ? fs::path(stated) : fs::read_symlink("/proc/self/exe", ignored).parent_path();
  // The top-level build puts it beside this program or below it; a build of its own is found through the variable.
  for (const fs::path& place : {folder / program_name, folder / "validate" / "cuda" / program_name}) {
    if (fs::is_regular_file(place, ignored)) return place;
  }
  return std::nullopt;
}

GpuPresence probe_gpu() {
  const auto program = find_gpu_program();
  if (!program) {
    return {false,
            fmt::format("{} is not in this program's folder: it was built without a CUDA toolkit", program_name)};
  }
  try {
    const FilterResult result = run_filter({program->string(), "probe"}, "");
    if (result.status == 0) return {true, ""};
    std::string said(trim(result.errors));
    if (said.empty()) said = fmt::format("{} probe ended with status {}", program_name, result.status);
    return {false, said};
  } catch (const std::system_error& error) {
    return {false, fmt::format("{}: {}", program->string(), error.code().message())};
  }
}

int run_gpu_program(const std::vector<std::string>& arguments) {
  const auto program = find_gpu_program();
  if (!program) throw UsageError(probe_gpu().why);
  std::vector<std::string> command = {program->string()};
  command.insert(command.end(), arguments.begin(), arguments.end());
  // Signals of the terminal reach both: the child has time to keep what it has, unless it hangs in the driver.
  constexpr double grace_s = 30.0;
  catch_signals();
  Process child;
  try {
    child = Process({.command = command});
  } catch (const std::system_error& error) {
    throw UsageError(error.what());
  }
  std::optional<ProcessEnd> end;
  for (double until = std::numeric_limits<double>::infinity(); !end && now() < until; usleep(20'000)) {
    if (interrupted()) until = std::min(until, now() + grace_s);
    end = child.ended();
  }
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) std::signal(number, SIG_DFL);
  if (end) return end->shell_status();
  child.send(SIGKILL);
  child.forget();
  return 128 + SIGINT;
}

}  // namespace foretrain
