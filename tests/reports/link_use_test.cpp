// Link utilisation over time, and stragglers.
#include "reports/explain/link_use.hpp"
#include "model/scenario/load/load.hpp"
#include "sim/simulate.hpp"
#include "tests/catch.hpp"

using namespace foretrain;

namespace {

const LinkUse& busiest(const LinkUses& uses) { return *std::ranges::max_element(uses.links, {}, &LinkUse::most); }

LinkUses uses_of(const std::string& text, Fidelity fidelity = Fidelity::flows) {
  return link_uses(load_scenario_text(text, "links.yaml"), fidelity);
}

}  // namespace

TEST_CASE("A ring keeps the links that it uses busy, and no others") {
  // 160 MB on 4 GPUs: every link of the ring carries 2 · 3/4 · 160 MB = 240 MB, which takes all of the time.
  const Scenario scenario = load_scenario("sync-ring-4");
  const LinkUses uses = link_uses(scenario, Fidelity::flows);
  double most = 0.0;
  bool idle = false;
  for (const LinkUse& use : uses.links) {
    most = std::max(most, use.most);
    idle = idle || use.most == 0.0;
    if (use.most > 0.0) CHECK(use.busiest.value() == Approx(240e6));
  }
  CHECK(most == Approx(1.0).epsilon(0.01));
  CHECK(idle);
}

TEST_CASE("Links of one name are reported as one, with the mean of all machines and the busiest") {
  // A broadcast from one of four machines: every card sends but the last one's; a ring: all do alike. One connection
  // of 5 Gbit/s is what keeps them busy, of the 0.85 · 25 Gbit/s that a card carries.
  const auto uses = [](const char* operation) {
    const std::string text = std::string("cluster: { node: p3.16xlarge, nodes: 4, gpus_per_node: 1 }\n") +
                             "workload: { collective: { operation: " + operation +
                             ", size: 1600 MB, algorithm: ring } }\n";
    return link_uses(load_scenario_text(text, "four.yaml"), Fidelity::flows).links;
  };
  const auto of_cards = [](const std::vector<LinkUse>& links) {
    const auto busiest = std::ranges::max_element(links, {}, [](const LinkUse& use) { return use.most; });
    REQUIRE(busiest->links == 4);
    return *busiest;
  };
  const LinkUse ring = of_cards(uses("all_reduce")), chain = of_cards(uses("broadcast"));
  CHECK(ring.most == Approx(5.0 / (0.85 * 25.0)).epsilon(0.01));
  CHECK(ring.mean == Approx(ring.most));
  CHECK(chain.most == Approx(5.0 / (0.85 * 25.0)).epsilon(0.01));
  CHECK(chain.mean == Approx(0.75 * chain.most));
}

TEST_CASE("Collectives inside layers count, though passes hold them") {
  // Tensor parallelism alone: nothing but layers' collectives crosses NVLink. Of each of 4 layers, 2 all-reduces in the
  // forward and 2 in the backward pass, of 1 × 1024 × 4096 numbers of 2 bytes: 16 · 8.4 MB. A ring of 8 sends 2 · 7/8
  // of that over the GPU's link at least, whatever the embedding and the loss add.
  const Scenario scenario = load_scenario_text(R"(
cluster: { node: dgx-a100-80gb }
workload:
  train:
    model: { family: gpt, layers: 4, hidden: 4096, heads: 32, vocabulary: 51200, sequence: 1024 }
    global_batch: 1
    micro_batch: 1
    precision: bf16
plan: { tensor: 8 }
)",
                                               "tensor.yaml");
  Bytes nvlink;
  for (const LinkUse& use : link_uses(scenario, Fidelity::flows).links) {
    if (use.name.starts_with("gpu0>")) nvlink = std::max(nvlink, use.busiest);
  }
  const double least = 16.0 * 1024.0 * 4096.0 * 2.0 * 2.0 * 7.0 / 8.0;
  CHECK(nvlink.value() > 0.9 * least);
  CHECK(nvlink.value() < 2.0 * least);
}

TEST_CASE("Nothing moves faster than a link carries, and not while nothing crosses it") {
  const LinkUses uses = link_uses(load_scenario("gpt2-xl-dgx-a100"), Fidelity::flows);
  const LinkUse& card = busiest(uses);
  REQUIRE(card.most > 0.1);
  CHECK(card.users.front().name == "gradient all-reduce");
  CHECK(card.in_use / uses.time >= card.most);
  CHECK(card.in_use < uses.time);
}

TEST_CASE("A step whose collectives inside layers are seen takes as long as one that has them in its passes") {
  // Of tensor and context ranks, of pipelines, of experts, with gathers of weights and without.
  for (const char* scenario : {"gpt3-175b-1024-a100", "traffic-chunked-products", "qwen3-235b-64-gb200",
                               "schedule-zero-bubble", "deepseek-v3-2048-h100"}) {
    CAPTURE(scenario);
    const Scenario loaded = load_scenario(scenario);
    const auto makespan = [&](InsideLayers inside) {
      const auto job = make_job(loaded, Fidelity::estimate, Recipes::none, inside);
      return executor_of(*job, Fidelity::estimate)(job->graph()).makespan.value();
    };
    CHECK(makespan(InsideLayers::seen) == Approx(makespan(InsideLayers::merged)).epsilon(2e-3));
  }
}

