// Schedules that put off the gradients of weights, against the formulas of their papers. One chunk of the model for
// each stage has a forward pass of F, gradients of inputs of B and gradients of weights of W.
#include "model/parallelism/weight_gradients.hpp"
#include "model/scenario/load/load.hpp"
#include "model/training/graph/pass_slices.hpp"
#include "model/training/outcome/breakdown.hpp"
#include "model/training/pricing/chunk_builder.hpp"
#include "tests/catch.hpp"
#include "tests/training/built_step.hpp"
#include "tests/training/small_step.hpp"

using namespace foretrain;
using test::BuiltStep;
using test::PassSeconds;
using test::uncontended_times;
using test::uncontended_use;

namespace {

constexpr auto zero_bubble = PipelineSchedule::zero_bubble;
constexpr auto dualpipe = PipelineSchedule::dualpipe;

/// Times of one stage's passes if it holds one chunk; of two chunks each takes half, but with DualPipe, which holds
/// the model twice.
Step step_of(PipelineSchedule schedule, int stages, int interleave, int micro_batches, PassSeconds each) {
  for (double* seconds : {&each.forward, &each.inputs, &each.weights}) *seconds /= interleave;
  return test::pipeline_step(schedule, stages, interleave, micro_batches, each);
}

double bubble_of(const Step& step) { return uncontended_use(step).breakdown.pipeline_bubble.value(); }

/// The most micro-batches whose activations a stage holds at once, in passes through one of its chunks. A backward pass
/// in two parts lets go of them after the second.
int most_in_flight(PipelineSchedule schedule, int stages, int stage, int interleave, int micro_batches) {
  int now = 0, most = 0;
  for (const PipelinePass& pass : pipeline_order(schedule, stages, stage, interleave, micro_batches)) {
    now += pass.backward() ? (pass.makes_weight_gradients() ? -1 : 0) : 1;
    most = std::max(most, now);
  }
  return most;
}

const char* const gpt = R"(
cluster: { node: dgx-a100-80gb, nodes: 2 }
workload:
  train:
    model: { family: gpt, layers: 16, hidden: 4096, heads: 32, vocabulary: 51200, sequence: 2048 }
    global_batch: 64
    micro_batch: 1
    precision: bf16
    optimizer: adamw
plan: { pipeline: 8, data: 2 }
)";

BuiltStep built(const std::vector<std::string>& overrides) {
  return BuiltStep(load_scenario_text(gpt, "gpt.yaml", overrides));
}

}  // namespace

TEST_CASE("ZB-H1 idles for (p - 1)(F + B - W), a third of 1F1B's (p - 1)(F + B + W) where all are equal") {
  // arXiv 2401.10241, section 2.3.
  for (const auto& [stages, times] :
       {std::pair{4, PassSeconds{}}, {4, PassSeconds{1.0, 1.2, 0.8}}, {8, PassSeconds{1.0, 1.3, 0.9}}}) {
    const auto& [forward, inputs, weights, paired] = times;
    const double gaps = stages - 1;
    const auto alternating = PipelineSchedule::one_forward_one_backward;
    CHECK(bubble_of(step_of(alternating, stages, 1, 24, times)) == Approx(gaps * (forward + inputs + weights)));
    CHECK(bubble_of(step_of(zero_bubble, stages, 1, 24, times)) == Approx(gaps * (forward + inputs - weights)));
  }
}

TEST_CASE("ZB-V has no bubble between a stage's first pass and its last where F = B = W") {
  // arXiv 2401.10241, section 6. Stage s begins after s forward passes through half a stage's layers and works without
  // a gap from then on. The step, which waits for the gradients' norm, is longer than the work by the last stage's
  // wait.
  const int stages = 8, micro_batches = 24;
  const Step step = step_of(zero_bubble, stages, 2, micro_batches, {});
  const StepGraph graph = step_graph(step);
  const Execution execution = run(graph.graph);
  for (int stage = 0; stage < stages; ++stage) {
    CAPTURE(stage);
    const TaskId last = graph.last_backward[static_cast<std::size_t>(stage)];
    CHECK(execution.finish[static_cast<std::size_t>(last)].value() == Approx(stage * 0.5 + micro_batches * 3.0));
  }
  CHECK(bubble_of(step) == Approx((stages - 1) * 0.5));
}

