// Kernels of unfused framework code beside the GEMMs, in bytes, by hand.
#include "model/workload/plain_kernels.hpp"

#include "tests/workload/models.hpp"

using namespace foretrain;
using namespace foretrain::test;

namespace {

double forward_bytes(const std::vector<StreamBytes>& kernels) {
  return std::accumulate(kernels.begin(), kernels.end(), 0.0,
                         [](double sum, const StreamBytes& s) { return sum + s.forward_read + s.forward_written; });
}

TransformerConfig small(TransformerFamily family) {
  return transformer(family, {2, 256, 4, family == TransformerFamily::llama ? 2 : 4, 1024, 1000, 128});
}

/// Settings of tuned.yaml for unfused kernels; for fused ones, the code's defaults.
TrainerCode code_with(KernelSet kernels) {
  TrainerCode code;
  if (kernels == KernelSet::fused) return code;
  code.kernels = kernels;
  code.fused_qkv = code.native_attention = code.fused_optimizer = code.fp8_all_gather = false;
  code.cache_cast_weights = code.keep_gathered_inputs = true;
  code.context_sharding = ContextSharding::contiguous;
  return code;
}

Model built(TransformerFamily family, KernelSet kernels, Precision precision = Precision::bf16) {
  BuildOptions options;
  options.precision = precision;
  options.code = code_with(kernels);
  options.casts_weights = options.code.cache_cast_weights;
  return build_transformer(small(family), "small", options);
}

Bytes streamed(const std::vector<Operator>& ops) {
  Bytes sum;
  for (const Operator& op : ops) {
    if (const auto* work = std::get_if<Streaming>(&op.work)) sum += work->read + work->written;
  }
  return sum;
}

}  // namespace

TEST_CASE("plain layer norms keep their input's format, root-mean-square norms pass through fp32") {
  // A layer norm reads and writes each number once: 2 + 2 bytes, or 4 + 4.
  CHECK(forward_bytes(plain_layer_norm(Bytes(2.0))) == 4.0);
  CHECK(forward_bytes(plain_layer_norm(Bytes(4.0))) == 8.0);
  // A root-mean-square norm: casts 6 + 6, square 8, mean 4, scaling 8, weight 2 + 2 = 36 bytes.
  CHECK(forward_bytes(plain_rms_norm(Bytes(2.0))) == 36.0);
}

TEST_CASE("under autocast what passes by the branches stays fp32, and each product casts its input") {
  // A norm of fp32 numbers reads and writes 4; three products read 4 and write 2 each; a branch's result of 2 is added.
  CHECK(forward_bytes(plain_rms_norm(Bytes(4.0))) == 28.0);
  CHECK(forward_bytes(plain_input_casts(Bytes(2.0), 3)) == 18.0);
  CHECK(plain_input_casts(Bytes(2.0), 1).size() == 1);  // nothing to sum up
  CHECK(forward_bytes(plain_wide_residual(Bytes(2.0))) == 10.0);
  const auto casts = [](const std::vector<Operator>& ops) {
    return std::ranges::count_if(ops, [](const Operator& op) { return op.name.ends_with("input cast"); });
  };
  // Queries, keys and values apart and both halves of the gate; GPT-2 joins the former and has no gate.
  CHECK(casts(built(TransformerFamily::llama, KernelSet::unfused).layers[1].layer.forward) == 5);
  CHECK(casts(built(TransformerFamily::gpt, KernelSet::unfused).layers[1].layer.forward) == 2);
  CHECK(casts(built(TransformerFamily::gpt, KernelSet::unfused, Precision::fp32).layers[1].layer.forward) == 0);
}

TEST_CASE("plain standard attention scales and masks the scores, and widens them where softmax is in fp32") {
  // fp32: scaling and mask, 8 bytes each. 2 bytes: 4 each, casts 6 + 6, and a softmax 4 bytes wider than counted: 24.
  CHECK(forward_bytes(plain_scores(Bytes(4.0), true)) == 16.0);
  CHECK(forward_bytes(plain_scores(Bytes(2.0), true)) == 24.0);
  CHECK(forward_bytes(plain_scores(Bytes(2.0), false)) == 8.0);
}

TEST_CASE("plain code computes the same products with more traffic in more kernels") {
  for (const TransformerFamily family : {TransformerFamily::gpt, TransformerFamily::bert, TransformerFamily::llama}) {
    const Layer fused = built(family, KernelSet::fused).layers[1].layer;
    const Layer plain = built(family, KernelSet::unfused).layers[1].layer;
    CHECK(product_flops(plain.forward) == product_flops(fused.forward));
    CHECK(product_flops(plain.backward) == product_flops(fused.backward));
    CHECK(streamed(plain.forward) > 1.5 * streamed(fused.forward));
    CHECK(streamed(plain.backward) > 1.5 * streamed(fused.backward));
    CHECK(plain.forward.size() > fused.forward.size());
    CHECK(plain.parameters == fused.parameters);
  }
}

