// config.json files of the models that people train: parameters against the published numbers, what else they say, and
// what is refused. The files hold the public figures of each architecture.
#include "model/scenario/model/model_reader.hpp"
#include "model/workload/build.hpp"
#include "model/workload/transformer_parameters.hpp"
#include "tests/base/temporary_folder.hpp"
#include "tests/catch.hpp"
#include "tests/complaint.hpp"

using namespace foretrain;

namespace {

ModelConfig read(const std::string& path) {
  const YamlNode node = parse_yaml("{ hf: " + path + " }", "m.yaml");
  return read_model(Field(node, "model"));
}
ModelConfig shipped_model(const std::string& name) {
  return read(FORETRAIN_SOURCE_DIR "/scenarios/hugging_face/" + name + ".json");
}
TransformerConfig shipped(const std::string& name) { return std::get<TransformerConfig>(shipped_model(name).shape); }

std::string complaint(const std::string& json) {
  const TemporaryFolder folder;
  folder.write("config.json", json);
  return test::complaint_of([&] { read((folder.path() / "config.json").string()); });
}

}  // namespace

TEST_CASE("config.json of every model type has the published number of parameters") {
  // Model cards and technical reports, in billions; DeepSeek-V3 without its module for a second token, Gemma 3 27B
  // without its image encoder (27.4 with its 0.42), BERT with its masked-token head. Kimi K2's report rounds what the
  // shapes of its files add up to, to 1.04 trillion.
  const std::vector<std::pair<std::string, double>> published = {
      {"llama-3.1-8b", 8.03},     {"llama-3.2-1b", 1.236},
      {"mistral-7b-v0.1", 7.24},  {"mixtral-8x7b", 46.7},
      {"qwen2-7b", 7.615},        {"qwen1.5-moe-a2.7b", 14.3},
      {"qwen3-8b", 8.19},         {"qwen3-30b-a3b", 30.5},
      {"qwen3-235b-a22b", 235.1}, {"gemma-2-9b", 9.24},
      {"gemma-3-1b", 1.0},        {"gemma-3-27b-text", 27.01},
      {"gpt-oss-20b", 20.91},     {"gpt-oss-120b", 116.83},
      {"deepseek-v2-lite", 15.7}, {"deepseek-v3", 671.0},
      {"kimi-k2", 1026.0},        {"phi-3-mini", 3.82},
      {"gpt2", 0.1244},           {"bert-base", 0.1101},
      {"vit-base-16", 0.0866},    {"nemotron-h-8b", 8.10},
      {"falcon-7b", 6.9217},      {"bloom-7b1", 7.0690},
      {"starcoder2-3b", 3.0304},  {"starcoder", 15.517},
      {"phi-2", 2.7797},          {"granite-3.0-8b", 8.1708},
      {"olmo-7b", 6.8881},        {"olmo-2-7b", 7.2990},
      {"olmoe-1b-7b", 6.9192},    {"command-r", 34.981},
      {"glm-4-9b", 9.4003},       {"smollm3-3b", 3.0751},
      {"t5-base", 0.22290},       {"flan-t5-xl", 2.8498},
      {"mamba-2.8b", 2.7683},     {"mamba-codestral-7b", 7.2854},
      {"gpt-neox-20b", 20.555},   {"gpt-j-6b", 6.0509},
      {"opt-6.7b", 6.6585}};
  for (const auto& [name, billions] : published) {
    INFO(name);
    CHECK(transformer_parameters(shipped(name)) == Approx(billions * 1e9).epsilon(0.005));
  }
}

TEST_CASE("models of several parts have the published number of parameters") {
  // Model cards, image encoders and projectors among them. Qwen's patches are of two frames, ours of one.
  const std::vector<std::pair<std::string, double>> published = {
      {"gemma-3-4b", 4.3001}, {"qwen2.5-vl-7b", 8.2922}, {"qwen3-vl-8b", 8.7671}, {"llama-4-scout", 108.64}};
  for (const auto& [name, billions] : published) {
    INFO(name);
    CHECK(build_model(shipped_model(name), {}).parameters == Approx(billions * 1e9).epsilon(0.005));
  }
  const auto scout = std::get<VisionLanguageConfig>(shipped_model("llama-4-scout").shape);
  CHECK(scout.language.full_attention_every == 4);
  CHECK(scout.projector.merge * scout.projector.merge * scout.vision.hidden == 5632);
}

TEST_CASE("an unknown model type brings what it may have meant") {
  CHECK_THAT(complaint(R"({"model_type": "olmoo"})"), Catch::Contains("did you mean olmo?"));
  CHECK_THAT(complaint(R"({"model_type": "rwkv"})"), Catch::Contains("one of gpt2, ") && Catch::Contains("llama4"));
}

