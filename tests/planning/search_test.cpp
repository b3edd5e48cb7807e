#include "model/job/job.hpp"
#include "model/planning/plan_search.hpp"
#include "tests/catch.hpp"

namespace foretrain::test {

namespace {

void set(YamlNode& document, const std::string& override) { apply_override(document, parse_override(override)); }

/// A small training; `fixed` keeps the space small enough to be enumerated.
YamlNode training(const std::string& node, int nodes, const std::string& model, int batch,
                  const std::vector<std::string>& overrides = {}) {
  YamlNode document = parse_yaml("name: searched\ncluster: { node: " + node + ", nodes: " + std::to_string(nodes) +
                                     " }\nworkload: { train: { model: " + model +
                                     ", global_batch: " + std::to_string(batch) + ", micro_batch: 1 } }\n",
                                 "test.yaml");
  for (const std::string& override : overrides) set(document, override);
  return document;
}

PlanDimensions without(std::initializer_list<PlanDimension> fixed) {
  PlanDimensions chosen = PlanDimensions::all();
  for (const PlanDimension dimension : fixed) chosen.set(dimension, false);
  return chosen;
}

struct Enumerated {
  PlanCounts counts;
  std::vector<PlanCandidate> best;
};

Enumerated enumerate(const PlanSpace& space, std::size_t kept) {
  Enumerated all;
  for (const PlanPoint& layout : space.layouts()) {
    const LayoutResult result = search_layout(space, layout, PlanObjective{}, {}, kept, LayoutEffort::enumerate);
    all.counts += result.counts;
    all.best.insert(all.best.end(), result.best.begin(), result.best.end());
  }
  std::sort(all.best.begin(), all.best.end());
  if (all.best.size() > kept) all.best.resize(kept);
  return all;
}

/// Branch and bound must find what looking at every plan finds, with no estimate below its bound.
void check_against_enumeration(const YamlNode& document, const PlanDimensions& chosen) {
  std::vector<PlanSpace> spaces;
  spaces.emplace_back(document, "searched", chosen);
  const PlanSearch search = search_plans(spaces, {PlanObjective{}}, 20);
  const Enumerated all = enumerate(spaces.front(), 20);
  CHECK(all.counts.exceeded == 0);
  CHECK(search.counts.exceeded == 0);
  CHECK(search.counts.plans == all.counts.plans);
  CHECK(search.plans == all.counts.plans);
  CHECK(search.counts.estimated <= all.counts.estimated);
  REQUIRE(search.best.size() == all.best.size());
  for (std::size_t i = 0; i < search.best.size(); ++i) {
    INFO(i << ": " << describe(search.best[i].point) << " and " << describe(all.best[i].point));
    CHECK(search.best[i].value == all.best[i].value);
    CHECK(search.best[i].point == all.best[i].point);
  }
}

constexpr const char* small_gpt =
    "{ family: gpt, layers: 4, hidden: 1024, heads: 8, vocabulary: 32000, sequence: 1024 }";

}  // namespace

TEST_CASE("The best plans are those of full enumeration, for random models on random clusters") {
  using enum PlanDimension;
  std::mt19937 random(7);
  const auto pick = [&](auto... values) {
    const std::vector all{values...};
    return all[random() % all.size()];
  };
  for (int round = 0; round < 3; ++round) {
    const int hidden = pick(1024, 2048);
    const std::string model =
        "{ family: llama, layers: " + std::to_string(pick(4, 8)) + ", hidden: " + std::to_string(hidden) +
        ", heads: 16, kv_heads: 8, ffn_hidden: " + std::to_string(hidden * 3) + ", vocabulary: 32000, sequence: 2048 }";
    const std::string node = pick(std::string("dgx-a100-80gb"), std::string("dgx-h100"));
    INFO(model << " on " << node);
    check_against_enumeration(training(node, pick(1, 2), model, pick(8, 16)),
                              without({context, offload, bucket, overlap, order, sequence_parallel}));
  }
}

TEST_CASE("What frameworks do not run by default is searched where it is allowed or stated") {
  // Four stages of a pipeline on one node of eight GPUs: other schedules, offloading and servers are extras.
  const auto extras_in = [](const std::vector<PlanExtra>& allowed, const std::string& stated) {
    YamlNode document = training("dgx-a100-80gb", 1, small_gpt, 16);
    if (!stated.empty()) set(document, stated);
    PlanDimensions chosen = without({PlanDimension::context, PlanDimension::recompute, PlanDimension::bucket});
    chosen.allow_all(false);
    for (const PlanExtra extra : allowed) chosen.allow(extra);
    const PlanSpace space(document, "searched", chosen);
    std::set<PlanExtra> found;
    for (const PlanPoint& layout : space.layouts()) {
      for (const PlanPoint& pass : space.passes(layout)) {
        for (const PlanPoint& pipelined : space.pipelinings(pass)) {
          for (const PlanPoint& sharded : space.shardings(pipelined)) {
            for (const PlanPoint& point : space.synchronisations(sharded)) {
              for (const PlanExtra extra : extras_of(point)) found.insert(extra);
            }
          }
        }
      }
    }
    return found;
  };
  using enum PlanExtra;
  CHECK(extras_in({}, "").empty());
  CHECK(extras_in({offload}, "") == std::set{offload});
  CHECK(extras_in({schedules, servers}, "") == std::set{schedules, servers});
  CHECK(extras_in({algorithms}, "") == std::set{algorithms});
  CHECK(extras_in({}, "plan.schedule=zero_bubble") == std::set{schedules});
  CHECK(extras_in({}, "plan.offload=optimizer") == std::set{offload});
}

TEST_CASE("The same with synchronisation, offloading and experts among the choices") {
  using enum PlanDimension;
  check_against_enumeration(training("dgx-a100-80gb", 2, small_gpt, 16),
                            without({tensor, context, pipeline, recompute, micro_batch}));
  check_against_enumeration(training("dgx-a100-80gb", 2, small_gpt, 32),
                            without({tensor, recompute, micro_batch, algorithm, bucket, overlap, order}));
  const std::string experts =
      "{ family: llama, layers: 4, hidden: 1024, heads: 8, ffn_hidden: 2048, vocabulary: 32000, sequence: 1024, "
      "experts: 8, experts_per_token: 2 }";
  check_against_enumeration(training("dgx-h100", 2, experts, 16),
                            without({context, offload, bucket, overlap, recompute, micro_batch, algorithm}));
}

TEST_CASE("The same where the trainer that is assumed hides collectives of tensor ranks, or does not") {
  // ZeRO-1 with overlap and sequence parallelism is taken to be NeMo, which hides them; without overlap it is not.
  using enum PlanDimension;
  YamlNode document = training("dgx-h100", 1,
                               "{ family: llama, layers: 4, hidden: 2048, heads: 16, ffn_hidden: 6144, "
                               "vocabulary: 32000, sequence: 4096 }",
                               32, {"plan.tensor=2", "plan.pipeline=2", "plan.sequence_parallel=true"});
  const PlanDimensions searched =
      without({tensor, pipeline, context, expert, sequence_parallel, recompute, offload, algorithm});
  check_against_enumeration(document, searched);
  set(document, "plan.framework=nemo");  // which hides them unless a schedule splits passes
  check_against_enumeration(document, searched);
}

TEST_CASE("The same where updated weights come back beside the next step's forward passes, or by their owners") {
  // 1 Gbit/s between nodes: the weights of four layers outlast their forward passes, so that all parts wait.
  using enum PlanDimension;
  for (const char* how : {"plan.framework=nemo", "plan.sync={ gather: owners, gather_overlap: true }",
                          "plan.sync={ gather: tensors }", "plan.sync={ bucket: 10 MB, gather_overlap: true }"}) {
    for (const char* cards : {"200 Gbit/s", "1 Gbit/s"}) {
      CAPTURE(how, cards);
      const YamlNode document =
          training("dgx-a100-80gb", 2, small_gpt, 32, {how, std::string("cluster.network.nic_bandwidth=") + cards});
      check_against_enumeration(document, without({tensor, context, expert, recompute, micro_batch, algorithm, order,
                                                   offload, sequence_parallel}));
    }
  }
}

TEST_CASE("The same with parameter servers: key by key, bucket by bucket, on machines of their own") {
  using enum PlanDimension;
  // Two machines of eight GPUs, four of one: on processors, beside GPUs, and one or two machines that train nothing.
  check_against_enumeration(training("dgx-a100-80gb", 2, small_gpt, 16),
                            without({context, expert, order, offload, zero, recompute, micro_batch, schedule,
                                     interleave, sequence_parallel}));
  YamlNode document =
      training("p3.16xlarge", 4, "vgg-16", 96,
               {"cluster.gpus_per_node=1", "plan.sync.priority=first_layer"});  // which only servers know
  check_against_enumeration(document, without({zero, bucket, micro_batch}));
  // A scenario that states servers has them; what it leaves to the search is where they stand and how many.
  set(document, "plan.sync.algorithm=parameter_server");
  check_against_enumeration(document, without({algorithm, micro_batch}));
}

TEST_CASE("Where servers on spare machines beat a ring, the search finds them; where none are spare, it finds a ring") {
  // Workers of VGG-16 send each gradient once and receive each weight once; in a ring of n, 2(n-1)/n times. Eight
  // machines as servers take as many bytes as eight workers send (scenario servers-server-beats-ring). In host memory
  // behind PCIe, servers are slower than a ring over NVLink (servers-ring-beats-server).
  using enum PlanDimension;
  const auto best = [](const char* name, std::initializer_list<PlanDimension> fixed) {
    YamlNode document = scenario_document(name, {"workload.train.global_batch=128"});
    std::vector<PlanSpace> spaces;
    spaces.emplace_back(document, name, without(fixed));
    return search_plans(spaces, {PlanObjective{}}, 1).best.front().point;
  };
  const PlanPoint with_servers = best("servers-server-beats-ring", {micro_batch, zero, offload, recompute, bucket});
  INFO(describe(with_servers));
  CHECK(with_servers.dedicated());
  const PlanPoint ring =
      best("servers-ring-beats-server", {micro_batch, zero, offload, recompute, bucket, server_placement});
  INFO(describe(ring));
  CHECK(ring.servers == 0);
}

TEST_CASE("Stages whose layers are stated keep them where the number of stages stays") {
  using enum PlanDimension;
  const YamlNode document =
      training("dgx-a100-80gb", 1, small_gpt, 16, {"plan.pipeline=2", "plan.stage_layers=[3, 1]"});
  check_against_enumeration(document, without({pipeline, context, offload, bucket, overlap, algorithm, recompute}));
}

TEST_CASE("The same for random experts, contexts, formats and what lies on the host") {
  using enum PlanDimension;
  std::mt19937 random(11);
  const auto pick = [&](auto... values) {
    const std::vector all{values...};
    return all[random() % all.size()];
  };
  for (int round = 0; round < 3; ++round) {
    const int experts = pick(4, 8);
    const char* dispatches[] = {"all_to_all", "deduplicated", "forwarded"};
    const YamlNode document = training(pick(std::string("dgx-a100-80gb"), std::string("dgx-h100")), 1,
                                       "{ family: llama, layers: " + std::to_string(pick(2, 4)) +
                                           ", hidden: 1024, heads: 8, ffn_hidden: " + std::to_string(pick(1024, 3072)) +
                                           ", vocabulary: 32000, sequence: " + std::to_string(pick(1024, 4096)) +
                                           ", experts: " + std::to_string(experts) + ", experts_per_token: 2 }",
                                       16,
                                       {std::string("plan.expert_dispatch=") + dispatches[round],
                                        std::string("plan.expert_comm_overlap=") + (round > 0 ? "true" : "false")});
    INFO("round " << round);
    check_against_enumeration(document, without({tensor, recompute, algorithm, bucket, sequence_parallel}));
    check_against_enumeration(document, without({expert, offload, recompute, micro_batch, algorithm, bucket}));
  }
  const YamlNode document = training("dgx-h100", 1, small_gpt, 16, {"workload.train.precision=fp8"});
  check_against_enumeration(document, without({context, expert, offload, algorithm, bucket, recompute}));
}

TEST_CASE("The best on several kinds of hardware are the best of each together") {
  using enum PlanDimension;
  const PlanDimensions chosen = without({context, offload, bucket, overlap, algorithm});
  std::vector<PlanSpace> both;
  std::vector<double> values;
  for (const char* node : {"dgx-a100-80gb", "dgx-h100"}) {
    std::vector<PlanSpace> one;
    one.emplace_back(training(node, 1, small_gpt, 16), "searched", chosen);
    both.push_back(one.front());
    for (const PlanCandidate& plan : search_plans(one, {PlanObjective{}}, 10).best) values.push_back(plan.value);
  }
  std::sort(values.begin(), values.end());
  const PlanSearch search = search_plans(both, {PlanObjective{}, PlanObjective{}}, 10);
  REQUIRE(search.best.size() == 10);
  for (std::size_t i = 0; i < 10; ++i) CHECK(search.best[i].value == values[i]);
}

TEST_CASE("A schedule or a number of chunks that is fixed leaves the other free; both fixed are the scenario's") {
  using enum PlanDimension;
  YamlNode document = training("dgx-a100-80gb", 1, small_gpt, 16);
  const auto ways = [&](std::initializer_list<PlanDimension> fixed) {
    const PlanSpace space(document, "searched", without(fixed));
    for (const PlanPoint& layout : space.layouts()) {
      if (layout.pipeline == 2) return space.pipelinings(layout);
    }
    return std::vector<PlanPoint>();
  };
  set(document, "plan.schedule=zero_bubble");
  const auto both = ways({schedule, interleave});
  REQUIRE(both.size() == 1);
  CHECK(both[0].schedule == PipelineSchedule::zero_bubble);
  CHECK(both[0].interleave == 1);
  const auto any_chunks = ways({schedule});
  REQUIRE(any_chunks.size() == 2);  // one and two chunks
  for (const PlanPoint& one : any_chunks) CHECK(one.schedule == PipelineSchedule::zero_bubble);
  const auto any_schedule = ways({interleave});
  REQUIRE(any_schedule.size() > 2);  // 1F1B, GPipe, zero bubble, DualPipe where the batch allows
  for (const PlanPoint& one : any_schedule) CHECK(one.interleave == 1);

  // Two chunks without a schedule are interleaved; any number of them is 1F1B's, or that of another one that is chosen.
  document = training("dgx-a100-80gb", 1, small_gpt, 16, {"plan.interleave=2", "plan.pipeline=2"});
  const auto two_chunks = ways({schedule, interleave});
  REQUIRE(two_chunks.size() == 1);
  CHECK(two_chunks[0].schedule == PipelineSchedule::interleaved);
  CHECK(two_chunks[0].interleave == 2);
}

TEST_CASE("A point's time is that of the scenario that its keys make") {
  const PlanSpace space(training("dgx-a100-80gb", 2, small_gpt, 16), "searched", PlanDimensions::all());
  for (const PlanPoint& layout : space.layouts()) {
    const LayoutResult result = search_layout(space, layout, PlanObjective{}, {}, 2, LayoutEffort::solve);
    for (const PlanCandidate& found : result.best) {
      INFO(describe(found.point));
      const Scenario scenario = space.read(found.point);
      const Seconds estimated = estimate(scenario).time();
      CHECK(found.step.value() == Approx(estimated.value()).epsilon(1e-12));
      CHECK(estimated_time(scenario) == estimated);
    }
  }
}

TEST_CASE("Plans that do not fit are none, and those that need least memory are found") {
  // 7 billion parameters take 16 bytes each with Adam in fp32 beside bf16: 112 GB, which one GPU of 42.9 GB lacks, and
  // two.
  const YamlNode document = training("dgx-a100-40gb", 1, "llama2-7b", 8);
  using enum PlanDimension;
  std::vector<PlanSpace> spaces;
  spaces.emplace_back(document, "searched", without({offload, bucket, overlap, algorithm, schedule, context}));
  const PlanSearch fastest = search_plans(spaces, {PlanObjective{}}, 10);
  CHECK(fastest.counts.unfit > 0);
  for (const PlanCandidate& plan : fastest.best) CHECK(plan.memory <= plan.capacity);
  const PlanSearch leanest = search_plans(spaces, {PlanObjective{PlanGoal::memory}}, 10);
  REQUIRE(!leanest.best.empty());
  CHECK(leanest.best.front().memory < fastest.best.front().memory);
  CHECK(leanest.best.front().step > fastest.best.front().step);
}

TEST_CASE("Layouts whose stages a model cannot fill are passed by, however often they are asked for") {
  // Two chunks in each of sixteen stages are more than Inception-v3 has layers to cut between.
  std::vector<PlanSpace> spaces;
  spaces.emplace_back(training("dgx1-p100", 2, "inception-v3", 1024), "searched", PlanDimensions::all());
  const PlanSearch search = search_plans(spaces, {PlanObjective{}}, 3);
  REQUIRE(!search.best.empty());
  CHECK(search.counts.exceeded == 0);
}

TEST_CASE("A limit of time leaves slower plans out") {
  using enum PlanDimension;
  std::vector<PlanSpace> spaces;
  spaces.emplace_back(training("dgx-a100-80gb", 1, small_gpt, 16), "searched", without({context, offload, bucket}));
  PlanObjective objective;
  const PlanSearch all = search_plans(spaces, {objective}, 50);
  objective.limit = all.best[9].step;
  const PlanSearch few = search_plans(spaces, {objective}, 50);
  CHECK(few.best.size() < all.best.size());
  CHECK(few.best.front().step == all.best.front().step);
  for (const PlanCandidate& plan : few.best) CHECK(plan.step <= objective.limit);
}

TEST_CASE("auto takes the search's best plan; everything else stays as the scenario says") {
  const YamlNode document = training("dgx-a100-80gb", 1, small_gpt, 16,
                                     {"plan.tensor=auto", "workload.train.micro_batch=auto", "plan.zero=1"});
  const auto step_time = [](const Scenario& scenario) { return estimate(scenario).time(); };
  YamlNode planned = document;
  for (const std::string& chosen : auto_overrides(document, "searched", step_time, 5)) set(planned, chosen);
  const Scenario best = read_scenario(planned, "searched");
  CHECK(best.plan.zero == 1);
  CHECK(best.plan.pipeline == 1);
  for (const int tensor : {1, 2, 4, 8}) {
    YamlNode other = document;
    set(other, "plan.tensor=" + std::to_string(tensor));
    set(other, "workload.train.micro_batch=1");
    CHECK(step_time(best) <= step_time(read_scenario(other, "searched")) * (1.0 + 1e-12));
  }
}

TEST_CASE("What cannot be searched is reported") {
  using enum PlanDimension;
  const auto space = [](const YamlNode& document) {
    return PlanSpace(document, "searched", without({tensor, context, pipeline}));
  };
  YamlNode document = training("dgx-a100-80gb", 1, small_gpt, 16);
  CHECK_THROWS_WITH(
      space(parse_yaml("cluster: { node: dgx-a100-80gb }\nworkload: { operator: { kind: copy } }\n", "x")),
      Catch::Contains("nothing that is trained"));
  set(document, "plan.stage_layers=by_speed");
  CHECK_THROWS_WITH(space(document), Catch::Contains("stages that are balanced by speed"));
  document.erase("plan.stage_layers");
  set(document, "workload.train.global_batch=7");  // over eight replicas
  CHECK_THROWS_WITH(space(document), Catch::Contains("no plan divides 8 GPUs and a batch of 7"));
}

TEST_CASE("A search tells how many layouts it has settled, in the end all of them") {
  std::vector<PlanSpace> spaces;
  spaces.emplace_back(training("dgx-h100", 4, "llama2-7b", 256), "searched", PlanDimensions::all());
  std::vector<std::size_t> reported;
  const PlanSearch search = search_plans(spaces, {PlanObjective{}}, 5, run_tasks_here,
                                         [&](const PlanSearch& now) { reported.push_back(now.settled); });
  REQUIRE(reported.size() > 2);
  CHECK(std::ranges::is_sorted(reported));
  CHECK(reported.front() == 0);  // before any is refined
  CHECK(search.settled == search.layouts);
  CHECK(search.counts.plans == search.plans);
}

}  // namespace foretrain::test