TEST_CASE("no compiler fuses the rotation of queries and keys, which are complex numbers there") {
  int kernels = 0;
  const Model model = built(TransformerFamily::llama, KernelSet::unfused);
  for (const Operator& op : model.layers[1].layer.forward) {
    if (!op.name.starts_with("rotary embedding")) continue;
    CHECK_FALSE(std::get<Streaming>(op.work).fusible);
    ++kernels;
  }
  CHECK(kernels == 3);  // widened, rotated, narrowed
}

TEST_CASE("fp32 weights are cast in every pass, and their gradients back") {
  const Layer layer = built(TransformerFamily::gpt, KernelSet::unfused).layers[1].layer;
  Bytes forward, backward;
  for (const Operator& op : layer.forward) {
    if (op.name.ends_with("weight cast")) forward += minimum_traffic(op);
  }
  for (const Operator& op : layer.backward) {
    if (op.name.ends_with("gradient cast")) backward += minimum_traffic(op);
  }
  // 12 · 256² weights of a block, each 4 bytes read and 2 written, or 2 read and 4 written.
  CHECK(forward.value() == Approx(6.0 * 12 * 256 * 256));
  CHECK(backward.value() == Approx(6.0 * 12 * 256 * 256));
}

TEST_CASE("what the backward pass never reads ends with the last product, unless dropout keeps a mask after it") {
  // Without dropout the block ends "ffn down", "ffn residual", and no gradient needs the results of either.
  const Layer mpt = built(TransformerFamily::mpt, KernelSet::fused).layers[1].layer;
  CHECK(mpt.unread_tail == 2);
  CHECK(mpt.forward[mpt.forward.size() - 2].name == "ffn down");
  CHECK(built(TransformerFamily::gpt, KernelSet::fused).layers[1].layer.unread_tail == 0);
}

TEST_CASE("between projections and scores plain code splits heads, repeats shared keys and rotates") {
  BuildOptions options;
  options.attention = AttentionKind::standard;
  options.code = code_with(KernelSet::unfused);
  const TransformerConfig llama = small(TransformerFamily::llama);
  Layer layer;
  append_plain_copies(layer, llama, options, 1000.0, 250.0);
  // Queries, keys, values and the result: 1000 + 250 + 250 + 1000, read and written both ways.
  CHECK(moved(layer.forward, "head transposes") == std::pair(2 * 2500.0, 2 * 2500.0));
  CHECK(moved(layer.backward, "head transposes backward") == std::pair(2 * 2500.0, 2 * 2500.0));
  // 500 keys and values are written four times; what comes back is added up.
  CHECK(moved(layer.forward, "key-value repetition") == std::pair(2 * 500.0, 2 * 2000.0));
  CHECK(moved(layer.backward, "key-value repetition backward") == std::pair(2 * 2000.0, 2 * 500.0));
  // Queries and keys, as fp32 numbers.
  CHECK(moved(layer.forward, "rotary embedding rotation") == std::pair(4.0 * 1250, 4.0 * 1250));
  // Queries alone have keys of their own each; flash attention reads heads where they lie.
  options.attention = AttentionKind::flash;
  Layer flash;
  append_plain_copies(flash, llama, options, 1000.0, 1000.0);
  CHECK(flash.forward.size() == 3);
}

TEST_CASE("a compiler merges what maps numbers one by one; what sums up as well is a kernel of its own") {
  for (const auto& kernels :
       {plain_bias(Bytes(2.0)), plain_layer_norm(Bytes(2.0)), plain_layer_norm(Bytes(4.0)), plain_rms_norm(Bytes(2.0)),
        plain_rms_norm(Bytes(4.0)), plain_input_casts(Bytes(2.0), 3), plain_wide_residual(Bytes(2.0)),
        plain_scores(Bytes(2.0), true), plain_scores(Bytes(4.0), true)}) {
    for (const StreamBytes& kernel : kernels) {
      INFO(kernel.name);
      // A weight of 2 bytes has its gradient, a sum over tokens, in the same kernels.
      const bool sums = kernel.kind == StreamingKind::reduction ||
                        (std::string(kernel.name) == "weight" && kernel.forward_written == 2.0);
      CHECK(kernel.fusible == !sums);
    }
  }
  // A gate's product has two results on its way back; a table's gradient is cleared.
  CHECK_FALSE(plain_gated_activation(Bytes(2.0)).back().fusible);
  CHECK_FALSE(plain_table_gradient(true).front().fusible);
  CHECK_FALSE(plain_table_gradient(false).front().fusible);
}

