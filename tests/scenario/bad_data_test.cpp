// Bad descriptions of samples, of what is trained, and of vision–language models.
#include "tests/catch.hpp"
#include "tests/scenario/bad_input.hpp"

using namespace foretrain;

namespace {

struct Row {
  std::string text;  ///< keys of workload.train, flow style, marked
  std::string_view key, wrong, right;
};

void check_rows(const std::vector<Row>& rows, const std::string& plan = "") {
  for (const Row& row : rows) {
    check_complaint("cluster: { node: dgx-a100-80gb, nodes: 1 }\nworkload: { train: { " + row.text + " } }\n" + plan,
                    row.key, row.wrong, row.right);
  }
}

}  // namespace

TEST_CASE("Bad data sets") {
  const std::string llava = "model: llava-1.5-7b, data: ";
  check_rows({
      {llava + "^{ images: 1 }", "workload.train.data.text", "missing", ""},
      {llava + "{ text: ^-1 }", "workload.train.data.text", "negative", ""},
      {llava + "{ text: ^100 tokens }", "workload.train.data.text", "not a plain number", "without unit"},
      {llava + "{ text: ^1e9 }", "workload.train.data.text", "out of range", "from 0"},
      {llava + "{ text: ^{ mean: 3 } }", "workload.train.data.text.distribution", "missing", "lognormal"},
      {llava + "{ text: { distribution: uniform, from: 300, to: ^100 } }", "workload.train.data.text.to",
       "from 300 to 100", "not before"},
      {llava + "{ text: { distribution: lognormal, mean: 300, spread: ^501 % } }", "workload.train.data.text.spread",
       "a spread of 501 %", "80 %"},
      {llava + "{ text: { distribution: lognormal, mean: 300, spread: ^wide } }", "workload.train.data.text.spread", "",
       ""},
      {llava + "{ text: { distribution: histogram, values: ^[], weights: [] } }", "workload.train.data.text.values",
       "empty list", "at least one"},
      {llava + "{ text: { distribution: histogram, values: [1, 2], weights: ^[1] } }",
       "workload.train.data.text.weights", "1 weights for 2 values", "as many"},
      {llava + "{ text: { distribution: histogram, values: [1, 2], weights: ^[0, 0] } }",
       "workload.train.data.text.weights", "all are zero", "above zero"},
      {llava + "{ text: 100, images: ^0 }", "workload.train.data.images", "no images", "at least some"},
      // 3 · 576 visual tokens and 321 words are one more than 2048; 320 are taken (below).
      {llava + "{ text: ^321, images: 3 }", "workload.train.data.text", "2049 tokens on average for a model of 2048",
       "shorter text"},
      {llava + "{ text: 100, batching: { kind: padding, buckets: ^4 } }", "workload.train.data.batching.buckets",
       "buckets without bucketing", "kind: bucketing"},
      {llava + "{ text: 100, batching: { kind: bucketing, buckets: ^0 } }", "workload.train.data.batching.buckets",
       "out of range", "from 1"},
      {llava + "{ text: 100, batching: { kind: bucketing, length: ^4096 } }", "workload.train.data.batching.length",
       "a length without packing", "kind: packing"},
      {llava + "{ text: 100, batching: { kind: packing, length: ^2047 } }", "workload.train.data.batching.length",
       "cannot hold a sample of 2048", "at least 2048"},
      // 676 tokens a sample: three of them go into 2048.
      {llava + "{ text: 100, batching: packing }, micro_batch: ^2", "workload.train.micro_batch",
       "2 samples of 676 tokens do not fill one packed sequence of 2048", "at least 3"},
      {"model: llama2-7b, data: { text: 100, images: ^1 }", "workload.train.data.images", "takes no images",
       "leave the key out"},
      {"model: resnet-50, data: ^{ text: 100 }", "workload.train.data", "has no sequence", "leave the key out"},
      {"model: vit-l-14, data: ^{ text: 100 }", "workload.train.data", "has no sequence", "leave the key out"},
  });
}

