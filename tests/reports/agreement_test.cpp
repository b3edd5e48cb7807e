// One set of numbers: every report of a step's time prints the same.
#include <nlohmann/json.hpp>

#include "model/scenario/load/load.hpp"
#include "reports/explain/explanation.hpp"
#include "reports/print/names.hpp"
#include "reports/result/json.hpp"
#include "sim/simulate.hpp"
#include "tests/catch.hpp"

using namespace foretrain;
using Json = nlohmann::json;

namespace {

const char* const experts = "experts: 8, experts_per_token: 2, ";

struct Drawn {
  std::string text;
  int stages = 1;
};

/// A training on one to four nodes: any of what makes collectives tasks, or parts of passes, or hides them.
Drawn random_plan(std::mt19937& random) {
  const auto one_of = [&](auto... choices) {
    const std::array all = {choices...};
    return all[random() % all.size()];
  };
  const int tensor = one_of(1, 2, 4, 8), pipeline = one_of(1, 1, 2, 4), context = one_of(1, 1, 1, 2);
  const bool moe = random() % 4 == 0;
  std::string plan =
      fmt::format("tensor: {}, pipeline: {}, context: {}, zero: {}", tensor, pipeline, context, one_of(0, 0, 1, 3));
  if (tensor > 1 && random() % 2 == 0) plan += ", sequence_parallel: true, tensor_overlap: true";
  if (moe) plan += fmt::format(", expert: {}", one_of(2, 4));
  if (pipeline > 1) plan += one_of(", interleave: 2", ", schedule: gpipe", ", schedule: zero_bubble", "");
  if (random() % 8 == 0) plan += ", offload: { activations: true }";
  plan += one_of(", sync: { overlap: true, algorithm: auto }", ", sync: { overlap: false }");
  return {fmt::format(R"(
cluster: {{ node: {}, nodes: {} }}
workload:
  train:
    model: {{ family: gpt, layers: 8, hidden: 8192, heads: 64, vocabulary: 32768, {}sequence: 2048 }}
    global_batch: 64
    micro_batch: 1
    precision: bf16
    optimizer: adamw
    recompute: {}
plan: {{ {} }}
)",
                      one_of("dgx-a100-80gb", "dgx-h100"), one_of(1, 2, 4), moe ? experts : "",
                      one_of("none", "selective", "full"), plan),
          pipeline};
}

/// A timeline's lane: seconds by category of what its compute stream does, and of its transfers by name.
struct Drawing {
  std::map<std::string, double> on_stream, moving;
};

std::map<int, Drawing> drawings_of(const std::vector<TimelineEntry>& timeline) {
  std::map<int, Drawing> lanes;
  for (const TimelineEntry& entry : timeline) {
    const bool moves = entry.category == "communication";
    Drawing& lane = lanes[entry.rank_class];
    (moves ? lane.moving[entry.name] : lane.on_stream[entry.category]) += entry.duration.value();
  }
  return lanes;
}

bool close(double a, double b) { return std::abs(a - b) <= 1e-6 * (1e-3 + std::abs(a) + std::abs(b)); }

/// Whether a lane's bars say what the step's parts and transfers do. Messages between stages are drawn at the sender,
/// but belong to both ends; what the host does once a step is before all tasks.
bool tells_the_same(const Drawing& lane, const TrainResult& train, double once_per_step) {
  const Breakdown& b = train.breakdown;
  const auto drawn = [](const std::map<std::string, double>& of, const std::string& name) {
    const auto found = of.find(name);
    return found == of.end() ? 0.0 : found->second;
  };
  bool same = close(drawn(lane.on_stream, "compute"), b.compute.value()) &&
              close(drawn(lane.on_stream, "host"), b.host_overhead.value() - once_per_step);
  for (const auto& [name, time] : train.communication) {
    const bool drawn_elsewhere = name == "pipeline send/receive" || name == "gradient norm";
    if (drawn_elsewhere || name.starts_with("waiting for")) continue;
    same = same && close(drawn(lane.moving, name), time.total.value());
  }
  return same;
}

double sum_of(const std::vector<PathPart>& parts) {
  double sum = 0.0;
  for (const PathPart& part : parts) sum += part.time.value();
  return sum;
}

const char* const tensor_over_nodes = R"(
cluster: { node: dgx-a100-80gb, nodes: 4 }
workload:
  train:
    model: { family: gpt, layers: 8, hidden: 8192, heads: 64, vocabulary: 32768, sequence: 2048 }
    global_batch: 32
    micro_batch: 1
    precision: bf16
    optimizer: adamw
plan: { tensor: 8, sequence_parallel: true, sync: { overlap: true } }
)";

