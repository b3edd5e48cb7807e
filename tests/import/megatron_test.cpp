// Numbers that Megatron-LM works out itself from its arguments, and names of Hugging Face's models.
#include <string>

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
  CHECK_THROWS_WITH(import_text("megatron", "--encoder-num-layers 12 --hidden-size 768"),
                    Catch::Contains("--encoder-num-layers: an encoder and a decoder"));
}

TEST_CASE("shared experts are as many as their size says, by that of one expert or of a block") {
  const auto shared = [](const std::string& arguments) {
    return megatron_number("shared_experts", "--num-experts 8 --moe-router-topk 2 --ffn-hidden-size 256 " + arguments);
  };
  CHECK(shared("") == 0);
  CHECK(shared("--moe-shared-expert-intermediate-size 512") == 2);
  CHECK(shared("--moe-ffn-hidden-size 128 --moe-shared-expert-intermediate-size 512") == 4);
}