TEST_CASE("Bad choices of what is trained") {
  check_rows({
      {"model: llama2-7b, freeze: [^vision]", "workload.train.freeze[0]", "has no vision", "embedding"},
      {"model: llama2-7b, freeze: ^language", "workload.train.freeze", "nothing is left to train", "lora"},
      {"model: llava-1.5-7b, freeze: ^[vision, projector, language]", "workload.train.freeze",
       "nothing is left to train", "lora"},
      {"model: resnet-50, freeze: ^[head]", "workload.train.freeze", "cannot be told apart", "language model"},
      {"model: gpt2, freeze: ^[embedding]", "workload.train.freeze", "the table of words", "both embedding and head"},
      {"model: llama2-7b, lora: ^{ targets: [ffn] }", "workload.train.lora.rank", "missing", ""},
      {"model: llama2-7b, lora: { rank: ^0 }", "workload.train.lora.rank", "out of range", "from 1"},
      {"model: llama2-7b, lora: { rank: ^4097 }", "workload.train.lora.rank", "rank 4097 in a model of width 4096",
       "at most 4096"},
      {"model: llama2-7b, lora: { rank: 8, targets: ^[] }", "workload.train.lora.targets", "an empty list", "both"},
      {"model: llama2-7b, lora: { rank: 8, targets: ^[qkv, attention] }", "workload.train.lora.targets",
       "a part of attention", "one of them"},
      {"model: mixtral-8x7b, lora: { rank: 8, targets: ^[ffn] }", "workload.train.lora.targets", "experts",
       "targets: [attention]"},
      {"model: resnet-50, lora: ^{ rank: 8 }", "workload.train.lora", "defined for language models", "leave"},
  });
}

TEST_CASE("Bad vision–language models") {
  const std::string model = "model: { family: vision_language, vision: vit-l-14, ";
  check_rows({
      {"model: ^{ family: vision_language, vision: vit-l-14, language: llama2-7b }", "workload.train.model.projector",
       "missing", ""},
      {"model: { family: vision_language, vision: ^llama2-7b, projector: { kind: mlp }, language: llama2-7b }",
       "workload.train.model.vision", "no image encoder", "vit"},
      {model + "projector: { kind: mlp }, language: ^vit-l-14 }", "workload.train.model.language", "no language model",
       "llama"},
      {model + "projector: { kind: mlp }, language: ^bert-base }", "workload.train.model.language",
       "no single sequence", "gpt"},
      {model + "projector: ^{ kind: resampler }, language: llama2-7b }", "workload.train.model.projector.queries",
       "missing", ""},
      {model + "projector: { kind: resampler, queries: 8, heads: ^7 }, language: llama2-7b }",
       "workload.train.model.projector.heads", "4096 is not divisible by 7", "divisor"},
      {model + "projector: { kind: mlp, merge: ^3 }, language: llama2-7b }", "workload.train.model.projector.merge",
       "3 does not divide the 16 patches", "a divisor of 16"},
      {model + "projector: { kind: mlp }, language: ^{ preset: llama2-7b, sequence: 256 } }",
       "workload.train.model.language", "256 visual tokens leaves no room", "longer sequence"},
  });
}

TEST_CASE("Plans that vision–language models do not have") {
  const std::string text = "cluster: { node: dgx-a100-80gb, nodes: 1 }\nworkload: { train: { model: llava-1.5-7b } }\n";
  check_complaint(text + "plan: { context: ^2 }", "plan.context", "for a vision–language model", "more data");
  check_complaint(text + "plan: { tensor: ^3 }", "plan.tensor", "", "");
}

TEST_CASE("What is just possible is taken") {
  const auto accepted = [](const std::string& train) {
    const std::string text = "cluster: { node: dgx-a100-80gb, nodes: 1 }\nworkload: { train: { " + train + " } }\n";
    return complaint_about(text).text;
  };
  CHECK(accepted("model: llava-1.5-7b, data: { text: 320, images: 3 }").empty());
  CHECK(accepted("model: llava-1.5-7b, data: { text: 100, batching: packing }, micro_batch: 3").empty());
  CHECK(accepted("model: llama2-7b, lora: { rank: 4096 }").empty());
  CHECK(accepted("model: mixtral-8x7b, lora: { rank: 8, targets: attention }").empty());
  CHECK(accepted("model: gpt2, freeze: [embedding, head]").empty());
  CHECK(accepted("model: llama2-7b, data: { text: { distribution: lognormal, mean: 900, spread: 80 % } }, "
                 "samples: 1 billion tokens")
            .empty());
}