Result over_nodes(const std::vector<std::string>& changes = {}) {
  return predict(load_scenario_text(tensor_over_nodes, "tensor.yaml", changes), Fidelity::estimate, Detail::timeline);
}

}  // namespace

TEST_CASE("predict, explain, JSON and the timeline attribute a step's time alike, for random plans") {
  std::mt19937 random(27);
  int predicted = 0, hidden = 0, merged = 0;
  for (int draw = 0; predicted < 40; ++draw) {
    REQUIRE(draw < 400);
    const Drawn drawn = random_plan(random);
    Scenario scenario;
    try {
      scenario = load_scenario_text(drawn.text, "random.yaml");
    } catch (const std::exception&) {
      continue;  // a plan that there is not
    }
    INFO(drawn.text);
    const Result result = predict(scenario, draw % 2 == 0 ? Fidelity::estimate : Fidelity::flows, Detail::timeline);
    const TrainResult& train = *result.train();
    ++predicted;

    // The table's exposed times are the breakdown's, and nothing is exposed for longer than it takes.
    double exposed = 0.0;
    for (const auto& [name, time] : train.communication) {
      INFO(name);
      CHECK(time.exposed <= time.total * (1.0 + 1e-9));
      exposed += time.exposed.value();
      hidden += name == inside_layers && time.total > time.exposed * 1.01 ? 1 : 0;
      merged += name == inside_layers ? 1 : 0;
    }
    CHECK(close(exposed, train.breakdown.exposed_communication.value()));

    // The chain that explain tells is the step, and of each name what predict says.
    const std::vector<PathPart> chain = explain(scenario, result, {}, {}).critical_path;
    CHECK(sum_of(chain) == Approx(train.step_time.value()).epsilon(1e-4));
    for (const PathPart& part : chain) {
      INFO(part.name);
      const auto known = train.communication.find(part.name);
      if (known != train.communication.end()) CHECK(part.time == known->second.exposed);
      if (part.name == "compute") CHECK(part.time == train.breakdown.compute);
      if (part.name == "pipeline bubble") CHECK(part.time == train.breakdown.pipeline_bubble);
    }

    const Json json = Json::parse(to_json(result));
    for (const BreakdownPart& part : breakdown_parts) {
      CHECK(close(json["breakdown_s"][std::string(part.key)], (train.breakdown.*part.time).value()));
    }
    for (const auto& [name, time] : train.communication) {
      CHECK(close(json["communication_s"][name]["total"], time.total.value()));
      CHECK(close(json["communication_s"][name]["exposed"], time.exposed.value()));
    }

    // One of the timeline's lanes is the one that the breakdown is seen from.
    const double once = scenario.calibration.host.step_us * 1e-6;
    const std::map<int, Drawing> lanes = drawings_of(result.timeline);
    if (lanes.size() > static_cast<std::size_t>(drawn.stages)) continue;  // transfers of several lanes are the first's
    CHECK(std::ranges::any_of(lanes, [&](const auto& lane) { return tells_the_same(lane.second, train, once); }));
  }
  CHECK(hidden >= 3);
  CHECK(merged >= 10);
}

TEST_CASE("a timeline draws collectives inside layers in every micro-batch, as long in each") {
  // Eight micro-batches. Gradients are synchronised beside the last one alone, where collectives inside layers may meet
  // them and are tasks; in the seven before they are parts of the passes. On A100 both travel over NVLink and the cards
  // without meeting, so that an estimate gives them the same time.
  const Result result = over_nodes();
  std::map<int, double> by_micro_batch;
  for (const TimelineEntry& entry : result.timeline) {
    if (entry.name == inside_layers) by_micro_batch[entry.micro_batch] += entry.duration.value();
  }
  REQUIRE(by_micro_batch.size() == 8);
  for (const auto& [micro_batch, time] : by_micro_batch) {
    INFO(micro_batch);
    CHECK(time == Approx(by_micro_batch.at(0)).epsilon(1e-6));
  }
  double all = 0.0;
  for (const auto& [micro_batch, time] : by_micro_batch) all += time;
  CHECK(all == Approx(result.train()->communication.at(inside_layers).total.value()));
}

TEST_CASE("hidden collectives count in a table's total") {
  // Chunks behind products hide the collectives; there are as many as without them, of the same bytes.
  const CommunicationTime plain = over_nodes().train()->communication.at(inside_layers);
  const CommunicationTime behind = over_nodes({"plan.tensor_overlap=true"}).train()->communication.at(inside_layers);
  CHECK(behind.total.value() == Approx(plain.total.value()));
  CHECK(behind.exposed < 0.5 * plain.exposed);
}
