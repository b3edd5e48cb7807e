// A step's memory moment by moment.
#include "tests/catch.hpp"
#include "tests/memory/footprint.hpp"

using namespace foretrain;
using foretrain::test::Training;
using P = MemoryPart;

namespace {

const MemoryTimeline::Moment& peak_of(const MemoryTimeline& timeline) { return timeline.moments[timeline.peak]; }

/// All parameters of a model that was trained are held as they are.
void freeze(Model& model) {
  for (LayerGroup& group : model.layers) {
    group.layer.frozen_parameters = group.layer.parameters;
    group.layer.parameters = 0.0;
    group.layer.matrices.clear();
  }
}

}  // namespace

TEST_CASE("the timeline's fullest moment is the footprint") {
  // Both walk the same account: the footprint looks at the fullest pass of each kind, the timeline at all.
  const std::vector<std::pair<const char*, std::vector<std::string>>> cases = {
      {"gpt3-175b-1024-a100", {}},
      {"gpt3-175b-1024-a100", {"plan.interleave=3", "workload.train.recompute=none"}},
      {"gpt3-175b-1024-a100", {"plan.zero=3", "workload.train.recompute=selective"}},
      {"fit-memory-7b", {}},
      {"fit-zero-3", {}},
      {"fit-fsdp-llama3-8b", {}},
      {"fit-offload-optimizer", {"plan.offload=[optimizer, activations]"}},
      {"resnet-50-dgx1-v100", {}}};
  for (const auto& [name, overrides] : cases) {
    INFO(name);
    const Training training(name, overrides);
    const MemoryFootprint footprint = training.footprint();
    const MemoryTimeline timeline = training.timeline();
    CHECK(peak_of(timeline).parts.total().value() == Approx(footprint.total().value()).epsilon(1e-12));
    CHECK(peak_of(timeline).parts[P::activations].value() == Approx(footprint.activations.value()).epsilon(1e-12));
    CHECK(timeline.capacity == footprint.capacity);
  }
}

TEST_CASE("activations rise layer by layer, and fall as gradients come back") {
  const Training training("fit-zero-2");
  const MemoryTimeline timeline = training.timeline();
  // 34 layers: embedding, 32 blocks, head; one pass forward and its loss, one backward, the optimizer.
  REQUIRE(timeline.moments.size() == 34 + 1 + 34 + 1);
  const Bytes block = training.model.layers[1].layer.kept();
  const auto kept = [&](std::size_t i) { return timeline.moments[i].parts[P::activations]; };
  CHECK((kept(2) - kept(1)).value() == Approx(block.value()));
  CHECK((kept(32) - kept(1)).value() == Approx(31 * block.value()));
  // Moment 34 is the loss, 35 the head's backward pass, 36 that of block 32.
  CHECK(timeline.moments[34].phase == MemoryTimeline::Phase::loss);
  CHECK(timeline.moments[36].layer == 32);
  CHECK((kept(36) - kept(37)).value() == Approx(block.value()));
  // After the backward pass weights, gradients, states and buffers are left.
  const MemoryParts& last = timeline.moments.back().parts;
  CHECK(last[P::activations].value() == 0.0);
  CHECK(last[P::weights] == timeline.moments.front().parts[P::weights]);
}

TEST_CASE("the first stage of a pipeline holds as many micro-batches as there are stages") {
  // 1F1B (arXiv 2104.04473, section 2.2): 8 stages, so 8 of 96 micro-batches with 12 layers' inputs each.
  const Training training("gpt3-175b-1024-a100", {"plan.sequence_parallel=false"});
  const MemoryTimeline timeline = training.timeline();
  CHECK(timeline.stage == 0);
  CHECK(timeline.micro_batches == 96);
  CHECK(timeline.shown == 24);  // filling, one round, emptying
  const double input = 2048.0 * 12288 * 2;
  const double mask = 2048.0 * 12288;  // the embedding's dropout
  CHECK(peak_of(timeline).parts[P::activations].value() == Approx(8 * (12 * input + mask)));
  // Recomputing one layer brings back all that it would have kept.
  const Layer& block = training.model.layers[1].layer;
  CHECK(peak_of(timeline).parts[P::recomputed] == block.kept() - block.kept(Recompute::full));
}

