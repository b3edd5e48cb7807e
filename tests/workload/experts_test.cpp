// Mixtures of experts and latent attention: parameters, arithmetic and what travels, by hand.
#include "model/workload/transformer_parameters.hpp"
#include "tests/workload/models.hpp"

using namespace foretrain;
using namespace foretrain::test;

namespace {

Model build(const TransformerConfig& config, const BuildOptions& options) {
  return build_model({"experts", config}, options);
}

const Layer& experts_of(const Model& model) {
  for (const LayerGroup& group : model.layers) {
    if (group.layer.routes_tokens) return group.layer;
  }
  throw std::logic_error("no layer of experts");
}

double bytes_of(const Layer& layer, CollectiveOperation operation, LayerCollective::Group group) {
  double sum = 0.0;
  for (const LayerCollective& call : layer.forward_collectives) {
    if (call.operation == operation && call.group == group) sum += call.size.value() * call.count;
  }
  return sum;
}

constexpr std::int64_t tokens = 4096;
using enum CollectiveOperation;
using Group = LayerCollective::Group;

}  // namespace

TEST_CASE("a token meets its own experts, whatever the number of ranks that hold them") {
  // Qwen3 30B: 8 of 128 experts of 3 matrices of 2048 × 768, two operations each: 2 · 8 · 3 · 2048 · 768 = 75.5 MFLOP a
  // token. Spread over 1, 8 and 64 ranks, a rank works on 128, 16 and 2 experts and as many rows as without.
  for (const int ranks : {1, 8, 64}) {
    BuildOptions options;
    options.expert = ranks;
    const Model model = build(transformer_preset("qwen3-30b-a3b"), options);
    const Layer& layer = experts_of(model);
    const double work = flops(named(layer.forward, "ffn up")).value() + flops(named(layer.forward, "ffn down")).value();
    CHECK(work == Approx(75'497'472.0 * tokens));
    const Matmul& up = product(layer.forward, "ffn up");
    CHECK(up.batch == 128 / ranks);
    CHECK(up.m == tokens * 8 * ranks / 128);
    CHECK(up.grouped);
    // 128 · 3 · 2048 · 768 = 604 million parameters a layer, divided by the ranks.
    CHECK(layer.expert_parameters == Approx(603'979'776.0 / ranks));
  }
}

TEST_CASE("tokens are exchanged among the ranks that hold experts, there and back") {
  // 4,096 tokens · 8 experts · 2,048 numbers of 2 bytes = 134 MB each way; nothing where a rank holds all experts.
  BuildOptions options;
  CHECK(bytes_of(experts_of(build(transformer_preset("qwen3-30b-a3b"), options)), all_to_all, Group::expert) == 0.0);
  options.expert = 8;
  const Model spread = build(transformer_preset("qwen3-30b-a3b"), options);
  CHECK(bytes_of(experts_of(spread), all_to_all, Group::expert) == 2 * 134'217'728.0);
  // Four tensor ranks with sequence parallelism route a quarter of the tokens each, and gather what their part of an
  // expert gets: 4,096 · 8 · 2,048 · 2 bytes again. The attention gathers its 4,096 · 2,048 · 2 bytes as ever.
  options.tensor = 4;
  options.sequence_parallel = true;
  const Model divided = build(transformer_preset("qwen3-30b-a3b"), options);
  CHECK(bytes_of(experts_of(divided), all_to_all, Group::expert) == 2 * 134'217'728.0 / 4);
  CHECK(bytes_of(experts_of(divided), all_gather, Group::tensor) == 134'217'728.0 + 16'777'216.0);
}

TEST_CASE("folded experts lie whole on tensor ranks") {
  // Four tensor ranks and eight beside them hold 128 / 32 = 4 whole experts each. A rank routes 1,024 of the 4,096
  // tokens, and its experts get as many rows as 1,024 tokens send: 1,024 · 8 / 4 = 2,048 each. Nothing is gathered.
  BuildOptions options;
  options.tensor = 4;
  options.expert = 8;
  options.sequence_parallel = true;
  const double divided = experts_of(build(transformer_preset("qwen3-30b-a3b"), options)).expert_parameters;
  options.folded_experts = true;
  const Model model = build(transformer_preset("qwen3-30b-a3b"), options);
  const Layer& layer = experts_of(model);
  const Matmul& up = product(layer.forward, "ffn up");
  CHECK(up.batch == 4);
  CHECK(up.m == 2048);
  CHECK(up.n == 2 * 768);
  CHECK(layer.expert_parameters == Approx(divided));
  CHECK(bytes_of(layer, all_to_all, Group::expert) == 2 * 134'217'728.0 / 4);
  CHECK(bytes_of(layer, all_gather, Group::tensor) == 16'777'216.0);
}

