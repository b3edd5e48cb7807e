// Numbers that Megatron-LM works out itself from its arguments, and names of Hugging Face's models.
#include "tests/catch.hpp"
#include "tests/import/samples.hpp"

using namespace foretrain;
using namespace foretrain::test;

namespace {

int megatron_number(const std::string& key, const std::string& arguments) {
  const std::string text =
      import_text("megatron", "--num-layers 2 --hidden-size 64 --num-attention-heads 4 --seq-length 128 " + arguments);
  const std::size_t at = text.find(key + ": ");
  return at == std::string::npos ? 0 : std::stoi(text.substr(at + key.size() + 2));
}

}  // namespace

TEST_CASE("a vocabulary is padded to the next multiple, and stays where it is one") {
  const auto padded = [](const std::string& arguments) { return megatron_number("vocabulary", arguments); };
  CHECK(padded("") == 50304);  // GPT-2's 50,257 to a multiple of 128
  CHECK(padded("--make-vocab-size-divisible-by 50257") == 50257);
  CHECK(padded("--make-vocab-size-divisible-by 50256") == 100512);
  CHECK(padded("--vocab-size 1000 --make-vocab-size-divisible-by 500") == 1000);
  CHECK(padded("--vocab-size 1001 --make-vocab-size-divisible-by 500") == 1500);
  CHECK(padded("--vocab-size 1001 --make-vocab-size-divisible-by 500 --tensor-model-parallel-size 4") == 2000);
}

TEST_CASE("a tokenizer tells the vocabulary where it is known, else the arguments must") {
  const std::string hugging_face = "--tokenizer-type HuggingFaceTokenizer --tokenizer-model ";
  CHECK(megatron_number("vocabulary", hugging_face + "meta-llama/Llama-2-7b-hf") == 32000);  // 250 · 128
  CHECK_THROWS_WITH(
      megatron_number("vocabulary", hugging_face + "me/mine"),
      Catch::Contains("--tokenizer-type: the tokenizer decides the vocabulary") && Catch::Contains("--vocab-size N"));
  CHECK(megatron_number("vocabulary", hugging_face + "me/mine --vocab-size 1280") == 1280);
}

TEST_CASE("T5's arguments become an encoder and a decoder, and a split rank the stages of each") {
  const auto t5 = [](const std::string& arguments) {
    return import_text("megatron",
                       "--encoder-num-layers 12 --decoder-num-layers 6 --hidden-size 768 --num-attention-heads 12 "
                       "--kv-channels 64 --encoder-seq-length 512 --decoder-seq-length 128 --vocab-size 30522 "
                       "--vocab-extra-ids 100 --micro-batch-size 2 " +
                           arguments);
  };
  const std::string text = t5("--pipeline-model-parallel-size 3 --pipeline-model-parallel-split-rank 2");
  for (const char* line : {"family: t5", "layers: 12", "decoder_layers: 6", "sequence: 512", "decoder_sequence: 128",
                           "layer_norm: true", "biases: true", "stage_layers: [6, 6, 6]"}) {
    CHECK_THAT(text, Catch::Contains(line));
  }
  CHECK_THAT(text, Catch::Contains("vocabulary: 30720"));  // 30,622 to a multiple of 128
  const std::string later = t5("--pipeline-model-parallel-size 1 --encoder-pipeline-model-parallel-size 2");
  CHECK_THAT(later, Catch::Contains("pipeline: 3") && Catch::Contains("stage_layers: [6, 6, 6]"));
  CHECK_THROWS_WITH(t5("--pipeline-model-parallel-size 8 --pipeline-model-parallel-split-rank 5"),
                    Catch::Contains("12 layers on 5 of 8 stages, and 6 on the others"));
  CHECK_THROWS_WITH(t5("--pipeline-model-parallel-size 2"), Catch::Contains("no split between encoder and decoder"));
}

TEST_CASE("shared experts are as many as their size says, by that of one expert or of a block") {
  const auto shared = [](const std::string& arguments) {
    return megatron_number("shared_experts", "--num-experts 8 --moe-router-topk 2 --ffn-hidden-size 256 " + arguments);
  };
  CHECK(shared("") == 0);
  CHECK(shared("--moe-shared-expert-intermediate-size 512") == 2);
  CHECK(shared("--moe-ffn-hidden-size 128 --moe-shared-expert-intermediate-size 512") == 4);
}