TEST_CASE(
    "Where replicas have unequal numbers of micro-batches, collectives inside layers are left out, and that is said") {
  const LinkUses uses = link_uses(load_scenario("unequal-split-h100-a100"), Fidelity::estimate);
  CHECK(uses.without_inside_layers);
  CHECK(busiest(uses).most > 0.0);
  CHECK(to_text(uses).find("without collectives inside layers") != std::string::npos);
}

TEST_CASE("A link's users add up to what it carries, background traffic once, in all parts of the time") {
  const LinkUses uses = uses_of(R"(
cluster: { node: pcie-switch-16gbps-x4 }
workload: { collective: { operation: all_reduce, size: 160 MB, algorithm: ring } }
background: [ { from: host of gpu0, to: gpu0, rate: 4 GB/s } ]
)");
  const auto background = std::ranges::find(busiest(uses).users, "background traffic", &LinkUse::User::name);
  REQUIRE(background != busiest(uses).users.end());
  CHECK(background->bytes.value() == Approx(4e9 * uses.time.value()));
  for (const LinkUse& use : uses.links) {
    Bytes by_users;
    for (const LinkUse::User& user : use.users) by_users += user.bytes;
    CHECK(by_users.value() == Approx(use.busiest.value()).margin(1e-3));
    CHECK(use.most == Approx(use.busiest / use.bandwidth / uses.time).margin(1e-12));
    // The last part of the time counts as the others do.
    const double used = std::accumulate(use.slices.begin(), use.slices.end(), 0.0);
    CHECK(used / static_cast<double>(use.slices.size()) == Approx(use.most).margin(1e-9));
  }
}

TEST_CASE("All wait for a slow GPU, which waits for none, and equal ones for nobody") {
  const std::string cluster = "cluster: { node: dgx-a100-80gb, gpus_per_node: 4", training = R"( }
workload: { train: { model: resnet-50, global_batch: 256, micro_batch: 64, precision: fp32 } }
)";
  CHECK(uses_of(cluster + training).waits.empty());
  // Four replicas of equal work, one at half its speed: the others wait as long as they compute.
  const LinkUses uses = uses_of(cluster + ", faults: [ { node: 0, gpu: 1, speed: 50 % } ]" + training);
  REQUIRE(!uses.waits.empty());
  const Wait& longest = uses.waits.front();
  CHECK(longest.late.find("rank 1") != std::string::npos);
  CHECK(longest.waiting.find("rank 0") != std::string::npos);
  CHECK(longest.time / uses.time > 0.4);
  CHECK(longest.time / uses.time < 0.51);
  for (const Wait& wait : uses.waits) {
    if (wait.waiting == longest.late) CHECK(wait.time < 0.01 * uses.time);
  }
}

TEST_CASE(
    "In a pipeline the first stage waits for gradients of the second, and the second for activations of the first") {
  const LinkUses uses = uses_of(R"(
cluster: { node: dgx-a100-80gb, gpus_per_node: 2 }
workload:
  train:
    model: { family: gpt, layers: 16, hidden: 2048, heads: 16, vocabulary: 1000, sequence: 1024 }
    global_batch: 4
    micro_batch: 1
    precision: bf16
plan: { pipeline: 2 }
)");
  REQUIRE(uses.waits.size() == 2);
  for (const Wait& wait : uses.waits) {
    CHECK(wait.late != wait.waiting);
    // The bubble of two stages with four micro-batches is a fifth of the step, and a stage has no more.
    CHECK(wait.time / uses.time < 0.25);
    CHECK(wait.time / uses.time > 0.08);
  }
}

TEST_CASE("Links are called by their ends, of all machines alike, and by a fabric's words without its numbers") {
  const LinkUses uses = uses_of(R"(
cluster: { node: p3.16xlarge, nodes: 4, gpus_per_node: 1,
           network: { fabric: { kind: fat_tree, nodes_per_leaf: 2, oversubscription: 1 } } }
workload: { collective: { operation: all_reduce, size: 160 MB, algorithm: ring } }
)");
  std::string names;
  for (const LinkUse& use : uses.links) {
    if (use.most == 0.0) continue;
    names += use.name + " x" + std::to_string(use.links) + "\n";
    CHECK(use.mean <= use.most);
  }
  CHECK(names == R"(gpu0>plx0 x4
plx0>gpu0 x4
plx0>cpu0 x4
cpu0>plx0 x4
cpu0>nic0 x4
nic0>cpu0 x4
cpu0 memory x4
nic0>fabric x4
fabric>nic0 x4
leaf>spine x2
spine>leaf x2
)");
}