TEST_CASE("V-Half and V-Min hold about a half and a third of what ZB-V holds, and idle for less than 1F1B") {
  // arXiv 2405.15362. A micro-batch's passes through the first stage's first chunk lie 6 p and 4 p passes apart, one
  // begins every six passes: p and 2 p / 3 are there at once, beside one or two in the second chunk and one whose
  // gradients of weights wait. ZB-V holds 2 p.
  const double idle = bubble_of(step_of(PipelineSchedule::one_forward_one_backward, 8, 1, 24, {}));
  for (const int stages : {4, 6, 8}) {
    CAPTURE(stages);
    for (int stage = 0; stage < stages; ++stage) {
      CHECK(most_in_flight(PipelineSchedule::v_half, stages, stage, 2, 24) <= stages + 3);
      CHECK(most_in_flight(PipelineSchedule::v_min, stages, stage, 2, 24) <= stages * 2 / 3 + 4);
    }
    CHECK(most_in_flight(zero_bubble, stages, 0, 2, 24) == 2 * stages);
  }
  CHECK(bubble_of(step_of(PipelineSchedule::v_half, 8, 2, 24, {})) < 0.65 * idle);
  CHECK(bubble_of(step_of(PipelineSchedule::v_min, 8, 2, 24, {})) < idle);
}

TEST_CASE("DualPipe idles for (p / 2 - 1)(F&B + B - 3 W)") {
  // arXiv 2412.19437, table 2, where B is a whole backward pass, here of 2, and F&B a forward and a backward pass that
  // run together: (4 - 1)(3 + 2 - 3) = 6 with eight stages. Where running together saves 0.6, 1.8 less.
  CHECK(bubble_of(step_of(dualpipe, 8, 1, 24, {})) == Approx(6.0));
  CHECK(bubble_of(step_of(dualpipe, 4, 1, 8, {})) == Approx(2.0));
  const auto times = uncontended_times(step_of(dualpipe, 8, 1, 24, {1.0, 1.0, 1.0, 2.4}));
  // The stages in the middle have the longest bubble. All 24 pairs there take 3 s, but for those that run together.
  const std::vector<PipelinePass> order = pipeline_order(dualpipe, 8, 3, 1, 24);
  const auto together = static_cast<double>(std::ranges::count(order, PassKind::paired, &PipelinePass::kind));
  CHECK(together > 12);
  CHECK(times.backward_done.value() - 24 * 3.0 + together * 0.6 == Approx(6.0 - 1.8));
}

TEST_CASE("micro-batches that are no multiple of the stages are spread over interleaved groups") {
  // Stages 4, chunks 4, every pass a quarter of 1 and 2 s. Groups of five go through without a gap as groups of four
  // do, and only the pipeline's filling and draining idles: (p - 1)(F + B) / v (arXiv 2104.04473, section 2.2).
  const auto interleaved = PipelineSchedule::interleaved;
  for (const int micro_batches : {4, 5, 8, 10}) {
    CAPTURE(micro_batches);
    CHECK(uncontended_times(step_of(interleaved, 4, 4, micro_batches, {})).backward_done.value() ==
          Approx(micro_batches * 3.0 + 3 * 3.0 / 4));
  }
  // Nine micro-batches are a group of five and one of four. The first stage begins 2 * 3 + 3 * 5 passes ahead.
  const std::vector<PipelinePass> order = pipeline_order(interleaved, 4, 0, 4, 9);
  CHECK(std::ranges::find(order, true, &PipelinePass::backward) - order.begin() == 2 * 3 + 3 * 5 + 1);
  CHECK(order[4].micro_batch == 4);
  CHECK(order[4].chunk == 0);
  CHECK(order[5].micro_batch == 0);
  CHECK(order[5].chunk == 1);
  CHECK(order[20].micro_batch == 5);
  CHECK(order[20].chunk == 0);
}

TEST_CASE("no schedule's stages wait for each other for ever, whatever the number of micro-batches") {
  for (const auto& [schedule, interleave] : {std::pair{PipelineSchedule::interleaved, 2},
                                             {PipelineSchedule::interleaved, 3},
                                             {PipelineSchedule::interleaved, 5},
                                             {zero_bubble, 1},
                                             {zero_bubble, 2}}) {
    for (const int stages : {2, 3, 4, 7}) {
      for (int micro_batches = 1; micro_batches <= 16; ++micro_batches) {
        CAPTURE(stages, interleave, micro_batches);
        CHECK(uncontended_times(step_of(schedule, stages, interleave, micro_batches, {})).backward_done.value() >=
              micro_batches * 3.0);
      }
    }
  }
}

