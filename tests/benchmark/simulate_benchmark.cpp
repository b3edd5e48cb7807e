// How fast the simulator is: `build/tests/benchmark_sim`. Not a test: it asserts nothing.

#include <benchmark/benchmark.h>

#include "sim/executor.hpp"
#include "tests/sim/graphs.hpp"

using namespace foretrain;
using namespace foretrain::test_graphs;

namespace {

std::vector<EndpointId> gpus(int first, int count, int stride = 1) {
  std::vector<EndpointId> ranks;
  for (int i = 0; i < count; ++i) ranks.push_back(first + i * stride);
  return ranks;
}

Topology cluster(int nodes) { return Topology(test_nodes::cluster_of(test_nodes::nvswitch_node(), nodes)); }

/// `buckets` ring all-reduces over all GPUs, one after the other.
TaskGraph buckets_in_turn(const Topology& topology, int buckets) {
  GraphMaker make(topology);
  const ResourceId stream = make.stream();
  const BlockId bucket = make.communication_block(ring(gpus(0, topology.gpus()), 25.0_MB, 5.0_us));
  for (int i = 0; i < buckets; ++i) make.repeat(stream, bucket);
  return make.graph();
}

/// The same on two streams whose buckets meet on every link.
TaskGraph buckets_in_contention(const Topology& topology, int buckets) {
  GraphMaker make(topology);
  const BlockId bucket = make.communication_block(ring(gpus(0, topology.gpus()), 25.0_MB, 5.0_us));
  for (const ResourceId stream : {make.stream(), make.stream()}) {
    for (int i = 0; i < buckets / 2; ++i) make.repeat(stream, bucket);
  }
  return make.graph();
}

/// Eight pipeline stages of 128 GPUs: `micro_batches` forward and backward passes with transfers between stages on
/// streams of their own, then every stage's gradients in 64 rings of 16.
TaskGraph pipeline(const Topology& topology, int micro_batches) {
  constexpr int stages = 8;
  const int width = topology.gpus() / stages;
  GraphMaker make(topology);
  std::vector<ResourceId> compute, send;
  std::vector<BlockId> forward_send, backward_send, gradients;
  for (int stage = 0; stage < stages; ++stage) {
    compute.push_back(make.stream());
    send.push_back(make.stream());
    LoweredCollective next = flows_at_once(10.0_us, {}), previous = flows_at_once(10.0_us, {}), reduce{"ring", {{}}};
    for (int rank = 0; rank < width; ++rank) {
      const EndpointId here = stage * width + rank;
      if (stage + 1 < stages) next.phases[0].flows.push_back({here, here + width, 6.0_MB});
      if (stage > 0) previous.phases[0].flows.push_back({here, here - width, 6.0_MB});
    }
    for (int group = 0; group < 8; ++group) {
      const LoweredCollective one = ring(gpus(stage * width + group, width / 8, 8), 5.0_GB, 10.0_us);
      reduce.phases[0].latency = one.phases[0].latency;
      reduce.phases[0].repeat = one.phases[0].repeat;
      for (const Flow& flow : one.phases[0].flows) reduce.phases[0].flows.push_back(flow);
    }
    forward_send.push_back(make.communication_block(next));
    backward_send.push_back(make.communication_block(previous));
    gradients.push_back(make.communication_block(reduce));
  }
  std::vector<std::vector<TaskId>> arrived(stages);
  const auto after = [&](int stage, int batch) {
    return stage < 0 || stage >= stages
               ? std::vector<TaskId>{}
               : std::vector<TaskId>{arrived[static_cast<std::size_t>(stage)][static_cast<std::size_t>(batch)]};
  };
  for (int stage = 0; stage < stages; ++stage) {
    for (int batch = 0; batch < micro_batches; ++batch) {
      const auto s = static_cast<std::size_t>(stage);
      const TaskId pass = make.compute(compute[s], 20.0_ms, after(stage - 1, batch));
      arrived[s].push_back(make.repeat(send[s], forward_send[s], {pass}));
    }
  }
  for (auto& stage : arrived) stage.clear();
  for (int stage = stages - 1; stage >= 0; --stage) {
    const auto s = static_cast<std::size_t>(stage);
    for (int batch = 0; batch < micro_batches; ++batch) {
      const TaskId pass = make.compute(compute[s], 40.0_ms, after(stage + 1, batch));
      arrived[s].push_back(make.repeat(send[s], backward_send[s], {pass}));
    }
    make.repeat(send[s], gradients[s], after(stage, micro_batches - 1));
  }
  return make.graph();
}

/// A million tasks in a chain per stream, every tenth a transfer to a neighbour.
TaskGraph million_tasks(const Topology& topology) {
  GraphMaker make(topology);
  std::vector<BlockId> transfers;
  for (int rank = 0; rank < 8; ++rank) {
    transfers.push_back(make.communication_block(flows_at_once(1.0_us, {{rank, (rank + 1) % 8, 1.0_MB}})));
  }
  const BlockId work = make.compute_block(10.0_us);
  std::vector<ResourceId> streams;
  for (int i = 0; i < 64; ++i) streams.push_back(make.stream());
  for (std::size_t task = 0; task < 1'000'000; ++task) {
    const bool transfer = task / streams.size() % 10 == 0;
    make.repeat(streams[task % streams.size()], transfer ? transfers[task % transfers.size()] : work);
  }
  return make.graph();
}

void run(benchmark::State& state, const TaskGraph& graph, const Topology& topology, Fidelity fidelity) {
  for (auto _ : state) benchmark::DoNotOptimize(simulate(graph, topology, fidelity).makespan);
  state.counters["tasks"] = static_cast<double>(graph.tasks().size());
}

void ring_in_turn(benchmark::State& state) {
  const Topology topology = cluster(128);
  run(state, buckets_in_turn(topology, 100), topology, Fidelity::flows);
}
void ring_in_contention(benchmark::State& state) {
  const Topology topology = cluster(128);
  run(state, buckets_in_contention(topology, 100), topology, Fidelity::flows);
}
void ring_steps(benchmark::State& state) {
  const Topology topology = cluster(16);
  run(state, buckets_in_turn(topology, 10), topology, Fidelity::steps);
}
void gpt3_pipeline(benchmark::State& state) {
  const Topology topology = cluster(128);
  run(state, pipeline(topology, 96), topology, Fidelity::flows);
}
void many_tasks(benchmark::State& state) {
  const Topology topology = cluster(1);
  run(state, million_tasks(topology), topology, Fidelity::flows);
}

BENCHMARK(ring_in_turn)->Unit(benchmark::kMillisecond);
BENCHMARK(ring_in_contention)->Unit(benchmark::kMillisecond);
BENCHMARK(ring_steps)->Unit(benchmark::kMillisecond);
BENCHMARK(gpt3_pipeline)->Unit(benchmark::kMillisecond);
BENCHMARK(many_tasks)->Unit(benchmark::kMillisecond);

}  // namespace

BENCHMARK_MAIN();
