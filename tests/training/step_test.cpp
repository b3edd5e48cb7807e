// Steps worked out by hand against the execution of their graphs, and the orders of work.
#include "model/scenario/load/load.hpp"
#include "model/training/graph/step_graph.hpp"
#include "model/training/outcome/breakdown.hpp"
#include "tests/catch.hpp"
#include "tests/training/built_step.hpp"
#include "tests/training/small_step.hpp"

using namespace foretrain;
using namespace foretrain::test;

namespace {

constexpr auto alternating = PipelineSchedule::one_forward_one_backward;

Step random_step(std::mt19937& random) {
  std::uniform_real_distribution<double> time(0.1, 2.0);
  const auto pick = [&](int low, int high) { return std::uniform_int_distribution<int>(low, high)(random); };
  const int stages = pick(1, 4);
  const int interleave = stages == 1 ? 1 : pick(1, 3);
  const auto schedule = interleave > 1 ? PipelineSchedule::interleaved : alternating;
  Step step = pipeline_step(schedule, stages, interleave, stages * pick(1, 4), {}, time(random));
  step.overlap = pick(0, 1) == 1;
  const bool sharded = stages == 1 && pick(0, 1) == 1;
  step.gather_overlap = !sharded && pick(0, 1) == 1;
  const bool compressed = pick(0, 1) == 1;
  step.sync_each_micro_batch = stages == 1 && !sharded && pick(0, 1) == 1;
  for (Step::RankClass& stage : step.rank_classes) {
    stage.optimizer = compute(time(random));
    for (Step::Chunk& chunk : stage.chunks) {
      chunk.passes[PassKind::forward].time = compute(time(random));
      chunk.buckets.clear();
      if (sharded) {
        for (int u = pick(1, 6); u > 0; --u) {
          ShardedUnit unit;
          unit.forward.time = compute(time(random));
          unit.backward.time = compute(time(random));
          unit.gather = add_transfer(step, time(random), {stage.stage});
          if (pick(0, 1) == 1) unit.gather_backward = unit.gather;
          if (pick(0, 1) == 1) unit.scatter = add_transfer(step, time(random), {stage.stage});
          chunk.units.push_back(unit);
        }
        continue;
      }
      if (step.gather_overlap) chunk.passes[PassKind::forward].time = {};
      for (int g = step.gather_overlap ? pick(1, 3) : pick(0, 3); g > 0; --g) {
        WeightGather gather{{add_transfer(step, time(random), {stage.stage})}, {compute(time(random))}};
        if (step.gather_overlap) chunk.passes[PassKind::forward].time += gather.forward.time;
        chunk.gathers.push_back(gather);
      }
      TimeBreakdown total;
      for (int b = pick(1, 5); b > 0; --b) {
        chunk.buckets.push_back(
            bucket_of(time(random), pick(0, 3) == 0 ? -1 : add_transfer(step, time(random), {stage.stage})));
        GradientBucket& bucket = chunk.buckets.back();
        if (!compressed) {
          total += bucket.backward.time;
          continue;
        }
        if (pick(0, 1) == 1 && !bucket.stages.empty()) bucket.stages.front().kernels = Seconds(time(random));
        for (int part = pick(0, 2); part > 0; --part) {
          bucket.stages.push_back(
              {Seconds(pick(0, 1) * time(random)), add_transfer(step, time(random), {stage.stage})});
        }
        if (pick(0, 1) == 1) bucket.after = Seconds(time(random));
        total += chunk.buckets.back().backward.time;
      }
      chunk.passes[PassKind::backward].time = total;
    }
  }
  step.gradient_norm = Seconds(time(random));
  return step;
}

}  // namespace

TEST_CASE("the bubble is what remains of a pipeline whose activations move in no time") {
  // Four stages, twelve micro-batches of 1 + 2 s: three more passes than work, 9 s, whatever a hop takes.
  for (const double hop : {0.0, 0.5}) {
    const Step step = pipeline_step(alternating, 4, 1, 12, {}, hop);
    const StepMoments times = uncontended_times(step);
    CHECK(times.backward_done.value() >= 12 * 3.0 + 9.0 + 6 * hop);
    CHECK(uncontended_use(step).breakdown.pipeline_bubble.value() == Approx(9.0));
  }
}

TEST_CASE("a synchronisation beside the backward pass exposes only its tail") {
  // Four buckets, each 1 s of backward work and 0.5 s on the wire: only the last bucket's 0.5 s is waited for.
  const StepMoments times = uncontended_times(data_parallel_step(4, 2.0, 1.0, 0.5, true));
  CHECK(times.backward_done.value() == Approx(6.0));
  CHECK(times.synchronised.value() == Approx(6.5));
}

