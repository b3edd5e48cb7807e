// From scenarios to what is run, and measurements to files: everything that needs no host.
#include "validate/host_replay/replay_plan.hpp"

#include <unistd.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "model/base/files.hpp"
#include "model/base/process.hpp"
#include "model/hardware/transport.hpp"
#include "model/scenario/load/load.hpp"
#include "tests/catch.hpp"
#include "validate/host_replay/measurements.hpp"

using namespace foretrain;

namespace {

Scenario hosts(const std::vector<std::string>& overrides) { return load_scenario("replay-hosts", overrides); }

ReplayPlan plan(const std::vector<std::string>& overrides) {
  ReplayOptions options;
  options.predicted = Seconds(0.1);
  return plan_replay(hosts(overrides), options);
}

}  // namespace

TEST_CASE("a rank per host, and the whole schedule", "[host]") {
  const ReplayPlan made = plan({});
  CHECK(made.task.hosts == std::vector<int>{0, 1, 2, 3});
  CHECK(made.task.elements == 1'000'000);            // 4 MB of fp32
  CHECK(made.task.exchanges[0].phases.size() == 6);  // 2 (n - 1) phases of a ring of four
  CHECK(made.hosts.size() == 4);
  CHECK(made.hosts[0].out.value() == Approx(1.25e8));  // 1 Gbit/s
  // A second and a half of 0.1 s each.
  CHECK(made.task.repetitions == 15);
}

TEST_CASE("short all-reduces run fifteen times, long ones three, others for a second and a half", "[host]") {
  const auto task_of = [](double seconds, int repetitions = 0) {
    ReplayOptions options;
    options.predicted = Seconds(seconds);
    options.repetitions = repetitions;
    return plan_replay(hosts({}), options).task;
  };
  CHECK(task_of(0.0).repetitions == 15);
  CHECK(task_of(0.05).repetitions == 15);  // thirty would make a second and a half
  CHECK(task_of(0.25).repetitions == 6);
  CHECK(task_of(0.26).repetitions == 6);  // 5.8
  CHECK(task_of(1.0).repetitions == 3);   // 1.5
  CHECK(task_of(0.25, 2).repetitions == 2);
  // Twenty seconds, and five times what all repetitions and those before them take.
  const WorkerTask task = task_of(1.0);
  CHECK(task.timeout == Approx(20.0 + 5.0 * (3 + task.warmup)));
  // At most a minute each.
  CHECK_NOTHROW(task_of(60.0));
  CHECK_THROWS_AS(task_of(60.1), ScenarioError);
}

TEST_CASE("servers stand where the placement puts them", "[host]") {
  const std::vector<std::string> server = {"workload.collective.algorithm=parameter_server",
                                           "workload.collective.ranks=4"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.end(), server.begin(), server.end());
    return more;
  };
  // Dedicated ones on the hosts without ranks; colocated ones spread over the ranks' hosts.
  CHECK(plan(with({"cluster.nodes=6", "workload.collective.servers=2", "workload.collective.placement=dedicated"}))
            .task.hosts == std::vector<int>{0, 1, 2, 3, 4, 5});
  CHECK(plan(with({"workload.collective.servers=2", "workload.collective.placement=colocated"})).task.hosts ==
        std::vector<int>{0, 1, 2, 3, 0, 2});
}

TEST_CASE("chunks of a schedule are whole values and cover the message without gaps", "[host]") {
  // 10 values in 3 chunks: 4, 3 and 3.
  CHECK(values_of(10, 3, 0).count == 4);
  CHECK(values_of(10, 3, 1).first == 4);
  CHECK(values_of(10, 3, 1).count == 3);
  CHECK(values_of(10, 3, 1, 2).count == 6);
  CHECK_FALSE(values_of(10, 3, 0).overlaps(values_of(10, 3, 1)));
  CHECK(values_of(10, 3, 0, 2).overlaps(values_of(10, 3, 1)));
  // A ring of four on 2 values: chunks of one value and of none, which are not sent.
  const ReplayPlan made = plan({"workload.collective.size=8 B"});
  for (const Exchange::Phase& phase : made.task.exchanges[0].phases) {
    CHECK(phase.messages.size() == 2);
    for (const Exchange::Message& message : phase.messages) CHECK(message.bytes == 4);
  }
}

TEST_CASE("slower cards and others' traffic are taken over from the scenario", "[host]") {
  const ReplayPlan made = plan({"cluster.faults=[{ node: 2, card: 0, bandwidth: 25 % }]",
                                "background=[{ from: node0, to: node1 }, { from: gpu3, to: gpu1, rate: 100 Mbit/s }]"});
  CHECK(made.hosts[2].out.value() == Approx(1.25e8 / 4));
  CHECK(made.hosts[2].in.value() == Approx(1.25e8 / 4));
  CHECK(made.hosts[1].out.value() == Approx(1.25e8));
  REQUIRE(made.background.size() == 2);
  CHECK(made.background[0].rate.value() == 0.0);  // as fast as it goes
  CHECK(made.background[1].from == 3);
  CHECK(made.background[1].rate.value() == Approx(1.25e7));
}

TEST_CASE("leaves with one cable each are made as they are", "[host]") {
  CHECK(plan({}).uplinks.hosts_per_leaf == 0);
  const ReplayPlan made = plan({"cluster.network.fabric={ kind: fat_tree, nodes_per_leaf: 2, oversubscription: 10 }"});
  CHECK(made.uplinks.hosts_per_leaf == 2);
  CHECK(made.uplinks.rate.value() == Approx(2 * 1.25e8 / 10));
  CHECK(plan_hash(made) != plan_hash(plan({})));
}

