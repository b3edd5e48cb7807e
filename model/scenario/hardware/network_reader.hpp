// `network:` of a node or cluster (cards, transport, fabric) and `faults:` of a cluster.
#pragma once

#include <vector>

#include "model/hardware/cluster.hpp"
#include "model/scenario/figures.hpp"
#include "model/scenario/yaml_reader.hpp"

namespace foretrain {

/// `network:` with every key optional: values given replace those of `base`. Replaced figures are noted in `log`. Where
/// a transport is stated and no efficiency, the efficiency is the transport's payload share.
Network read_network(const Field& field, const Network& base, FigureLog& log);

/// `fabric:`: a catalogue name, a path, a mapping with a `kind`, or { preset: NAME, … }. Links whose bandwidth is not
/// stated are as fast as `card`.
Fabric read_fabric(const Field& field, BytesPerSecond card, FigureLog& log);

/// `faults:`, a list of cards and links that are slower than their like, or broken.
std::vector<Fault> read_faults(const Field& field);

/// `jitter: { compute: 2 %, network: 5 %, seed: 1 }`.
Jitter read_jitter(const Field& field);

/// Throws ScenarioError, at the key below `cluster` that is to blame, for what check_network() finds.
void require_possible_network(const Cluster& cluster, const Field& field);

}  // namespace foretrain