TEST_CASE("micro-batches in flight: p on every stage under ZB-H1 and ZB-V, p + 1 under DualPipe") {
  // 1F1B holds p on its first stage and one on the last; ZB-H1 as many on each (arXiv 2401.10241, section 2.2). ZB-V's
  // chunks are half as large, so that 2 p of them are p micro-batches. DualPipe: p + 1 (arXiv 2412.19437, table 2).
  const int stages = 8, micro_batches = 48;
  for (int stage = 0; stage < stages; ++stage) {
    CHECK(most_in_flight(zero_bubble, stages, stage, 1, micro_batches) == stages);
    CHECK(most_in_flight(zero_bubble, stages, stage, 2, micro_batches) == 2 * stages);
    CHECK(most_in_flight(dualpipe, stages, stage, 1, micro_batches) == stages + 1);
  }
  CHECK(most_in_flight(PipelineSchedule::one_forward_one_backward, stages, 0, 1, micro_batches) == stages);
  CHECK(most_in_flight(PipelineSchedule::one_forward_one_backward, stages, 7, 1, micro_batches) == 1);
  CHECK(most_in_flight(PipelineSchedule::one_forward_one_backward, stages, 0, 1, 4) == 4);
  for (const int stage : {0, 7}) {
    CHECK(most_in_flight(PipelineSchedule::gpipe, stages, stage, 1, micro_batches) == micro_batches);
  }
  // Interleaved, v chunks a stage: p (v - 1) + 2 (p - 1) + 1 chunks on the first stage, (1 + (p - 1) / (p v)) times
  // 1F1B's memory (arXiv 2205.05198, section 4.2.3).
  CHECK(most_in_flight(PipelineSchedule::interleaved, stages, 0, 3, micro_batches) == 2 * 8 + 2 * 7 + 1);
  CHECK((2 * 8 + 2 * 7 + 1) / 3.0 == Approx(8 * (1.0 + 7.0 / (8.0 * 3.0))));
}

TEST_CASE("a layer's backward pass falls into its products' two gradients, nothing lost and nothing made up") {
  const BuiltStep whole = built({});
  const LayerPricer pricer(whole.scenario, whole.train());
  const Layer& block = whole.model.layers[1].layer;
  std::vector<Operator> weights;
  for (const Operator& op : block.backward) {
    if (op.name.ends_with(" weight gradient")) weights.push_back(op);
  }
  CHECK(weights.size() == 4);  // queries, keys and values together; attention's output; up; down
  const Seconds all = pricer.kernels(block.backward), late = pricer.kernels(weights);
  CHECK(pricer.kernels(weight_gradients_alone(block).backward).value() == Approx(late.value()));
  CHECK(pricer.kernels(without_weight_gradients(block).backward).value() == Approx((all - late).value()));
  // In a step: two layers a stage, whose passes carry the same kernels; the dispatch of none is in the way.
  const BuiltStep split = built({"plan.schedule=zero_bubble"});
  const Step::Chunk& chunk = split.step.rank_classes[2].chunks.front();
  CHECK(chunk.passes[PassKind::weights].time.compute.value() == Approx(2.0 * late.value()));
  CHECK((chunk.passes[PassKind::inputs].time.compute + chunk.passes[PassKind::weights].time.compute).value() ==
        Approx(chunk.passes[PassKind::backward].time.compute.value()));
  CHECK(chunk.passes[PassKind::backward].time.compute.value() ==
        Approx(whole.step.rank_classes[2].chunks.front().passes[PassKind::backward].time.compute.value()));
}

TEST_CASE("gradients are ready when those of weights are: what is synchronised after ZB's last pass") {
  // The last pass of a chunk makes gradients of weights alone, and its buckets' work adds up to it.
  const BuiltStep split = built({"plan.schedule=zero_bubble"});
  for (const Step::RankClass& rank_class : split.step.rank_classes) {
    Seconds sum;
    for (const GradientBucket& bucket : rank_class.chunks.front().buckets) sum += bucket.backward.time.compute;
    const Seconds alone = rank_class.chunks.front().passes[PassKind::weights].time.compute;
    CHECK(sum >= alone);  // and what the transfers beside it slow it down by
    CHECK(sum < alone * (1.0 + split.scenario.calibration.collective.overlap_slowdown) + Seconds(1e-9));
  }
}

