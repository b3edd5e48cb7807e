// Vision–language models: shapes, parameters and arithmetic against published numbers.
#include "model/workload/vision_language.hpp"

#include "model/workload/transformer_parameters.hpp"
#include "tests/workload/models.hpp"

using namespace foretrain;
using namespace foretrain::test;

namespace {

double encoder_parameters(const VisionLanguageConfig& config) {
  return transformer_parameters(config.vision) - transformer_counts(config.vision).head;
}

DataShape data_of(double images, double text) {
  DataShape data;
  data.images.value = images;
  data.text.value = text;
  return data;
}

const Layer& projector_of(const Model& model) {
  for (const LayerGroup& group : model.layers) {
    if (group.layer.name == "projector") return group.layer;
  }
  throw std::logic_error("no projector");
}

}  // namespace

TEST_CASE("LLaVA-1.5 7B: 304 M of encoder, 21 M of projector, 6.7 B of language model, 576 visual tokens") {
  const VisionLanguageConfig llava = std::get<VisionLanguageConfig>(preset("llava-1.5-7b").shape);
  // 336/14 = 24 patches a side; the class token is dropped.
  CHECK(visual_tokens(llava) == 576);
  // CLIP ViT-L/14 at 336 pixels: 303,507,456 (transformers, CLIPVisionModel); it has two more norms at its ends and no
  // bias of the patches, 3072 numbers in all.
  CHECK(encoder_parameters(llava) == 303'507'456 - 3072);
  // 1024 · 4096 + 4096, and 4096² + 4096: mm_projector of LLaVA-1.5.
  CHECK(projector_parameters(llava) == 20'979'712);
  const Model model = build_vision_language(llava, "llava", {});
  CHECK(model.parameters == Approx(303.5e6 + 20.98e6 + 6'738'415'616.0).epsilon(1e-5));
  // All of them lie in some layer.
  double in_layers = 0.0;
  for (const LayerGroup& group : model.layers) in_layers += group.layer.parameters * group.repeat;
  CHECK(in_layers == Approx(model.parameters));
}

TEST_CASE("Qwen-VL: 1.9 B of encoder, 0.08 B of adapter, 256 visual tokens at 448 pixels") {
  const VisionLanguageConfig qwen = std::get<VisionLanguageConfig>(preset("qwen-vl-7b").shape);
  CHECK(visual_tokens(qwen) == 256);
  // Table 1 of arXiv 2308.12966, to the digits printed there.
  CHECK(encoder_parameters(qwen) == Approx(1.9e9).epsilon(0.03));
  // 256 · 4096 queries, 1664 · 4096 for the patches' width, four matrices of 4096² with biases, three norms, and the
  // product behind it, 4096², which the table counts with the encoder's ends or not at all.
  CHECK(projector_parameters(qwen) ==
        256 * 4096 + 1664 * 4096 + 4 * (4096.0 * 4096 + 4096) + 2 * 2 * 4096 + 4096.0 * 4096);
  CHECK(projector_parameters(qwen) - 4096.0 * 4096 == Approx(0.08e9).epsilon(0.07));
  CHECK(transformer_parameters(qwen.language) == Approx(7.7e9).epsilon(0.01));
}

TEST_CASE("pixel shuffle joins patches") {
  VisionLanguageConfig llava = std::get<VisionLanguageConfig>(preset("llava-1.5-7b").shape);
  llava.projector.merge = 2;
  CHECK(visual_tokens(llava) == 144);
  // The first layer is four times as wide: 3 · 1024 · 4096 more.
  CHECK(projector_parameters(llava) == 20'979'712 + 3 * 1024 * 4096);
}

TEST_CASE("only the last of a projector's layers leads to the language model's width, and has no activation") {
  VisionLanguageConfig llava = std::get<VisionLanguageConfig>(preset("llava-1.5-7b").shape);
  llava.projector.layers = 3;
  llava.projector.hidden = 2048;
  // With biases: 1024 to 2048, 2048 to 2048, and 2048 to 4096.
  CHECK(projector_parameters(llava) == 1025.0 * 2048 + 2049.0 * 2048 + 2049.0 * 4096);
  BuildOptions options;
  options.data = data_of(2, 100);
  const Layer layer = projector_of(build_vision_language(llava, "llava", options));
  std::vector<std::string> names;
  for (const Operator& op : layer.forward) names.push_back(op.name);
  CHECK(names == std::vector<std::string>{"projector 1", "projector activation", "projector 2", "projector activation",
                                          "projector 3", "visual tokens inserted"});
}

TEST_CASE("without a data set every sample has one image and fills the sequence") {
  const Model model = build_vision_language(std::get<VisionLanguageConfig>(preset("llava-1.5-7b").shape), "llava", {});
  CHECK(model.tokens_per_sample == 2048);
  CHECK(model.batch->images == 1.0);
  CHECK(model.batch->computed_tokens == 2048);
  CHECK(slowest_replica(model.variation, 1, 8) == Approx(1.0));
}

TEST_CASE("a resampler's attention: queries against patches") {
  const VisionLanguageConfig qwen = std::get<VisionLanguageConfig>(preset("qwen-vl-7b").shape);
  BuildOptions options;
  options.data = data_of(3, 100);
  const Model model = build_vision_language(qwen, "qwen", options);
  // 3 images, 256 queries, 1024 patches of width 1664 brought to 4096: products of patches (input, keys, values), of
  // queries (queries, output, and the one behind), and 4 · 256 · 1024 · 4096 for the attention.
  const double patches = 2.0 * 1024 * (1664.0 * 4096 + 2 * 4096.0 * 4096);
  const double queries = 2.0 * 256 * (3 * 4096.0 * 4096);
  CHECK(product_flops(projector_of(model).forward) == Approx(3 * (patches + queries + 4.0 * 256 * 1024 * 4096)));
  // A fused attention is one kernel forward and two backward, products, softmax and copies by themselves four and five.
  const auto kernels = [&](AttentionKind kind) {
    options.attention = kind;
    const Model built = build_vision_language(qwen, "qwen", options);
    std::vector<int> numbers;
    for (const auto* pass : {&projector_of(built).forward, &projector_of(built).backward}) {
      for (const Operator& op : *pass) {
        if (std::holds_alternative<Attention>(op.work)) numbers.push_back(op.kernels);
      }
    }
    return numbers;
  };
  CHECK(kernels(AttentionKind::flash) == std::vector<int>{1, 2});
  CHECK(kernels(AttentionKind::standard) == std::vector<int>{4, 5});
}

TEST_CASE("a resampler keeps the inputs of its products and norms, and attention's scores where these are written") {
  // Of 3 images: 1024 patches of width 1664, brought to 4096 and projected to keys and values; 256 queries that are
  // normed, projected, attend, leave, and are normed and projected again. A fused attention keeps queries, keys, values
  // and its result; standard attention 256 x 1024 scores of 32 heads before and after the softmax, too.
  const VisionLanguageConfig qwen = std::get<VisionLanguageConfig>(preset("qwen-vl-7b").shape);
  REQUIRE(qwen.projector.heads == 32);
  REQUIRE(qwen.projector.ffn_hidden == 0);
  BuildOptions options;
  const auto built = [&](AttentionKind kind) {
    options.attention = kind;
    return build_projector(qwen, 3.0, 1000.0, options, Gradients::all, true);
  };
  const double patches = 3 * 1024, queries = 3 * 256, width = 4096;
  const double products = patches * (1664 + 2 * width) + queries * 3 * width, norms = queries * 2 * width;
  const double attention = (2 * queries + 2 * patches) * width;
  const Layer fused = built(AttentionKind::flash);
  CHECK(fused.kept().value() == Approx(2 * (products + norms + attention)));
  CHECK((built(AttentionKind::standard).kept() - fused.kept()).value() == Approx(2 * 2.0 * 3 * 32 * 256 * 1024));
  // Its output is the joined sequence.
  CHECK(fused.output.value() == 2 * 1000 * 4096);
}

TEST_CASE("memory is that of the largest pass, time that of the mean one") {
  const VisionLanguageConfig llava = std::get<VisionLanguageConfig>(preset("llava-1.5-7b").shape);
  BuildOptions options;
  options.data = data_of(1, 0);
  options.data->text.kind = LengthDistribution::Kind::histogram;
  options.data->text.histogram = {{100, 1}, {300, 1}};
  const Model mixed = build_vision_language(llava, "llava", options);
  const Model longest = [&] {
    options.data = data_of(1, 300);
    return build_vision_language(llava, "llava", options);
  }();
  const Model mean = [&] {
    options.data = data_of(1, 200);
    return build_vision_language(llava, "llava", options);
  }();
  for (std::size_t i = 0; i < mixed.layers.size(); ++i) {
    INFO(mixed.layers[i].layer.name);
    CHECK(mixed.layers[i].layer.kept() == longest.layers[i].layer.kept());
    CHECK(product_flops(mixed.layers[i].layer.forward) ==
          Approx(product_flops(mean.layers[i].layer.forward)).epsilon(0.005));
    // `selective` recomputes attention alone, whose work goes with the square of a sequence: behind 576 patches
    // (676² + 876²) / 2 = 1.017 · 776².
    for (const Recompute way : {Recompute::selective, Recompute::selective_operators, Recompute::selective_modules}) {
      const double square =
          way == Recompute::selective && mixed.layers[i].layer.name == "transformer block" ? 1.017 : 1;
      CHECK(mixed.layers[i].layer.run_again(way).size() == mean.layers[i].layer.run_again(way).size());
      CHECK(product_flops(mixed.layers[i].layer.run_again(way)) ==
            Approx(square * product_flops(mean.layers[i].layer.run_again(way))).epsilon(0.005));
    }
  }
}