TEST_CASE("the busiest experts take longer, the mathematics stays the same") {
  // With 1.5 times the mean a rank's experts see 1.5 times the rows. A capacity of 1.25 pads or drops to 1.25.
  BuildOptions options;
  options.expert = 8;
  TransformerConfig config = transformer_preset("qwen3-30b-a3b");
  const Model even = build(config, options);
  config.expert_imbalance = 1.5;
  const Model uneven = build(config, options);
  const auto rows = [](const Model& model) { return product(experts_of(model).forward, "ffn up").m; };
  CHECK(rows(even) == 2048);
  CHECK(rows(uneven) == 3072);
  CHECK(uneven.forward_flops_per_sample == even.forward_flops_per_sample);
  // Bytes that reach the ranks: the hottest 1.5 times as much; with a capacity 1.25 times as much everywhere.
  const auto exchange = [](const Model& model) {
    for (const LayerCollective& call : experts_of(model).forward_collectives) {
      if (call.operation == all_to_all) return std::pair(call.size.value(), call.imbalance);
    }
    return std::pair(0.0, 0.0);
  };
  CHECK(exchange(even) == std::pair(134'217'728.0, 1.0));
  CHECK(exchange(uneven) == std::pair(134'217'728.0, 1.5));
  config.expert_capacity = 1.25;
  CHECK(rows(build(config, options)) == 2560);
  CHECK(exchange(build(config, options)) == std::pair(1.25 * 134'217'728.0, 1.0));
}

TEST_CASE("DeepSeek-V3 begins with three layers without experts") {
  // 3 of 61 layers have one feed-forward half of 18,432; the others 256 experts and a shared one of 2,048. A rank of 64
  // holds four experts: 4 · 3 · 7168 · 2048 = 176 million parameters a layer.
  BuildOptions options;
  options.expert = 64;
  const Model model = build(transformer_preset("deepseek-v3"), options);
  REQUIRE(model.layers.size() == 4);
  CHECK(model.layers[1].repeat == 3);
  CHECK(model.layers[2].repeat == 58);
  CHECK(product(model.layers[1].layer.forward, "ffn up").n == 2 * 18432);
  CHECK(product(model.layers[2].layer.forward, "shared ffn up").n == 2 * 2048);
  CHECK(experts_of(model).expert_parameters == Approx(4.0 * 3 * 7168 * 2048));
}

TEST_CASE("latent attention goes down to few numbers a token and up to all heads") {
  // DeepSeek-V3: queries 7168 → 1536 → 128 · (128 + 64), keys and values 7168 → 512 + 64, 512 → 128 · (128 + 128),
  // output 128 · 128 → 7168: 187,105,280 weights. The scores' products take 192 and 128 elements a head, 160 on
  // average.
  const TransformerConfig config = transformer_preset("deepseek-v3");
  const double weights = 7168.0 * 1536 + 1536.0 * 128 * 192 + 7168.0 * 576 + 512.0 * 128 * 256 + 128.0 * 128 * 7168;
  CHECK(weights == 187'105'280.0);
  const Model model = build(config, {});
  const std::vector<Operator>& forward = model.layers[1].layer.forward;
  double products = 0.0;
  for (const char* name : {"query down projection", "query projection", "key-value down projection",
                           "key-value projection", "attention output"}) {
    products += flops(named(forward, name)).value();
  }
  CHECK(products == Approx(2.0 * weights * tokens));
  CHECK(std::get<Attention>(named(forward, "attention").work).head_dim == 160);
}

TEST_CASE("latent attention has those weights, and the scales of its latent vectors' norms") {
  const TransformerConfig config = transformer_preset("deepseek-v3");
  CHECK(transformer_counts(config).attention == 187'105'280.0 + 1536 + 512);
  // Queries without a latent vector of their own: 7168 x 128 · 192 instead of 7168 x 1536 and 1536 x 128 · 192.
  TransformerConfig direct = config;
  direct.q_lora_rank = 0;
  CHECK(transformer_counts(direct).attention ==
        187'105'280.0 + 512 - 7168.0 * 1536 - 1536.0 * 128 * 192 + 7168.0 * 128 * 192);
}