TEST_CASE("heads of keys and gates come out of the fields of older types") {
  CHECK(shipped("falcon-7b").kv_heads == 1);  // multi_query, whatever num_kv_heads says
  CHECK(shipped("starcoder").kv_heads == 1);
  CHECK(shipped("starcoder2-3b").window == 4096);
  CHECK_FALSE(shipped("falcon-7b").has_rms_norm());
  CHECK(shipped("flan-t5-xl").gated_ffn);
  CHECK(shipped("t5-base").decoder_layers == 12);
  CHECK(shipped("mamba-2.8b").mamba.step_rank == 160);
}

TEST_CASE("windows, norms and shared experts come out of the fields that state them") {
  CHECK(shipped("mistral-7b-v0.1").window == 4096);
  CHECK(shipped("mistral-7b-v0.1").full_attention_every == 0);
  CHECK(shipped("qwen2-7b").window == 0);  // stated, but not used
  CHECK(shipped("gemma-2-9b").full_attention_every == 2);
  CHECK(shipped("gemma-3-27b-text").window == 1024);
  CHECK(shipped("gemma-3-27b-text").full_attention_every == 6);
  CHECK(shipped("gpt-oss-20b").window == 128);
  CHECK(shipped("gpt-oss-20b").full_attention_every == 2);
  CHECK(shipped("gpt-oss-20b").attention_sinks);
  CHECK(shipped("qwen3-8b").qk_norm);
  CHECK(shipped("gemma-2-9b").tied_embeddings);             // the class says so where the file does not
  CHECK(shipped("qwen1.5-moe-a2.7b").shared_experts == 4);  // 5632 = 4 · 1408
  CHECK(shipped("deepseek-v3").mtp_layers == 1);
  // Experts have a width of their own beside that of the layers without.
  CHECK(shipped("deepseek-v3").ffn_hidden == 2048);
  CHECK(shipped("deepseek-v3").dense_layers == 3);
  CHECK(shipped("deepseek-v3").dense_ffn_hidden == 18432);
  CHECK(shipped("deepseek-v3").head_dim == 128);  // elements without positions
  CHECK(shipped("deepseek-v2-lite").q_lora_rank == 0);
  CHECK(shipped("nemotron-h-8b").mamba.chunk == 128);
  CHECK(shipped("nemotron-h-8b").kind_of(7) == LayerKind::attention);
}

TEST_CASE("fields that are shapes and not understood are named") {
  const std::string llama =
      R"({"model_type": "llama", "num_hidden_layers": 2, "hidden_size": 64, "num_attention_heads": 4, "vocab_size": 100,)"
      R"( "max_position_embeddings": 128)";
  CHECK(complaint(llama + "}") == "accepted");
  CHECK(complaint(llama + R"(, "rope_theta": 10000.0, "torch_dtype": "bfloat16"})") == "accepted");
  const std::string unknown = complaint(llama + R"(, "cross_attention_layers": [3, 8]})");
  CHECK(unknown.find("cross_attention_layers: a field that is not understood") != std::string::npos);
  CHECK(complaint(llama + R"(, "cross_attention_layers": []})") == "accepted");
  CHECK(complaint(llama + R"(, "vision_config": {"hidden_size": 8}})").find("vision_config") != std::string::npos);
  CHECK(complaint(llama + R"(, "moe_layer_freq": 2})").find("moe_layer_freq: this is not modelled; 1") !=
        std::string::npos);
  CHECK(complaint(llama + R"(, "mlp_only_layers": [0]})").find("mlp_only_layers") != std::string::npos);
  const std::string windowed = llama + R"(, "sliding_window": 32, "layer_types": )";
  CHECK(complaint(windowed + R"(["sliding_attention", "linear_attention"]})").find("linear_attention") !=
        std::string::npos);
  CHECK(complaint(windowed + R"(["full_attention", "sliding_attention"]})").find("no fixed distance") !=
        std::string::npos);
  CHECK(complaint(windowed + R"(["sliding_attention", "full_attention"]})") == "accepted");
  CHECK(complaint(R"({"model_type": "qwen2", "num_hidden_layers": 2, "hidden_size": 64, "num_attention_heads": 4,)"
                  R"( "vocab_size": 100, "max_position_embeddings": 128, "sliding_window": 32,)"
                  R"( "use_sliding_window": true, "max_window_layers": 1})")
            .find("max_window_layers") != std::string::npos);
}
