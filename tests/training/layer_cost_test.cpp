// Kernels that recomputation and sharded layers add to a layer.
#include "model/training/pricing/layer_cost.hpp"

#include "model/base/spread.hpp"
#include "model/job/job.hpp"
#include "model/scenario/load/load.hpp"
#include "tests/catch.hpp"
#include "tests/training/built_step.hpp"

using namespace foretrain;

namespace {

const char* const mpt = R"(
cluster: { node: dgx-a100-80gb, nodes: 1 }
workload:
  train:
    model: { family: mpt, layers: 4, hidden: 2048, heads: 16, vocabulary: 50368, sequence: 2048 }
    global_batch: 32
    micro_batch: 4
)";

struct Priced : test::BuiltStep {
  explicit Priced(const std::vector<std::string>& overrides)
      : BuiltStep(load_scenario_text(mpt, "mpt.yaml", overrides)),
        pricer(scenario, train()),
        block(model.layers[1].layer) {}
  LayerPricer pricer;
  const Layer& block;
};

/// The usual stretch of kernels, on the slowest of the GPUs.
double kernel_slowdown_of(const Priced& p) {
  const StepConstants& step = p.scenario.calibration.step;
  return step.kernel_stretch * (1.0 + step.device_spread * expected_largest(p.topology.gpus()));
}

}  // namespace

TEST_CASE("Megatron-LM runs a whole layer again, PyTorch's checkpoint stops before the last product") {
  for (const std::string trainer : {"megatron", "fsdp", "ddp"}) {
    Priced p({"workload.train.recompute=full", "workload.train.kernels=fused",
              "plan.sync.separate_bucket_buffers=false", "plan.framework=" + trainer});
    const LayerCost cost = p.pricer.price(p.block);
    std::vector<Operator> again = p.block.forward;
    if (trainer != "megatron") again.resize(again.size() - 2);  // "ffn down" and "ffn residual"
    CHECK(cost.recompute.kernels.value() == Approx(p.pricer.kernels(again).value()));
  }
}

TEST_CASE("deterministic kernels fill their results first") {
  // A layer's ten results, each of two bytes, in hidden widths a token: norms 1 + 1, QKV 3, attention 1, its projection
  // 1, feed-forward 4 + 4 + 1, residual sums 1 + 1.
  const std::string megatron = "plan.framework=megatron";
  const Priced p({megatron}), filled({megatron, "workload.train.deterministic=true"});
  const Calibration& c = p.scenario.calibration;
  const BytesPerSecond memory = p.scenario.cluster.node.gpu.memory_bandwidth * c.streaming.bandwidth_efficiency;
  const Seconds starts = Seconds((c.streaming.kernel_us + c.host.launch_gap_us) * 1e-6) * 10.0;
  const Seconds fills = (Bytes(2.0 * 18.0 * 4.0 * 2048.0 * 2048.0) / memory + starts) * kernel_slowdown_of(p);
  const LayerCost with = filled.pricer.price(filled.block), without = p.pricer.price(p.block);
  CHECK((with.forward.kernels - without.forward.kernels).value() == Approx(fills.value()).epsilon(0.01));
  CHECK(with.forward.dispatch > without.forward.dispatch);
}

TEST_CASE("a sharded layer concatenates and divides its gradients: eight bytes per parameter in each backward pass") {
  // bf16 gradients of the unit, whole on every GPU: read and written twice, beside the layer's own backward kernels and
  // what the transfers beside them cost.
  const Priced p({"plan.zero=3", "plan.sync.separate_bucket_buffers=true"});
  const ShardedUnit& unit = p.step.rank_classes[0].chunks[0].units[1];
  const Seconds own = p.pricer.price(p.block).whole_backward().time_breakdown().compute;
  const auto time = [&](int transfer) {
    return p.step.transfers[static_cast<std::size_t>(transfer)].parts.front().uncontended;
  };
  const Seconds slowed =
      (time(unit.gather_backward) + time(unit.scatter)) * p.scenario.calibration.collective.overlap_slowdown;
  const BytesPerSecond memory =
      p.scenario.cluster.node.gpu.memory_bandwidth * p.scenario.calibration.streaming.bandwidth_efficiency;
  const Seconds copies = Bytes(8.0 * p.block.parameters) / memory * kernel_slowdown_of(p);
  // 6 % for the kernels' start and for what the L2 still holds.
  CHECK((unit.backward.time.compute - own - slowed).value() == Approx(copies.value()).epsilon(0.06));
}