TEST_CASE("FSDP is fullest at the loss, which finds no free segment") {
  const MemoryTimeline timeline = Training("fit-fsdp-llama3-8b").timeline();
  const MemoryTimeline::Moment& peak = peak_of(timeline);
  CHECK(peak.phase == MemoryTimeline::Phase::loss);
  // 16384 tokens x 128256 words: 2 bytes of logits, 4 of log-probabilities, 4 + 4 of gradients.
  CHECK(peak.parts[P::loss].value() == Approx(16384.0 * 128256 * 14));
  // fp32 weights, gradients and two moments of 8.03 billion parameters over 8 ranks: 16 bytes each.
  const Bytes states = peak.parts[P::weights] + peak.parts[P::gradients] + peak.parts[P::optimizer];
  CHECK(states.value() == Approx(8.03026e9 * 16 / 8).epsilon(1e-5));
  // Embedding, norm and output stay gathered (1.05 billion), and two blocks of 218 million are.
  CHECK(peak.parts[P::gathered].value() == Approx(2 * (2.0 * 128256 * 4096 + 4096)));
}

TEST_CASE("frozen weights are gathered like those that are trained") {
  Training training("fit-fsdp-llama3-8b");
  freeze(training.model);
  const MemoryTimeline timeline = training.timeline();
  const MemoryParts& last_block = timeline.moments[32].parts;
  // Embedding, output and norm, 2 bytes each, and two blocks of 4096 · (2 · 4096 + 2 · 1024 + 3 · 14336) and two norms.
  const double root = 2.0 * 128256 * 4096 + 4096;
  const double block = 4096.0 * (2 * 4096 + 2 * 1024 + 3 * 14336) + 2 * 4096;
  CHECK(last_block[P::gathered].value() == Approx(2 * (root + 2 * block)));
  // The stream of the gathers has memory of its own, for two blocks or for the larger rest.
  CHECK(last_block[P::communication].value() == Approx(2 * root));
  // Kept gathered through the step, they are a whole replica.
  Training kept("fit-fsdp-llama3-8b", {"plan.reshard_after_forward=false"});
  freeze(kept.model);
  const MemoryTimeline whole = kept.timeline();
  CHECK(whole.moments[32].parts[P::gathered].value() == Approx(2 * (root + 32 * block)));
}

TEST_CASE("weights of experts lie whole on ranks that alone have them, in segments of whole tensors") {
  // 64 ranks, two of 128 experts on each: no other rank has these, so that ZeRO-1 divides nothing of them. In each of
  // 48 layers a matrix of 2048 · 1408: gradient, two moments and the master copy are tensors of 11 MiB, in segments of
  // 12 MiB each. Weights of 5.5 MiB go three by three into 16 segments of 20 MiB.
  const Scenario scenario = load_scenario_text(
      "cluster: { node: dgx-h100, nodes: 8 }\n"
      "workload: { train: { model: qwen3-30b-a3b, global_batch: 64, precision: bf16, optimizer: adam } }\n"
      "plan: { data: 64, zero: 1, expert: 64 }\n",
      "experts.yaml");
  const auto& train = std::get<TrainWorkload>(scenario.workload);
  Model model = build_model(train.model, build_options(train, scenario.plan));
  const auto slack = [&] { return memory_timeline(scenario, train, model).moments.front().parts[P::allocator]; };
  for (LayerGroup& group : model.layers) group.layer.matrices.clear();
  const Bytes without = slack();
  for (LayerGroup& group : model.layers) {
    if (group.repeat == 48) group.layer.matrices = {{2048, 1408, 1, true}};
  }
  CHECK((slack() - without).value() == Approx((48 * 4 * 1.0 + 16 * 20 - 48 * 5.5) * 1048576));
}

TEST_CASE("activations that are offloaded lie in the host's memory, as many as the GPUs kept") {
  const Training kept("fit-offload-optimizer"),
      offloaded("fit-offload-optimizer", {"plan.offload=[optimizer, activations]"});
  // One GPU: what it keeps at its peak, and the loss's log-probabilities of 2048 tokens and 32,000 words in fp32.
  REQUIRE(kept.scenario.cluster.gpus_per_node == 1);
  CHECK((offloaded.footprint().host - kept.footprint().host).value() ==
        Approx(kept.footprint().activations.value() + 4.0 * 2048 * 32000));
}
