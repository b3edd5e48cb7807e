// Which attention is measured: heads of 64 and 128, sequences from 256 to 16384, causal or not, shared keys, forward
// and backward, fused by cuDNN.
#include "validate/cuda/suites/operator_points.hpp"

namespace foretrain::gpu {

namespace {

struct Shape {
  std::int64_t batch, heads, kv_heads, sequence, head_dim;
  bool causal;
  bool quick = false;
};

void add(PointList& points, const Shape& s, const char* precision, bool quick) {
  OperatorSpec spec{"attention",
                    {{"batch", std::to_string(s.batch)},
                     {"heads", std::to_string(s.heads)},
                     {"sequence", std::to_string(s.sequence)},
                     {"head_dim", std::to_string(s.head_dim)},
                     {"attention", "flash"},
                     {"precision", precision}}};
  if (s.kv_heads != s.heads) spec.fields["kv_heads"] = std::to_string(s.kv_heads);
  if (s.causal) spec.fields["causal"] = "true";
  if (s.causal) spec.fields["cache"] = "false";
  points.add(spec, "flash", quick);
  spec.fields.erase("cache");
  spec.fields["backward"] = "true";
  points.add(spec, "flash", quick);
}

}  // namespace

std::vector<OperatorPoint> attention_points() {
  PointList points;
  // 16384 tokens in all and a width of 2048, as FlashAttention's authors measure it (Dao, 2023).
  for (const std::int64_t head_dim : {64, 128}) {
    for (std::int64_t sequence = 256; sequence <= 16384; sequence *= 2) {
      for (const bool causal : {false, true}) {
        const std::int64_t heads = 2048 / head_dim;
        const bool quick = sequence == 4096;
        const Shape shape{16384 / sequence, heads, heads, sequence, head_dim, causal};
        add(points, shape, "bf16", quick && head_dim == 128);
        if (sequence % 1024 == 0 && sequence <= 4096) add(points, shape, "fp16", false);
      }
    }
  }
  // Networks: BERT, GPT-2, ViT, Llama 3 8B and 70B (one of eight GPUs)
  const Shape networks[] = {{32, 12, 12, 128, 64, false},      {16, 16, 16, 512, 64, false, true},
                            {8, 12, 12, 1024, 64, true},       {64, 12, 12, 197, 64, false},
                            {1, 32, 8, 8192, 128, true, true}, {1, 8, 1, 8192, 128, true},
                            {2, 32, 8, 4096, 128, true},       {4, 25, 25, 1024, 64, true}};
  for (const Shape& shape : networks) {
    add(points, shape, "bf16", shape.quick && shape.kv_heads < shape.heads);
  }
  return points.finish();
}

}  // namespace foretrain::gpu
