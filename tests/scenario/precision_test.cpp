// The precision of a training: words, formats and recipes.
#include "model/scenario/load/load.hpp"
#include "tests/catch.hpp"

using namespace foretrain;

namespace {

Scenario load(const std::string& keys, const std::vector<std::string>& overrides = {}) {
  return load_scenario_text("cluster: { node: dgx-b200, nodes: 1 }\nworkload: { train: { model: llama3-8b, " + keys +
                                " } }\nplan: { zero: 1 }\n",
                            "good.yaml", overrides);
}

TrainWorkload read(const std::string& keys) { return std::get<TrainWorkload>(load(keys).workload); }

}  // namespace

TEST_CASE("A precision is a word, a format with its recipe, or both side by side") {
  CHECK(read("precision: mxfp8").precision == Precision::mxfp8);
  CHECK(read("precision: nvfp4").precision == Precision::nvfp4);
  CHECK(read("precision: fp8").recipe == QuantisationRecipe{});
  for (const char* keys : {"precision: { fp8: { scaling: block } }", "precision: fp8, fp8: { scaling: block }",
                           "fp8: { scaling: block }"}) {
    INFO(keys);
    CHECK(read(keys).precision == Precision::fp8);
    CHECK(read(keys).recipe.scaling == Fp8Scaling::block);
  }
  CHECK(read("precision: { nvfp4: { last_bf16_layers: 4 } }").recipe.last_bf16_layers == 4);
  CHECK(read("precision: mxfp8, mxfp8: { first_bf16_layers: 1 }").recipe.first_bf16_layers == 1);
}

TEST_CASE("A recipe below a word, as tables and the command line state it") {
  const Scenario scenario = load("precision: fp8", {"workload.train.precision.fp8.scaling=current"});
  CHECK(std::get<TrainWorkload>(scenario.workload).recipe.scaling == Fp8Scaling::current);
}
