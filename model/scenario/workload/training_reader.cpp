// Of a training: its number formats, samples, frozen parts and adapters.
#include "model/scenario/workload/workload_reader.hpp"

#include "model/scenario/keys/member.hpp"
#include "model/workload/transformer_parameters.hpp"
#include "model/workload/vision_language.hpp"

namespace foretrain {

namespace {

std::int64_t layers_of(const ModelConfig& model) {
  if (const auto* transformer = std::get_if<TransformerConfig>(&model.shape)) return transformer->layers;
  if (const auto* whole = std::get_if<VisionLanguageConfig>(&model.shape)) return whole->language.layers;
  return 0;
}

/// `{ scaling: block, first_bf16_layers: 1, last_bf16_layers: 1 }`
void read_recipe(const Field& field, TrainWorkload& workload) {
  const MappingReader keys = field.mapping();
  keys.fail_if(keys.has("scaling") && workload.precision != Precision::fp8, "scaling",
               "{} scales blocks and nothing else", "leave the key out, or fp8", name(workload.precision));
  QuantisationRecipe& recipe = workload.recipe;
  keys.fill(recipe);
  keys.fail_if(recipe.experts_alone && !workload.model.has_experts(), "layers", "experts of a model that has none",
               "all, or leave the key out");
  const std::int64_t layers = layers_of(workload.model);
  const std::int64_t kept = recipe.first_bf16_layers + recipe.last_bf16_layers;
  keys.fail_if(kept > layers, keys.has("last_bf16_layers") ? "last_bf16_layers" : "first_bf16_layers",
               "{0} layers in bf16, and the model has {1}", "{1} in all at most", kept, layers);
}

std::string what_multiplies(const Gpu& gpu) {
  const auto other = gpu.has_tensor_cores(Precision::mxfp8) ? Precision::mxfp8
                     : gpu.has_tensor_cores(Precision::fp8) ? Precision::fp8
                                                            : Precision::bf16;
  return fmt::format("{}{}, or a GPU that has some (Blackwell)", name(other),
                     other == Precision::fp8 ? " (with scaling: block in a training)" : "");
}

/// Reads the frequency of each length.
void read_histogram(const MappingReader& keys, LengthDistribution& lengths) {
  const std::vector<Field> values = keys["values"].list(), weights = keys["weights"].list();
  if (values.empty()) keys.fail("values", "an empty list", "at least one length");
  keys.fail_if(values.size() != weights.size(), "weights", "{} weights for {} values", "as many as values",
               weights.size(), values.size());
  double total = 0.0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    lengths.histogram.push_back({values[i].parse(keys::parse_length), weights[i].parse(keys::parse_length)});
    total += lengths.histogram.back().weight;
  }
  if (!(total > 0.0)) keys.fail("weights", "all are zero", "at least one above zero");
}

LengthDistribution read_distribution(const Field& field) {
  LengthDistribution lengths;
  if (!field.is_mapping()) {
    lengths.value = field.parse(keys::parse_length);
    return lengths;
  }
  const Field kind = field.at("distribution", "fixed, uniform, lognormal or histogram; or a plain number");
  static_cast<void>(kind.as<LengthDistribution::Kind>());
  const MappingReader keys = field.mapping();
  keys.fill(lengths);
  if (lengths.kind == LengthDistribution::Kind::histogram) read_histogram(keys, lengths);
  keys.fail_if(lengths.kind == LengthDistribution::Kind::uniform && lengths.to < lengths.from, "to", "from {} to {}",
               "an end that is not before the start", lengths.from, lengths.to);
  return lengths;
}

Batching read_batching(const Field& field, std::int64_t sequence) {
  if (!field.is_mapping()) return {.kind = field.as<Batching::Kind>()};
  const MappingReader keys = field.mapping();
  auto batching = keys.filled<Batching>();
  keys.fail_if(batching.length > 0 && batching.length < sequence, "length",
               "packed sequences of {0} cannot hold a sample of {1}",
               "at least {1}, or a shorter sequence of the model", batching.length, sequence);
  return batching;
}

const TransformerConfig* language_of(const ModelConfig& model) {
  if (const auto* whole = std::get_if<VisionLanguageConfig>(&model.shape)) return &whole->language;
  const auto* transformer = std::get_if<TransformerConfig>(&model.shape);
  return transformer == nullptr || transformer->family == TransformerFamily::vit ? nullptr : transformer;
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
    const MappingReader formats = stated->mapping();
    word = formats.find("preset");
    add_recipes(formats);
  }
  add_recipes(train);
  if (recipes.size() > 1) recipes[1].second.fail("a second recipe", "one, as precision: { fp8: { scaling: block } }");
  if (!recipes.empty()) workload.precision = recipes[0].first;
  if (word) workload.precision = word->as<Precision>();
  if (recipes.empty()) return;
  const auto& [format, recipe] = recipes[0];
  recipe.fail_if(format != workload.precision, "the recipe of {0}, but the precision is {1}",
                 "precision: {0}, or leave the key out", name(format), name(workload.precision));
  read_recipe(recipe, workload);
}

void check_training_precision(const MappingReader& train, const TrainWorkload& workload, const Gpu& gpu) {
  const auto stated = train.find("precision");
  check_precision(workload.precision, workload.model, gpu, stated ? *stated : train.field());
  if (workload.precision != Precision::fp8 || workload.recipe.scaling != Fp8Scaling::block) return;
  if (gpu.has_tensor_cores(Precision::fp8)) return;
  const Field recipe = stated && stated->is_mapping() ? stated->mapping()["fp8"] : train["fp8"];
  recipe.find("scaling").value_or(recipe).fail(no_units(gpu, Precision::fp8), "bf16, or a GPU that has some (Hopper)");
}

