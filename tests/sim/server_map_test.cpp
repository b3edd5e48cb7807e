// Claims of reports/gallery/parameter-server-map.md on parameter servers and rings, on machines with one GPU and one
// card each: S bytes among n workers, B bytes per second and L seconds from machine to machine.
#include "model/scenario/load/load.hpp"
#include "sim/simulate.hpp"
#include "tests/catch.hpp"

using namespace foretrain;

namespace {

// 100 Gbit/s at 97 %, and 10 us.
constexpr double bandwidth = 12.5e9 * 0.97;
constexpr double latency = 10e-6;

double seconds(int workers, double bytes, const std::string& algorithm, int servers = 0,
               const std::string& placement = "dedicated") {
  std::vector<std::string> overrides = {"workload.collective.ranks=" + std::to_string(workers),
                                        "workload.collective.size=" + std::to_string(std::llround(bytes)) + " B",
                                        "workload.collective.algorithm=" + algorithm, "cluster.nccl=none"};
  if (servers > 0) {
    overrides.push_back("workload.collective.servers=" + std::to_string(servers));
    overrides.push_back("workload.collective.placement=" + placement);
  }
  return predict(load_scenario("servers-map", overrides), Fidelity::flows).time().value();
}

}  // namespace

TEST_CASE("R11: rings and servers take what their cards carry and the messages they are deep") {
  const double bytes = 1e9;
  for (const int workers : {2, 8, 32}) {
    const double n = workers;
    INFO(workers << " workers");
    // 2(n-1) messages, each of S/n.
    CHECK(seconds(workers, bytes, "ring") == Approx(2.0 * (n - 1.0) * (latency + bytes / n / bandwidth)).epsilon(0.01));
    // One server's card takes n messages in and gives n back.
    CHECK(seconds(workers, bytes, "parameter_server", 1) ==
          Approx(2.0 * (latency + n * bytes / bandwidth)).epsilon(0.01));
    // With as many as workers every card carries S each way, one after the other.
    CHECK(seconds(workers, bytes, "parameter_server", workers) ==
          Approx(2.0 * (latency + bytes / bandwidth)).epsilon(0.01));
    // On the workers' machines 1/n of it stays at home.
    CHECK(seconds(workers, bytes, "parameter_server", workers, "colocated") ==
          Approx(2.0 * (latency + (n - 1.0) / n * bytes / bandwidth)).epsilon(0.01));
  }
}

TEST_CASE("R11: small messages among many workers are faster through servers, large ones are not") {
  // Among 32 workers a ring waits for 62 latencies, servers for two. The 60 that they save are 5 % of the ring's time
  // up to S = (60/0.05 - 62) · L · B · 32/62 = 71 MB; the map's steps beside that are 50 and 100 MB.
  const auto ratio = [](double bytes) {
    return seconds(32, bytes, "parameter_server", 32, "colocated") / seconds(32, bytes, "ring");
  };
  CHECK(ratio(1e6) < 0.35);
  CHECK(ratio(50e6) < 0.95);
  CHECK(ratio(100e6) > 0.95);
  CHECK(ratio(10e9) == Approx(1.0).epsilon(0.01));
}

TEST_CASE("R11: one server alone wins only where messages cost less than the way to it") {
  // 2L + 2nS/B against 2(n-1)L + 2(n-1)/n S/B: equal at S = (n-2)/(n - (n-1)/n) · L·B, just under L·B = 121 KB.
  CHECK(seconds(128, 50e3, "parameter_server", 1) < seconds(128, 50e3, "ring"));
  CHECK(seconds(128, 200e3, "parameter_server", 1) > seconds(128, 200e3, "ring"));
  CHECK(seconds(2, 1e3, "parameter_server", 1) > seconds(2, 1e3, "ring"));
}

TEST_CASE("R11: in training, dedicated servers carry pushes and pulls at once and beat the ring; one server loses") {
  const auto step = [](const std::vector<std::string>& overrides) {
    return predict(load_scenario("servers-map-training", overrides), Fidelity::flows).time().value();
  };
  const double ring = step({});
  const std::string server = "plan.sync.algorithm=parameter_server";
  const double several = step({server, "plan.sync.placement=dedicated", "plan.sync.servers=8", "cluster.nodes=16"});
  const double one = step({server, "plan.sync.placement=dedicated", "plan.sync.servers=1", "cluster.nodes=9"});
  // BERT-large at 10 Gbit/s is all communication: S/B against 2 · 7/8 · S/B, 1.75 times as fast where it overlaps
  // fully.
  CHECK(ring / several > 1.4);
  CHECK(ring / several < 1.8);
  // Its one card takes eight times what each worker sends.
  CHECK(one / ring > 3.0);
}
