// The time of offloading, from the bandwidths of the machine.
#include "model/training/pricing/offload.hpp"

#include "model/scenario/load/load.hpp"
#include "model/training/graph/pass_slices.hpp"
#include "model/training/pricing/layer_cost.hpp"
#include "tests/catch.hpp"
#include "tests/training/built_step.hpp"

using namespace foretrain;

namespace {

struct Built : test::BuiltStep {
  explicit Built(const std::vector<std::string>& overrides)
      : BuiltStep(load_scenario("fit-offload-optimizer", overrides)), parameters(model.parameters) {}
  [[nodiscard]] const Step::RankClass& stage() const { return step.rank_classes.front(); }
  [[nodiscard]] Seconds passes() const {
    return stage().chunks.front().passes[PassKind::forward].time.total() +
           stage().chunks.front().passes[PassKind::backward].time.total();
  }
  double parameters;
};

}  // namespace

TEST_CASE("GPUs share the links to their host's memory") {
  // DGX A100: two GPUs behind a PCIe switch with one link to the socket; alone a GPU has the link to itself.
  const Topology eight(load_scenario("fit-zero-2").cluster);
  const Topology one(load_scenario("fit-memory-7b").cluster);
  const Route route = one.route(one.host_of_gpu(0), one.gpu(0));
  CHECK(offload_bandwidth(one).value() == Approx(route.bandwidth.value()));
  CHECK(offload_bandwidth(eight).value() == Approx(route.bandwidth.value() / 2));
}

TEST_CASE("an offloaded update is as fast as the host's memory") {
  // AdamW in fp16, per parameter: gradient of 4 bytes, weight of 4 and moments of 8 read, weight and moments written:
  // 28; gradients scaled, 8; weights shortened, 4 read, 2 fetched and 2 written: 44 bytes. One process has one of two
  // sockets, 409.6 GB/s * 0.8 / 2 = 164 GB/s; half of its threads reach it over the link between them, 70 GB/s: 140
  // GB/s.
  const Built offloaded({});
  CHECK(offloaded.stage().optimizer.compute.value() == Approx(offloaded.parameters * 44 / 140e9).epsilon(0.005));
  // In bf16 without clipping nothing is scaled.
  const Built unclipped({"workload.train.clip_gradients=false", "workload.train.precision=bf16"});
  CHECK(unclipped.stage().optimizer.compute.value() == Approx(unclipped.parameters * 36 / 140e9).epsilon(0.005));
  // Gradients leave in fp32, 28 GB, beside the backward pass; weights come back behind the update, 14 GB.
  const Seconds each = Bytes(2 * offloaded.parameters) / offload_bandwidth(offloaded.topology);
  const Seconds backward = offloaded.stage().chunks.front().passes[PassKind::backward].time.total();
  const double sticks_out = std::max((2.0 * each - backward).value(), 0.0);
  CHECK(offloaded.stage().optimizer.communication().value() == Approx(sticks_out + each.value()).epsilon(1e-6));
  // Thirty-two samples hide the copy of gradients altogether.
  const Built hidden({"workload.train.global_batch=32", "workload.train.micro_batch=32"});
  CHECK(hidden.stage().optimizer.communication().value() == Approx(each.value()));
  CHECK(hidden.stage().optimizer.hidden_copies.value() == Approx(2.0 * each.value()));
  // Eight processes share both sockets: a quarter of their bytes cross each way, 4 * 70 = 280 GB/s, 35 for each.
  const Built eight({"cluster.gpus_per_node=8", "workload.train.global_batch=8", "plan.zero=2"});
  CHECK(eight.stage().optimizer.compute.value() == Approx(eight.parameters / 8 * 44 / 35e9).epsilon(0.001));
  // Tensors that are updated one by one pass through memory three times as often: 3 * 28 + 16 bytes.
  const Built unfused({"workload.train.fused_optimizer=false"});
  CHECK(unfused.stage().optimizer.compute.value() == Approx(unfused.parameters * 100 / 140e9).epsilon(0.005));
}

