#include "model/scenario/precision_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <variant>

#include "model/base/text.hpp"
#include "model/base/words.hpp"

namespace foretrain {

namespace {

constexpr IntegerRange bf16_layers_range{0, 100'000};

std::int64_t layers_of(const ModelConfig& model) {
  if (const auto* transformer = std::get_if<TransformerConfig>(&model.shape)) return transformer->layers;
  if (const auto* whole = std::get_if<VisionLanguageConfig>(&model.shape)) return whole->language.layers;
  return 0;
}

/// `{ scaling: block, first_bf16_layers: 1, last_bf16_layers: 1 }`
void read_recipe(const Field& field, TrainWorkload& workload) {
  const MappingReader keys = field.mapping({"scaling", "first_bf16_layers", "last_bf16_layers"});
  if (keys.has("scaling") && workload.precision != Precision::fp8) {
    keys.fail("scaling", fmt::format("{} scales blocks and nothing else", name(workload.precision)),
              "leave the key out, or fp8");
  }
  QuantisationRecipe& recipe = workload.recipe;
  recipe.scaling = keys.choice_or("scaling", recipe.scaling);
  recipe.first_bf16_layers = keys.integer_or("first_bf16_layers", 0, bf16_layers_range);
  recipe.last_bf16_layers = keys.integer_or("last_bf16_layers", 0, bf16_layers_range);
  const std::int64_t layers = layers_of(workload.model);
  const std::int64_t kept = recipe.first_bf16_layers + recipe.last_bf16_layers;
  if (kept > layers) {
    keys.fail(keys.has("last_bf16_layers") ? "last_bf16_layers" : "first_bf16_layers",
              fmt::format("{} layers in bf16, and the model has {}", kept, layers),
              fmt::format("{} in all at most", layers));
  }
}

/// Complains at the key below `field`, or at it where it is a format's name alone.
[[noreturn]] void fail_at(const Field& field, std::string_view key, std::string got, std::string expected) {
  const YamlEntry* entry = field.is_mapping() ? field.node().find(key) : nullptr;
  if (entry == nullptr) field.fail(std::move(got), std::move(expected));
  Field(entry->value, join_path(field.path(), key)).fail(std::move(got), std::move(expected));
}

std::string what_multiplies(const Gpu& gpu) {
  const auto other = gpu.has_tensor_cores(Precision::mxfp8) ? Precision::mxfp8
                     : gpu.has_tensor_cores(Precision::fp8) ? Precision::fp8
                                                            : Precision::bf16;
  return fmt::format("{}{}, or a GPU that has some (Blackwell)", name(other),
                     other == Precision::fp8 ? " (with scaling: block in a training)" : "");
}

std::string no_units(const Gpu& gpu, Precision precision) {
  return fmt::format("{} has no units for {}", gpu.name, name(precision));
}

}  // namespace

void read_training_precision(const MappingReader& train, TrainWorkload& workload) {
  const auto stated = train.find("precision");
  const auto beside = std::ranges::find_if(recipe_keys, [&](std::string_view key) { return train.has(key); });
  if (stated && stated->is_mapping()) {
    const MappingReader formats = stated->mapping({"fp8", "mxfp8", "nvfp4"});
    if (stated->node().entries.size() != 1) {
      stated->fail(fmt::format("{} formats", stated->node().entries.size()),
                   "one, for example { fp8: { scaling: block } }");
    }
    const std::string& word = stated->node().entries.front().key;
    if (beside != recipe_keys.end()) train.fail(*beside, "precision has a recipe already", "one of the two");
    workload.precision = *value_of<Precision>(word);
    read_recipe(formats[word], workload);
    return;
  }
  const Precision usual = beside == recipe_keys.end() ? Precision::bf16 : *value_of<Precision>(*beside);
  workload.precision = train.choice_or("precision", usual, training_precisions);
  for (const std::string_view key : recipe_keys) {
    const auto recipe = train.find(key);
    if (!recipe) continue;
    if (name(workload.precision) != key) {
      train.fail(key, fmt::format("the recipe of {}, but the precision is {}", key, name(workload.precision)),
                 fmt::format("precision: {}, or leave the key out", key));
    }
    read_recipe(*recipe, workload);
  }
}

void check_training_precision(const MappingReader& train, const TrainWorkload& workload, const Gpu& gpu) {
  const auto stated = train.find("precision");
  check_precision(workload.precision, workload.model, gpu, stated ? *stated : train.field());
  if (workload.precision != Precision::fp8 || workload.recipe.scaling != Fp8Scaling::block) return;
  if (gpu.has_tensor_cores(Precision::fp8)) return;
  const Field recipe = stated && stated->is_mapping() ? stated->mapping({"fp8"})["fp8"] : train["fp8"];
  fail_at(recipe, "scaling", no_units(gpu, Precision::fp8), "bf16, or a GPU that has some (Hopper)");
}

void check_precision(const Operator& op, const Gpu& gpu, const Field& field) {
  if (!is_block_scaled(op.precision)) return;
  if (!std::holds_alternative<Matmul>(op.work)) {
    fail_at(field, "precision", fmt::format("only matrix products have operands in {}", name(op.precision)),
            "bf16, or kind: matmul");
  }
  if (!gpu.has_tensor_cores(op.precision))
    fail_at(field, "precision", no_units(gpu, op.precision), what_multiplies(gpu));
}

void check_precision(Precision precision, const ModelConfig& model, const Gpu& gpu, const Field& field) {
  if (!is_block_scaled(precision)) return;
  if (std::holds_alternative<NetworkConfig>(model.shape)) {
    field.fail(fmt::format("only linear layers of transformers are cast to {}, and {} is a network of layers",
                           name(precision), model.name),
               "bf16, or a transformer");
  }
  if (!gpu.has_tensor_cores(precision)) field.fail(no_units(gpu, precision), what_multiplies(gpu));
}

}  // namespace foretrain
