#include "model/job/storage_traffic.hpp"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "model/base/number.hpp"
#include "model/cost/loader.hpp"
#include "model/hardware/storage.hpp"
#include "model/parallelism/layout.hpp"
#include "model/training/pricing/train_loader.hpp"

namespace foretrain {

namespace {

/// Predicts a scenario, estimated or simulated.
using Predict = std::function<Result(const Scenario&)>;

using Place = BackgroundFlow::Place;

bool crosses_cards(const Storage& storage) {
  return storage.exists() && storage.kind == StorageKind::network && storage.network == Storage::Network::shared;
}

const TrainWorkload* training_on_several_nodes(const Scenario& scenario) {
  const auto* train = std::get_if<TrainWorkload>(&scenario.workload);
  return train != nullptr && nodes_of(scenario.plan, scenario.cluster).size() > 1 ? train : nullptr;
}

/// Traffic on each machine by the NICs of each GPU, where `rate` is the machine's. `flow`: from the memory next to
/// a GPU, by the machine's place among those used and the GPU's on it.
template <typename FlowOf>
std::vector<BackgroundFlow> on_each_machine(const Scenario& scenario, BytesPerSecond rate, const FlowOf& flow_of) {
  std::vector<BackgroundFlow> flows;
  const std::vector<int> nodes = nodes_of(scenario.plan, scenario.cluster);
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const int gpus = scenario.cluster.gpus_on(nodes[i]);
    for (int gpu = 0; gpu < gpus; ++gpu) {
      BackgroundFlow flow = flow_of(nodes, i, gpu);
      flow.rate = rate / gpus;
      flows.push_back(flow);
    }
  }
  return flows;
}

Place memory_at(const Scenario& scenario, int node, int gpu) {
  const int there = gpu % scenario.cluster.gpus_on(node);
  return {Place::Kind::memory_of_gpu, scenario.cluster.first_gpu(node) + there, 0};
}

/// The bytes of the samples that a machine's processes read in a step.
Bytes read_in_a_step(const Scenario& scenario, const TrainWorkload& train, const DataLoader& loader) {
  const LoaderUse use = loader_use(scenario, train);
  const LoaderPipeline pipeline = loader_pipeline(loader, use, scenario.cluster.node, scenario.calibration);
  return loader.dataset->sample * (use.batch * use.processes * (1.0 - pipeline.hit_share));
}

std::vector<BackgroundFlow> writes_of(const Scenario& scenario, const Checkpoint& checkpoint, BytesPerSecond rate) {
  const bool into_memory = checkpoint.mode == Checkpoint::Mode::in_memory;
  return on_each_machine(scenario, rate, [&](const std::vector<int>& nodes, std::size_t i, int gpu) {
    const Place outside{Place::Kind::outside, gpu, 0};
    const Place next = memory_at(scenario, nodes[(i + 1) % nodes.size()], gpu);
    return BackgroundFlow{memory_at(scenario, nodes[i], gpu), into_memory ? next : outside, {}, {}};
  });
}

/// The scenario with its loader's reads from network storage as traffic beside training. Each machine reads its
/// samples, less those in the page cache, evenly over a step and over the NICs of its GPUs. The server is taken to hang
/// on the fabric where nobody else is in its way. Nothing where no sample comes over the cards.
std::optional<Scenario> with_loader_traffic(const Scenario& scenario, const Predict& predict) {
  const TrainWorkload* train = training_on_several_nodes(scenario);
  if (train == nullptr || !train->loader || !train->loader->dataset || !scenario.jobs.empty()) return std::nullopt;
  const DataLoader& loader = *train->loader;
  if (!crosses_cards(loader.storage.value_or(scenario.cluster.node.storage))) return std::nullopt;
  const Bytes read = read_in_a_step(scenario, *train, loader);
  if (!(read > Bytes(0.0))) return std::nullopt;
  Scenario beside = scenario;
  std::get<TrainWorkload>(beside.workload).checkpoint.reset();
  beside.cluster.failures.reset();
  const Seconds step = predict(beside).time();
  const auto reads = on_each_machine(scenario, read / step, [&](const std::vector<int>& nodes, std::size_t i, int gpu) {
    return BackgroundFlow{{Place::Kind::outside, gpu, 0}, memory_at(scenario, nodes[i], gpu), {}, {}};
  });
  beside = scenario;
  beside.background.insert(beside.background.end(), reads.begin(), reads.end());
  return beside;
}

/// Factor on a step while a checkpoint is on its way over those NICs: each machine's part at the rate at
/// which it is written, to a server or into the next machine's memory. 1 where it takes another way, or training waits.
double longer_beside_write(const Scenario& scenario, const Predict& predict) {
  const TrainWorkload* train = training_on_several_nodes(scenario);
  if (train == nullptr || !train->checkpoint || !scenario.jobs.empty()) return 1.0;
  const Checkpoint& checkpoint = *train->checkpoint;
  const bool into_memory = checkpoint.mode == Checkpoint::Mode::in_memory;
  const bool waits = checkpoint.mode == Checkpoint::Mode::synchronous;
  if (waits || (!into_memory && !crosses_cards(checkpoint.storage))) return 1.0;
  Scenario beside = scenario;
  beside.cluster.failures.reset();
  const Result before = predict(beside);
  const auto& cost = before.train()->checkpoints;
  if (!cost || !(cost->write > Seconds(0.0))) return 1.0;
  const double machines = number(nodes_of(scenario.plan, scenario.cluster).size());
  const std::vector<BackgroundFlow> writes = writes_of(scenario, checkpoint, cost->state / machines / cost->write);
  std::get<TrainWorkload>(beside.workload).checkpoint.reset();
  beside.background.insert(beside.background.end(), writes.begin(), writes.end());
  return std::max(1.0, predict(beside).time() / before.time());
}

}  // namespace

Result beside_storage(const Scenario& scenario,
                      const std::function<Result(const Scenario& scenario, double longer)>& alone) {
  const Predict predict = [&](const Scenario& of) { return alone(of, 1.0); };
  const std::optional<Scenario> loaded = with_loader_traffic(scenario, predict);
  const Scenario& own = loaded ? *loaded : scenario;
  return alone(own, longer_beside_write(own, predict));
}

}  // namespace foretrain
