// An estimate is no longer than a simulation, and a better machine is no slower: the smallest scenarios that once were.
#include <string>
#include <vector>

#include "model/scenario/load/load.hpp"
#include "sim/simulate.hpp"
#include "tests/catch.hpp"

using namespace foretrain;

namespace {

double time_of(const char* text, const std::vector<std::string>& overrides, Fidelity fidelity = Fidelity::flows) {
  return predict(load_scenario_text(text, "small.yaml", overrides), fidelity).time().value();
}

/// In two machines, the first of which may have something slow.
const char* const pairs = R"(
cluster: { node: rtx-pro-6000-x8, nodes: 2 }
plan: { tensor: 2 }
workload: { train: { model: { family: llama, layers: 1, hidden: 2, heads: 2, vocabulary: 1, sequence: 1 } } }
)";

/// Cards that lose time with each message, behind a way up that is narrower than all of them.
const char* const narrow = R"(
cluster: { node: p4d.24xlarge, nodes: 4, network: { oversubscription: 4 } }
workload: { collective: { operation: all_gather, size: 256 MB, algorithm: ring } }
)";

const char* const over_tcp = R"(
background: [ { from: gpu2, to: gpu5 } ]
cluster: { node: p4d.24xlarge, nodes: 2, gpus_per_node: 4, network: { nic_bandwidth: 200 Gbit/s, transport: { protocol: tcp } } }
workload: { collective: { operation: reduce_scatter, size: 4 GB } }
)";

}  // namespace

TEST_CASE("gradients of a slow GPU's group and of its partner's start apart, and an estimate does not let them meet") {
  // The slow GPU's partner is done a little sooner: both groups share the machine's cards, but not all the time.
  const std::vector<std::string> slow = {"cluster.faults=[{ node: 1, gpu: 0, speed: 85 % }]"};
  CHECK(time_of(pairs, slow, Fidelity::estimate) <= time_of(pairs, slow) * (1.0 + 1e-6));
  // Where nothing tells the groups apart they begin together, and both know of the other.
  CHECK(time_of(pairs, {}, Fidelity::estimate) == Approx(time_of(pairs, {})).epsilon(1e-6));
}

TEST_CASE("a card that is repaired slows nobody, whatever its messages lose") {
  const std::vector<std::string> slow = {"cluster.faults=[{ node: 1, card: 2, bandwidth: 50 % }]"};
  for (const Fidelity fidelity : {Fidelity::estimate, Fidelity::flows}) {
    CHECK(time_of(narrow, {}, fidelity) <= time_of(narrow, slow, fidelity) * (1.0 + 1e-6));
  }
}

TEST_CASE("sockets hold up their own messages, not others on the same cards: faster cards are no slower") {
  for (const Fidelity fidelity : {Fidelity::estimate, Fidelity::flows}) {
    const double before = time_of(over_tcp, {}, fidelity);
    CHECK(time_of(over_tcp, {"cluster.network.nic_bandwidth=400 Gbit/s"}, fidelity) <= before * (1.0 + 1e-6));
  }
}
