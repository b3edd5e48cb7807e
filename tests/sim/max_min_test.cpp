// The simulator against the definition of weighted max–min fairness, computed here by progressive filling.
#include "sim/simulate.hpp"
#include "tests/catch.hpp"
#include "tests/sim/graphs.hpp"

using namespace foretrain;
using namespace foretrain::test_graphs;

namespace {

struct TimedFlow {
  std::vector<LinkId> links;
  Seconds start;
  Bytes left;
  double weight = 1.0;
  Seconds finish = Seconds::infinity();

  [[nodiscard]] bool active(Seconds now) const { return start <= now && finish == Seconds::infinity(); }
};

/// All rates grow together, in proportion to their weights; when a link is full, the flows that cross it keep their
/// rate.
std::vector<BytesPerSecond> fair_rates(const std::vector<TimedFlow>& flows, Seconds now, const Topology& topology) {
  std::vector<BytesPerSecond> rates(flows.size());
  std::vector<bool> fixed(flows.size());
  for (std::size_t flow = 0; flow < flows.size(); ++flow) fixed[flow] = !flows[flow].active(now);
  while (std::ranges::count(fixed, false) > 0) {
    BytesPerSecond share = BytesPerSecond::infinity();
    LinkId fullest = -1;
    for (LinkId link = 0; link < topology.links(); ++link) {
      BytesPerSecond free = topology.link_bandwidth(link);
      double growing = 0.0;
      for (std::size_t flow = 0; flow < flows.size(); ++flow) {
        if (std::ranges::count(flows[flow].links, link) == 0) continue;
        if (fixed[flow]) free -= rates[flow];
        if (!fixed[flow]) growing += flows[flow].weight;
      }
      if (growing == 0.0 || free / growing >= share) continue;
      share = free / growing;
      fullest = link;
    }
    for (std::size_t flow = 0; flow < flows.size(); ++flow) {
      if (fixed[flow] || std::ranges::count(flows[flow].links, fullest) == 0) continue;
      rates[flow] = share * flows[flow].weight;
      fixed[flow] = true;
    }
  }
  return rates;
}

void run_fluid(std::vector<TimedFlow>& flows, const Topology& topology) {
  for (Seconds now;;) {
    if (!is_finite(now)) throw std::logic_error("a flow without links");
    const std::vector<BytesPerSecond> rates = fair_rates(flows, now, topology);
    Seconds next = Seconds::infinity();
    for (std::size_t flow = 0; flow < flows.size(); ++flow) {
      if (flows[flow].start > now) next = std::min(next, flows[flow].start);
      if (flows[flow].active(now)) next = std::min(next, now + flows[flow].left / rates[flow]);
    }
    if (next == Seconds::infinity()) return;
    for (std::size_t flow = 0; flow < flows.size(); ++flow) {
      if (!flows[flow].active(now)) continue;
      flows[flow].left -= rates[flow] * (next - now);
      if (flows[flow].left < 1e-3_B) flows[flow].finish = next;
    }
    now = next;
  }
}

}  // namespace

TEST_CASE("property: flows share links as weighted max–min fairness says") {
  const Topology machines[] = {Topology(test_nodes::cluster_of(test_nodes::dgx1_node())),
                               Topology(test_nodes::cluster_of(test_nodes::staged_node())),
                               Topology(test_nodes::cluster_of(test_nodes::nvswitch_node(), 2))};
  std::mt19937 random(6);
  for (int round = 0; round < 100; ++round) {
    const Topology& topology = machines[round % 3];
    GraphMaker make(topology);
    std::vector<TimedFlow> flows;
    const int memories = topology.gpus() + topology.nodes() * topology.hosts_per_node();  // without server processes
    for (int i = 0; i < 12; ++i) {
      const auto source = static_cast<EndpointId>(random() % static_cast<unsigned>(memories));
      const auto destination = static_cast<EndpointId>(random() % static_cast<unsigned>(memories));
      if (source == destination) continue;
      const Seconds start(std::uniform_real_distribution(0.0, 2e-3)(random));
      const Bytes size(std::round(std::uniform_real_distribution(1e6, 5e7)(random)));
      const double weight = round % 2 == 0 ? 1.0 : 0.25 * static_cast<double>(1 + random() % 200);
      make.communicate(make.stream(), flows_at_once(start, {{source, destination, size, weight}}));
      flows.push_back({topology.route(source, destination).links, start, size, weight});
    }
    const TaskGraph graph = make.graph();
    run_fluid(flows, topology);
    for (const bool folding : {false, true}) {
      const Execution execution = simulate(graph, topology, Fidelity::flows, {}, folding);
      for (std::size_t flow = 0; flow < flows.size(); ++flow) {
        CHECK(execution.finish[flow].value() == Approx(flows[flow].finish.value()).epsilon(1e-6));
      }
    }
  }
}
