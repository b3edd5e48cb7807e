// An estimate is no longer than a simulation, and a better machine is no slower: the smallest scenarios that once were.
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

/// Gradients of eight groups over PCIe switches and cards, some of which meet a copy between two GPUs.
const char* const beside_copy = R"(
background: [ { from: gpu22, to: gpu17, rate: 5 GB/s } ]
cluster: { node: l40s-x8, nodes: 3, network: { nic_bandwidth: 100 Gbit/s, nics_per_node: 8 } }
plan: { expert: 8 }
workload: { train: { model: { family: gpt, layers: 1, hidden: 1024, heads: 1, vocabulary: 1, sequence: 1, experts: 16 } } }
)";

/// Eager kernels, which take longer to dispatch than to run, and exchanges of which some wait for a slow card.
const char* const dispatched = R"(
cluster:
  node: a3-megagpu-8g
  nodes: 2
  faults: [ { node: 0, card: 0, bandwidth: 33 % } ]
  network:
    nics_per_node: 2
    fabric: { kind: dragonfly, nodes_per_router: 1, routers_per_group: 2, groups: 1, local_bandwidth: 100 Gbit/s, global_bandwidth: 200 Gbit/s }
plan: { context: 2, expert: 4, order: tensor-pipeline-data-expert-context }
workload: { train: { model: { family: llama, layers: 1, hidden: 512, heads: 1, vocabulary: 1, sequence: 1024, experts: 4 } } }
)";

}  // namespace

TEST_CASE("gradients of a slow GPU's group and of its partner's start apart, and share the cards while both move") {
  // The slow GPU's partner is done a little sooner: both groups share the machine's cards, but not all the time.
  for (const char* speed : {"100 %", "99 %", "85 %", "50 %"}) {
    const std::vector<std::string> slow = {"cluster.faults=[{ node: 1, gpu: 0, speed: " + std::string(speed) + " }]"};
    CHECK(time_of(pairs, slow, Fidelity::estimate) == Approx(time_of(pairs, slow)).epsilon(1e-6));
  }
}

TEST_CASE("a slow GPU shortens no estimate: groups that it sets apart still share links while they move") {
  // Gradients of two to four groups on the cards of two machines. As if each group were alone, the estimate with the
  // slow GPU was shorter by 48 % (p3.16xlarge) to 7 %. Nothing else meets, so that an estimate is the simulation;
  // but on l40s-x8, where rings load both switches' links (26 GB/s) and what processors let GPUs send each other (22):
  // groups that share one of them equally leave some of the other unused, and what an estimate tells is the least.
  const std::string gpt = "family: gpt, layers: 4, hidden: 1024, heads: 16, vocabulary: 50304, sequence: 512";
  const std::string experts =
      "family: llama, layers: 4, hidden: 1024, heads: 8, vocabulary: 32000, sequence: 512, experts: 8, "
      "experts_per_token: 2";
  const auto training = [](const std::string& node, int tensor, const std::string& precision,
                           const std::string& model) {
    return "cluster: { node: " + node + ", nodes: 2 }\nplan: { tensor: " + std::to_string(tensor) +
           " }\nworkload: { train: { precision: " + precision + ", model: { " + model + " } } }";
  };
  for (const std::string& text : {training("p3.16xlarge", 2, "fp16", gpt), training("p3.16xlarge", 4, "fp16", experts),
                                  training("dgx1-v100-32gb", 2, "fp16", gpt), training("l40s-x8", 2, "bf16", gpt),
                                  training("hgx-a100-40gb-x4", 2, "bf16", experts)}) {
    double before = time_of(text.c_str(), {}, Fidelity::estimate);
    for (const char* speed : {"99 %", "85 %", "50 %"}) {
      const std::vector<std::string> slow = {"cluster.faults=[{ node: 1, gpu: 0, speed: " + std::string(speed) + " }]"};
      const double with = time_of(text.c_str(), slow, Fidelity::estimate);
      CHECK(with >= before);
      const double simulated = time_of(text.c_str(), slow);
      if (text.find("l40s-x8") == std::string::npos) CHECK(with == Approx(simulated).epsilon(1e-3));
      CHECK(with <= simulated * (1.0 + 1e-3));
      CHECK(with > 0.9 * simulated);
      before = with;
    }
  }
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

TEST_CASE(
    "an estimate counts the groups that share a switch with others' traffic, also where cards are the narrowest") {
  // At 100 Gbit/s the cards, which no two groups share, take longest without the copy; with it the switches do. The
  // estimate took each group as alone there: 5 % less than the simulation, and than with faster cards.
  const double simulated = time_of(beside_copy, {});
  CHECK(time_of(beside_copy, {}, Fidelity::estimate) == Approx(simulated).epsilon(1e-3));
  const std::vector<std::string> faster = {"cluster.network.nic_bandwidth=200 Gbit/s"};
  CHECK(time_of(beside_copy, faster, Fidelity::estimate) <= simulated * (1.0 + 1e-6));
}

TEST_CASE("hosts dispatch on while their ranks wait for others: a wider fabric is no slower") {
  // Dispatch time beyond kernels and exchanges came behind the waiting for the slow NIC's
  // ranks. The faster the other exchanges, the longer, up to 10 % of the step.
  for (const Fidelity fidelity : {Fidelity::estimate, Fidelity::flows}) {
    double before = time_of(dispatched, {}, fidelity);
    for (const char* wide : {"200 Gbit/s", "400 Gbit/s"}) {
      const double after =
          time_of(dispatched, {"cluster.network.fabric.local_bandwidth=" + std::string(wide)}, fidelity);
      CHECK(after <= before * (1.0 + 1e-6));
      before = after;
    }
  }
}