TEST_CASE("DualPipe's stages hold two chunks, and sum the gradients of both halves' stages") {
  const BuiltStep dual = built({"plan.schedule=dualpipe", "workload.train.optimizer=sgd"});
  const BuiltStep once = built({"workload.train.optimizer=sgd"});
  // Embedding and head lie at the ends, so that the first stage and the last hold the same two chunks.
  const double pair = once.model.layers[1].layer.parameters * 4 + once.model.layers[0].layer.parameters +
                      once.model.layers[2].layer.parameters;
  CHECK(dual.step.parameters_per_gpu == Approx(pair));
  // Replicas: two of data, at both ends: all-reduces of four ranks, in which two rank classes take part.
  int all_reduces = 0;
  for (const Step::Transfer& transfer : dual.step.transfers) {
    if (transfer.name != "gradient all-reduce") continue;
    ++all_reduces;
    const std::vector<int>& rank_classes = transfer.parts.front().rank_classes;
    REQUIRE(rank_classes.size() == 2);
    CHECK(rank_classes[0] + rank_classes[1] == 7);
  }
  CHECK(all_reduces > 0);
  const StepGraph graph = step_graph(dual.step);
  const auto carried_out = std::ranges::count_if(graph.transfers, [&](const StepGraph::Transfer& sent) {
    return dual.step.transfers[static_cast<std::size_t>(sent.transfer)].name == "gradient all-reduce";
  });
  std::ptrdiff_t buckets = 0;
  for (const Step::RankClass& rank_class : dual.step.rank_classes) {
    for (const Step::Chunk& chunk : rank_class.chunks) buckets += std::ssize(chunk.buckets);
  }
  CHECK(carried_out == buckets / 2);  // each for the two stages that hold the chunk
}

TEST_CASE("a forward and a backward pass together hide each other's collectives behind their kernels") {
  // Forward: 3 s of kernels, 2 s of collectives; backward: 5 s and 4 s. What is beside kernels takes a quarter of its
  // time from them: 5 + 2 · 0.25 s beside the forward pass's 2 s, 3 + 3 · 0.25 s beside the backward pass's 4 s, of
  // which 0.25 s stick out.
  // Dispatch of both, 12 s, is longer than the device's 9.5.
  const PassWork forward{Seconds(3.0), Seconds(7.0), Seconds(2.0), {7}, 0.25};
  const PassWork backward{Seconds(5.0), Seconds(5.0), Seconds(4.0), {8, 9}, 0.25};
  const PassCost both = paired(forward, backward);
  const TimeBreakdown& time = both.time;
  const std::vector<PassSlice> slices = slices_of(both);
  CHECK(time.compute.value() == Approx(5.5 + 3.75));
  CHECK(time.communication().value() == Approx(0.25));
  CHECK(time.hidden.value() == Approx(5.75));
  CHECK(time.host.value() == Approx(2.5));
  REQUIRE(slices.size() == 3);  // the last one is the host's
  CHECK(slices[0].work.value() == Approx(5.5));
  CHECK(std::ranges::equal(slices[0].transfers, std::vector{7}));
  CHECK(slices[1].work.value() == Approx(3.75));
  CHECK(std::ranges::equal(slices[1].transfers, std::vector{8, 9}));
  CHECK((slices[0].beside && slices[1].beside));
}

TEST_CASE("Two chunks a stage send every activation over three boundaries each way instead of one") {
  // GPT-2 on two of four GPUs behind links of 16 GB/s: chunks in the order 0 1 0 1 of stages have three boundaries. A
  // micro-batch of 8 x 1,024 tokens is 8 x 1,024 x 768 numbers of two bytes, 12.58 MB; eight of them go there and back.
  const auto sent = [](const char* interleave) {
    const BuiltStep built(load_scenario_text(R"(
cluster: { node: pcie-switch-16gbps-x4, nodes: 1, gpus_per_node: 2 }
workload:
  train: { model: gpt2, global_batch: 64, micro_batch: 8, precision: bf16, optimizer: adamw }
plan: { pipeline: 2 }
)",
                                             "two.yaml", {std::string("plan.interleave=") + interleave}));
    Seconds all;
    for (const auto& [name, time] : uncontended_use(built.step).communication) {
      if (name != "waiting for other ranks") all += time.total;
    }
    return std::pair{step_graph(built.step).transfers.size(), all.value()};
  };
  constexpr double message = 8.0 * 1024 * 768 * 2 / 16e9;
  const auto [plain, plain_time] = sent("1");
  CHECK(plain == 2 * 8);
  CHECK(plain_time == Approx(2 * 8 * message).epsilon(0.02));
  const auto [chunked, chunked_time] = sent("2");
  CHECK(chunked == 2 * 3 * 8);
  CHECK(chunked_time == Approx(2 * 3 * 8 * message).epsilon(0.02));
}
