#include <cstdio>

#include "validate/cuda/arguments.hpp"
#include "validate/cuda/commands.hpp"
#include "validate/cuda/probe.hpp"

namespace foretrain::gpu {

int probe_command(const std::vector<std::string>& words) {
  const Arguments arguments(words, {.flags = {}, .values = {"--device"}});
  const int device = arguments.integer("--device", 0, 0);
  const Nvml nvml;
  const Machine machine = probe_machine(nvml, device);
  for (const std::string& warning : machine.warnings) std::fprintf(stderr, "warning: %s\n", warning.c_str());
  try_device(device);
  std::puts(machine.json.c_str());
  return exit_status::done;
}

}  // namespace foretrain::gpu
