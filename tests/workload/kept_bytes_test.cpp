// Activations that layers keep and recompute, by hand.
#include "model/workload/transformer_parameters.hpp"
#include "tests/workload/models.hpp"

using namespace foretrain;
using namespace foretrain::test;

namespace {

constexpr double tokens = 128, h = 256, q = 256, kv = 128, f = 1024, heads = 4;

/// 256 wide, four heads of 64, of which two share keys and values, 1,024 wide between a block's last products.
TransformerConfig narrow(TransformerFamily family, bool gated, std::vector<LayerKind> pattern = {}) {
  TransformerConfig c = transformer(family, {2, 256, 4, 2, 1024, 1000, 128});
  if (!pattern.empty()) c.layers = static_cast<std::int64_t>(pattern.size());
  c.pattern = std::move(pattern);
  c.gated_ffn = gated;
  c.mamba = {.heads = 8, .head_dim = 64, .state = 32, .groups = 2, .kernel = 4, .chunk = 64};
  return c;
}

/// "name columns" of the products, and the names of everything else.
std::vector<std::string> words(const std::vector<Operator>& operators, bool products) {
  std::vector<std::string> result;
  for (const Operator& op : operators) {
    const auto* product = std::get_if<Matmul>(&op.work);
    if (products && product != nullptr) result.push_back(op.name + " " + std::to_string(product->n));
    if (!products && product == nullptr) result.push_back(op.name);
  }
  return result;
}

double kept_by_name(const Layer& layer) { return layer.kept(Recompute::selective_operators).value(); }

}  // namespace

TEST_CASE("Selective recomputation by operators keeps every other product's output, attention's and the input") {
  // In 2 bytes, and fp32 sums of exponentials for every head. llama's first, third, fifth and seventh product are those
  // of queries, values, the gate and the last one, whose result a compiler drops.
  const double sums = 4 * heads;
  BuildOptions options;
  const TransformerConfig llama = narrow(TransformerFamily::llama, true);
  CHECK(kept_by_name(block_of(llama)) == tokens * (2 * (h + q + q + kv + f + h) + sums));
  options.compiled = true;
  CHECK(kept_by_name(block_of(llama, options)) == tokens * (2 * (h + q + q + kv + f) + sums));
  // Elsewhere queries, keys and values are one product, the gate and what it gates another.
  CHECK(kept_by_name(block_of(narrow(TransformerFamily::gpt, false))) ==
        tokens * (2 * (h + q + q + 2 * kv + f) + sums));
  CHECK(kept_by_name(block_of(narrow(TransformerFamily::gpt, true))) ==
        tokens * (2 * (h + q + q + 2 * kv + 2 * f) + sums));
  // Two tensor ranks halve all that, and with sequence parallelism keep two results of reduce-scatters more.
  options.compiled = false;
  options.tensor = 2;
  options.sequence_parallel = true;
  CHECK(kept_by_name(block_of(narrow(TransformerFamily::gpt, false), options)) ==
        tokens * (2 * (3 * h + q + q + 2 * kv + f) + sums) / 2);
}

TEST_CASE("Selective recomputation by operators runs the other products again, not attention and not the last one") {
  const auto again = [](TransformerFamily family) {
    return words(block_of(narrow(family, true)).recomputation[Recompute::selective_operators].again, true);
  };
  using Words = std::vector<std::string>;
  // Of joined products the half, or third, that is not kept.
  CHECK(again(TransformerFamily::llama) == Words{"qkv projection 128", "attention output 256", "ffn up 1024"});
  CHECK(again(TransformerFamily::gpt) == Words{"attention output 256"});
  const Layer llama = block_of(narrow(TransformerFamily::llama, true));
  const Words others = words(llama.recomputation[Recompute::selective_operators].again, false);
  CHECK(std::ranges::count(others, "attention") == 0);
}

TEST_CASE("Selective recomputation by modules runs norms and activation functions again, and nothing else") {
  const Layer layer = block_of(narrow(TransformerFamily::gpt, false));
  CHECK(words(layer.recomputation[Recompute::selective_modules].again, true).empty());
  CHECK(words(layer.recomputation[Recompute::selective_modules].again, false) ==
        std::vector<std::string>{"attention norm", "ffn norm", "activation"});
}

TEST_CASE("A fused attention keeps an fp32 sum for every head and row, which selective recomputation makes again") {
  for (const int tensor : {1, 2}) {
    BuildOptions options;
    options.tensor = tensor;
    const Layer layer = block_of(narrow(TransformerFamily::gpt, false), options);
    CHECK((layer.kept() - layer.kept(Recompute::selective)).value() == 4 * heads / tensor * tokens);
  }
}

