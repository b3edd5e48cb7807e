// The matrices among a model's parameters, as compression of gradients sees them.
#include "model/scenario/load/load.hpp"
#include "model/workload/build.hpp"
#include "tests/catch.hpp"

using namespace foretrain;

namespace {

struct Counts {
  double parameters = 0.0;
  double in_matrices = 0.0;
};

/// Numbers held by one rank.
Counts counts_of(const std::string& model, int tensor = 1) {
  const Scenario scenario =
      load_scenario_text("cluster: { node: dgx-a100-80gb }\nworkload: { train: { model: " + model +
                             ", global_batch: 8, micro_batch: 1 } }\n",
                         "matrices.yaml");
  const auto& train = std::get<TrainWorkload>(scenario.workload);
  Counts counts;
  BuildOptions options;
  options.tensor = tensor;
  for (const LayerGroup& group : build_model(train.model, options).layers) {
    counts.parameters += group.repeat * group.layer.parameters;
    for (const WeightMatrix& matrix : group.layer.matrices) {
      counts.in_matrices += group.repeat * matrix.elements() * static_cast<double>(matrix.count);
    }
  }
  return counts;
}

}  // namespace

TEST_CASE("a model's matrices are all of its parameters but biases and norms") {
  struct Row {
    std::string model;
    double vectors;
  };
  const std::vector<Row> rows = {
      // torchvision's: two numbers for each of 26,560 channels with batch norm, and the classifier's 1000 biases.
      {"resnet-50", 2 * 26'560 + 1000},
      // A block has 2 norms of 2h, biases 3h + h + 4h + h; the head a norm of 2h.
      {"gpt2-xl", 48 * (2 * 2 * 1600 + 9 * 1600) + 2 * 1600},
      // No biases: 2 norms of h a block and one at the end.
      {"llama3-8b", 32 * 2 * 4096 + 4096},
      {"mixtral-8x7b", 32 * 2 * 4096 + 4096},
      // Blocks as above; the embedding's norm; two h × h layers' biases, a norm and the vocabulary's biases in the
      // head.
      {"bert-large", 24 * (2 * 2 * 1024 + 9 * 1024) + 2 * 1024 + 2 * 1024 + 2 * 1024 + 30'522},
  };
  for (const Row& row : rows) {
    INFO(row.model);
    const Counts counts = counts_of(row.model);
    CHECK(counts.parameters - counts.in_matrices == Approx(row.vectors).margin(0.5));
  }
}

TEST_CASE("tensor-parallel ranks hold their part of each matrix") {
  for (const std::string model : {"gpt3-13b", "llama3-8b", "bert-large"}) {
    INFO(model);
    const double whole = counts_of(model).in_matrices;
    CHECK(counts_of(model, 8).in_matrices == Approx(whole / 8).epsilon(0.001));
    CHECK(counts_of(model, 8).in_matrices <= counts_of(model, 8).parameters);
  }
}
