// Mamba-2 layers (Dao and Gu 2024, arXiv 2405.21060), as state-spaces/mamba and Megatron-Core carry them out:
//
//   norm · projection to gate, inputs, B, C and steps · causal convolution of inputs, B and C · state-space duality ·
//   norm gated by the projection's first part · projection back · residual addition
//
// The duality (section 6) cuts a sequence into chunks of Q tokens. For heads of P elements with states of P x N, G
// groups of heads that share B and C, and R heads a group, each chunk of a group multiplies
//
//   scores C · Bᵀ                Q x Q x N           within the chunk
//   what the scores read         Q x R·P x Q         from its own inputs
//   states Bᵀ · inputs           N x R·P x Q         that it leaves behind
//   what C reads                 Q x R·P x N         from the states that came before
//
// and states pass from chunk to chunk in fp32. Decays are products of element by element, done inside these kernels.

#include <algorithm>

#include "model/base/number.hpp"
#include "model/workload/block_builder.hpp"

namespace foretrain {

namespace {

/// A layer's sizes on one tensor rank: heads and groups are divided.
struct MambaShape {
  MambaShape(const MambaConfig& m, std::int64_t tensor)
      : heads(m.heads / tensor),
        groups(std::max<std::int64_t>(m.groups / tensor, 1)),
        inner(heads * m.head_dim),
        convolved(inner + 2 * groups * m.state),
        projected(inner + convolved + heads) {
    if (!m.selective()) return;
    convolved = inner;
    projected = 2 * inner;
  }
  std::int64_t heads, groups, inner, convolved, projected;
};

}  // namespace

void BlockBuilder::scan(Layer& layer) const {
  const MambaConfig& m = config_.mamba;
  const MambaShape shape(m, options_.tensor);
  const std::int64_t q = std::min(m.chunk, std::max<std::int64_t>(sequence_ / options_.context, 1));
  const std::int64_t chunks = (tokens_ + q - 1) / q * shape.groups;
  const std::int64_t width = shape.inner / shape.groups;
  struct Product {
    const char* name;
    std::int64_t m, n, k;
  };
  const Product scores{"chunk scores", q, q, m.state}, within{"chunk outputs", q, width, q};
  const Product states{"chunk states", m.state, width, q}, across{"state outputs", q, width, m.state};
  const auto multiply = [&](std::vector<Operator>& pass, const Product& p, const char* what = "") {
    pass.push_back(
        {std::string(p.name) + what, Matmul{.batch = chunks, .m = p.m, .n = p.n, .k = p.k}, activations_, 1});
  };
  const Bytes passed = bytes_per_element(Precision::fp32) * (number(chunks) * number(m.state) * number(width));
  const Operator passing{
      "state passing", Streaming{StreamingKind::elementwise, passed, passed, Flops(2.0 * passed.value() / 4.0), false},
      Precision::fp32, 1};
  const double steps = number(tokens_) * number(shape.heads);
  const Operator decays{"decays",
                        Streaming{StreamingKind::reduction, element_ * steps, Bytes(8.0 * steps), Flops(steps), false},
                        Precision::fp32, 1};

  layer.forward.push_back(decays);
  multiply(layer.forward, states);
  layer.forward.push_back(passing);
  multiply(layer.forward, scores);
  multiply(layer.forward, within);
  multiply(layer.forward, across);

  // Listed in reverse. States and scores are made again rather than kept (ssd_combined.py,
  // _mamba_chunk_scan_combined_bwd).
  layer.backward.push_back(decays);
  for (const Product& p : {states, scores, across, within}) {
    multiply(layer.backward, {p.name, p.k, p.n, p.m}, " right gradient");
    multiply(layer.backward, {p.name, p.m, p.k, p.n}, " left gradient");
  }
  layer.backward.push_back(passing);
  multiply(layer.backward, scores, " again");
  layer.backward.push_back(passing);
  multiply(layer.backward, states, " again");
}

// One kernel reads inputs, steps and gate, a channel a thread, and writes the gated output: for each number of a state
// an exponential, three products and two sums. Backward it makes the states again, and reads what it read and the
// output's gradient (state-spaces/mamba, selective_scan_fwd_kernel.cuh, selective_scan_bwd_kernel.cuh; counted by
// hand).
void BlockBuilder::selective_scan(Layer& layer) const {
  const MambaConfig& m = config_.mamba;
  const std::int64_t inner = m.inner() / options_.tensor, read = m.step_rank + 2 * m.state;
  block_linear(layer, "steps and states", tokens_, read, inner, true);
  layer.matrices.push_back({read, inner});
  block_linear(layer, "step projection", tokens_, inner, m.step_rank, true);
  layer.matrices.push_back({inner, m.step_rank});
  const auto elements = number(tokens_) * number(inner);
  const auto scanned = [&](const char* name, double reads, double writes, double operations) {
    return Operator{name,
                    Streaming{StreamingKind::elementwise, element_ * (reads * elements), element_ * (writes * elements),
                              Flops(operations * number(m.state) * elements), false},
                    activations_, 1};
  };
  layer.forward.push_back(scanned("selective scan", 3, 1, 6));
  layer.backward.push_back(scanned("selective scan backward", 4, 3, 18));
}

void BlockBuilder::mamba_layer(Layer& layer) const {
  const auto& c = config_;
  const MambaShape shape(c.mamba, options_.tensor);
  norm(layer, "mamba norm");
  block_linear(layer, "mamba input projection", tokens_, shape.projected, c.hidden, false);
  layer.matrices.push_back({shape.projected, c.hidden});

  // Each channel by itself, SiLU in the same kernel; backward, inputs are read again for the taps' gradients.
  const double convolved = number(tokens_) * number(shape.convolved);
  const Flops taps(2.0 * number(c.mamba.kernel) * convolved);
  const auto convolution = [&](const char* name, double reads, double times) {
    return Operator{name,
                    Streaming{StreamingKind::elementwise, element_ * (reads * convolved), element_ * convolved,
                              taps * times, false},
                    activations_, 1};
  };
  // Megatron-Core's activations have the sequence first, these kernels the batch: of several samples both ends are
  // copied (ssm/mamba_mixer.py: rearrange(...).contiguous()).
  const bool reorders = !c.mamba.selective() && !plain() && batch_ > 1;
  const auto reorder = [&](const char* name, std::int64_t width) {
    if (reorders) stream(layer, name, StreamingKind::elementwise, number(tokens_) * number(width), 1, 1, 1, 1);
  };
  reorder("samples apart", shape.projected);
  layer.forward.push_back(convolution("causal convolution", 1.0, 1.0));
  layer.backward.push_back(convolution("causal convolution backward", 2.0, 2.0));
  if (c.mamba.selective()) {
    selective_scan(layer);
  } else {
    // Its output is not kept (ssd_combined.py, MambaSplitConv1dScanCombinedFn: "Recompute x, B, C").
    layer.backward.push_back(convolution("causal convolution again", 1.0, 1.0));
    scan(layer);
    reorder("samples together", shape.inner);
    stream(layer, "gated norm", StreamingKind::reduction, number(tokens_) * number(shape.inner), 2, 1, 3, 2,
           weights_ ? 2 : 1);
  }
  block_linear(layer, "mamba output projection", tokens_, c.hidden, shape.inner, true);
  layer.matrices.push_back({c.hidden, shape.inner});
  residual(layer, "mamba residual");
}

// The input; the norm's output; and, of a Mamba-2 layer, what its projection, its scan and its gated norm put out.
void BlockBuilder::set_half_memory(Layer& layer, LayerKind kind) const {
  const auto& c = config_;
  const double t = options_.tensor, e = element_.value(), n = number(tokens_), h = number(c.hidden);
  double widths = 0.0;  // per token, divided over tensor ranks
  if (kind == LayerKind::mamba) {
    const MambaShape shape(c.mamba, options_.tensor);
    widths = number(shape.projected + (c.mamba.selective() ? shape.convolved : 0) + 2 * shape.inner);
  } else if (kind == LayerKind::attention) {
    widths = 2.0 * number((c.heads + c.kv_heads) * c.head_dim) / t;
  } else {
    const double routed = kind == LayerKind::experts ? number(c.experts_per_token) * c.expert_load() : 0.0;
    const double ffn = kind == LayerKind::experts ? routed + number(c.shared_experts) : 1.0;
    widths = (c.gated_ffn ? 3.0 : 2.0) * ffn * number(c.ffn_hidden) / t + routed * h;
  }
  const double log_sums = kind == LayerKind::attention ? n * number(c.heads) / t * 4.0 : 0.0;
  layer.recomputation.keep(Bytes(norm_tokens() * h * 2.0 * e + n * e * widths));
  for (const Recompute way : {Recompute::none, Recompute::selective_operators, Recompute::selective_modules}) {
    layer.recomputation[way].kept += Bytes(log_sums);
  }
  layer.recomputation[Recompute::full].kept = Bytes(norm_tokens() * h * e);
  layer.output = Bytes(n * h * e);
  layer.workspace = Bytes(n * e * std::max(widths / 2.0, 2.0 * h));
}

}  // namespace foretrain
