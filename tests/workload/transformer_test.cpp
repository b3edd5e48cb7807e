// Parameter counts and FLOPs of transformers against published ones.
#include "model/workload/transformer.hpp"

#include "model/base/error.hpp"
#include "model/workload/transformer_parameters.hpp"
#include "tests/workload/models.hpp"

using namespace foretrain;
using namespace foretrain::test;

namespace {

TransformerConfig gpt(std::int64_t layers, std::int64_t hidden, std::int64_t heads, std::int64_t vocabulary,
                      std::int64_t sequence) {
  return transformer(TransformerFamily::gpt, {layers, hidden, heads, heads, 4 * hidden, vocabulary, sequence});
}

TransformerConfig llama(std::int64_t layers, std::int64_t hidden, std::int64_t heads, std::int64_t kv_heads,
                        std::int64_t ffn, std::int64_t vocabulary) {
  return transformer(TransformerFamily::llama, {layers, hidden, heads, kv_heads, ffn, vocabulary, 8192});
}

}  // namespace

TEST_CASE("parameter counts are the published ones") {
  // GPT-2 small: 124,439,808 (OpenAI's release as counted by transformers).
  CHECK(transformer_parameters(gpt(12, 768, 12, 50257, 1024)) == Approx(124439808.0).epsilon(1e-6));
  // GPT-3: 174.6 billion (arXiv 2005.14165 with V = 50,257), 1 % for the rounding of "175B".
  CHECK(transformer_parameters(gpt(96, 12288, 96, 50257, 2048)) == Approx(175e9).epsilon(0.01));
  // Llama 3.1 8B: 8,030,261,248; 70B: 70,553,706,496 (model cards).
  CHECK(transformer_parameters(llama(32, 4096, 32, 8, 14336, 128256)) == Approx(8030261248.0).epsilon(1e-6));
  CHECK(transformer_parameters(llama(80, 8192, 64, 8, 28672, 128256)) == Approx(70553706496.0).epsilon(1e-6));
}

TEST_CASE("forward FLOPs follow 2·P + attention") {
  // Per token 24·h²·L for the blocks' products, 4·s·h·L for both attention products (half of it when causal), 2·h·V for
  // the logits (arXiv 2104.04473, appendix; there without the causal saving).
  const TransformerConfig c = gpt(24, 2048, 16, 51200, 2048);
  const Model model = build_transformer(c, "gpt", {});
  const double h = 2048;
  const double per_token = 24 * (24 * h * h + 0.5 * 4 * 2048 * h) + 2 * h * 51200;
  CHECK(model.forward_flops_per_sample.value() == Approx(2048 * per_token).epsilon(0.01));
}

TEST_CASE("tensor parallelism divides a block's parameters and arithmetic") {
  const TransformerConfig c = gpt(2, 1024, 16, 32000, 1024);
  const Model whole = build_transformer(c, "gpt", {});
  BuildOptions options;
  options.tensor = 4;
  const Model quarter = build_transformer(c, "gpt", options);
  // Norm parameters are on every rank; they are 4·h of about 12·h².
  CHECK(quarter.layers[1].layer.parameters == Approx(whole.layers[1].layer.parameters / 4.0).epsilon(0.002));
  CHECK(quarter.forward_flops_per_sample.value() == Approx(whole.forward_flops_per_sample.value()).epsilon(1e-9));
  // Two all-reduces of the whole activation a pass: b·s·h elements of 2 bytes.
  REQUIRE(quarter.layers[1].layer.forward_collectives.size() == 1);
  CHECK(quarter.layers[1].layer.forward_collectives[0].count == 2);
  CHECK(quarter.layers[1].layer.forward_collectives[0].size.value() == Approx(2.0 * 1024 * 1024));
}

