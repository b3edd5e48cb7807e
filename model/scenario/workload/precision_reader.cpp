#include "model/scenario/workload/workload_reader.hpp"

#include <fmt/format.h>

#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "model/base/text.hpp"
#include "model/base/words.hpp"

namespace foretrain {

namespace {

std::int64_t layers_of(const ModelConfig& model) {
  if (const auto* transformer = std::get_if<TransformerConfig>(&model.shape)) return transformer->layers;
  if (const auto* whole = std::get_if<VisionLanguageConfig>(&model.shape)) return whole->language.layers;
  return 0;
}

/// `{ scaling: block, first_bf16_layers: 1, last_bf16_layers: 1 }`
void read_recipe(const Field& field, TrainWorkload& workload) {
  const MappingReader keys = field.mapping(keys::recipe);
  keys.fail_if(keys.has("scaling") && workload.precision != Precision::fp8, "scaling",
               "{} scales blocks and nothing else", "leave the key out, or fp8", name(workload.precision));
  QuantisationRecipe& recipe = workload.recipe;
  keys.fill(recipe);
  const std::int64_t layers = layers_of(workload.model);
  const std::int64_t kept = recipe.first_bf16_layers + recipe.last_bf16_layers;
  if (kept > layers) {
    keys.fail(keys.has("last_bf16_layers") ? "last_bf16_layers" : "first_bf16_layers",
              fmt::format("{} layers in bf16, and the model has {}", kept, layers),
              fmt::format("{} in all at most", layers));
  }
}

std::string what_multiplies(const Gpu& gpu) {
  const auto other = gpu.has_tensor_cores(Precision::mxfp8) ? Precision::mxfp8
                     : gpu.has_tensor_cores(Precision::fp8) ? Precision::fp8
                                                            : Precision::bf16;
  return fmt::format("{}{}, or a GPU that has some (Blackwell)", name(other),
                     other == Precision::fp8 ? " (with scaling: block in a training)" : "");
}

}  // namespace

std::string no_units(const Gpu& gpu, Precision precision) {
  return fmt::format("{} has no units for {}", gpu.name, name(precision));
}

void read_training_precision(const MappingReader& train, TrainWorkload& workload) {
  const auto stated = train.find("precision");
  std::optional<Field> word = stated;
  std::vector<std::pair<Precision, Field>> recipes;
  const auto add_recipes = [&](const MappingReader& keys) {
    for (const std::string_view key : {"fp8", "mxfp8", "nvfp4"}) {
      if (const auto recipe = keys.find(key)) recipes.emplace_back(*value_of<Precision>(key), *recipe);
    }
  };
  if (stated && stated->is_mapping()) {
    // `preset` is what overrides make of a word when they state a key below it.
    const MappingReader formats = stated->mapping(keys::precision);
    word = formats.find("preset");
    add_recipes(formats);
  }
  add_recipes(train);
  if (recipes.size() > 1) recipes[1].second.fail("a second recipe", "one, as precision: { fp8: { scaling: block } }");
  if (!recipes.empty()) workload.precision = recipes[0].first;
  if (word) workload.precision = word->choice<Precision>(training_precisions);
  if (recipes.empty()) return;
  const auto& [format, recipe] = recipes[0];
  if (format != workload.precision) {
    recipe.fail(fmt::format("the recipe of {}, but the precision is {}", name(format), name(workload.precision)),
                fmt::format("precision: {}, or leave the key out", name(format)));
  }
  read_recipe(recipe, workload);
}

void check_training_precision(const MappingReader& train, const TrainWorkload& workload, const Gpu& gpu) {
  const auto stated = train.find("precision");
  check_precision(workload.precision, workload.model, gpu, stated ? *stated : train.field());
  if (workload.precision != Precision::fp8 || workload.recipe.scaling != Fp8Scaling::block) return;
  if (gpu.has_tensor_cores(Precision::fp8)) return;
  const Field recipe = stated && stated->is_mapping() ? stated->mapping(keys::precision)["fp8"] : train["fp8"];
  recipe.find("scaling").value_or(recipe).fail(no_units(gpu, Precision::fp8), "bf16, or a GPU that has some (Hopper)");
}

void check_precision(const Operator& op, const Gpu& gpu, const Field& field) {
  if (!is_block_scaled(op.precision)) return;
  if (!std::holds_alternative<Matmul>(op.work)) {
    field.find("precision")
        .value_or(field)
        .fail(fmt::format("only matrix products have operands in {}", name(op.precision)), "bf16, or kind: matmul");
  }
  if (!gpu.has_tensor_cores(op.precision))
    field.find("precision").value_or(field).fail(no_units(gpu, op.precision), what_multiplies(gpu));
}

void check_precision(Precision precision, const ModelConfig& model, const Gpu& gpu, const Field& field) {
  if (!is_block_scaled(precision)) return;
  field.fail_if(std::holds_alternative<NetworkConfig>(model.shape),
                "only linear layers of transformers are cast to {}, and {} is a network of layers",
                "bf16, or a transformer", name(precision), model.name);
  if (!gpu.has_tensor_cores(precision)) field.fail(no_units(gpu, precision), what_multiplies(gpu));
}

}  // namespace foretrain
