#include "validate/measure/signals.hpp"

#include <signal.h>

namespace foretrain {

namespace {

volatile sig_atomic_t caught = 0;

void remember(int /*signal*/) { caught = 1; }

}  // namespace

void catch_signals() {
  struct sigaction action {};
  action.sa_handler = remember;  // no SA_RESTART: waits end at once
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) sigaction(number, &action, nullptr);
}

bool interrupted() noexcept { return caught != 0; }

void throw_if_interrupted() {
  if (interrupted()) throw Interrupted();
}

}  // namespace foretrain
