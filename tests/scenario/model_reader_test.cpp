#include "model/scenario/model/model_reader.hpp"

#include "model/scenario/catalogue.hpp"
#include "model/workload/transformer_parameters.hpp"
#include "tests/base/temporary_folder.hpp"
#include "tests/catch.hpp"

using namespace foretrain;

namespace {

ModelConfig read(const std::string& yaml, const std::string& file = "m.yaml") {
  const YamlNode node = parse_yaml(yaml, file);
  return read_model(Field(node, "model"));
}
TransformerConfig read_shape(const std::string& yaml) { return std::get<TransformerConfig>(read(yaml).shape); }

std::string complaint(const std::string& yaml) {
  try {
    read(yaml);
  } catch (const ScenarioError& error) {
    return error.what();
  }
  return "accepted";
}

}  // namespace

TEST_CASE("Families have their own defaults") {
  const std::string shape = "layers: 2, hidden: 4096, heads: 32, vocabulary: 1000, sequence: 128 }";
  const TransformerConfig gpt = read_shape("{ family: gpt, " + shape);
  CHECK(gpt.ffn_hidden == 16384);  // 4 · hidden
  CHECK(gpt.kv_heads == 32);
  CHECK(gpt.head_dim == 128);
  CHECK(gpt.tied_embeddings);
  CHECK(gpt.biases);
  CHECK_FALSE(gpt.gated_ffn);
  const TransformerConfig llama = read_shape("{ family: llama, " + shape);
  CHECK(llama.ffn_hidden == 11008);  // Llama 7B: 2/3 of 16384 = 10922, up to a multiple of 256
  // 2/3 of 384 are a multiple of 256.
  CHECK(read_shape("{ family: llama, layers: 1, hidden: 96, heads: 1, vocabulary: 1000, sequence: 128 }").ffn_hidden ==
        256);
  CHECK(llama.gated_ffn);
  CHECK_FALSE(llama.tied_embeddings);
  CHECK_FALSE(llama.biases);
  CHECK_FALSE(read_shape("{ family: mpt, " + shape).biases);
  CHECK(read_shape("{ family: bert, " + shape).biases);
}

TEST_CASE("Images become patches and a class token") {
  const TransformerConfig vit =
      read_shape("{ family: vit, layers: 12, hidden: 768, heads: 12, image_size: 224, patch_size: 16 }");
  CHECK(vit.sequence == 14 * 14 + 1);
  CHECK(vit.classes == 1000);
  CHECK(complaint("{ family: vit, layers: 1, hidden: 64, heads: 1, image_size: 224, patch_size: 15 }") ==
        "m.yaml:1:78: model.patch_size: 15 does not divide the image size 224; a divisor of image_size");
}

TEST_CASE("A preset with changes") {
  const ModelConfig model = read("{ preset: bert-base, sequence: 128 }");
  CHECK(model.name == "bert-base");
  CHECK(std::get<TransformerConfig>(model.shape).sequence == 128);
  CHECK(std::get<TransformerConfig>(model.shape).layers == 12);
  CHECK(complaint("{ preset: resnet-50, sequence: 128 }").find("m.yaml:1:22: model.sequence: unknown key") == 0);
}

TEST_CASE("Every model of the catalogue can be read") {
  const auto models = list_models();
  REQUIRE_FALSE(models.empty());
  for (const CatalogueEntry& entry : models) {
    INFO(entry.name);
    CHECK(read(entry.name).name == entry.name);
    CHECK_FALSE(entry.description.empty());
  }
}

TEST_CASE("Layers of a network, with all their forms") {
  const ModelConfig model = read(R"(
family: cnn
input: [3, 32, 16]
layers:
  - { conv: { out: 64, kernel: [1, 7], stride: 2, pad: [0, 3], groups: 1, bias: false } }
  - relu
  - { max_pool: { kernel: 3, pad: 1 } }
  - { residual: { body: [ { conv: { out: 64, kernel: 1 } } ], shortcut: [] } }
  - { branches: [ [ relu ], [ gelu, sigmoid ] ] }
  - { repeat: { times: 3, body: [ batch_norm ] } }
  - { dropout: 0.5 }
  - flatten
  - { linear: { out: 10 } }
)");
  const auto& network = std::get<NetworkConfig>(model.shape);
  CHECK(network.channels == 3);
  CHECK(network.height == 32);
  CHECK(network.width == 16);
  REQUIRE(network.layers.size() == 9);
  const NetworkLayer& conv = network.layers[0];
  CHECK(conv.kind == NetworkLayer::Kind::convolution);
  CHECK(conv.kernel_h == 1);
  CHECK(conv.kernel_w == 7);
  CHECK(conv.pad_h == 0);
  CHECK(conv.pad_w == 3);
  CHECK_FALSE(conv.bias);
  CHECK(conv.where.text() == "m.yaml:5:5");
  CHECK(network.layers[2].stride == 3);  // windows of a pool touch unless a stride is given
  REQUIRE(network.layers[3].bodies.size() == 2);
  CHECK(network.layers[3].bodies[1].empty());
  CHECK(network.layers[4].bodies[1].size() == 2);
  CHECK(network.layers[5].times == 3);
  CHECK(network.layers[8].out == 10);
  CHECK(network.layers[8].bias);
}

