// Real processes between real namespaces: as root only, skipped elsewhere. Sums are checked exactly; times only where
// no busy machine can turn them round.
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "model/base/process.hpp"
#include "model/collectives/algorithm.hpp"
#include "model/scenario/load/load.hpp"
#include "tests/catch.hpp"
#include "tests/host_replay/can_have_hosts.hpp"
#include "validate/host_replay/replay.hpp"

using namespace foretrain;

namespace {

ReplayPlan plan(const std::vector<std::string>& overrides, int repetitions = 1) {
  ReplayOptions options;
  options.repetitions = repetitions;
  ReplayPlan made = plan_replay(load_scenario("replay-hosts", overrides), options);
  made.task.warmup = 1;
  return made;
}

}  // namespace

// A worker ends with an error, and run() throws, when any value of the result differs from the exact sum.
TEST_CASE("every algorithm's schedule adds up exactly when processes carry it out", "[host][network]") {
  if (!can_have_hosts()) return;
  HostReplayer replayer;
  for (const char* algorithm :
       {"naive", "tree", "double_tree", "ring", "bidirectional_ring", "halving_doubling", "hierarchical"}) {
    INFO(algorithm);
    // Five hosts: no power of two; 40,004 bytes: chunks differ in size.
    CHECK_NOTHROW(replayer.run(plan({"cluster.nodes=5", "workload.collective.size=40004 B",
                                     fmt::format("workload.collective.algorithm={}", algorithm)})));
  }
}

TEST_CASE("servers add up exactly", "[host][network]") {
  if (!can_have_hosts()) return;
  HostReplayer replayer;
  CHECK_NOTHROW(replayer.run(plan({"workload.collective.size=40004 B", "workload.collective.algorithm=parameter_server",
                                   "workload.collective.servers=3", "workload.collective.placement=colocated"})));
}

TEST_CASE("naive takes several times as long as a ring where cards are slow", "[host][network]") {
  if (!can_have_hosts()) return;
  HostReplayer replayer;
  const auto time = [&](const char* algorithm) {
    return replayer
        .run(plan({"cluster.network.nic_bandwidth=100 Mbit/s", "workload.collective.size=600 KB",
                   fmt::format("workload.collective.algorithm={}", algorithm)},
                  3))
        .median();
  };
  const Seconds naive = time("naive"), ring = time("ring");
  // Naive: 2 x 3 x 600 KB through one card, 301 ms with headers. Ring: 2 x 3/4 x 600 KB, 75 ms. No load makes bytes
  // pass faster than the buckets let them (less the buckets themselves): 5 %.
  CHECK(naive.value() > 0.95 * 2 * 3 * 600e3 / 12.5e6);
  CHECK(ring.value() > 0.95 * 2 * 0.75 * 600e3 / 12.5e6);
  CHECK(ring.value() < 10 * 0.075);
  CHECK(naive / ring > 2.0);  // 4 on a quiet machine
}

TEST_CASE("a worker that fails or hangs is named, and no host is left", "[host][network]") {
  if (!can_have_hosts()) return;
  std::string name;
  {
    const HostLab lab({{BytesPerSecond(1e8), BytesPerSecond(1e8)}, {BytesPerSecond(1e8), BytesPerSecond(1e8)}});
    name = lab.name(0);
    WorkerTask task = plan({"cluster.nodes=2"}).task;
    task.exchanges[0].phases.pop_back();  // the last half of the sums does not come back
    CHECK_THROWS_WITH(run_workers(lab, task), Catch::Contains("rank ") && Catch::Contains("wrong sum: value"));
    task.steps[1].clear();  // the first one waits in vain
    task.timeout = 0.5;
    CHECK_THROWS_WITH(run_workers(lab, task), Catch::Contains("not finished") && Catch::Contains("rank 0 (host 0)"));
  }
  CHECK_FALSE(std::filesystem::exists("/run/netns/" + name));
}

TEST_CASE("hosts of a replay that was killed are gone with the next one's, and nothing else is", "[host][network]") {
  if (!can_have_hosts()) return;
  const std::vector<HostRate> rates = {{BytesPerSecond(1e8), BytesPerSecond(1e8)}};
  const HostLab own(rates);
  const std::string other = fmt::format("foretrain-of-others-{}", getpid());
  run_filter({"ip", "netns", "add", other}, "");
  const pid_t killed = fork();
  if (killed == 0) {
    const HostLab lab(rates);
    raise(SIGKILL);
  }
  waitpid(killed, nullptr, 0);
  const auto left = [&](const std::string& beginning) {
    int count = 0;
    for (const auto& entry : std::filesystem::directory_iterator("/run/netns")) {
      count += entry.path().filename().string().starts_with(beginning);
    }
    return count;
  };
  const std::string dead = fmt::format("foretrain-{}-", killed);
  CHECK(left(dead) == 2);  // one host and the switch
  { const HostLab next(rates); }
  CHECK(left(dead) == 0);
  CHECK(left(own.name(0)) == 1);
  CHECK(left(other) == 1);
  run_filter({"ip", "netns", "delete", other}, "");
}
