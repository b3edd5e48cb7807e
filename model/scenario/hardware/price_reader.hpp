// `price:` and `energy:` of a cluster: what its hours cost, and what electricity they take.
#pragma once

#include "model/hardware/cluster.hpp"
#include "model/scenario/yaml_reader.hpp"

namespace foretrain {

/// 2.5 USD/GPU/hour, 98 USD/node/hour, or a way to buy that scenarios/hardware/prices.yaml knows of the cluster's
/// machines: on_demand; of others: { of: p5.48xlarge, purchase: on_demand }.
void read_price(const Field& field, const Field& cluster_field, Cluster& cluster);

/// A grid of scenarios/hardware/energy.yaml, or { grid: france | 56 g/kWh, pue: 1.2, machine: 10.2 kW }.
Energy read_energy(const Field& field, const Field& cluster_field, const Cluster& cluster);

}  // namespace foretrain
