// Predictions of `algorithm: auto` for collectives, compared with every published sweep that comes with the program,
// per GPU generation and size class, and against what must hold where nothing was measured.
#include "model/scenario/load/load.hpp"
#include "tests/catch.hpp"
#include "tests/reports/accuracy_bar.hpp"

using namespace foretrain;
using namespace foretrain::test;

namespace {

std::string with_size(const std::string& name, const Case& row) {
  return name + (message_of(row) < 1e6 ? " below 1 MB" : " from 1 MB");
}

CollectiveResult all_reduce(const std::string& node, int nodes, double bytes,
                            const std::vector<std::string>& more = {}) {
  std::string text = fmt::format(
      "cluster: {{ node: {}, nodes: {} }}\nworkload: {{ collective: {{ operation: all_reduce, size: {:.0f} B }} }}\n",
      node, nodes, bytes);
  return *predict(load_scenario_text(text, "test.yaml", more), Fidelity::estimate).collective();
}

double gigabytes_per_second(const CollectiveResult& result) { return result.bus_bandwidth.value() / 1e9; }

}  // namespace

TEST_CASE("Every published NCCL sweep, per GPU generation: within 10 % from 1 MB on, within 25 % below") {
  // "a100 from 1 MB" of a case "a100-all_reduce-8-1048576".
  const auto errors = errors_by([](const Case& row) { return with_size(row.name.substr(0, 4), row); },
                                {"cases_nccl_single_node.csv", "cases_nccl_sweeps.csv"});
  // Rows of the two tables: 20 sizes for each of seven numbers of V100 and of A100; six operations on A100 and the H100
  // sweeps, repeated runs and two nodes included. Nobody has published V100 below 1 MB among them.
  const std::map<std::string, int> rows = {{"v100 from 1 MB", 140},
                                           {"a100 from 1 MB", 224},
                                           {"h100 from 1 MB", 282},
                                           {"a100 below 1 MB", 99},
                                           {"h100 below 1 MB", 17}};
  REQUIRE(errors.size() == rows.size());
  for (const auto& [name, statistics] : errors) {
    INFO(name << ": " << statistics.mape);
    CHECK(statistics.n == rows.at(name));
    CHECK(missed(name.ends_with("from 1 MB") ? 0.10 : 0.25, statistics) == "");
  }
}

TEST_CASE("Collectives inside a node on A100, H100, B200 and GB200: within 8.5 % from 1 MB on, within 9 % below") {
  const auto errors =
      errors_by([](const Case& row) { return with_size(row.group.substr(0, row.group.rfind('-')), row); },
                {"cases_nccl_aiconfigurator.csv"});
  REQUIRE(errors.size() == 8);
  for (const auto& [name, statistics] : errors) {
    INFO(name << ": " << statistics.mape);
    CHECK(statistics.n >= 114);
    CHECK(missed(name.ends_with("from 1 MB") ? 0.085 : 0.09, statistics) == "");
  }
}

TEST_CASE("Collectives between nodes over EFA, Slingshot and 400 Gbit/s cards, from 1 MB on") {
  const auto errors = errors_by([](const Case& row) { return row.group.ends_with("-small") ? "" : row.group; },
                                {"cases_collectives_between_nodes.csv"});
  CHECK(errors.size() == 10);
  for (const auto& [group, statistics] : errors) {
    INFO(group);
    // Two and four of eight H100 on ten nodes: nothing was fitted on them. Polaris, of A100, varies up to threefold
    // between runs below 8 MB.
    CHECK(missed(group.find("A100") == std::string::npos ? 0.15 : 0.25, statistics) == "");
  }
}

TEST_CASE("All-reduces on real hosts are predicted within 10 percent on average, nothing fitted", "[host]") {
  // Below 1 MB buckets and latency are all there is: measured, but no bar.
  const auto errors = errors_by([](const Case& row) { return message_of(row) < 1e6 ? "" : "host"; },
                                {"cases_host_replay.csv"}, Fidelity::flows);
  CHECK(errors.at("host").n > 100);
  CHECK(missed(0.10, errors.at("host")) == "");
}

