// Attention and layers that do not fit together.
#include "model/scenario/load/load.hpp"
#include "tests/catch.hpp"
#include "tests/scenario/bad_input.hpp"

using namespace foretrain;

namespace {

constexpr const char* shape = "family: llama, layers: 4, hidden: 1024, heads: 8, vocabulary: 1000, sequence: 1024";

std::string training(const std::string& keys) {
  return "cluster: { node: dgx-a100-80gb, nodes: 1 }\nworkload: { train: { model: { " + std::string(shape) + ", " +
         keys + " } } }\n";
}

TransformerConfig read(const std::string& keys) {
  const Scenario scenario = load_scenario_text(training(keys), "good.yaml", {});
  return std::get<TransformerConfig>(std::get<TrainWorkload>(scenario.workload).model.shape);
}

}  // namespace

TEST_CASE("The kind of attention follows from its keys, or says which of them hold") {
  CHECK(read("window: 256").window == 256);
  CHECK(read("attention_kind: sliding, window: 256, full_attention_every: 2").full_attention_every == 2);
  CHECK(read("attention_kind: full, window: 256").window == 0);
  CHECK(read("kv_lora_rank: 64, rope_head_dim: 32").latent());
  CHECK(read("attention_kind: mla, kv_lora_rank: 64").latent());
  CHECK_FALSE(read("attention_kind: full, kv_lora_rank: 64").latent());
  CHECK(read("layer_pattern: M-M*, mamba_heads: 16").mamba.heads == 16);
}

TEST_CASE("Bad kinds of attention and of layers") {
  struct Row {
    std::string keys;  ///< beside the shape, marked
    std::string_view key, wrong, right;
  };
  const std::vector<Row> rows = {
      {"attention_kind: ^sliding", "attention_kind", "without a window", "window: 4096"},
      {"attention_kind: ^mla", "attention_kind", "without its latent vectors", "kv_lora_rank"},
      {"window: ^0", "window", "out of range", "from 1"},
      {"full_attention_every: ^2", "full_attention_every", "every layer attends", "window"},
      {"kv_lora_rank: 64, window: ^256", "window", "latent attention, which sees all keys", "sliding"},
      {"q_lora_rank: ^64", "q_lora_rank", "latent attention without its keys", "kv_lora_rank"},
      {"mtp_layers: ^-1", "mtp_layers", "out of range", "from 0"},
      {"published_batch: ^512", "published_batch", "not a length of training", "50000 samples"},
      {"published_batch: ^0 tokens", "published_batch", "no sensible length", "tokens"},
      {"mamba_heads: ^16", "mamba_heads", "no layer is a Mamba-2 layer", "layer_pattern"},
      {"layer_pattern: ^M-M, mamba_heads: 16", "layer_pattern", "3 letters for 4 layers", "each layer"},
      {"layer_pattern: ^M-MX, mamba_heads: 16", "layer_pattern", "called \"X\"", "M (Mamba-2)"},
      {"layer_pattern: ^M-ME, mamba_heads: 16", "layer_pattern", "no experts", "experts: 128"},
      {"layer_pattern: ^M-M*, mamba_heads: 16, experts: 8", "layer_pattern", "no layer of them", "E"},
      {"layer_pattern: M-M*, mamba_heads: 16, mamba_groups: ^3", "mamba_groups", "16 heads in 3 groups", "divides 16"}};
  for (const Row& row : rows) {
    check_complaint(training(row.keys), "workload.train.model." + std::string(row.key), row.wrong, row.right);
  }
  check_complaint("cluster: { node: dgx-a100-80gb, nodes: 1 }\nworkload: { train: { model: ^{ " + std::string(shape) +
                      ", layer_pattern: M-M* } } }\n",
                  "workload.train.model.mamba_heads", "missing", "");
  check_complaint("cluster: { node: dgx-a100-80gb, nodes: 1 }\nworkload: { train: { model: { " + std::string(shape) +
                      ", layer_pattern: M-M*, mamba_heads: 4, mamba_groups: 4 } } }\nplan: { tensor: ^8 }\n",
                  "plan.tensor", "4 heads of Mamba-2 layers", "a divisor of 4");
}