TEST_CASE("narrow gathers of fp8 take a byte a number between tensor ranks, others two; sums take two") {
  const TransformerConfig c = gpt(2, 1024, 16, 32000, 1024);
  BuildOptions options;
  options.tensor = 4;
  options.sequence_parallel = true;
  options.precision = Precision::fp8;
  for (const bool fp8_all_gather : {true, false}) {
    options.code.fp8_all_gather = fp8_all_gather;
    const Layer layer = block_of(c, options);
    for (const auto* collectives : {&layer.forward_collectives, &layer.backward_collectives}) {
      for (const LayerCollective& call : *collectives) {
        const bool narrow = fp8_all_gather && call.operation == CollectiveOperation::all_gather;
        CHECK(call.size.value() == Approx((narrow ? 1.0 : 2.0) * 1024 * 1024));
      }
    }
  }
}

TEST_CASE("gathered inputs may be kept: of a block's two halves and of the logits") {
  // Inputs of 1,024 tokens × 1,024 numbers × 2 bytes whole, of which a rank's own part is a quarter.
  const TransformerConfig c = gpt(2, 1024, 16, 32000, 1024);
  BuildOptions options;
  options.tensor = 4;
  options.sequence_parallel = true;
  const Model again = build_transformer(c, "gpt", options);
  options.code.keep_gathered_inputs = true;
  const Model kept = build_transformer(c, "gpt", options);
  const Layer &own_block = again.layers[1].layer, &whole_block = kept.layers[1].layer;
  const Layer &own_head = again.layers[2].layer, &whole_head = kept.layers[2].layer;
  CHECK((whole_block.kept() - own_block.kept()).value() == Approx(2.0 * 0.75 * 1024 * 1024 * 2));
  CHECK((whole_head.loss_buffers - own_head.loss_buffers).value() == Approx(0.75 * 1024 * 1024 * 2));
}

TEST_CASE("fused modules keep the operands of short products as they cast them, plain code what the cast read") {
  // Of a block's numbers a token two norms' outputs and the activation function's, four times as wide, are read by
  // products alone. The attention's output is read by its own backward pass as well, and kept twice.
  const TransformerConfig c = gpt(2, 1024, 16, 32000, 1024);
  const auto kept = [&](Precision precision, KernelSet kernels) {
    BuildOptions options;
    options.precision = precision;
    options.code.kernels = kernels;
    return block_of(c, options).kept().value();
  };
  const double width = 1024.0 * 1024.0, bf16 = kept(Precision::bf16, KernelSet::fused);
  CHECK(bf16 - kept(Precision::fp8, KernelSet::fused) == Approx((2 + 4 - 1) * width));
  CHECK(bf16 - kept(Precision::mxfp8, KernelSet::fused) == Approx((6 * (1 - 1.0 / 32) - (1 + 1.0 / 32)) * width));
  CHECK(kept(Precision::fp8, KernelSet::unfused) == Approx(kept(Precision::bf16, KernelSet::unfused)));
}

TEST_CASE("activation memory follows the published formula") {
  // arXiv 2205.05198, equation 2: s·b·h·(34 + 5·a·s/h) bytes a layer with 2-byte numbers, standard attention; equation
  // 4 with tensor and sequence parallelism: the same divided by t.
  const TransformerConfig c = gpt(2, 1024, 16, 32000, 1024);
  BuildOptions options;
  options.attention = AttentionKind::standard;
  const double expected = 1024.0 * 1024.0 * (34.0 + 5.0 * 16 * 1024 / 1024.0);
  const Layer block = block_of(c, options);
  CHECK(block.kept().value() == Approx(expected));
  CHECK(block.output.value() == 2.0 * 1024 * 1024);  // what the next stage of a pipeline receives
  CHECK(block.kept(Recompute::full).value() == 2.0 * 1024 * 1024);
  CHECK(build_transformer(c, "gpt", options).layers[0].layer.output.value() == 2.0 * 1024 * 1024);
  options.tensor = 4;
  options.sequence_parallel = true;
  CHECK(block_of(c, options).kept().value() == Approx(expected / 4.0));
}

