// What it costs to wire up a large cluster and to find a route in it: `build/tests/benchmark_topology`. Not a test: it
// asserts nothing. Meant to stay below 50 ms for 16,384 GPUs, and below 2 us for a route.
#include <benchmark/benchmark.h>

#include "model/hardware/topology.hpp"
#include "tests/hardware/nodes.hpp"

using namespace foretrain;

namespace {

constexpr int nodes = 2048;
constexpr int gpus = 8 * nodes;

Cluster one_switch() { return test_nodes::cluster_of(test_nodes::nvswitch_node(), nodes); }

Cluster fat_tree() {
  Cluster cluster = one_switch();
  cluster.network.fabric = {FatTree{32, 256, 1.0, 2.0, true}, {}};
  cluster.network.fabric.switch_latency = Seconds(0.5e-6);
  return cluster;
}

void build(benchmark::State& state, const Cluster& cluster) {
  for (auto _ : state) {
    const Topology topology(cluster);
    benchmark::DoNotOptimize(topology.links());
  }
}

void route(benchmark::State& state, const Cluster& cluster) {
  const Topology topology(cluster);
  std::vector<LinkId> links;
  int i = 0;
  for (auto _ : state) {
    links.clear();
    topology.append_route(i % gpus, (i * 37 + 8) % gpus, links);
    benchmark::DoNotOptimize(links.data());
    i = (i + 1) % 100'000;
  }
}

BENCHMARK_CAPTURE(build, one_switch, one_switch())->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(build, fat_tree, fat_tree())->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(route, one_switch, one_switch());
BENCHMARK_CAPTURE(route, fat_tree, fat_tree());

}  // namespace

BENCHMARK_MAIN();
