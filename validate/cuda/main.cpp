// foretrain-gpu: measures GPUs and replays training steps on them.
#include <cstdio>
#include <cstdlib>

#include "model/base/error.hpp"
#include "validate/cuda/child_process.hpp"
#include "validate/cuda/commands.hpp"

namespace {

using namespace foretrain::gpu;

constexpr const char* usage =
    R"(foretrain-gpu measures GPUs and replays training steps on them, for foretrain.

  foretrain-gpu probe
      Writes what the machine is made of to standard output, as JSON.
  foretrain-gpu measure -o FOLDER [--quick] [--only SUITE,SUITE...] [--point-limit SECONDS]
      Measures what is not in the folder yet: FOLDER/machine.json and one file of JSON lines for each suite. Suites
      of one GPU run on the first that CUDA_VISIBLE_DEVICES shows.
      --quick takes under two minutes for one GPU, without it up to a quarter of an hour. A point that takes longer
      than the limit (60 s with --quick, else 180 s) counts as hung: its process is ended, and the run goes on.
      Under mpirun or srun, with one process per GPU, it measures the suite collective across machines (MPI must have
      been there when it was built).
  foretrain-gpu replay GRAPH... -o FOLDER
      Runs task graphs that `foretrain replay --export` wrote, and writes when each task ran.
  foretrain-gpu --help | --version

Exit status: 0 all is well; 1 something could not be measured (it is listed; run again to try again); 2 bad usage, or
no usable GPU; 130 interrupted (what was measured is kept, and the next run goes on from there).
)";

int run(const std::string& name, const std::vector<std::string>& words) {
  if (name == "--help" || name == "-h" || name == "help") return std::fputs(usage, stdout) < 0;
  if (name == "--version") return std::puts("foretrain-gpu " FORETRAIN_VERSION) < 0;
  if (name == "probe") return probe_command(words);
  if (name == "measure") return measure_command(words);
  if (name == "replay") return replay_command(words);
  throw foretrain::UsageError((name.empty() ? "a subcommand is missing" : name + ": no such subcommand") +
                              "; there are probe, measure and replay (see foretrain-gpu --help)");
}

}  // namespace

int main(int argc, char** argv) {
  // Streams beyond the number of hardware queues wait for each other: as many as there can be, before CUDA is asked.
  setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0);
  return reported([&] { return run(argc > 1 ? argv[1] : "", {argv + (argc > 1 ? 2 : argc), argv + argc}); });
}