TEST_CASE("a ring over context ranks divides a causal attention evenly; a window stays on the last rank") {
  // 8,192 tokens on four ranks: 2,048 queries each, and four steps that each do the lower half of 2,048 x 2,048 pairs:
  // 8192² / 2 / 4 pairs in all (and half of 8,192, the diagonal). In order, the last rank would see 7/4 of that.
  TransformerConfig config = llama(32, 4096, 32, 8, 14336, 128256);
  BuildOptions options;
  options.context = 4;
  const auto core = [&] { return std::get<Attention>(named(block_of(config, options).forward, "attention").work); };
  CHECK(scores(core()) / 32 == 8192.0 * 8192 / 2 / 4 + 8192 / 2);
  CHECK(core().ring);
  // PyTorch's ring runs its steps as kernels alone, and merges three of them by hand: of 2,048 queries of 32 heads of
  // 128, in three of four parts widened (2 and 4 bytes), subtracted (8, 4), scaled (4, 4), subtracted (8, 4), half of
  // the time joined (4, 4): 18.5 bytes read and 14 written.
  options.code.kernels = KernelSet::unfused;
  CHECK_FALSE(core().ring);
  CHECK(moved(block_of(config, options).forward, "ring sums") ==
        std::pair(3.0 * 2048 * 4096 * 18.5, 3.0 * 2048 * 4096 * 14));
  options.code.kernels = KernelSet::fused;
  options.code.context_sharding = ContextSharding::contiguous;
  CHECK(scores(core()) / 32 == Approx(8192.0 * 8192 / 2 / 4 * 7 / 4).epsilon(0.001));
  CHECK_FALSE(core().ring);
  options.code.context_sharding = ContextSharding::zigzag;
  config.window = 1024;
  CHECK(scores(core()) / 32 == 2048.0 * 1024);
}

TEST_CASE("context ranks that divide heads exchange queries, keys, values and output by all-to-alls") {
  // 8,192 tokens on c ranks, 32 heads of 128, eight of them for keys, in bf16. Each rank attends to the whole sequence
  // with 32 / c heads, and sends 8192 / c tokens of all of them. Over 16 ranks eight key heads are repeated to 16.
  const TransformerConfig config = llama(2, 4096, 32, 8, 14336, 1000);
  BuildOptions options;
  const auto layer = [&](int ranks, ContextMethod method) {
    options.context = ranks;
    options.context_method = method;
    return block_of(config, options);
  };
  for (const int ranks : {4, 16}) {
    const Layer ulysses = layer(ranks, ContextMethod::ulysses), ring = layer(ranks, ContextMethod::ring);
    const auto core = std::get<Attention>(named(ulysses.forward, "attention").work);
    CHECK((core.heads == 32 / ranks && core.kv_heads == std::max(8 / ranks, 1)));
    CHECK((core.query_length == 8192 && core.key_length == 8192 && core.batch == 1 && !core.ring));
    CHECK(scores(core) == 32.0 / ranks * (8192.0 * 8192 / 2 + 8192 / 2));
    const double queries = 8192.0 / ranks * 32 * 128 * 2, keys = 8192.0 / ranks * std::max(8, ranks) * 128 * 2;
    for (const auto& calls : {ulysses.forward_collectives, ulysses.backward_collectives}) {
      REQUIRE(calls.size() == 2);
      for (const LayerCollective& call : calls)
        CHECK((call.operation == CollectiveOperation::all_to_all && call.count == 2));
      CHECK((calls[0].size.value() == queries && calls[1].size.value() == keys));
    }
    CHECK(std::get<Streaming>(named(ulysses.forward, "head copies").work).read.value() == 2 * (queries + keys));
    // Kept beside what a ring keeps: the output as the product reads it, and the repeated keys and values.
    const double repeated = 2 * (keys - 8192.0 / ranks * 8 * 128 * 2);
    CHECK((ulysses.kept() - ring.kept()).value() == Approx(queries + repeated));
  }
  // Gathered first, keys and values are the ring's, attended to by one kernel.
  const Layer gathered = layer(4, ContextMethod::all_gather), ring = layer(4, ContextMethod::ring);
  CHECK(gathered.forward_collectives == ring.forward_collectives);
  auto core = std::get<Attention>(named(ring.forward, "attention").work);
  CHECK(core.ring);
  core.ring = false;
  CHECK(std::get<Attention>(named(gathered.forward, "attention").work) == core);
}