TEST_CASE("What latent attention has to remember of a token is its latent vector") {
  // 512 numbers and the 64 of its position, 2 bytes each: 1,152 bytes a token and layer, where 128 heads with keys of
  // 192 and values of 128 numbers have 81,920.
  const TransformerConfig config = transformer_preset("deepseek-v3");
  CHECK(2 * (config.kv_lora_rank + config.rope_head_dim) == 1'152);
  CHECK(2 * config.heads * (config.head_dim + config.rope_head_dim + config.v_head_dim) == 81'920);
  const Model model = build(config, {});
  CHECK(product(model.layers[1].layer.forward, "key-value down projection").n == 576);
}

TEST_CASE("selective_modules drops what norms, activation functions and latent vectors bring back") {
  // A layer with experts of DeepSeek-V3, in bytes a token. Outputs of two norms: 2 · 7168 · 2. Queries, keys and values
  // of 128 heads of 128, less the latent vectors that stay, 1536 + 576: (3 · 16,384 - 2,112) · 2. Outputs of the
  // activation functions of 8 experts and the shared one: 9 · 2048 · 2. In fp8 these outputs are kept as one byte each,
  // and the activation functions' 18 · 2048 inputs become half as long; the copies for experts are that already.
  BuildOptions options;
  const double latent = (3.0 * 16384 - 2112) * 2;
  const auto dropped = [&] {
    const Layer layer = build(transformer_preset("deepseek-v3"), options).layers[2].layer;
    return (layer.kept() - layer.kept(Recompute::selective_modules)).value();
  };
  CHECK(dropped() == Approx((2.0 * 7168 * 2 + latent + 9.0 * 2048 * 2) * tokens));
  options.precision = Precision::fp8;
  CHECK(dropped() == Approx((2.0 * 7168 + latent + 9.0 * 2048 + 18.0 * 2048) * tokens));
  // If autograd keeps the inputs of casts, the copies for experts become half as long, too.
  options.code.kernels = KernelSet::unfused;
  CHECK(dropped() == Approx((2.0 * 7168 * 2 + latent + 9.0 * 2048 * 2 + 18.0 * 2048 + 8.0 * 7168) * tokens));
}

TEST_CASE("tokens go to their experts and come back, each way once") {
  BuildOptions options;
  options.expert = 8;
  const Model model = build(transformer_preset("qwen3-30b-a3b"), options);
  const Layer& layer = experts_of(model);
  for (const auto* collectives : {&layer.forward_collectives, &layer.backward_collectives}) {
    std::vector<bool> combines;
    for (const LayerCollective& call : *collectives) {
      if (call.operation == all_to_all) combines.push_back(call.combines);
    }
    REQUIRE(combines.size() == 2);
    CHECK(std::ranges::count(combines, true) == 1);
    if (collectives == &layer.forward_collectives) CHECK_FALSE(combines.front());
  }
}

TEST_CASE("An expert's rows are padded and unpadded around fp8 products, outside graphs and without a capacity") {
  // 4,096 tokens to 8 experts: 32,768 rows of 2,048 numbers of 2 bytes, read and written.
  BuildOptions options;
  options.expert = 8;
  TransformerConfig config = transformer_preset("qwen3-30b-a3b");
  const auto padded = [&](Precision precision) {
    options.precision = precision;
    const Model model = build(config, options);
    double sum = 0.0;
    for (const auto* pass : {&experts_of(model).forward, &experts_of(model).backward}) {
      for (const Operator& op : *pass) {
        if (op.name.starts_with("row ")) sum += minimum_traffic(op).value();
      }
    }
    return sum;
  };
  CHECK(padded(Precision::bf16) == 0.0);
  CHECK(padded(Precision::fp8) == Approx(4.0 * 2.0 * 2.0 * tokens * 8 * 2048));
  options.in_graph = true;
  CHECK(padded(Precision::fp8) == 0.0);
  options.in_graph = false;
  config.expert_capacity = 1.0;
  CHECK(padded(Precision::fp8) == 0.0);
}
