// One rank or server of a replay: foretrain-host-worker FOLDER NUMBER; or one end of the traffic beside it:
// foretrain-host-worker send|receive ADDRESS BYTES_PER_SECOND SECONDS.
#include <cstdio>
#include <cstdlib>
#include <string>

#include "model/base/text.hpp"
#include "validate/host_replay/background_traffic.hpp"
#include "validate/host_replay/worker.hpp"

namespace {

using namespace foretrain;

void work(const WorkerTask& task, int process, ProcessBarrier& barrier) {
  if (task.algorithm.starts_with("probe")) {
    run_probe(task, process, barrier);
  } else if (task.executor == HostExecutor::server) {
    run_key_value(task, process, barrier);
  } else if (!task.steps.empty()) {
    run_exchanges(task, process, barrier);
  } else {
    run_schedule(task, process, barrier);
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 5) {
    const BytesPerSecond rate(std::atof(argv[3]));
    const double seconds = std::atof(argv[4]);
    return std::string(argv[1]) == "send" ? send_background(argv[2], rate, seconds)
                                          : receive_background(argv[2], rate, seconds);
  }
  const auto number = argc == 3 ? number_behind(argv[2], "") : std::nullopt;
  if (!number) {
    std::fprintf(stderr, "usage: foretrain-host-worker FOLDER NUMBER (foretrain replay starts it)\n");
    return 2;
  }
  return run_worker(argv[1], *number, work);
}