TEST_CASE("bytes of what stands beside a block's products, by hand") {
  // 8192 tokens of a block of 4096 with 32 heads of 128, eight of them for keys, in bf16.
  const Model model = build_transformer(llama(2, 4096, 32, 8, 14336, 1000), "llama", {});
  const Layer& block = model.layers[1].layer;
  // Queries and keys are rotated in place; values are not.
  const double rotated = 8192.0 * (32 + 8) * 128 * 2;
  CHECK(moved(block.forward, "rotary embedding") == std::pair(rotated, rotated));
  CHECK(moved(block.backward, "rotary embedding backward") == std::pair(rotated, rotated));
  // Flash attention is one kernel, and going back a further one for the gradients' row sums.
  CHECK(named(block.forward, "attention").kernels == 1);
  CHECK(named(block.backward, "attention backward").kernels == 2);
  // Logits are widened (read 2, write 4), reduced (read 4), and their logarithms written (read 4, write 4); the
  // gradient is written (4), combined (read 8, write 4) and narrowed (read 4, write 2).
  const double logits = 8192.0 * 1000;
  const Layer& head = model.layers.back().layer;
  CHECK(moved(head.forward, "cross-entropy") == std::pair(10.0 * logits, 8.0 * logits));
  CHECK(moved(head.backward, "cross-entropy backward") == std::pair(12.0 * logits, 10.0 * logits));
  CHECK(named(head.backward, "cross-entropy backward").kernels == 3);
}

TEST_CASE("a dropout's mask is a byte beside each number that passes") {
  BuildOptions options;
  options.code.kernels = KernelSet::unfused;
  options.precision = Precision::fp32;
  const TransformerConfig shape = gpt(2, 256, 4, 1000, 128);
  const Layer block = block_of(shape, options);
  int masks = 0;
  for (const auto* pass : {&block.forward, &block.backward}) {
    for (const Operator& op : *pass) {
      if (op.name.find(" dropout") == std::string::npos) continue;
      const auto work = std::get<Streaming>(op.work);
      const double numbers = 128.0 * 256;
      const bool forward = pass == &block.forward;
      INFO(op.name);
      CHECK((forward ? work.read : work.written).value() == 4.0 * numbers);
      CHECK((forward ? work.written : work.read).value() == 5.0 * numbers);
      ++masks;
    }
  }
  CHECK(masks == 4);  // of both halves, both ways
}

TEST_CASE("a fused residual with dropout writes its mask, and reads that back") {
  // 128 tokens of 256 numbers of 2 bytes: branch and stream are read and the sum written, with a byte of mask.
  const Layer block = build_transformer(gpt(2, 256, 4, 1000, 128), "gpt", {}).layers[1].layer;
  const double numbers = 128.0 * 256;
  int residuals = 0;
  for (const Operator& op : block.operators()) {
    if (!op.name.starts_with("ffn residual")) continue;
    const auto work = std::get<Streaming>(op.work);
    const bool forward = op.name == "ffn residual";
    CHECK(work.read.value() == (forward ? 4.0 : 3.0) * numbers);
    CHECK(work.written.value() == (forward ? 3.0 : 2.0) * numbers);
    ++residuals;
  }
  CHECK(residuals == 2);
}

TEST_CASE("BERT predicts masked tokens alone: 15 % of them, one at least") {
  const auto predicted = [](std::int64_t sequence) {
    TransformerConfig c = gpt(2, 64, 1, 1000, sequence);
    c.family = TransformerFamily::bert;
    const Layer head = build_transformer(c, "bert", {}).layers.back().layer;
    return product(head.forward, "logits").m;
  };
  CHECK(predicted(512) == 77);  // 76.8
  CHECK(predicted(20) == 3);
  CHECK(predicted(2) == 1);
}
