#include "model/scenario/workload/workload_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "model/scenario/keys/member.hpp"
#include "model/workload/transformer_parameters.hpp"
#include "model/workload/vision_language.hpp"

namespace foretrain {

namespace {

/// How often each length occurs.
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
  static_cast<void>(kind.choice<LengthDistribution::Kind>());
  const MappingReader keys = field.chosen(keys::distribution);
  keys.fill(lengths);
  if (lengths.kind == LengthDistribution::Kind::histogram) read_histogram(keys, lengths);
  keys.fail_if(lengths.kind == LengthDistribution::Kind::uniform && lengths.to < lengths.from, "to", "from {} to {}",
               "an end that is not before the start", lengths.from, lengths.to);
  return lengths;
}

Batching read_batching(const Field& field, std::int64_t sequence) {
  Batching batching;
  if (!field.is_mapping()) {
    batching.kind = field.choice<Batching::Kind>();
    return batching;
  }
  const MappingReader keys = field.mapping(keys::batching);
  keys.fill(batching);
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

double mean_of(const LengthDistribution& lengths) { return moment(values_of(lengths), 1); }

}  // namespace

DataShape read_data(const Field& field, const ModelConfig& model) {
  const TransformerConfig* language = language_of(model);
  if (language == nullptr) field.fail(fmt::format("{} has no sequence", model.name), "leave the key out");
  field.fail_if(language->decoder_layers > 0, "samples of {} have two sequences of one length each",
                "leave the key out", model.name);
  const auto* whole = std::get_if<VisionLanguageConfig>(&model.shape);
  const MappingReader keys = field.mapping(keys::data);
  DataShape data;
  data.text = read_distribution(keys["text"]);
  if (const auto batching = keys.find("batching")) data.batching = read_batching(*batching, language->sequence);
  if (const auto images = keys.find("images")) {
    if (whole == nullptr) images->fail(fmt::format("{} takes no images", model.name), "leave the key out");
    data.images = read_distribution(*images);
  }
  double tokens = mean_of(data.text);
  if (whole != nullptr) {
    const double images = mean_of(data.images);
    keys.fail_if(!(images > 0.0), "images", "no images",
                 "at least some samples with an image, or the language model alone");
    tokens += images * static_cast<double>(visual_tokens(*whole));
  }
  if (!(tokens > 0.0)) keys.fail("text", "empty samples", "a length above zero");
  keys.fail_if(tokens > static_cast<double>(language->sequence), "text",
               "samples of {:.0f} tokens on average for a model of {}",
               "shorter text, fewer images, or a longer sequence of the model", tokens, language->sequence);
  return data;
}

void read_freeze(const Field& field, const ModelConfig& model, TrainedParts& parts) {
  const TransformerConfig* words_model = language_of(model);
  field.fail_if(words_model == nullptr, "the parts of {} cannot be told apart",
                "a language model or a vision–language model, or leave the key out", model.name);
  enum class Part { vision, projector, language, embedding, blocks, head };
  const bool with_vision = std::holds_alternative<VisionLanguageConfig>(model.shape);
  for (const Field& item : field.list_or_one()) {
    const Part part = item.choice<Part>();
    if (!with_vision && (part == Part::vision || part == Part::projector)) {
      item.fail(fmt::format("{} has no {}", model.name, item.text()), "language, embedding, blocks or head");
    }
    parts.vision_frozen |= part == Part::vision;
    parts.projector_frozen |= part == Part::projector;
    parts.embedding_frozen |= part == Part::language || part == Part::embedding;
    parts.blocks_frozen |= part == Part::language || part == Part::blocks;
    parts.head_frozen |= part == Part::language || part == Part::head;
  }
  field.fail_if(words_model->tied_embeddings && parts.embedding_frozen != parts.head_frozen,
                "the output layer is the table of words, and only one of them is frozen", "both embedding and head");
}

void read_lora(const Field& field, const ModelConfig& model, TrainedParts& parts) {
  const TransformerConfig* language = language_of(model);
  field.fail_if(language == nullptr, "adapters are defined for language models, not for {}", "leave the key out",
                model.name);
  const MappingReader keys = field.mapping(keys::lora);
  // What NeMo's recipes for speed adapt (nemo/collections/llm/recipes/llama3_8b.py,
  // finetune_performance_optimizations: target_modules = ['linear_qkv']).
  const bool stated = keys.has("targets");
  Lora lora{.rank = 16, .attention = false, .ffn = false, .qkv = !stated};
  lora.rank = keys["rank"].integer({1, 1'000'000});
  keys.fail_if(lora.rank > language->hidden, "rank", "rank {0} in a model of width {1}", "at most {1}", lora.rank,
               language->hidden);
  if (const auto targets = keys.find("targets")) {
    enum class Target { attention, ffn, qkv };
    for (const Field& item : targets->list_or_one()) {
      const Target target = item.choice<Target>();
      lora.attention |= target == Target::attention;
      lora.ffn |= target == Target::ffn;
      lora.qkv |= target == Target::qkv;
    }
    if (lora.qkv && lora.attention) targets->fail("qkv is a part of attention", "one of them");
    if (!lora.attention && !lora.ffn && !lora.qkv)
      targets->fail("an empty list", "attention, ffn, or both; qkv instead of attention");
  }
  keys.fail_if(lora.ffn && language->experts > 1, "targets", "adapters beside the matrices of experts",
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
