// Memory of predictions at scale.
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "model/base/units.hpp"
#include "tests/catch.hpp"
#include "tests/cli/program.hpp"

namespace foretrain::test {

namespace {

/// Largest resident memory of a prediction that succeeds.
Bytes peak_of_prediction(std::vector<std::string> options) {
  options.insert(options.begin(), {FORETRAIN_PROGRAM, "predict"});
  std::vector<char*> arguments;
  for (std::string& option : options) arguments.push_back(option.data());
  arguments.push_back(nullptr);
  setenv("FORETRAIN_SCENARIOS", FORETRAIN_SOURCE_DIR "/scenarios", 1);
  const pid_t child = fork();
  if (child == 0) {
    dup2(open("/dev/null", O_WRONLY | O_CLOEXEC), STDOUT_FILENO);
    execv(FORETRAIN_PROGRAM, arguments.data());
    _exit(127);
  }
  int status = -1;
  rusage used = {};
  REQUIRE(wait4(child, &status, 0, &used) == child);
  REQUIRE(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
  return Bytes(1024.0 * static_cast<double>(used.ru_maxrss));
}

}  // namespace

TEST_CASE("Ten thousand workers and a hundred servers take less than 200 MB, a million GPUs less than 100 MB") {
  const TemporaryFolder folder;
  const std::string servers = folder.file("servers.yaml", R"(name: servers
cluster: { node: dgx-a100-80gb, nodes: 1250 }
workload: { train: { model: resnet-50, micro_batch: 32, global_batch: 320000, precision: fp16 } }
plan: { sync: { algorithm: parameter_server, servers: 100 } }
)");
  for (const std::string fidelity : {"estimate", "flows"}) {
    for (const std::string consistency : {"synchronous", "asynchronous", "bounded(3)"}) {
      INFO(fidelity << ", " << consistency);
      CHECK(peak_of_prediction({servers, "--fidelity", fidelity, "--set", "plan.sync.consistency=" + consistency}) <
            Bytes(200e6));
    }
    CHECK(peak_of_prediction({"gpt3-175b-1024-a100", "--fidelity", fidelity, "--set", "cluster.nodes=131072", "--set",
                              "plan.data=16384", "--set", "workload.train.global_batch=1572864"}) < Bytes(100e6));
  }
}

}  // namespace foretrain::test
