// The networks of scenarios/models/ against what their publications and torchvision's documentation state.
// https://pytorch.org/vision/stable/models.html prints parameters ("num_params") and multiply–adds ("GFLOPS").

#include "model/workload/network.hpp"
#include "model/workload/transformer_parameters.hpp"
#include "tests/workload/models.hpp"

using namespace foretrain;
using namespace foretrain::test;

namespace {

Model build(const std::string& name, std::int64_t micro_batch = 1, Precision precision = Precision::fp32) {
  return build_network(std::get<NetworkConfig>(preset(name).shape), name, micro_batch, precision);
}

}  // namespace

TEST_CASE("Presets have the published numbers of parameters and multiply-adds") {
  struct Published {
    std::string name;
    double parameters;
    double giga_multiply_adds;
  };
  const std::vector<Published> rows = {
      // torchvision's documentation. Inception v3: 27,161,264 less the auxiliary classifier's 3,326,696, which are
      // 128·768 + 2·128 (1×1 convolution and norm), 768·128·25 + 2·768 (5×5) and 768·1000 + 1000 (linear).
      {"alexnet-torchvision", 61'100'840, 0.71},
      {"vgg-16", 138'357'544, 15.47},
      {"resnet-18", 11'689'512, 1.81},
      {"resnet-50", 25'557'032, 4.09},
      {"resnet-101", 44'549'160, 7.80},
      {"resnet-152", 60'192'808, 11.51},
      {"inception-v3", 27'161'264 - 3'326'696, 5.71},
      // One tower with 384, 384, 256 channels: convolutions 23,296 + 307,392 + 663,936 + 1,327,488 + 884,992, linear
      // 9216·4096 + 4096, 4096² + 4096, 4096·1001 + 1001. Multiply–adds: 55²·64·363 + 27²·192·1600 + 13²·(384·1728 +
      // 384·3456 + 256·3456) = 780.2 M and 58.6 M of the linear layers.
      {"alexnet", 61'842'345, 0.8388},
      // 3×3 stem 640 and norm 128; stages 148,224 + 525,952 + 2,100,480 + 8,395,264 (biases, no norm in the shortcut);
      // linear 5130. Multiply–adds: stem 28²·64·9 = 0.45 M; stage 1 4·28²·64²·9 = 115.6 M; stages 2 to 4 each
      // 14²·128²·9·3.5 + 14²·64·128 = 102.8 M (half the side, twice the channels).
      {"resnet-18-d2l", 11'175'818, 0.4558},
      // 3×3 and 5×5 convolutions, 200 + 25,050; linear 102,528 + 1290.
      {"lenet", 129'068, 0.00225036},
      // 512·256 + 256 + 256·128 + 128 + 128·2 + 2.
      {"mlp-d2l", 164'482, 0.000164096},
  };
  for (const Published& row : rows) {
    INFO(row.name);
    const Model model = build(row.name);
    CHECK(model.parameters == row.parameters);
    CHECK(model.forward_flops_per_sample.value() == Approx(2e9 * row.giga_multiply_adds).epsilon(0.01));
  }
}

TEST_CASE("ResNet-50 keeps 86 MB for each fp32 image") {
  // The norms keep the output of the 53 convolutions: stem 802,816; stage 1 three times 1,204,224; stages 2 to 4 a
  // wider first block and equal others: 903,168 + 3·602,112, 451,584 + 5·301,056, 225,792 + 2·150,528; and the four
  // shortcuts. Together 11.11 M, the "activations" of ResNet-50 in Radosavovic et al. 2020 (arXiv 2003.13678).
  const double shortcuts = 802'816 + 401'408 + 200'704 + 100'352;
  const double convolutions =
      802'816 + 3 * 1'204'224 + 903'168 + 3 * 602'112 + 451'584 + 5 * 301'056 + 225'792 + 2 * 150'528 + shortcuts;
  // The ReLUs keep as much, less the shortcuts, which end in the sums. Beside these: the image, the pooled stem with
  // 8-byte indices, the pooled features, two statistics for each of the norms' 26,560 channels, the log-probabilities
  // and the label (8 bytes).
  const double image = 3 * 224 * 224, pooled_stem = 64 * 56 * 56, features = 2048, classes = 1000;
  const double numbers = 2 * convolutions - shortcuts + image + pooled_stem + features + 2 * 26'560 + classes;
  Bytes saved;
  int layers = 0;
  for (const LayerGroup& group : build("resnet-50").layers) {
    saved += group.repeat * group.layer.kept();
    layers += group.repeat;
  }
  CHECK(saved.value() == 4 * numbers + 8 * pooled_stem + 8);
  CHECK(layers == 1 + 16 + 1 + 1);  // the stem, sixteen blocks, the linear layer and the loss
}

TEST_CASE("A token meets as many parameters of mixtures as their makers say") {
  // DeepSeek-V3 (arXiv 2412.19437, abstract): 671 B, 37 B active. Mixtral (arXiv 2401.04088, section 1): 47 B, 13 B.
  // Qwen3-235B-A22B and Qwen3-30B-A3B by name (arXiv 2505.09388, table 2); gpt-oss-120b: 116.8 B, 5.1 B (its model
  // card, table 1).
  struct Published {
    const char* name;
    double parameters, active;
  };
  for (const auto& [name, parameters, active] : {Published{"deepseek-v3", 671e9, 37e9},
                                                 {"mixtral-8x7b", 47e9, 13e9},
                                                 {"qwen3-235b-a22b", 235e9, 22e9},
                                                 {"qwen3-30b-a3b", 30.5e9, 3.3e9},
                                                 {"gpt-oss-120b", 116.8e9, 5.1e9}}) {
    CAPTURE(name);
    const auto shape = transformer_preset(name);
    CHECK(transformer_parameters(shape) == Approx(parameters).epsilon(0.02));
    // Whether both ends are counted differs.
    CHECK(transformer_parameters(shape) - idle_parameters(shape) == Approx(active).epsilon(0.12));
  }
  CHECK(idle_parameters(transformer_preset("llama3-8b")) == 0.0);
}