TEST_CASE("A hybrid's halves keep the input, the norm's output, and what their products and kernels put out") {
  // 8 Mamba heads of 64 are 512 wide; B and C are 2 groups of 32 each. The projection puts out 512 + 512 + 128 + 8
  // numbers, scan and gated norm 512 each; the convolution runs again.
  const auto built = [](LayerKind kind, int tensor = 1) {
    TransformerConfig c = narrow(TransformerFamily::llama, true, {kind});
    if (kind == LayerKind::experts) {
      c.experts = 8;
      c.experts_per_token = 2;
      c.shared_experts = 1;
    }
    BuildOptions options;
    options.tensor = tensor;
    return block_of(c, options);
  };
  const auto holds = [](const Layer& layer, double widths, double more = 0.0) {
    INFO(layer.name);
    CHECK(layer.kept().value() == tokens * (2 * (2 * h + widths) + more));
    CHECK(layer.kept(Recompute::full).value() == tokens * 2 * h);
    CHECK(layer.output.value() == tokens * 2 * h);
    CHECK(layer.workspace.value() == tokens * 2 * std::max(widths / 2, 2 * h));
  };
  holds(built(LayerKind::mamba), 1160 + 2 * 512);
  // Queries, keys, values and attention's output, and its sums; gate, what it gates and the product of both.
  holds(built(LayerKind::attention), 2 * q + 2 * kv, 4 * heads);
  holds(built(LayerKind::attention, 2), (2 * q + 2 * kv) / 2, 4 * heads / 2);
  holds(built(LayerKind::feed_forward), 3 * f);
  holds(built(LayerKind::feed_forward, 2), 3 * f / 2);
  // Two experts of eight and a shared one; a copy of the token for each of the two.
  holds(built(LayerKind::experts), 3 * (2 + 1) * f + 2 * h);
}

TEST_CASE("A loss keeps fp32 probabilities, and while it runs three fp32 copies of the logits, or fewer") {
  const auto loss = [](Precision precision, bool fused, bool in_place) {
    BuildOptions options;
    options.precision = precision;
    options.code.loss.kind = fused ? Loss::Kind::fused : Loss::Kind::eager;
    options.code.inplace_cross_entropy = in_place;
    return build_transformer(narrow(TransformerFamily::gpt, false), "narrow", options).layers.back().layer;
  };
  const double logits = tokens * 1000;
  CHECK(loss(Precision::bf16, false, false).loss_kept.value() == 4 * logits);
  CHECK(loss(Precision::bf16, false, false).loss_buffers.value() == (12 + 2) * logits);
  CHECK(loss(Precision::fp32, false, false).loss_buffers.value() == 12 * logits);
  CHECK(loss(Precision::bf16, false, true).loss_buffers.value() == (8 + 2) * logits);
  CHECK(loss(Precision::bf16, true, false).loss_kept.value() == 2 * logits);
  CHECK(loss(Precision::bf16, true, false).loss_buffers.value() == 2 * 2 * logits);
}

TEST_CASE("Ranks that gather whole rows of logits send them, join them, and each takes the loss of all") {
  const auto head = [](bool gather) {
    BuildOptions options;
    options.tensor = 4;
    options.code.gather_logits = gather;
    return build_transformer(narrow(TransformerFamily::gpt, false), "narrow", options).layers.back().layer;
  };
  const Layer apart = head(false), whole = head(true);
  const auto moved = [](const std::vector<Operator>& ops, const char* name) {
    return minimum_traffic(named(ops, name)).value();
  };
  const double logits = tokens * 1000;
  CHECK(moved(whole.forward, "cross-entropy") == 4.0 * moved(apart.forward, "cross-entropy"));
  CHECK(moved(whole.backward, "cross-entropy backward") == 4.0 * moved(apart.backward, "cross-entropy backward"));
  CHECK(moved(whole.forward, "joined logits") == 2.0 * 2 * logits);
  CHECK(moved(whole.backward, "joined logits backward") == 2.0 * 2 * logits / 4);
  CHECK(whole.forward_collectives.back().operation == CollectiveOperation::all_gather);
  CHECK(whole.forward_collectives.back().size.value() == 2 * logits);
}