TEST_CASE("a synchronisation slower than the backward pass is bound by the wire") {
  // The first bucket is ready after 2 + 1 s, then four transfers of 3 s follow each other.
  const StepMoments times = uncontended_times(data_parallel_step(4, 2.0, 1.0, 3.0, true));
  CHECK(times.synchronised.value() == Approx(3.0 + 4 * 3.0));
}

TEST_CASE("without overlap all gradients wait for the end of the backward pass") {
  const StepMoments times = uncontended_times(data_parallel_step(4, 2.0, 1.0, 0.5, false));
  CHECK(times.synchronised.value() == Approx(6.0 + 4 * 0.5));
}

TEST_CASE("gradients synchronised after each micro-batch are waited for each time") {
  // Two buckets, each 1 s of backward work and 1.5 s on the wire. A pass ends 1 + 2 · 1.5 = 4 s after it began, and
  // three of them with their forward passes of 2 s take 18 s. The backward work of the last one is done 2 s earlier.
  Step step = data_parallel_step(2, 2.0, 1.0, 1.5, true);
  step.micro_batches = 3;
  step.sync_each_micro_batch = true;
  const StepMoments times = uncontended_times(step);
  CHECK(times.synchronised.value() == Approx(18.0));
  CHECK(times.backward_done.value() == Approx(16.0));
  // Only the last one's gradients: two passes of 2 + 2 s, then 2 + 4.
  step.sync_each_micro_batch = false;
  CHECK(uncontended_times(step).synchronised.value() == Approx(2 * 4.0 + 6.0));
}

TEST_CASE("a compressed bucket is sent, worked on, sent again and restored, one after the other") {
  // Ready after 2 + 1 s; first transfer 0.5 s, kernels 0.25 s, second transfer 0.5 s, restored in 0.125 s. The second
  // bucket is ready at 4 s, when the first one's second transfer has still 0.25 s to go: 4.25 + 1.25 + 0.125.
  Step step = data_parallel_step(2, 2.0, 1.0, 0.5, true);
  for (GradientBucket& bucket : step.rank_classes[0].chunks[0].buckets) {
    bucket.stages.push_back({Seconds(0.25), bucket.stages.front().transfer});
    bucket.after = Seconds(0.125);
  }
  CHECK(uncontended_times(step).synchronised.value() == Approx(5.625));
}

TEST_CASE("the breakdown adds up to the step") {
  std::mt19937 random(11);
  for (int i = 0; i < 100; ++i) {
    Step step = random_step(random);
    step.once_per_step = Seconds(0.3);
    step.loader_interval = Seconds(i % 3 == 0 ? 100.0 : 0.0);
    const auto [breakdown, communication, inside] = uncontended_use(step);
    CHECK(breakdown.total().value() == Approx(step_time(step, uncontended_times(step).end).value()).epsilon(1e-9));
    // And what of each kind of transfer is waited for, to the communication that is.
    Seconds exposed;
    for (const auto& [name, time] : communication) exposed += time.exposed;
    CHECK(exposed.value() == Approx(breakdown.exposed_communication.value()).epsilon(1e-9).margin(1e-9));
  }
}

TEST_CASE("ranks that have fewer micro-batches compute so much less") {
  // Three of four micro-batches of 2 + 1 s; gradients, 3 s on the wire, wait for their end.
  Step step = data_parallel_step(1, 2.0, 1.0, 3.0, false);
  step.micro_batches = 4;
  step.rank_classes[0].missing_micro_batches = 1;
  const Breakdown breakdown = uncontended_use(step).breakdown;
  CHECK(breakdown.compute.value() == Approx(9.0));
  CHECK(breakdown.exposed_communication.value() == Approx(3.0));
}

TEST_CASE("all forward passes first: as long as one forward, one backward, and no shorter bubble") {
  // GPipe idles for (p - 1) forward and backward passes as 1F1B does; what it costs is memory.
  Step step = pipeline_step(alternating, 4, 1, 12);
  const Seconds before = uncontended_times(step).backward_done;
  step.schedule = PipelineSchedule::gpipe;
  CHECK(uncontended_times(step).backward_done.value() == Approx((12 + 4 - 1) * 3.0));
  CHECK(uncontended_times(step).backward_done.value() == Approx(before.value()));
}