TEST_CASE("collectives that add up nothing are a task of every rank", "[host]") {
  const ReplayPlan made = plan({"workload.collective.operation=all_gather"});
  REQUIRE(made.task.steps.size() == 4);
  for (const std::vector<StepTask>& tasks : made.task.steps) CHECK(tasks.size() == 1);
  // Each rank passes three quarters of 4 MB on.
  CHECK(made.sent.value() == Approx(3e6).epsilon(1e-3));
}

TEST_CASE("what cannot be run on hosts is refused at its key", "[host]") {
  const auto refuses = [](const std::vector<std::string>& overrides, const std::string& key) {
    INFO(key);
    try {
      plan(overrides);
      FAIL("was accepted");
    } catch (const ScenarioError& error) {
      CHECK(error.key() == key);
    }
  };
  refuses({"cluster.network.fabric={ kind: torus, dimensions: [2, 2] }"}, "cluster.network.fabric");
  refuses({"cluster.network.fabric={ kind: fat_tree, nodes_per_leaf: 2 }"}, "cluster.network.fabric");  // two cables
  refuses({"workload.collective.size=4001 B"}, "workload.collective.size");
  refuses({"workload.collective.algorithm=auto"}, "workload.collective.algorithm");
  // No more than two cores can carry.
  CHECK(plan({"workload.collective.size=1 GB"}).task.elements == 250'000'000);
  refuses({"workload.collective.size=1000000004 B"}, "workload.collective.size");
  CHECK_NOTHROW(plan({"cluster.network.nic_bandwidth=10 Gbit/s"}));
  refuses({"cluster.network.nic_bandwidth=10.1 Gbit/s"}, "cluster.network");
  refuses({"cluster.network.nics_per_node=2"}, "cluster.network");
  CHECK(plan({"cluster.nodes=16"}).hosts.size() == 16);
  refuses({"cluster.nodes=17"}, "cluster.nodes");
  refuses({"cluster.nodes=1"}, "cluster.nodes");
  refuses({"cluster.node=dgx-a100-80gb", "cluster.nodes=2"}, "cluster.gpus_per_node");
}

TEST_CASE("buckets are small, and hold a whole packet with all its headers", "[host]") {
  const auto bucket = [](const char* rate) {
    return run_filter({"env", "least=4", "sh", "-c", std::string(hosts_script()), "hosts.sh", "bucket", "eth0", rate},
                      "")
        .output;
  };
  // 200 us at 1 Gbit/s are 25,000 bytes: 16.5 segments, 17 of 1514 bytes. At 10 Mbit/s at least four, at 10 Gbit/s 40:
  // packets stay below the kernel's limit of 64 KiB.
  CHECK_THAT(bucket("125000000"), Catch::Contains("rate 1000000000bit burst 25738 "));
  CHECK_THAT(bucket("1250000"), Catch::Contains("rate 10000000bit burst 6056 "));
  CHECK_THAT(bucket("1250000000"), Catch::Contains("rate 10000000000bit burst 60560 "));
}

TEST_CASE("measurements come back from their file; medians and spreads follow from the samples", "[host]") {
  HostMeasurement run;
  run.name = "ring, 4 hosts";
  run.group = "host-own";
  run.ranks = 4;
  run.size = Bytes(4e6);
  run.plan = plan_hash(plan({}));
  run.samples = {0.4, 0.1, 0.2, 0.3};
  run.predicted = Seconds(0.2);
  // Sorted 0.1 0.2 0.3 0.4: the middle is 0.25; the quartiles 0.175 and 0.325 are 0.15 apart.
  CHECK(run.median().value() == Approx(0.25));
  CHECK(run.spread() == Approx(0.6));
  CHECK(run.error() == Approx(-0.2));

  const std::string file =
      (std::filesystem::temp_directory_path() / ("foretrain-" + std::to_string(getpid()))).string();
  HostMeasurements written{this_machine(), {run}};
  write_file(file, to_json(written));
  CHECK(to_json(read_host_measurements(file)) == to_json(written));
  write_file(file, "{}");
  CHECK_THROWS_AS(read_host_measurements(file), ScenarioError);
  std::filesystem::remove(file);
  // Another plan has another hash; the same one the same.
  CHECK(plan_hash(plan({})) == run.plan);
  CHECK(plan_hash(plan({"workload.collective.size=8 MB"})) != run.plan);
}

TEST_CASE("the packet model says what cards of virtual hosts counted", "[host]") {
  // Datagrams are cut as they are predicted to be; TCP makes a few packets more, where a segment waits for the bucket.
  const auto counted =
      nlohmann::json::parse(read_text_file(FORETRAIN_SOURCE_DIR "/validate/measurements/2026-11-21-host.json"));
  for (const auto& probe : counted.at("probes")) {
    INFO(probe.dump());
    Transport transport;
    transport.protocol = probe.at("protocol") == "udp" ? Protocol::udp : Protocol::tcp;
    transport.link_layer = LinkLayer::ethernet_in_software;
    const double bytes = wire_bytes(Bytes(probe.at("payload_bytes").get<double>()), transport).value();
    CHECK(bytes == Approx(probe.at("wire_bytes").get<double>()).epsilon(probe.at("protocol") == "udp" ? 1e-6 : 0.02));
  }
}