TEST_CASE("FSDP2 copies a layer's weights out of the gathered buffer before each pass") {
  // Two bytes read and two written per parameter, once forward and once backward, beside the layer's own kernels.
  const Priced p({"plan.zero=3", "plan.sync.separate_bucket_buffers=true"});
  const BytesPerSecond memory =
      p.scenario.cluster.node.gpu.memory_bandwidth * p.scenario.calibration.streaming.bandwidth_efficiency;
  const double copies = (Bytes(4.0 * p.block.parameters) / memory).value() * kernel_slowdown_of(p);
  const LayerCost cost = p.pricer.price(p.block);
  // 10 % for the kernels' start and for what the L2 still holds.
  CHECK((cost.forward.kernels - p.pricer.kernels(p.block.forward)).value() == Approx(copies).epsilon(0.10));
  CHECK((cost.backward.kernels - p.pricer.kernels(p.block.backward)).value() == Approx(copies).epsilon(0.10));
  // Weights that are not trained are gathered and copied as well.
  Layer frozen = p.block;
  frozen.frozen_parameters = p.block.parameters;
  const Seconds twice = p.pricer.price(frozen).forward.kernels - p.pricer.kernels(p.block.forward);
  CHECK(twice.value() == Approx(2.0 * copies).epsilon(0.10));
  const Priced whole({"plan.zero=3"});
  CHECK(whole.pricer.price(whole.block).forward.kernels.value() ==
        Approx(whole.pricer.kernels(whole.block.forward).value()));
}

TEST_CASE("Around each launch of a layer that routes tokens eager code takes what it does beside the launch") {
  Priced p({"plan.execution=eager"});
  Layer routing = p.block;
  routing.routes_tokens = true;
  int kernels = 0;
  for (const Operator& op : p.block.forward) kernels += op.kernels;
  const HostConstants& host = p.scenario.calibration.host;
  REQUIRE(host.expert_dispatch_us > host.dispatch_us);
  const Seconds longer = p.pricer.price(routing).forward.dispatch - p.pricer.price(p.block).forward.dispatch;
  CHECK(longer.value() == Approx(kernels * (host.expert_dispatch_us - host.dispatch_us) * 1e-6));
}

TEST_CASE("collectives inside a layer take host time as kernels do, unless they are nodes of a graph") {
  // Two launches more of 7 us; none as a node. Experts' exchanges are in no layer's partial graph.
  for (const std::string mode : {"execution=eager", "execution=cuda_graph", "graphed_parts=attention"}) {
    const Priced p(mode.starts_with("graphed")
                       ? std::vector<std::string>{"workload.train.model.experts=8", "plan." + mode}
                       : std::vector<std::string>{"plan." + mode});
    Layer exchanging = p.block;
    exchanging.forward_collectives.assign(
        2, {CollectiveOperation::all_reduce, LayerCollective::Group::tensor, Bytes(1e6)});
    const double longer =
        (p.pricer.price(exchanging).forward.dispatch - p.pricer.price(p.block).forward.dispatch).value();
    CHECK(longer * 1e6 ==
          Approx(mode == "execution=eager" ? 2.0 * p.scenario.calibration.host.dispatch_us : 0.0).margin(1e-9));
  }
}

TEST_CASE("Weights that stay whole after the forward pass are copied before that alone") {
  const Priced p({"plan.zero=3", "plan.sync.separate_bucket_buffers=true", "plan.reshard_after_forward=false"});
  const LayerCost cost = p.pricer.price(p.block);
  CHECK(cost.forward.kernels > p.pricer.kernels(p.block.forward));
  CHECK(cost.backward.kernels == p.pricer.kernels(p.block.backward));
}

