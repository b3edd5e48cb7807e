#include "model/planning/machine_use.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <functional>

#include "model/scenario/hardware/hardware_reader.hpp"
#include "model/scenario/workload/workload_reader.hpp"

namespace foretrain {

namespace {

std::int64_t odd_part(std::int64_t number) { return number >> std::countr_zero(static_cast<std::uint64_t>(number)); }

/// Fewer than all `gpus` of a machine that are worth a search, the most first.
std::vector<int> smaller_uses(int gpus, std::int64_t batch) {
  std::vector<int> uses;
  if (odd_part(gpus) > 1) {
    const auto most = static_cast<int>(std::bit_floor(static_cast<unsigned>(gpus)));
    uses = {most, most / 2};
  }
  int dividing = gpus;
  while (batch % dividing != 0) --dividing;
  if (dividing < gpus && 2 * dividing > gpus) uses.push_back(dividing);
  std::ranges::sort(uses, std::greater<>());
  uses.erase(std::unique(uses.begin(), uses.end()), uses.end());
  std::erase(uses, 0);
  return uses;
}

/// A machine's price does not depend on the number of its GPUs that train: a price by GPU becomes one by machine.
std::optional<std::string> price_of_whole(const YamlNode& document, const Cluster& cluster) {
  const YamlNode* price = document.at("cluster.price");
  if (price == nullptr || !price->is_scalar() || price->scalar.find("/GPU/") == std::string::npos) return std::nullopt;
  return fmt::format("cluster.price={:.12g} USD/node/hour", *cluster.usd_per_gpu_hour * cluster.node.gpus);
}

}  // namespace

std::vector<MachineUse> machine_uses(const YamlNode& document) {
  const YamlNode* stated = document.at("cluster");
  const YamlNode* workload = document.at("workload.train");
  if (stated == nullptr || workload == nullptr) return {{}};  // a search says what is missing
  const Cluster cluster = read_cluster(Field(*stated, "cluster"));
  std::vector<MachineUse> uses{{cluster.gpus_per_node, cluster.node.gpus, {}}};
  if (!cluster.groups.empty() || stated->find("gpus_per_node") != nullptr) return uses;
  const ReadWorkload read = read_workload(Field(*document.at("workload"), "workload"), cluster);
  const std::int64_t batch = std::get<TrainWorkload>(read.workload).global_batch;
  for (const int used : smaller_uses(cluster.node.gpus, batch)) {
    MachineUse& use = uses.emplace_back(MachineUse{used, cluster.node.gpus, {}});
    use.overrides.push_back(fmt::format("cluster.gpus_per_node={}", used));
    if (const auto price = price_of_whole(document, cluster)) use.overrides.push_back(*price);
  }
  return uses;
}

std::optional<std::int64_t> dividing_batch(std::int64_t batch, std::int64_t gpus) {
  for (std::int64_t unit = gpus;; unit /= 2) {
    const std::int64_t nearest = (batch + unit / 2) / unit * unit;
    if (nearest == batch) return std::nullopt;
    if (nearest > 0 && 8 * std::abs(nearest - batch) <= batch) return nearest;
    if (unit % 2 != 0) return std::nullopt;
  }
}

}  // namespace foretrain
