#include "model/scenario/model/model_reader.hpp"

#include "model/scenario/catalogue.hpp"
#include "tests/base/temporary_folder.hpp"
#include "tests/catch.hpp"
#include "tests/complaint.hpp"

using namespace foretrain;

namespace {

ModelConfig read(const std::string& yaml, const std::string& file = "m.yaml") {
  const YamlNode node = parse_yaml(yaml, file);
  return read_model(Field(node, "model"));
}
TransformerConfig read_shape(const std::string& yaml) { return std::get<TransformerConfig>(read(yaml).shape); }

std::string complaint(const std::string& yaml) {
  return test::complaint_of([&] { read(yaml); });
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

TEST_CASE("The kind of attention follows from its keys, or says which of them hold") {
  const auto with = [](const std::string& keys) {
    return read_shape("{ family: llama, layers: 4, hidden: 1024, heads: 8, vocabulary: 1000, sequence: 1024, " + keys +
                      " }");
  };
  CHECK(with("window: 256").window == 256);
  CHECK(with("attention_kind: sliding, window: 256, full_attention_every: 2").full_attention_every == 2);
  CHECK(with("attention_kind: full, window: 256").window == 0);
  CHECK(with("kv_lora_rank: 64, rope_head_dim: 32").latent());
  CHECK(with("attention_kind: mla, kv_lora_rank: 64").latent());
  CHECK_FALSE(with("attention_kind: full, kv_lora_rank: 64").latent());
  CHECK(with("layer_pattern: M-M*, mamba_heads: 16").mamba.heads == 16);
}

TEST_CASE("A preset with changes") {
  const ModelConfig model = read("{ preset: bert-base, sequence: 128 }");
  CHECK(model.name == "bert-base");
  CHECK(std::get<TransformerConfig>(model.shape).sequence == 128);
  CHECK(std::get<TransformerConfig>(model.shape).layers == 12);
  CHECK(complaint("{ preset: resnet-50, sequence: 128 }").find("m.yaml:1:22: model.sequence: unknown key") == 0);
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

TEST_CASE("Hugging Face config files, beside the file that names them") {
  const TemporaryFolder folder;
  folder.write("gpt2.json",
               R"({"model_type": "gpt2", "n_layer": 12, "n_embd": 768, "n_head": 12, "vocab_size": 50257,
                   "n_positions": 1024, "n_inner": null, "activation_function": "gelu_new"})");
  const std::string file = (folder.path() / "scenario.yaml").string();
  const auto gpt2 = std::get<TransformerConfig>(read("{ hf: gpt2.json, sequence: 512 }", file).shape);
  CHECK(gpt2.family == TransformerFamily::gpt);
  CHECK(gpt2.layers == 12);
  CHECK(gpt2.ffn_hidden == 3072);  // null: the family's 4 · 768
  CHECK(gpt2.sequence == 512);
  CHECK_THROWS_WITH(read("{ hf: none.json }", file), Catch::Contains("no file \"none.json\""));
}