void check_precision(const Operator& op, const Gpu& gpu, const Field& field) {
  if (!is_block_scaled(op.precision)) return;
  const Field precision = field.find("precision").value_or(field);
  precision.fail_if(!std::holds_alternative<Matmul>(op.work), "only GEMMs have operands in {}", "bf16, or kind: matmul",
                    name(op.precision));
  if (!gpu.has_tensor_cores(op.precision)) precision.fail(no_units(gpu, op.precision), what_multiplies(gpu));
}

void check_precision(Precision precision, const ModelConfig& model, const Gpu& gpu, const Field& field) {
  if (!is_block_scaled(precision)) return;
  field.fail_if(std::holds_alternative<NetworkConfig>(model.shape),
                "only linear layers of transformers are cast to {}, and {} is a network of layers",
                "bf16, or a transformer", name(precision), model.name);
  if (!gpu.has_tensor_cores(precision)) field.fail(no_units(gpu, precision), what_multiplies(gpu));
}

DataShape read_data(const Field& field, const ModelConfig& model) {
  const TransformerConfig* language = language_of(model);
  field.fail_if(language == nullptr, "{} has no sequence", "leave the key out", model.name);
  field.fail_if(language->decoder_layers > 0, "samples of {} have two sequences of one length each",
                "leave the key out", model.name);
  const auto* whole = std::get_if<VisionLanguageConfig>(&model.shape);
  const MappingReader keys = field.mapping();
  DataShape data;
  data.text = read_distribution(keys["text"]);
  if (const auto batching = keys.find("batching")) data.batching = read_batching(*batching, language->sequence);
  if (const auto images = keys.find("images")) {
    images->fail_if(whole == nullptr, "{} takes no images", "leave the key out", model.name);
    data.images = read_distribution(*images);
  }
  double tokens = moment(values_of(data.text), 1);
  if (whole != nullptr) {
    const double images = moment(values_of(data.images), 1);
    keys.fail_if(!(images > 0.0), "images", "no images",
                 "at least some samples with an image, or the language model alone");
    tokens += images * static_cast<double>(visual_tokens(*whole));
  }
  keys.fail_if(!(tokens > 0.0), "text", "empty samples", "a length above zero");
  keys.fail_if(tokens > static_cast<double>(language->sequence), "text",
               "samples of {:.0f} tokens on average for a model of {}",
               "shorter text, fewer images, or a longer sequence of the model", tokens, language->sequence);
  return data;
}

void read_freeze(const Field& field, const ModelConfig& model, TrainedParts& parts) {
  const TransformerConfig* words_model = language_of(model);
  field.fail_if(words_model == nullptr, "{} has no parts that can be frozen",
                "a language model or a vision–language model, or leave the key out", model.name);
  enum class Part { vision, projector, language, embedding, blocks, head };
  const bool with_vision = std::holds_alternative<VisionLanguageConfig>(model.shape);
  for (const Field& item : field.list_or_one()) {
    const Part part = item.as<Part>();
    item.fail_if(!with_vision && (part == Part::vision || part == Part::projector), "{} has no {}",
                 "language, embedding, blocks or head", model.name, item.text());
    parts.vision_frozen |= part == Part::vision;
    parts.projector_frozen |= part == Part::projector;
    parts.embedding_frozen |= part == Part::language || part == Part::embedding;
    parts.blocks_frozen |= part == Part::language || part == Part::blocks;
    parts.head_frozen |= part == Part::language || part == Part::head;
  }
  field.fail_if(words_model->tied_embeddings && parts.embedding_frozen != parts.head_frozen,
                "tied embeddings: embedding and head are one matrix, but only one is frozen",
                "both embedding and head");
}

void read_lora(const Field& field, const ModelConfig& model, TrainedParts& parts) {
  const TransformerConfig* language = language_of(model);
  field.fail_if(language == nullptr, "adapters are defined for language models, not for {}", "leave the key out",
                model.name);
  const MappingReader keys = field.mapping();
  // NeMo's recipes for speed adapt QKV alone (nemo/collections/llm/recipes/llama3_8b.py,
  // finetune_performance_optimizations: target_modules = ['linear_qkv']).
  const bool stated = keys.has("targets");
  Lora lora{.rank = 16, .attention = false, .ffn = false, .qkv = !stated};
  lora.rank = keys["rank"].as<std::int64_t>();
  keys.fail_if(lora.rank > language->hidden, "rank", "rank {0} in a model of width {1}", "at most {1}", lora.rank,
               language->hidden);
  if (const auto targets = keys.find("targets")) {
    enum class Target { attention, ffn, qkv };
    for (const Field& item : targets->list_or_one()) {
      const Target target = item.as<Target>();
      lora.attention |= target == Target::attention;
      lora.ffn |= target == Target::ffn;
      lora.qkv |= target == Target::qkv;
    }
    targets->fail_if(lora.qkv && lora.attention, "qkv is a part of attention", "one of them");
    targets->fail_if(!lora.attention && !lora.ffn && !lora.qkv, "an empty list",
                     "attention, ffn, or both; qkv instead of attention");
  }
  keys.fail_if(lora.ffn && language->experts > 1, "targets", "adapters for the matrices of experts",
               "targets: [attention]");
  parts.lora = lora;
}

void check_something_is_trained(const Field& train, const ModelConfig& model, const TrainedParts& parts) {
  const bool with_vision = std::holds_alternative<VisionLanguageConfig>(model.shape);
  const bool vision = with_vision && (!parts.vision_frozen || !parts.projector_frozen);
  const bool language = parts.lora || !parts.embedding_frozen || !parts.blocks_frozen || !parts.head_frozen;
  if (vision || language) return;
  train.at("freeze").fail("nothing is left to train", "fewer frozen parts, or lora: { rank: 16 }");
}

}  // namespace foretrain