TEST_CASE("A loss in parts holds the logits of one, the hidden states' gradient and the weights'") {
  // 128 tokens, 1,000 words, 256 wide. In eight parts compiled: 16 rows of logits and their gradient, 2 bytes each;
  // hidden states copied (2), their gradient in fp32 (4), which is kept; the weights' gradient (2). Eagerly 14 bytes
  // for each logit. Liger's parts are a power of two of at least 128 / (1,000 / 256 rounded up) = 32 rows, their
  // gradients lie over the logits, and the hidden states' are in 2 bytes.
  const auto head = [](Loss loss, bool compiled) {
    BuildOptions options;
    options.precision = Precision::bf16;
    options.compiled = compiled;
    options.code.loss = loss;
    return build_transformer(narrow(TransformerFamily::llama, true), "narrow", options).layers.back().layer;
  };
  const double weights = 1000 * h;
  const Layer compiled = head({Loss::Kind::chunked, 8}, true), eager = head({Loss::Kind::chunked, 8}, false);
  CHECK(compiled.loss_kept.value() == tokens * h * 4);
  CHECK(compiled.loss_buffers.value() == tokens * h * 6 + 16 * 1000 * 4 + weights * 2);
  CHECK(eager.loss_buffers.value() == tokens * h * 6 + 16 * 1000 * 14 + weights * 2);
  const Layer liger = head({Loss::Kind::fused_linear}, true);
  CHECK(liger.loss_kept.value() == tokens * h * 2);
  CHECK(liger.loss_buffers.value() == tokens * h * 2 + 32 * 1000 * 2 + weights * 2);
  // The same operations as at once, in eight launches; seven sums of the weights' gradient read two and write one.
  const Layer whole = head({Loss::Kind::fused}, true);
  CHECK(product_flops(compiled.forward) == product_flops(whole.forward));
  CHECK(product_flops(compiled.backward) == product_flops(whole.backward));
  CHECK(minimum_traffic(named(compiled.backward, "logits gradient sum")).value() == 7 * weights * 2 * 3);
  CHECK(named(compiled.forward, "logits").kernels == 8);
}

TEST_CASE("Context ranks gather all keys and values of a sequence, and add their gradients up") {
  // Two heads of 64, keys and values, 2 bytes: 512 bytes a token, of all 128.
  BuildOptions options;
  options.context = 2;
  const Layer layer = block_of(narrow(TransformerFamily::llama, true), options);
  std::vector<double> sizes;
  for (const auto* calls : {&layer.forward_collectives, &layer.backward_collectives}) {
    for (const LayerCollective& call : *calls) {
      if (call.group == LayerCollective::Group::context) sizes.push_back(call.size.value());
    }
  }
  CHECK(sizes == std::vector<double>(3, 512.0 * tokens));
}

TEST_CASE("Tensor ranks send an embedding's result, and gather its gradient under sequence parallelism") {
  const auto embedding = [](int tensor, bool sequence_parallel) {
    BuildOptions options;
    options.tensor = tensor;
    options.sequence_parallel = sequence_parallel;
    return build_transformer(narrow(TransformerFamily::llama, true), "narrow", options).layers[0].layer;
  };
  CHECK(embedding(1, false).forward_collectives.empty());
  CHECK(embedding(1, true).backward_collectives.empty());
  CHECK(embedding(2, false).backward_collectives.empty());
  const Layer divided = embedding(2, true);
  REQUIRE(divided.forward_collectives.size() == 1);
  REQUIRE(divided.backward_collectives.size() == 1);
  CHECK(divided.forward_collectives[0].size.value() == 2 * tokens * h);
  CHECK(divided.backward_collectives[0].size.value() == 2 * tokens * h);
}

TEST_CASE("Plain BERT norms its embedding, and no other family does") {
  const auto norms = [](TransformerFamily family, KernelSet kernels) {
    BuildOptions options;
    options.code.kernels = kernels;
    const Layer layer = build_transformer(narrow(family, false), "narrow", options).layers[0].layer;
    return std::ranges::any_of(layer.forward, [](const Operator& op) { return op.name.starts_with("embedding norm"); });
  };
  CHECK(norms(TransformerFamily::bert, KernelSet::unfused));
  CHECK_FALSE(norms(TransformerFamily::bert, KernelSet::fused));
  CHECK_FALSE(norms(TransformerFamily::gpt, KernelSet::unfused));
}

TEST_CASE("Code written out keeps norms' inputs in fp32, what they scaled, and the gate's activation") {
  const TransformerConfig llama = narrow(TransformerFamily::llama, true);
  BuildOptions options;
  // Fused, in 2 bytes. What two norms and the products behind them read, queries, keys, values and attention's output,
  // gate, other half and their product; and a sum of exponentials for every head.
  const double fused = tokens * (2 * (2 * h + 2 * h + 2 * q + 2 * kv + 3 * f) + 4 * heads);
  CHECK(block_of(llama, options).kept().value() == fused);
  options.code.kernels = KernelSet::unfused;
  // x.float() (4) and what is scaled before the weight (2) instead of x (2), twice; silu(gate) beside both halves.
  CHECK(block_of(llama, options).kept().value() == fused + tokens * (2 * 4 * h + 2 * f));
  // Under autocast what is scaled stays in fp32, and so does what a layer norm reads.
  options.casts_weights = true;
  CHECK(block_of(llama, options).kept().value() == fused + tokens * (2 * 6 * h + 2 * f));
  options.compiled = true;
  CHECK(block_of(llama, options).kept().value() == fused);
}
