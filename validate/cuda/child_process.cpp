#include "validate/cuda/child_process.hpp"

#include <signal.h>
#include <unistd.h>

#include <cstdio>

#include "validate/cuda/core/error.hpp"
#include "validate/measure/clock.hpp"
#include "validate/measure/signals.hpp"

namespace foretrain::gpu {

namespace {

bool wait_for(Process& process, double seconds) {
  for (const double until = now() + seconds; process.running() && !process.ended() && now() < until;) usleep(2000);
  return !process.running();
}

}  // namespace

int reported(const std::function<int()>& work) {
  try {
    return work();
  } catch (const Interrupted&) {
    std::fputs("foretrain-gpu: interrupted; what was measured is kept\n", stderr);
    return exit_status::interrupted;
  } catch (const GpuError& error) {
    std::fprintf(stderr, "foretrain-gpu: %s\n", error.what());
    return error.fault() == Fault::unavailable ? exit_status::unusable : exit_status::incomplete;
  } catch (const std::exception& error) {  // UsageError, and files that cannot be read or written
    std::fprintf(stderr, "foretrain-gpu: %s\n", error.what());
    return exit_status::unusable;
  }
}

bool end_process(Process& process, double patience) {
  process.send(SIGTERM);
  if (wait_for(process, patience)) return true;
  process.send(SIGKILL);
  if (wait_for(process, 10.0)) return true;
  process.forget();
  return false;
}

ChildEnd run_in_child(const std::function<int()>& work, double seconds, const std::function<unsigned()>& signs) {
  Process child = Process::copy([&work] {
    setpgid(0, 0);  // signals of the terminal reach the parent alone
    for (const int number : {SIGINT, SIGTERM, SIGHUP}) signal(number, SIG_DFL);
    _exit(reported(work));
  });
  unsigned last = signs();
  for (double until = now() + seconds; now() < until; usleep(2000)) {
    if (const auto end = child.ended()) {
      const bool ours = end->status <= exit_status::device_lost || end->status == exit_status::interrupted;
      if (end->signal == 0 && ours) return {end->status};
      return {std::nullopt, "its process " + end->text()};
    }
    if (interrupted()) {
      end_process(child, 10.0);
      throw Interrupted();
    }
    if (signs() == last) continue;
    last = signs();
    until = now() + seconds;
  }
  if (!end_process(child, 1.0)) {
    return {std::nullopt, "hangs in the driver and cannot be ended: reboot the machine", true};
  }
  return {std::nullopt,
          "hung: nothing was heard for " + std::to_string(static_cast<int>(seconds)) + " s, so its process was ended"};
}

}  // namespace foretrain::gpu
