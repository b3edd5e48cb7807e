// A training whose gradients are synchronised after the passes: what its network takes is plain
// to see.
#pragma once

namespace foretrain::test {

inline constexpr const char* gpt_16_layers = R"(
workload:
  train:
    model: { family: gpt, layers: 16, hidden: 6144, heads: 48, vocabulary: 51200, sequence: 2048 }
    global_batch: 16
    micro_batch: 1
    precision: bf16
    optimizer: adamw
plan: { tensor: 8, sync: { overlap: false, bucket: 4 GB } }
)";

}  // namespace foretrain::test
