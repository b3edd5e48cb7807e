// Several jobs on one fabric: their flows share its links.
#include "model/scenario/load/load.hpp"
#include "sim/simulate.hpp"
#include "tests/base/temporary_folder.hpp"
#include "tests/catch.hpp"

using namespace foretrain;

namespace {

/// Four nodes, two a leaf; a leaf's cables upward carry as much as one of its sixteen cards.
const char* const cluster = R"(
cluster:
  node: dgx-a100-80gb
  nodes: 4
  network: { fabric: { kind: fat_tree, nodes_per_leaf: 2, oversubscription: 16 } }
)";

/// Two replicas that synchronise after their passes.
std::string training(int samples) {
  return fmt::format(R"(
name: {} samples
workload:
  train:
    model: {{ family: gpt, layers: 16, hidden: 6144, heads: 48, vocabulary: 51200, sequence: 2048 }}
    global_batch: {}
    micro_batch: 1
    precision: bf16
    optimizer: adamw
plan: {{ tensor: 8, data: 2, sync: {{ overlap: false, bucket: 4 GB }} }}
)",
                     samples, samples);
}

class Jobs {
 public:
  /// Our job of eight samples on `own` nodes beside another one.
  Result beside(int samples, const std::string& own, const std::string& nodes, Fidelity fidelity = Fidelity::flows) {
    const auto file = folder_.write("other.yaml", "cluster: { node: dgx-a100-80gb, nodes: 2 }" + training(samples));
    return predict(load_scenario_text(cluster + training(8), "own.yaml",
                                      {"plan.placement=" + own,
                                       fmt::format("jobs=[{{ scenario: {}, nodes: {} }}]", file.string(), nodes)}),
                   fidelity);
  }
  static TrainResult alone(const std::string& own, Fidelity fidelity = Fidelity::flows) {
    return *predict(load_scenario_text(cluster + training(8), "own.yaml", {"plan.placement=" + own}), fidelity).train();
  }

 private:
  TemporaryFolder folder_;
};

}  // namespace

TEST_CASE("two equal jobs across the same two leaves take twice as long for their gradients") {
  // Both send at the same moments through cables that one alone fills: the gradients' time doubles for both, but for
  // latencies.
  Jobs jobs;
  const TrainResult alone = Jobs::alone("[0, 2]");
  const Seconds gradients = alone.communication.at("gradient all-reduce").total;
  const Result both = jobs.beside(8, "[0, 2]", "[1, 3]");
  CHECK(both.train()->step_time.value() == Approx((alone.step_time + gradients).value()).epsilon(2e-3));
  CHECK((both.train()->communication.at("gradient all-reduce").total / gradients) == Approx(2.0).epsilon(1e-3));
  CHECK(both.train()->breakdown.total().value() == Approx(both.train()->step_time.value()).epsilon(1e-9));
  const SharedFabric& fabric = both.train()->shared_fabric.value();
  CHECK(fabric.alone.value() == Approx(alone.step_time.value()).epsilon(1e-9));
  REQUIRE(fabric.others.size() == 1);
  CHECK(fabric.others.front().scenario == "8 samples");
  CHECK(fabric.others.front().step_time.value() == Approx(both.train()->step_time.value()).epsilon(1e-4));
  CHECK(fabric.others.front().alone.value() == Approx(alone.step_time.value()).epsilon(1e-9));
}

TEST_CASE("jobs on leaves of their own do not meet") {
  Jobs jobs;
  const Result both = jobs.beside(8, "[0, 1]", "2..3");
  const double alone = Jobs::alone("[0, 1]").step_time.value();
  CHECK(both.train()->step_time.value() == Approx(alone).epsilon(1e-9));
  CHECK(both.train()->shared_fabric->others.front().step_time.value() == Approx(alone).epsilon(1e-9));
}