// The tables hold every row of the published sweeps but one. The second two-node sweep of that issue, NCCL_ALGO=RING
// with eight cards listed, whose author was unsure of the settings.
TEST_CASE("Sixteen H100 on two nodes of NVIDIA/nccl-tests issue 290 had the bandwidth of two of their eight cards") {
  // The library's authors expect 46 to 48 GB/s per card there. In a tree over two nodes the message crosses once, so
  // that the bus bandwidth, 2 · 15/16 of it, is 1.875 · 8 · 48 = 720 GB/s at most, the NVSwitches' 480 in practice.
  // Measured: 144 to 166 GB/s from 128 MB on, by default, and 87 to 102 in a ring, 48 of each of two cards. With two
  // cards:
  const double as_measured =
      gigabytes_per_second(all_reduce("dgx-h100", 2, 1 << 30, {"cluster.network.nics_per_node=2"}));
  CHECK(as_measured == Approx(149.85).epsilon(0.1));
  CHECK(gigabytes_per_second(all_reduce("dgx-h100", 2, 1 << 30)) > 3.0 * 149.85 * 0.95);
}

TEST_CASE("From 2 to 512 nodes and 1 KB to 10 GB an all-reduce takes longer when it has more to do") {
  for (const char* node : {"dgx-h100", "dgx-a100-80gb"}) {
    double last_latency = 0.0;
    for (const int nodes : {2, 4, 8, 16, 32, 64, 128, 256, 512}) {
      double last = 0.0;
      for (double bytes = 1e3; bytes <= 1e10; bytes *= 10.0) {
        const double time = all_reduce(node, nodes, bytes).time.value();
        INFO(node << ", " << nodes << " nodes, " << bytes << " bytes");
        CHECK(time > last);
        last = time;
      }
      const double latency = all_reduce(node, nodes, 1e3).time.value();
      // Trees: each doubling of the nodes adds one level up and one down, never more than 20 us and never nothing.
      if (last_latency > 0.0) {
        INFO(node << ", " << nodes << " nodes");
        CHECK(latency - last_latency > 5e-6);
        CHECK(latency - last_latency < 20e-6);
      }
      last_latency = latency;
    }
  }
}

TEST_CASE("Small messages over many nodes take trees of low latency, large ones what uses the links best") {
  CHECK_THAT(all_reduce("dgx-a100-80gb", 64, 1e3).chosen_algorithm, Catch::StartsWith("tree/LL"));
  CHECK_THAT(all_reduce("dgx-a100-80gb", 4, 1e10).chosen_algorithm, Catch::EndsWith("/Simple"));
  CHECK_THAT(all_reduce("dgx-h100", 1, 1e9).chosen_algorithm, Catch::StartsWith("nvls"));
  CHECK_THAT(all_reduce("dgx1-v100-32gb", 1, 1e9).chosen_algorithm, Catch::StartsWith("ring/Simple"));
}

TEST_CASE("Eight nodes of A100 get what their cards carry together, and PCIe machines their slots") {
  // Eight cards of 200 Gbit/s: 200 GB/s a node and direction; 0.85 to 0.97 of it is what rings and trees leave.
  const double eight_nodes = gigabytes_per_second(all_reduce("dgx-a100-80gb", 8, 1e10));
  CHECK(eight_nodes > 0.85 * 200.0);
  CHECK(eight_nodes < 0.97 * 200.0);
  // PCIe 3 x16 between two V100: 12 to 13 GB/s for large copies, both directions at once at 0.7 to 0.9 of that.
  const double workstation = gigabytes_per_second(all_reduce("v100-workstation-x2", 1, 1e9));
  CHECK(workstation > 8.0);
  CHECK(workstation < 12.5);
  // Without peer access every byte passes through the host's memory: slower than the same chips with it.
  CHECK(all_reduce("gce-k80x8", 1, 1e9).time > all_reduce("p2.8xlarge", 1, 1e9).time);
}
