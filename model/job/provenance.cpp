// Provenance of a result.
#include <algorithm>
#include <string_view>
#include <variant>

#include "model/base/reads.hpp"
#include "model/base/words.hpp"
#include "model/job/job.hpp"
#include "model/parameter_server/store.hpp"

namespace foretrain {

namespace {

/// Storage that the workload states; nothing where it is the node's.
const Storage* storage_of(const Workload& workload) {
  if (const auto* storage = std::get_if<StorageWorkload>(&workload)) return &storage->storage;
  const DataLoader* loader = nullptr;
  if (const auto* alone = std::get_if<LoaderWorkload>(&workload)) loader = &alone->loader;
  if (const auto* train = std::get_if<TrainWorkload>(&workload); train && train->loader) loader = &*train->loader;
  return loader != nullptr && loader->storage ? &*loader->storage : nullptr;
}

/// Whether the number was read while the result was worked out; what does not note its reads counts as read.
bool was_read(const Constant& constant, const ReadSet& reads) {
  if (const ConstantRow* row = find_constant(constant.name)) {
    return reads[static_cast<std::size_t>(row - calibration_rows().data())];
  }
  for (const bool tensor : {false, true}) {
    const std::string_view rate = tensor ? ".tensor_rate." : ".vector_rate.";
    const std::size_t at = constant.name.find(rate);
    if (at == std::string::npos) continue;
    const auto word = std::ranges::find(names_of<Precision>, constant.name.substr(at + rate.size()));
    return word == names_of<Precision>.end() ||
           reads[Gpu::rate_number(static_cast<std::size_t>(word - names_of<Precision>.begin()), tensor)];
  }
  return true;
}

/// Whether work on the GPUs alone, or on one machine, changes with a figure of its node: not with storage that it does
/// not read, the host's cores that it does not compute on, and cards that it does not send over.
bool concerns(const Constant& figure, const Scenario& scenario) {
  const Cluster& cluster = scenario.cluster;
  const auto is_of = [&](std::string_view part) { return figure.name.find(part) != std::string::npos; };
  const auto* train = std::get_if<TrainWorkload>(&scenario.workload);
  if (train == nullptr && !std::holds_alternative<CollectiveWorkload>(scenario.workload)) {
    return !std::holds_alternative<OperatorWorkload>(scenario.workload) ||
           figure.name.starts_with(cluster.node.gpu.name);
  }
  if (cluster.node.gpu.processor || (train != nullptr && (train->loader || uses_store(scenario)))) return true;
  if (is_of(".storage.")) return false;
  if (is_of(".network.")) return cluster.nodes > 1 || !cluster.groups.empty();
  const bool host_works = train != nullptr && scenario.plan.offload.any();
  return host_works || !is_of(".cpu.") || is_of(".cpu.memory_bandwidth");
}

}  // namespace

std::vector<Constant> provenance_of(const Scenario& scenario) {
  const ReadSet reads = reads_so_far() | scenario.calibration.read_before;
  std::vector<Constant> provenance;
  const auto add = [&](const std::vector<Constant>& constants) {
    for (const Constant& constant : constants) {
      if (std::ranges::find(provenance, constant) == provenance.end()) provenance.push_back(constant);
    }
  };
  if (scenario.cluster.groups.empty()) add(scenario.cluster.node.constants);  // those of its GPU among them
  for (const NodeGroup& group : scenario.cluster.groups) add(group.node.constants);
  std::erase_if(provenance, [&](const Constant& figure) { return !concerns(figure, scenario); });
  if (std::holds_alternative<HostWorkload>(scenario.workload)) add(scenario.cluster.node.cpu.hierarchy_constants);
  if (const Storage* storage = storage_of(scenario.workload)) add(storage->constants);
  const auto* train = std::get_if<TrainWorkload>(&scenario.workload);
  if (train != nullptr && train->checkpoint) add(train->checkpoint->storage.constants);
  add(scenario.cluster.price_constants);
  if (const auto& failures = scenario.cluster.failures) {
    add(failures->constants);
    if (train != nullptr) add(train->recovery->constants);
  }
  if (scenario.cluster.energy) add(scenario.cluster.energy->constants);
  const std::vector<Constant>& of_models = scenario.calibration.constants;
  provenance.insert(provenance.end(), of_models.begin(), of_models.end());
  std::erase_if(provenance, [&](const Constant& constant) { return !was_read(constant, reads); });
  return provenance;
}

}  // namespace foretrain