TEST_CASE("no kernel that reduces, gathers or updates is merged into others, in any family and either code") {
  std::vector<Model> models = {build_transformer(transformer_preset("qwen3-30b-a3b"), "experts", {}),
                               build_transformer(transformer_preset("nemotron-h-8b"), "hybrid", {})};
  for (const TransformerFamily family :
       {TransformerFamily::gpt, TransformerFamily::bert, TransformerFamily::llama, TransformerFamily::mpt}) {
    for (const KernelSet kernels : {KernelSet::fused, KernelSet::unfused}) models.push_back(built(family, kernels));
  }
  for (const Model& model : models) {
    for (const LayerGroup& group : model.layers) {
      for (const Operator& op : group.layer.operators()) {
        const auto* work = std::get_if<Streaming>(&op.work);
        if (work == nullptr || work->kind == StreamingKind::elementwise) continue;
        INFO(op.name);
        CHECK_FALSE(work->fusible);
      }
    }
  }
}

TEST_CASE("what plain kernels move on their way back, per number") {
  const auto backward = [](const std::vector<StreamBytes>& kernels) {
    double bytes = 0.0;
    for (const StreamBytes& kernel : kernels) bytes += kernel.backward_read + kernel.backward_written;
    return bytes;
  };
  // A layer norm reads the gradient once and x twice, 12 bytes, and writes 4; of 2-byte numbers half of that.
  CHECK(backward(plain_layer_norm(Bytes(4.0))) == 16.0);
  CHECK(backward(plain_layer_norm(Bytes(2.0))) == 8.0);
  // A root-mean-square norm of fp32 numbers: square 24 + 16, what the mean spreads 4, scaling and weight 16 + 8 each.
  // Of 2-byte numbers: casts 6 each, and the weight, and its gradient, 8 + 4.
  CHECK(backward(plain_rms_norm(Bytes(2.0))) == 6 + 40 + 4 + 24 + 6 + 12);
  CHECK(backward(plain_rms_norm(Bytes(4.0))) == 40 + 4 + 24 + 24);
  // Three casts widen 2 bytes to 4; two sums read 8 and write 4.
  CHECK(backward(plain_input_casts(Bytes(2.0), 3)) == 3 * 6 + 2 * 12);
  // A branch's gradient is narrowed, 4 to 2, and the sum of both reads 8 and writes 4.
  CHECK(backward(plain_wide_residual(Bytes(2.0))) == 6 + 12);
  // SiLU reads 2 and writes 2, going back it reads two numbers; the product of two reads two and writes one, going back
  // it does so twice, in two kernels.
  CHECK(forward_bytes(plain_gated_activation(Bytes(2.0))) == 4 + 6);
  CHECK(backward(plain_gated_activation(Bytes(2.0))) == 6 + 2 * 6);
  // Scaling 4, casts 6 + 6, and a softmax whose two inputs and result are 2 bytes wider than counted; fp32: scaling.
  CHECK(backward(plain_scores(Bytes(2.0), true)) == 4 + 12 + 6);
  CHECK(backward(plain_scores(Bytes(2.0), false)) == 4.0);
  CHECK(backward(plain_scores(Bytes(4.0), true)) == 8.0);
  CHECK(backward(plain_bias(Bytes(2.0))) == 2.0);
  // A table's gradient is cleared; one that the logits share is also added to theirs: two read, one written.
  CHECK(backward(plain_table_gradient(false)) == 4.0);
  CHECK(backward(plain_table_gradient(true)) == 4.0 + 12.0);
}

TEST_CASE("Fusions take the place of plain kernels one by one") {
  BuildOptions options;
  options.code = code_with(KernelSet::unfused);
  options.casts_weights = options.code.cache_cast_weights;
  const auto names = [&](Fusions fusions) {
    options.code.fusions = fusions;
    std::string all;
    for (const LayerGroup& group : build_transformer(small(TransformerFamily::llama), "small", options).layers) {
      for (const Operator& op : group.layer.forward) all += op.name + ";";
    }
    return all;
  };
  const auto has = [](const std::string& all, const char* name) { return all.find(name) != std::string::npos; };
  const std::string plain = names({});
  for (const char* name : {"attention norm mean;", "rotary embedding rotation;", "activation silu;"}) {
    INFO(name);
    CHECK(has(plain, name));
  }
  CHECK_FALSE(has(names({Fusion::norm}), "attention norm mean;"));
  CHECK(has(names({Fusion::norm}), "activation silu;"));
  CHECK_FALSE(has(names({Fusion::rotary}), "rotary embedding rotation;"));
  CHECK_FALSE(has(names({Fusion::activation}), "activation silu;"));
}
