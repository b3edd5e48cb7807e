#include "tests/property/random_scenarios.hpp"

#include <initializer_list>
#include <utility>

#include "model/base/error.hpp"
#include "sim/simulate.hpp"

namespace foretrain::test {

namespace {

constexpr int most_gpus = 64;

struct Machines {
  std::string node;
  int nodes = 1;
  int gpus = 1;  ///< used of each

  [[nodiscard]] int all() const { return nodes * gpus; }
};

Machines random_machines(Random& random) {
  const auto [node, gpus] = one_of<std::pair<const char*, int>>(random, {{"dgx-a100-80gb", 8},
                                                                         {"dgx-a100-80gb", 8},
                                                                         {"dgx-h100", 8},
                                                                         {"dgx-h100", 8},
                                                                         {"hgx-a100-40gb-x4", 4},
                                                                         {"p3.16xlarge", 8},
                                                                         {"dgx1-v100-32gb", 8},
                                                                         {"mi300x-x8", 8},
                                                                         {"l40s-x8", 8},
                                                                         {"rtx4090-x4", 4},
                                                                         {"polaris", 4},
                                                                         {"a3-megagpu-8g", 8},
                                                                         {"gh200-x4", 4},
                                                                         {"dgx-b200", 8},
                                                                         {"alps", 4},
                                                                         {"p4d.24xlarge", 8},
                                                                         {"gb200-nvl72", 8},
                                                                         {"gce-k80x8", 8},
                                                                         {"nd96asr-a100-v4", 8},
                                                                         {"v100-workstation-x2", 2},
                                                                         {"pcie-switch-16gbps-x4", 4},
                                                                         {"rtx-pro-6000-x8", 8}});
  Machines machines{node, one_of(random, {1, 2, 2, 3, 4, 4, 6, 8}), one_of(random, {gpus, gpus, gpus, gpus / 2, 1})};
  while (machines.all() > most_gpus) machines.nodes /= 2;
  return machines;
}

std::string random_fabric(Random& random, int nodes) {
  switch (below(random, 5)) {
    case 0:
      return fmt::format("{{ kind: fat_tree, nodes_per_leaf: {}, oversubscription: {} }}", 1 + below(random, 3),
                         one_of(random, {1, 2, 4, 16}));
    case 1:
      return fmt::format("{{ kind: fat_tree, nodes_per_leaf: {}, oversubscription: {}, rails: true }}",
                         1 + below(random, 3), one_of(random, {1, 2}));
    case 2:
      return fmt::format("{{ kind: torus, dimensions: [{}], link_bandwidth: 100 Gbit/s }}", nodes);
    case 3:
      return fmt::format(
          "{{ kind: dragonfly, nodes_per_router: 1, routers_per_group: 2, groups: {}, "
          "local_bandwidth: 200 Gbit/s, global_bandwidth: 200 Gbit/s }}",
          (nodes + 1) / 2);
    default:
      return "{ kind: sites, sites: 2, distance: 100 km, bandwidth: 100 Gbit/s }";
  }
}

std::string random_fault(Random& random, const Machines& machines) {
  const int node = below(random, machines.nodes);
  if (machines.nodes == 1 || one_in(random, 2)) {
    return fmt::format("{{ node: {}, gpu: {}, speed: {} % }}", node, below(random, machines.gpus),
                       50 + below(random, 50));
  }
  return fmt::format("{{ node: {}, card: {}, bandwidth: {} % }}", node, below(random, 4), 10 + below(random, 90));
}

std::string random_traffic(Random& random, const Machines& machines) {
  const int from = below(random, machines.all()), to = below(random, machines.all());
  const std::string rate = one_in(random, 2) ? "" : fmt::format(", rate: {} GB/s", one_of(random, {1, 5, 20}));
  if (one_in(random, 3)) {
    return fmt::format("{{ from: node{}, to: gpu{}{} }}", below(random, machines.nodes), to, rate);
  }
  return fmt::format("{{ from: gpu{}, to: gpu{}{} }}", from, to, rate);
}

Settings cluster_settings(Random& random, const Machines& machines) {
  Settings settings;
  settings["cluster.node"] = machines.node;
  settings["cluster.nodes"] = std::to_string(machines.nodes);
  settings["cluster.gpus_per_node"] = std::to_string(machines.gpus);
  if (machines.nodes > 1) {
    if (one_in(random, 2)) {
      settings["cluster.network.nics_per_node"] = std::to_string(one_of(random, {1, 2, 4, 8}));
      settings["cluster.network.nic_bandwidth"] = fmt::format("{} Gbit/s", one_of(random, {10, 25, 100, 200, 400}));
      settings["cluster.network.latency"] = "5 us";
    }
    switch (below(random, 6)) {
      case 0:
        settings["cluster.network.oversubscription"] = std::to_string(one_of(random, {2, 4}));
        break;
      case 1:
      case 2:
        settings["cluster.network.fabric"] = random_fabric(random, machines.nodes);
        break;
      default:
        break;
    }
    if (one_in(random, 8)) settings["cluster.network.in_network_reduction"] = "true";
    if (one_in(random, 8)) {
      settings["cluster.network.transport.protocol"] = one_of(random, {"tcp", "roce", "infiniband"});
    }
  }
  for (int i = 0; i < 2; ++i) {
    if (one_in(random, 3)) settings[fmt::format("cluster.faults[{}]", i)] = random_fault(random, machines);
    if (one_in(random, 4)) settings[fmt::format("background[{}]", i)] = random_traffic(random, machines);
  }
  return settings;
}

void add_model(Random& random, Settings& settings, int& experts, int& layers) {
  const std::string model = "workload.train.model.";
  if (one_in(random, 7)) {
    settings["workload.train.model.preset"] =
        one_of(random, {"resnet-50", "resnet-18", "vgg-16", "alexnet-torchvision", "inception-v3"});
    settings["workload.train.precision"] = one_of(random, {"fp32", "fp16", "tf32"});
    layers = 0;
    return;
  }
  const int heads = one_of(random, {8, 16, 32}), head_dim = one_of(random, {64, 128});
  layers = one_of(random, {4, 6, 8, 12});
  const bool gpt = one_in(random, 2);
  settings[model + "family"] = gpt ? "gpt" : "llama";
  settings[model + "layers"] = std::to_string(layers);
  settings[model + "hidden"] = std::to_string(heads * head_dim);
  settings[model + "heads"] = std::to_string(heads);
  settings[model + "vocabulary"] = std::to_string(one_of(random, {32000, 50304, 128256}));
  settings[model + "sequence"] = std::to_string(one_of(random, {512, 1024, 2048}));
  if (!gpt && one_in(random, 2)) settings[model + "kv_heads"] = std::to_string(heads / 4);
  if (one_in(random, 3)) {
    experts = one_of(random, {4, 8, 16});
    settings[model + "experts"] = std::to_string(experts);
    settings[model + "experts_per_token"] = std::to_string(one_of(random, {1, 2, 4}));
    if (one_in(random, 3)) settings[model + "expert_imbalance"] = "1.3";
    if (one_in(random, 2)) settings[model + "ffn_hidden"] = std::to_string(heads * head_dim / 2);
  }
  settings["workload.train.precision"] = one_of(random, {"bf16", "bf16", "fp16", "fp32", "fp8"});
  if (one_in(random, 3)) settings["workload.train.recompute"] = one_of(random, {"full", "selective"});
}

void add_servers(Random& random, Settings& settings, int data) {
  const std::string sync = "plan.sync.";
  settings[sync + "algorithm"] = "parameter_server";
  settings[sync + "servers"] = std::to_string(one_of(random, {1, 2, 3, 4}));
  settings[sync + "placement"] = one_of(random, {"cpu", "gpu", "colocated"});
  settings[sync + "consistency"] = one_of(random, {"synchronous", "synchronous", "asynchronous", "bounded(2)"});
  if (one_in(random, 3)) settings[sync + "priority"] = "first_layer";
  if (one_in(random, 3)) settings[sync + "barrier"] = "true";
  if (one_in(random, 3)) settings[sync + "assignment"] = "hashed";
  if (one_in(random, 3)) settings[sync + "local_reduce"] = "true";
  if (one_in(random, 4)) settings["workload.train.compute_spread"] = "5 %";
  if (data > 1 && one_in(random, 2)) {
    settings[sync + "slow_workers.count"] = std::to_string(1 + below(random, data - 1));
    settings[sync + "slow_workers.factor"] = one_of(random, {"1.01", "1.2", "2"});
  }
}

void add_synchronisation(Random& random, Settings& settings) {
  const std::string sync = "plan.sync.";
  if (one_in(random, 3)) {
    settings[sync + "algorithm"] = one_of(random, {"ring", "tree", "double_tree", "hierarchical", "halving_doubling",
                                                   "naive", "bidirectional_ring", "in_network", "multi_ring"});
  }
  if (one_in(random, 3)) settings[sync + "bucket"] = one_of(random, {"4 MB", "25 MB", "1000 MB", "whole"});
  if (one_in(random, 3)) settings[sync + "overlap"] = "false";
  if (one_in(random, 4)) settings[sync + "gradient_precision"] = one_of(random, {"fp32", "bf16"});
  if (one_in(random, 8)) settings[sync + "compression"] = one_of(random, {"fp16", "powersgd(4)", "top_k(1 %)"});
}

/// Division of the work by `plan`; false where its numbers do not fit the machines.
bool add_division(Random& random, Settings& settings, int gpus, int experts, int layers) {
  const bool splits = layers > 0;
  const int tensor = splits ? one_of(random, {1, 1, 2, 4, 8}) : 1;
  const int pipeline = splits ? one_of(random, {1, 1, 1, 2, 3, 4}) : 1;
  const int context = splits ? one_of(random, {1, 1, 1, 2, 4}) : 1;
  if (gpus % (tensor * pipeline * context) != 0) return false;
  const int data = gpus / (tensor * pipeline * context);
  settings["plan.data"] = std::to_string(data);
  settings["plan.tensor"] = std::to_string(tensor);
  settings["plan.pipeline"] = std::to_string(pipeline);
  settings["plan.context"] = std::to_string(context);
  if (tensor > 1 && one_in(random, 2)) {
    settings["plan.sequence_parallel"] = "true";
    if (one_in(random, 3)) settings["plan.tensor_overlap"] = "true";
  }
  if (experts > 0) settings["plan.expert"] = std::to_string(one_of(random, {1, 2, 4, 8}));
  if (experts > 0 && one_in(random, 4)) settings["plan.expert_tensor"] = "1";
  if (pipeline > 1) {
    if (one_in(random, 2)) {
      settings["plan.schedule"] = one_of(random, {"gpipe", "1f1b", "zero_bubble", "dualpipe"});
    } else if (one_in(random, 2)) {
      settings["plan.interleave"] = "2";
    }
  }
  const int micro_batch = one_of(random, {1, 1, 2, 4});
  settings["workload.train.micro_batch"] = std::to_string(micro_batch);
  const int micro_batches = (pipeline > 1 ? 2 * pipeline : 1) * one_of(random, {1, 1, 2, 4});
  settings["workload.train.global_batch"] = std::to_string(data * micro_batch * micro_batches);
  if (one_in(random, 3) && tensor * pipeline * context == 1 && experts == 0) {
    add_servers(random, settings, data);
    return true;
  }
  const int zero = one_of(random, {0, 0, 1, 2, 3});
  if (zero > 0 && one_in(random, 4)) {
    settings["plan.zero.stage"] = std::to_string(zero);
    settings["plan.zero.shard"] = "2";
  } else {
    settings["plan.zero"] = std::to_string(zero);
  }
  add_synchronisation(random, settings);
  return true;
}

/// Framework settings, and link sharing.
void add_settings(Random& random, Settings& settings, const Machines& machines, int experts) {
  const auto sometimes = [&](int odds, const char* key, std::initializer_list<const char*> values) {
    if (one_in(random, odds)) settings[key] = one_of<const char*>(random, values);
  };
  if (experts > 0) {
    sometimes(2, "plan.expert_dispatch", {"all_to_all", "deduplicated", "forwarded"});
    sometimes(4, "plan.expert_comm_overlap", {"true"});
  }
  if (machines.nodes > 1) {
    sometimes(8, "cluster.network.fairness", {"traffic_class"});
    sometimes(8, "cluster.network.queue_pairs", {"4"});
  }
  sometimes(6, "plan.pipeline_messages", {"blocking", "asynchronous"});
  sometimes(8, "plan.sync.gather_overlap", {"true"});
  sometimes(8, "plan.sync.sync_each_micro_batch", {"true"});
  sometimes(4, "plan.framework",
            {"megatron", "ddp", "fsdp", "deepspeed", "nemo", "internevo", "megatron-deepspeed", "llm-foundry"});
}

bool can_be_predicted(const Settings& settings) {
  try {
    const Scenario scenario = scenario_of(settings);
    estimate(scenario);
    return true;
  } catch (const ScenarioError&) {
  } catch (const UsageError&) {
  }
  return false;
}

}  // namespace

Settings random_plan(Random& random) {
  for (;;) {
    const Machines machines = random_machines(random);
    Settings settings = cluster_settings(random, machines);
    int experts = 0, layers = 0;
    add_model(random, settings, experts, layers);
    if (!add_division(random, settings, machines.all(), experts, layers)) continue;
    if (one_in(random, 3)) settings["plan.order"] = random_order(random);
    if (one_in(random, 4)) settings["plan.execution"] = one_of(random, {"compiled", "cuda_graph"});
    add_settings(random, settings, machines, experts);
    if (can_be_predicted(settings)) return settings;
  }
}

Settings random_collective(Random& random) {
  for (;;) {
    const Machines machines = random_machines(random);
    Settings settings = cluster_settings(random, machines);
    const std::string collective = "workload.collective.";
    settings[collective + "operation"] = one_of(random, {"all_reduce", "all_reduce", "all_gather", "reduce_scatter",
                                                         "all_to_all", "broadcast", "reduce", "send_receive"});
    settings[collective + "size"] = one_of(random, {"1 KB", "64 KB", "1 MB", "16 MB", "256 MB", "4 GB"});
    if (one_in(random, 3)) settings[collective + "ranks"] = std::to_string(1 + below(random, machines.all()));
    if (one_in(random, 3)) {
      settings[collective + "groups"] = one_of(random, {"2", "4"});
      settings[collective + "layout"] = one_of(random, {"blocked", "strided"});
    }
    if (one_in(random, 2)) {
      settings[collective + "algorithm"] =
          one_of(random, {"ring", "tree", "double_tree", "hierarchical", "halving_doubling", "naive",
                          "bidirectional_ring", "in_network", "multi_ring", "parameter_server"});
    }
    if (can_be_predicted(settings)) return settings;
  }
}

}  // namespace foretrain::test