TEST_CASE("Layers that are none") {
  const std::string head = "{ family: cnn, input: [1, 8, 8], layers: [ ";
  CHECK(complaint(head + "{ cnov: { out: 1, kernel: 1 } } ] }") ==
        "m.yaml:1:44: model.layers[0]: unknown layer \"cnov\"; did you mean conv?");
  CHECK(complaint(head + "conv ] }").find("conv without parameters; { conv: { … } }") != std::string::npos);
  CHECK(complaint(head + "{ relu: 1 } ] }").find("relu has no parameters") != std::string::npos);
  CHECK(complaint(head + "{ conv: { out: 8 } } ] }").find("model.layers[0].conv.kernel: this key is missing") !=
        std::string::npos);
  CHECK(complaint(head + "{ dropout: 1.5 } ] }").find("above 1") != std::string::npos);
  CHECK(complaint(head + "] }").find("no layers") != std::string::npos);
  CHECK(complaint("{ family: cnn, input: [1, 8], layers: [ relu ] }").find("[channels, height, width]") !=
        std::string::npos);
}

TEST_CASE("Hugging Face config files") {
  const TemporaryFolder folder;
  folder.write("gpt2.json",
               R"({"model_type": "gpt2", "n_layer": 12, "n_embd": 768, "n_head": 12, "vocab_size": 50257,
                   "n_positions": 1024, "n_inner": null, "activation_function": "gelu_new"})");
  folder.write("mistral.json",
               R"({"model_type": "mistral", "num_hidden_layers": 32, "hidden_size": 4096, "num_attention_heads": 32,
                   "num_key_value_heads": 8, "intermediate_size": 14336, "vocab_size": 32000,
                   "max_position_embeddings": 32768, "tie_word_embeddings": false, "rope_theta": 10000.0})");
  folder.write("bert.json",
               R"({"model_type": "bert", "num_hidden_layers": 24, "hidden_size": 1024, "num_attention_heads": 16,
                   "intermediate_size": 4096, "vocab_size": 30522, "max_position_embeddings": 512})");
  folder.write(
      "deepseek.json",
      R"({"model_type": "deepseek_v3", "num_hidden_layers": 61, "hidden_size": 7168, "num_attention_heads": 128,
                   "num_key_value_heads": 128, "intermediate_size": 18432, "moe_intermediate_size": 2048,
                   "first_k_dense_replace": 3, "n_routed_experts": 256, "n_shared_experts": 1,
                   "num_experts_per_tok": 8, "q_lora_rank": 1536, "kv_lora_rank": 512, "qk_nope_head_dim": 128,
                   "qk_rope_head_dim": 64, "v_head_dim": 128, "vocab_size": 129280,
                   "max_position_embeddings": 163840, "tie_word_embeddings": false})");
  folder.write("qwen.json",
               R"({"model_type": "qwen3_moe", "num_hidden_layers": 48, "hidden_size": 2048, "num_attention_heads": 32,
                   "num_key_value_heads": 4, "head_dim": 128, "intermediate_size": 6144, "moe_intermediate_size": 768,
                   "num_experts": 128, "num_experts_per_tok": 8, "vocab_size": 151936,
                   "max_position_embeddings": 40960, "tie_word_embeddings": false})");
  folder.write("other.json", R"({"model_type": "rwkv"})");
  const std::string file = (folder.path() / "scenario.yaml").string();

  const auto gpt2 = std::get<TransformerConfig>(read("{ hf: gpt2.json }", file).shape);
  CHECK(gpt2.family == TransformerFamily::gpt);
  CHECK(gpt2.layers == 12);
  CHECK(gpt2.ffn_hidden == 3072);  // null: the family's 4 · 768
  CHECK(gpt2.sequence == 1024);
  const auto mistral = std::get<TransformerConfig>(read("{ hf: mistral.json, sequence: 8192 }", file).shape);
  CHECK(mistral.family == TransformerFamily::llama);
  CHECK(mistral.kv_heads == 8);
  CHECK(mistral.ffn_hidden == 14336);
  CHECK(mistral.sequence == 8192);
  CHECK_FALSE(mistral.tied_embeddings);
  const auto bert = std::get<TransformerConfig>(read("{ hf: bert.json }", file).shape);
  CHECK(bert.family == TransformerFamily::bert);
  CHECK(bert.vocabulary == 30522);
  // Experts have a width of their own beside that of the layers without; of DeepSeek's heads 128 elements have no
  // positions.
  const auto deepseek = std::get<TransformerConfig>(read("{ hf: deepseek.json, sequence: 4096 }", file).shape);
  CHECK(deepseek.experts == 256);
  CHECK(deepseek.ffn_hidden == 2048);
  CHECK(deepseek.dense_layers == 3);
  CHECK(deepseek.dense_ffn_hidden == 18432);
  CHECK(deepseek.head_dim == 128);
  CHECK(transformer_parameters(deepseek) == Approx(671e9).epsilon(0.005));
  const auto qwen = std::get<TransformerConfig>(read("{ hf: qwen.json }", file).shape);
  CHECK(qwen.ffn_hidden == 768);
  CHECK(qwen.dense_layers == 0);
  CHECK(transformer_parameters(qwen) == Approx(30.5e9).epsilon(0.005));
  CHECK_THROWS_WITH(read("{ hf: other.json }", file), Catch::Contains("no family for the model type \"rwkv\""));
  CHECK_THROWS_WITH(read("{ hf: none.json }", file), Catch::Contains("no file \"none.json\""));
}
