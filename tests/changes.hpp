// A training and changes to it, for tests of what is cached from one prediction to the next.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace foretrain::test {

/// A training and, one by one, every kind of key on which something that a process remembers from row to row might
/// depend: hardware, layout, synchronisation, the model and its batches.
inline const std::vector<std::pair<std::string, std::string>> changes = {
    {"cluster.network", "{ nic_bandwidth: 100 Gbit/s }"},
    {"cluster.network", "{ latency: 50 us }"},
    {"cluster.network", "{ efficiency: 0.5 }"},
    {"cluster.network", "{ nics_per_node: 4 }"},
    {"cluster.network", "{ oversubscription: 4 }"},
    {"cluster.network", "{ gpu_direct: false }"},
    {"cluster.network", "{ fabric: { kind: fat_tree, nodes_per_leaf: 2, oversubscription: 2 } }"},
    {"cluster.network", "{ fabric: { kind: fat_tree, nodes_per_leaf: 2, uplinks: 8, routing: hash } }"},
    {"cluster.network", "{ fabric: { kind: fat_tree, nodes_per_leaf: 2, uplinks: 64, routing: adaptive } }"},
    {"cluster.network", "{ transport: { protocol: tcp, mtu: 1500 B, window: 4 MB } }"},
    {"cluster.network", "{ transport: { protocol: tcp, flow_limit: 5 Gbit/s, streams: 2 } }"},
    {"cluster.network", "{ fairness: traffic_class }"},
    {"cluster.network", "{ queue_pairs: 4 }"},
    {"cluster.node", "dgx-h100"},
    {"cluster.node.gpu.memory_bandwidth", "1 TB/s"},
    {"cluster.faults", "[ { node: 3, card: 2, bandwidth: 20 % } ]"},
    {"cluster.faults", "[ { node: 3, gpu: 2, speed: 80 % } ]"},
    {"cluster.jitter", "{ compute: 2 %, network: 5 % }"},
    {"cluster.jitter", "{ node: 2 %, throttle: { share: 1 %, speed: 80 % } }"},
    {"background", "[ { from: gpu0, to: gpu40, rate: 10 GB/s } ]"},
    {"plan", "{ data: 2, tensor: 8, pipeline: 4, sequence_parallel: true }"},
    {"plan", "{ data: 8, tensor: 4, pipeline: 2, sequence_parallel: true }"},
    {"plan", "{ data: 2, context: 2, tensor: 4, pipeline: 4 }"},
    {"plan", "{ data: 2, context: 2, context_method: ulysses, tensor: 4, pipeline: 4 }"},
    {"plan", "{ data: 16, tensor: 4, zero: 3, sequence_parallel: true }"},
    {"plan", "{ data: 16, tensor: 4, zero: { stage: 3, shard: 4 } }"},
    {"plan.sequence_parallel", "false"},
    {"plan.tensor_overlap", "true"},
    {"plan.schedule", "gpipe"},
    {"plan.pipeline_messages", "blocking"},
    {"workload.train.message_overhead", "1 ms"},
    {"workload.train.p2p_dispatch_overhead", "10 ms"},
    {"plan.schedule", "zero_bubble"},
    {"plan.schedule", "dualpipe"},
    {"plan", "{ data: 4, tensor: 4, pipeline: 4, sequence_parallel: true, schedule: interleaved, interleave: 2 }"},
    {"plan.zero", "1"},
    {"plan.order", "tensor-pipeline-data"},
    {"plan.stage_layers", "[3, 2, 2, 1]"},
    {"plan.placement", "[7, 6, 5, 4, 3, 2, 1, 0]"},
    {"plan.execution", "cuda_graph"},
    {"plan.processes", "single"},
    {"plan.sync.bucket", "2 MB"},
    {"plan.sync.overlap", "false"},
    {"plan.sync.gradient_precision", "bf16"},
    {"plan.sync.compression", "top_k(0.01)"},
    {"plan.sync.algorithm", "ring"},
    {"plan.sync.algorithm", "double_tree"},
    {"plan.sync", "{ algorithm: hierarchical, levels: [2] }"},
    {"plan.sync", "{ algorithm: parameter_server, servers: 2 }"},
    {"plan.sync", "{ algorithm: parameter_server, servers: 4 }"},
    {"workload.train.micro_batch", "2"},
    {"workload.train.global_batch", "64"},
    {"workload.train.recompute", "none"},
    {"workload.train.precision", "fp16"},
    {"workload.train.optimizer", "sgd"},
    {"workload.train.optimizer", "muon"},
    {"workload.train.state_precision", "bf16"},
    {"workload.train.recompute_layers", "1 of 2"},
    {"workload.train.attention", "standard"},
    {"workload.train.kernels", "plain"},
    {"workload.train.cache_cast_weights", "true"},
    {"workload.train.fused_optimizer", "false"},
    {"workload.train.clip_gradients", "false"},
    {"workload.train.keep_gathered_inputs", "true"},
    {"workload.train.deterministic", "true"},
    {"workload.train.inplace_cross_entropy", "true"},
    {"workload.train.activation_stretch", "1.3"},
    {"workload.train.pending_stream_buffers", "50"},
    {"workload.train.model.layers", "4"},
    {"workload.train.model.hidden", "1024"}};

inline constexpr const char* small_training = R"(cluster: { node: dgx-a100-80gb, nodes: 8 }
workload:
  train:
    model: { family: gpt, layers: 8, hidden: 2048, heads: 16, vocabulary: 51200, sequence: 1024 }
    global_batch: 32
    micro_batch: 1
    precision: bf16
    optimizer: adamw
    recompute: full
plan: { data: 4, tensor: 4, pipeline: 4, sequence_parallel: true }
)";

}  // namespace foretrain::test