TEST_CASE("one thread and pageable memory make an offloaded update wait") {
  // A thread streams 8 GB/s. The driver's copies take it three times as many bytes on the way out, twice on the way in.
  const Built slow({"plan.pinned_offload=false", "plan.host_threads=1"});
  const double n = slow.parameters;
  CHECK(slow.stage().optimizer.compute.value() == Approx(n * 44 / 8e9).epsilon(0.005));
  CHECK(slow.stage().optimizer.exposed_copies.value() == Approx(n * 4 * 3 / 8e9 + n * 2 * 2 / 8e9).epsilon(0.005));
  // Of two micro-batches the first one's gradients are fetched again, added to, and copied back.
  const Built two({"plan.pinned_offload=false", "plan.host_threads=1", "workload.train.global_batch=2"});
  CHECK((two.stage().optimizer.exposed_copies - slow.stage().optimizer.exposed_copies).value() ==
        Approx(n * (2 * 2 * 3 + 2 * 2) / 8e9).epsilon(0.005));
  // Weights that a pass waits for: nothing hides.
  const Built streamed({"plan.pinned_offload=false", "plan.offload=parameters"});
  const TimeBreakdown forward = streamed.stage().chunks.front().passes[PassKind::forward].time;
  CHECK(forward.hidden_copies == Seconds(0.0));
  CHECK(forward.exposed_copies.value() == Approx(n * 2 * 2 / 8e9).epsilon(0.05));
  // Updated weights go back to the host.
  CHECK(streamed.stage().optimizer.exposed_copies.value() == Approx(n * 2 * 3 / 8e9).epsilon(0.005));
}

TEST_CASE("states on disks are read and written in each step") {
  // 12 bytes of weight and moments each way and the gradient's 4 beside the update, 4 behind the backward pass: 32
  // bytes of each parameter at the disks' rate.
  const Built disks({"plan.offload_to=disks"});
  CHECK(disks.stage().optimizer.compute.value() ==
        Approx(disks.parameters * 32 / disks.scenario.cluster.node.storage.read_bandwidth.value()).epsilon(0.005));
}

TEST_CASE("weights in host memory cross the bus twice a pass") {
  // A layer's 428 MB take 17 ms over PCIe 4, its kernels for one sample 6 ms forward: the copy sets the pace.
  const Built resident({"plan.offload=none"});
  const Built streamed({"plan.offload=parameters"});
  const Seconds copy = Bytes(2 * streamed.parameters) / offload_bandwidth(streamed.topology);
  CHECK(streamed.stage().chunks.front().passes[PassKind::forward].time.total().value() ==
        Approx(copy.value()).epsilon(0.05));
  CHECK(resident.passes() < streamed.passes());
  // Exposed and hidden copies are all copies, both ways.
  for (const PassKind kind : {PassKind::forward, PassKind::backward}) {
    const TimeBreakdown time = streamed.stage().chunks.front().passes[kind].time;
    CHECK((time.exposed_copies + time.hidden_copies).value() == Approx(copy.value()).epsilon(0.05));
  }
  // Recomputed kernels hide copies as the backward pass' own do: as long as the forward pass, but for its last product.
  const Built kept({"plan.offload=parameters", "workload.train.recompute=none"});
  const Seconds less = kept.stage().chunks.front().passes[PassKind::backward].time.exposed_copies -
                       streamed.stage().chunks.front().passes[PassKind::backward].time.exposed_copies;
  CHECK(less.value() ==
        Approx(resident.stage().chunks.front().passes[PassKind::forward].time.compute.value()).epsilon(0.2));
  // If kernels take longer than the copies nothing is added.
  const std::vector<std::string> many = {"workload.train.global_batch=32", "workload.train.micro_batch=32"};
  CHECK(Built(test::with(many, "plan.offload=parameters")).passes().value() ==
        Approx(Built(test::with(many, "plan.offload=none")).passes().value()).epsilon(0.01));
}

TEST_CASE("a pass that is cut into slices waits for its copies as a whole one does") {
  // 2 s of kernels, 0.5 s of collectives, which are transfers of their own, 0.3 s of copies that stick out, 0.1 s of
  // dispatch: the slices hold 2 + 0.3 + 0.1 s.
  const PassCost pass{{{Seconds(0.5), {}, Seconds(0.3), {}, Seconds(0.1)}, Seconds(2.0)},
                      {{{}, Seconds(1.0), std::make_shared<LayerCalls>(LayerCalls{{{}, {0}}, {}, {}})}}};
  Seconds sum;
  for (const PassSlice& slice : slices_of(pass)) sum += slice.work;
  CHECK(sum.value() == Approx(2.4));
  // A layer says which part of what it waits for are copies.
  const Built streamed({"plan.offload=parameters"});
  const TimeBreakdown forward = streamed.stage().chunks.front().passes[PassKind::forward].time;
  CHECK(forward.exposed_copies > Seconds(0.0));
  CHECK(forward.exposed_copies.value() == Approx(forward.communication().value()));  // one GPU: no collectives
}