TEST_CASE("a layer's weights are gathered while its predecessor computes, once the layer before that is done") {
  // Four layers of 3 s, there and back, whose gathers and scatters take 1 s. Forward the first two gathers follow each
  // other, later ones begin as the layer two before ends. Backward, from 13 s on, each layer's scatter comes before the
  // next gather on their stream. Without overlap one comes after the other.
  Step step;
  ShardedUnit unit;
  unit.forward.time = unit.backward.time = compute(3.0);
  unit.gather = unit.gather_backward = unit.scatter = add_transfer(step, 1.0, {0});
  step.rank_classes.resize(1);
  step.rank_classes[0].chunks.emplace_back().units.assign(4, unit);
  const auto begins = [&](bool overlap) {
    step.overlap = overlap;
    const StepGraph graph = step_graph(step);
    const Execution execution = run(graph.graph);
    std::vector<int> dates;
    for (const auto& transfer : graph.transfers) {
      dates.push_back(static_cast<int>(std::lround(execution.start[static_cast<std::size_t>(transfer.task)].value())));
    }
    return dates;
  };
  CHECK(begins(true) == std::vector{0, 1, 4, 7, 13, 14, 17, 18, 20, 21, 23, 26});
  CHECK(begins(false) == std::vector{0, 4, 8, 12, 16, 20, 21, 25, 26, 30, 31, 35});
}

TEST_CASE("gradients of several buckets' size that are ready together are as many collectives") {
  // VGG-16's fc6 has 411 MB of gradients, which are ready at once: five all-reduces of buckets of 100 MB, each of which
  // is six steps of a ring of four.
  const test::BuiltStep built(load_scenario_text(R"(
cluster: { node: pcie-switch-16gbps-x4, nodes: 1 }
workload:
  train: { model: vgg-16, global_batch: 32, micro_batch: 8, precision: fp32, optimizer: sgd }
plan: { sync: { algorithm: ring, bucket: 100 MB } }
)",
                                                 "vgg.yaml"));
  int most = 0;
  for (const Step::Transfer& transfer : built.step.transfers) {
    int steps = 0;
    for (const LoweredCollective::Phase& phase : transfer.parts.front().lowered.phases) steps += phase.repeat;
    most = std::max(most, steps);
  }
  CHECK(most == 5 * 6);
}

TEST_CASE("what the last gradients leave exposed does not depend on how many buckets come before") {
  // A layer is a bucket, and takes longer backward than its gradients on the wire: all are hidden but those of the
  // first layer, which are ready last. Twelve layers are a bucket each; where there are more, the early ones are
  // merged.
  const auto exposed = [](int layers) {
    const std::string text = R"(
cluster: { node: dgx-a100-80gb, nodes: 1 }
workload:
  train: { model: mlp, global_batch: 65536, micro_batch: 8192, precision: bf16, optimizer: sgd }
plan: { sync: { algorithm: ring, bucket: 16 MB, bucketing: by_layer } }
)";
    const std::string model = fmt::format(
        "{{ family: mlp, input: [4096], layers: [{{ repeat: {{ times: {}, body: [{{ linear: {{ out: 4096 }} }}] }} }}] "
        "}}",
        layers);
    const test::BuiltStep built(load_scenario_text(text, "layers.yaml", {"workload.train.model=" + model}));
    const StepMoments times = test::uncontended_times(built.step);
    return (times.synchronised - times.backward_done).value();
  };
  const double alone = exposed(12);
  CHECK(alone > 0.0);
  for (const int layers : {24, 48, 96}) CHECK(exposed(layers) == Approx(alone).epsilon(0.02));
}

TEST_CASE(
    "what a stage sends inside layers and of gradients stays on its GPUs, in stages that are alike as in others") {
  // Four stages of eight GPUs with four layers each: those in the middle are alike, the ends hold embedding and loss.
  test::BuiltStep built(load_scenario_text(R"(
cluster: { node: dgx-h100, nodes: 4 }
workload:
  train:
    model: { family: llama, layers: 16, hidden: 2048, heads: 16, vocabulary: 32000, sequence: 1024, ffn_hidden: 5632 }
    global_batch: 32
    precision: bf16
plan: { data: 4, tensor: 2, pipeline: 4, zero: 1, sequence_parallel: true }
)",
                                           "stages.yaml"));
  int seen = 0;
  for (Step::RankClass& rank_class : built.step.rank_classes) {
    const auto check = [&](int transfer) {
      if (transfer < 0) return;
      ++seen;
      for (const Step::Transfer::Part& part : built.step.transfers[at_index(transfer)].parts) {
        CHECK(part.rank_classes == std::vector{rank_class.stage});
        for (const LoweredCollective::Phase& phase : part.lowered.phases) {
          for (const Flow& flow : phase.flows)
            CHECK(std::pair(flow.source / 8, flow.destination / 8) == std::pair(rank_class.stage, rank_class.stage));
        }
      }
    };
    for (Step::Chunk& chunk : rank_class.chunks) {
      chunk.visit_transfers(check);
      chunk.visit_pass_costs([&](const PassCost& pass_cost) {
        for (const PassCost::Part& part : pass_cost.parts) LayerCalls(*part.calls).visit_transfers(check);
      });
    }
  }
  CHECK(seen > 40);
  const auto passes = [&](std::size_t stage) { return built.step.rank_classes[stage].chunks.front().both_ways(); };
  CHECK(passes(1) == passes(2));
  CHECK(passes(1) < passes(3));
}