TEST_CASE("micro-batches are added up by the bytes of their gradients and of the sum") {
  // Four micro-batches; bytes a parameter, mean of their passes. The first gradient of fp32 weights is the sum, three
  // later ones are read with it and written, 12 each: 9. Of bf16 alone half of that. Into an fp32 sum each gradient of
  // 2 is written as 4, later ones with the 4 before: 2 + 3 + 4. Clipped, the gradient is read twice and written once
  // more: 6. ZeRO-3 adds fp32 shards: an eighth of 9. Each of the four matrices and their vectors has a kernel of its
  // own, three where they are clipped.
  struct Row {
    std::vector<std::string> plan;
    double bytes;
    int kernels;
  };
  const std::string added = "plan.sync.accumulation=added", cast = "workload.train.cache_cast_weights=true";
  const Row rows[] = {{{added, cast}, 9.0, 8},
                      {{added, "plan.sync.gradient_precision=bf16"}, 4.5, 8},
                      {{added}, 9.0, 8},
                      {{"plan.sync.accumulation=clipped"}, 15.0, 24},
                      {{added, "plan.zero=3"}, 1.125, 8},
                      {{added, cast, "workload.train.global_batch=32"}, 0.0, 0},
                      {{cast}, 0.0, 0}};
  for (const Row& row : rows) {
    std::vector<std::string> overrides = {"workload.train.global_batch=128"};
    overrides.insert(overrides.end(), row.plan.begin(), row.plan.end());
    const Priced p(overrides);
    overrides.push_back("plan.sync.accumulation=fused");
    const Priced none(overrides);
    const BytesPerSecond memory =
        p.scenario.cluster.node.gpu.memory_bandwidth * p.scenario.calibration.streaming.bandwidth_efficiency;
    const Seconds starts(row.kernels * p.scenario.calibration.streaming.kernel_us * 1e-6);
    const Seconds sums = (Bytes(row.bytes * p.block.parameters) / memory + starts) * kernel_slowdown_of(p);
    const Seconds more = p.pricer.price(p.block).backward.kernels - none.pricer.price(none.block).backward.kernels;
    INFO(row.plan.front());
    CHECK(more.value() == Approx(sums.value()).epsilon(0.11).margin(1e-9));  // the L2 holds much of a shard
  }
}

TEST_CASE("an update written out operation by operation passes its tensors through memory at each") {
  // AdamW of fp32 weights: fused it reads 16 and writes 12 bytes a parameter, in eight operations 48 and 32.
  const auto update = [](const std::string& fused) {
    const Priced p({"workload.train.precision=fp32", "workload.train.clip_gradients=false",
                    "plan.sync.separate_bucket_buffers=false", "workload.train.fused_optimizer=" + fused});
    return p.step.rank_classes[0].optimizer.compute;
  };
  CHECK(update("false") / update("true") == Approx(80.0 / 28.0).epsilon(0.01));
}

TEST_CASE("a fused loss shortens the step by the traffic that it spares") {
  const Scenario eager = load_scenario("fit-fsdp-llama3-8b", {});
  const Scenario fused = load_scenario("fit-fsdp-llama3-8b", {"workload.train.loss=fused"});
  // A logit of 2 bytes, widened to 4: forward 2 + 4 + 4 read and 4 + 4 written, backward 4 + 8 + 4 read less the 4 that
  // the first kernel only writes, so 12 read and 4 + 4 + 2 written: 40 bytes. Fused: twice 2 read and 2 written, then 2
  // and 2: 10. There are 16,384 tokens and 128,256 of them for each.
  const double spared = 30.0 * 16384.0 * 128256.0;
  const StreamingConstants& constants = eager.calibration.streaming;
  const double rate = eager.cluster.node.gpu.memory_bandwidth.value() * constants.bandwidth_efficiency;
  const double shorter = estimate(eager).time().value() - estimate(fused).time().value();
  CHECK(shorter / (spared / rate * eager.calibration.step.kernel_stretch) == Approx(1.0).epsilon(0.05));
}