TEST_CASE("shorter steps are repeated as long as the longest ones run") {
  // Beside a job with two samples a step instead of eight, which sends its gradients more often: some of its sending
  // meets ours. We lose between nothing and the whole of our gradients' time, it likewise.
  Jobs jobs;
  const TrainResult alone = Jobs::alone("[0, 2]");
  const Seconds gradients = alone.communication.at("gradient all-reduce").total;
  const Result both = jobs.beside(2, "[0, 2]", "[1, 3]");
  CHECK(both.train()->step_time > alone.step_time * (1.0 + 1e-6));
  CHECK(both.train()->step_time < (alone.step_time + gradients) * (1.0 + 1e-4));
  const SharedFabric::OtherJob& other = both.train()->shared_fabric->others.front();
  CHECK(other.step_time >= other.alone * (1.0 - 1e-9));
  CHECK(other.step_time < (other.alone + gradients) * (1.0 + 1e-4));
  CHECK(both.warnings.empty());
}

TEST_CASE("an estimate does not see other jobs, and says so") {
  Jobs jobs;
  const Result both = jobs.beside(8, "[0, 2]", "[1, 3]", Fidelity::estimate);
  CHECK(both.train()->step_time == Jobs::alone("[0, 2]", Fidelity::estimate).step_time);
  CHECK_FALSE(both.train()->shared_fabric);
  CHECK(both.warnings.front().find("--fidelity flows") != std::string::npos);
}

TEST_CASE("where no placement is stated a job has the nodes that others leave") {
  TemporaryFolder folder;
  const auto file = folder.write("other.yaml", "cluster: { node: dgx-a100-80gb, nodes: 2 }" + training(8));
  const Scenario scenario = load_scenario_text(cluster + training(8), "own.yaml",
                                               {fmt::format("jobs=[{{ scenario: {}, nodes: 1..2 }}]", file.string())});
  CHECK(scenario.plan.placement == std::vector<int>{0, 3});
  CHECK(scenario.jobs.front().plan.placement == std::vector<int>{1, 2});
  CHECK(scenario.jobs.front().cluster.nodes == 4);
}

TEST_CASE("neighbours meet the weights that ZeRO-1 gathers, beside forward passes or behind the update") {
  // Two equal jobs across the same two leaves, whose cables one alone fills. What a job sends across them takes both
  // twice as long, gradients and weights: a scatter of 4 bytes and a gather of 2 for each parameter. Before, only the
  // gradients' two thirds of it were on links where weights came back beside the next forward pass.
  for (const char* beside : {"true", "false"}) {
    CAPTURE(beside);
    TemporaryFolder folder;
    const std::string sharded =
        "plan: { tensor: 8, data: 2, zero: 1, sync: { overlap: false, bucket: 4 GB, "
        "gather_overlap: " +
        std::string(beside) + " } }\n";
    const std::string own = training(8).substr(0, training(8).find("plan:")) + sharded;
    const auto file = folder.write("other.yaml", "cluster: { node: dgx-a100-80gb, nodes: 2 }" + own);
    const auto predicted = [&](std::vector<std::string> overrides) {
      overrides.emplace_back("plan.placement=[0, 2]");
      return predict(load_scenario_text(cluster + own, "own.yaml", overrides), Fidelity::flows);
    };
    const TrainResult alone = *predicted({}).train();
    const Result both = predicted({fmt::format("jobs=[{{ scenario: {}, nodes: [1, 3] }}]", file.string())});
    const auto total = [](const TrainResult& train, const char* name) { return train.communication.at(name).total; };
    for (const char* name : {"gradient reduce-scatter", "weight all-gather"}) {
      CHECK(total(*both.train(), name) / total(alone, name) == Approx(2.0).epsilon(0.02));
    }
    CHECK(total(alone, "gradient reduce-scatter") / total(alone, "weight all-gather") == Approx(2.0).epsilon(0.05));
    const CommunicationTime& weights = alone.communication.at("weight all-gather");
    CHECK(weights.exposed > Seconds(0.0));
    CHECK(weights.exposed <= weights.total);
  }
}
