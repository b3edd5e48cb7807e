#include "validate/cuda/arguments.hpp"
#include "validate/cuda/commands.hpp"

namespace foretrain::gpu {

// Hands its command line to run_replay() of validate/cuda/replay/replay.hpp.
int replay_command(const std::vector<std::string>& /*words*/) {
  throw UsageError("replay: this build cannot run task graphs yet");
}

}  // namespace foretrain::gpu
