// How fast the simulator is: `build/tests/benchmark_sim`. Not a test: it asserts nothing. plot_scaling draws its cost
// over the number of ranks. peak_MB is the process's own and grows from one benchmark to the next.

#include <benchmark/benchmark.h>
#include <sys/resource.h>

#include "model/collectives/contention.hpp"
#include "model/scenario/hardware/calibration_reader.hpp"
#include "model/scenario/load/load.hpp"
#include "sim/simulate.hpp"
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

/// Tasks in a chain per stream, every tenth a transfer to a neighbour.
TaskGraph chains(const Topology& topology, std::size_t tasks) {
  GraphMaker make(topology);
  std::vector<BlockId> transfers;
  for (int rank = 0; rank < 8; ++rank) {
    transfers.push_back(make.communication_block(flows_at_once(1.0_us, {{rank, (rank + 1) % 8, 1.0_MB}})));
  }
  const BlockId work = make.compute_block(10.0_us);
  std::vector<ResourceId> streams;
  for (int i = 0; i < 64; ++i) streams.push_back(make.stream());
  for (std::size_t task = 0; task < tasks; ++task) {
    const bool transfer = task / streams.size() % 10 == 0;
    make.repeat(streams[task % streams.size()], transfer ? transfers[task % transfers.size()] : work);
  }
  return make.graph();
}

/// The largest memory that this process, or a simulation that it started, has ever had.
double peak_megabytes() {
  double peak = 0.0;
  for (const int who : {RUSAGE_SELF, RUSAGE_CHILDREN}) {
    rusage usage{};
    getrusage(who, &usage);
    peak = std::max(peak, static_cast<double>(usage.ru_maxrss) * 1024.0 / 1e6);
  }
  return peak;
}

void run(benchmark::State& state, const TaskGraph& graph, const Topology& topology, Fidelity fidelity,
         const std::vector<BackgroundFlow>& background = {}, bool folding = true) {
  for (auto _ : state) benchmark::DoNotOptimize(simulate(graph, topology, fidelity, background, folding).makespan);
  state.counters["tasks"] = static_cast<double>(graph.tasks().size());
  state.counters["peak_MB"] = peak_megabytes();
}

/// A collective over all GPUs, from the call to its simulated time.
void lower_and_simulate(benchmark::State& state, const Topology& topology, CollectiveOperation operation,
                        SyncAlgorithm algorithm, const std::vector<BackgroundFlow>& background = {}) {
  const Calibration calibration = load_default_calibration();
  CollectiveCall call;
  call.operation = operation;
  call.algorithm = algorithm;
  call.size = 1.0_GB;
  call.groups = {gpus(0, topology.gpus())};
  for (auto _ : state) {
    const LoweredCollective lowered = lower(call, topology, calibration);
    GraphMaker make(topology);
    const Seconds uncontended = uncontended_time(lowered, topology, background);
    benchmark::DoNotOptimize(uncontended);
    make.repeat(make.stream(), make.communication_block(lowered, uncontended));
    benchmark::DoNotOptimize(simulate(make.graph(), topology, Fidelity::flows, background).makespan);
  }
  state.counters["ranks"] = topology.gpus();
  state.counters["peak_MB"] = peak_megabytes();
}

const std::vector<BackgroundFlow> stranger = {
    {{BackgroundFlow::Place::Kind::gpu, 0, 0}, {BackgroundFlow::Place::Kind::gpu, 9, 0}, 5.0_GBps, {}}};

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
  run(state, chains(topology, static_cast<std::size_t>(state.range(0))), topology, Fidelity::flows);
}

Topology cluster_of_ranks(const benchmark::State& state) { return cluster(static_cast<int>(state.range(0)) / 8); }

// How the cost grows with the ranks: plot_scaling draws these.
void ring_alone(benchmark::State& state) {
  lower_and_simulate(state, cluster_of_ranks(state), CollectiveOperation::all_reduce, SyncAlgorithm::ring);
  state.SetComplexityN(state.range(0));
}
void two_levels_alone(benchmark::State& state) {
  lower_and_simulate(state, cluster_of_ranks(state), CollectiveOperation::all_reduce, SyncAlgorithm::hierarchical);
  state.SetComplexityN(state.range(0));
}
void two_levels_contended(benchmark::State& state) {
  lower_and_simulate(state, cluster_of_ranks(state), CollectiveOperation::all_reduce, SyncAlgorithm::hierarchical,
                     stranger);
  state.SetComplexityN(state.range(0));
}

void all_to_all(benchmark::State& state) {
  lower_and_simulate(state, cluster(64), CollectiveOperation::all_to_all, SyncAlgorithm::ring);
}
void all_to_all_contended(benchmark::State& state) {
  lower_and_simulate(state, cluster(64), CollectiveOperation::all_to_all, SyncAlgorithm::ring, stranger);
}

/// DeepSeek-V3 on 2,048 GPUs, whose ranks a slow part tells apart; at most five seconds.
void mixture_of_experts(benchmark::State& state, const char* dispatch, const char* change) {
  const std::vector<std::string> overrides = {std::string("plan.expert_dispatch=") + dispatch, change};
  const Scenario scenario = load_scenario("deepseek-v3-2048-h100", overrides);
  for (auto _ : state) benchmark::DoNotOptimize(predict(scenario, Fidelity::flows).time());
  state.counters["peak_MB"] = peak_megabytes();
}

void scaling(benchmark::internal::Benchmark* benchmark) {
  benchmark->RangeMultiplier(2)->Range(64, 16384)->Complexity(benchmark::oNLogN)->Unit(benchmark::kMillisecond);
}

BENCHMARK(ring_in_turn)->Unit(benchmark::kMillisecond);
BENCHMARK(ring_in_contention)->Unit(benchmark::kMillisecond);
BENCHMARK(ring_steps)->Unit(benchmark::kMillisecond);
BENCHMARK(gpt3_pipeline)->Unit(benchmark::kMillisecond);
BENCHMARK(all_to_all)->Unit(benchmark::kMillisecond);
BENCHMARK(all_to_all_contended)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(mixture_of_experts, rails, "forwarded",
                  "cluster.network.fabric={ kind: fat_tree, nodes_per_leaf: 32, oversubscription: 2, rails: true }")
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(mixture_of_experts, slow_card, "all_to_all",
                  "cluster.faults=[{ node: 37, card: 2, bandwidth: 50 % }]")
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(mixture_of_experts, slow_gpus, "all_to_all",
                  "cluster.faults=[{ node: 37, gpu: 3, speed: 80 % }, { node: 90, gpu: 5, speed: 90 % }]")
    ->Unit(benchmark::kMillisecond);
BENCHMARK(ring_alone)->Apply(scaling);
BENCHMARK(two_levels_alone)->Apply(scaling);
BENCHMARK(two_levels_contended)->Apply(scaling);
BENCHMARK(many_tasks)->Arg(1'000'000)->Arg(4'000'000)->Unit(benchmark::kMillisecond);

}  // namespace

BENCHMARK_MAIN();
