// Formats that a GPU does not multiply, and recipes that do not fit their format.
#include "model/scenario/load/load.hpp"
#include "tests/catch.hpp"
#include "tests/scenario/bad_input.hpp"

using namespace foretrain;

namespace {

std::string training(const std::string& node, const std::string& keys, const std::string& model = "llama3-8b",
                     const std::string& plan = "zero: 1") {
  return "cluster: { node: " + node + ", nodes: 1 }\nworkload: { train: { model: " + model + ", " + keys +
         " } }\nplan: { " + plan + " }\n";
}

TrainWorkload read(const std::string& keys) {
  return std::get<TrainWorkload>(load_scenario_text(training("dgx-b200", keys), "good.yaml", {}).workload);
}

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
  const std::vector<std::string> change = {"workload.train.precision.fp8.scaling=current"};
  const Scenario scenario = load_scenario_text(training("dgx-b200", "precision: fp8"), "good.yaml", change);
  CHECK(std::get<TrainWorkload>(scenario.workload).recipe.scaling == Fp8Scaling::current);
}

TEST_CASE("Bad precisions of a training") {
  struct Row {
    std::string node, keys;  ///< beside the model, marked
    std::string_view key, wrong, right;
  };
  const std::vector<Row> rows = {
      {"dgx-h100", "precision: ^mxfp8", "precision", "h100-sxm-80gb has no units for mxfp8", "scaling: block"},
      {"dgx-h100", "precision: ^nvfp4", "precision", "no units for nvfp4", "Blackwell"},
      {"dgx-a100-80gb", "precision: ^mxfp8", "precision", "no units for mxfp8", "bf16"},
      {"dgx-a100-80gb", "precision: fp8, fp8: { scaling: ^block }", "fp8.scaling", "no units for fp8", "Hopper"},
      {"dgx-a100-80gb", "precision: { fp8: { scaling: ^block } }", "precision.fp8.scaling", "no units for fp8", "bf16"},
      {"dgx-b200", "precision: { fp8: { scaling: block }, nvfp4: ^{ last_bf16_layers: 1 } }", "precision.nvfp4",
       "second recipe", "one"},
      {"dgx-b200", "precision: mxfp8, mxfp8: { scaling: ^block }", "mxfp8.scaling", "scales blocks", "leave the key"},
      {"dgx-b200", "precision: bf16, fp8: ^{ scaling: block }", "fp8", "but the precision is bf16", "precision: fp8"},
      {"dgx-b200", "precision: { fp8: { scaling: block } }, fp8: ^{ scaling: block }", "fp8", "second recipe", "one"},
      {"dgx-b200", "precision: nvfp4, nvfp4: { first_bf16_layers: 30, last_bf16_layers: ^3 }", "nvfp4.last_bf16_layers",
       "33 layers in bf16, and the model has 32", "32 in all"}};
  for (const Row& row : rows) {
    check_complaint(training(row.node, row.keys), "workload.train." + std::string(row.key), row.wrong, row.right);
  }
  check_complaint(training("dgx-b200", "precision: ^mxfp8", "resnet-50"), "workload.train.precision",
                  "a network of layers", "a transformer");
}

TEST_CASE("Bad precisions of operators, of calls and of gathered weights") {
  const auto op = [](const std::string& node, const std::string& keys) {
    return "cluster: { node: " + node + " }\nworkload: { operator: { " + keys + " } }\n";
  };
  check_complaint(op("dgx-h100", "kind: matmul, m: 64, n: 64, k: 64, precision: ^nvfp4"), "workload.operator.precision",
                  "no units for nvfp4", "fp8");
  check_complaint(op("dgx-b200", "kind: softmax, rows: 8, columns: 8, precision: ^mxfp8"),
                  "workload.operator.precision", "only matrix products", "matmul");
  check_complaint(
      "cluster: { node: dgx-h100 }\nworkload: { tasks: [ { id: a, on: gpu0, run: { forward: { model: gpt2, precision: "
      "^mxfp8 } } } ] }\n",
      "workload.tasks[0].run.forward.precision", "no units for mxfp8", "fp8");
  check_complaint(training("dgx-b200", "precision: mxfp8", "llama3-8b", "zero: 1, sync: { parameter_precision: ^fp8 }"),
                  "plan.sync.parameter_precision", "without one scale", "bf16");
  check_complaint(training("dgx-b200", "precision: fp8", "llama3-8b", "zero: 0, sync: { parameter_precision: ^fp8 }"),
                  "plan.sync.parameter_precision", "nobody gathers or pulls", "plan.zero");
  check_complaint(training("dgx-b200", "precision: fp8", "llama3-8b", "sync: { gradient_precision: ^nvfp4 }"),
                  "plan.sync.gradient_precision", "", "bf16");
}
