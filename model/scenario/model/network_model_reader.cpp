#include <fmt/format.h>

#include <utility>

#include "model/base/text.hpp"
#include "model/scenario/model/model_reader.hpp"

namespace foretrain {

namespace {

constexpr std::int64_t largest_dimension = 100'000'000;

std::vector<NetworkLayer> read_layers(const Field& list);

/// A layer's word.
struct LayerRow {
  std::string_view word;
  NetworkLayer::Kind kind;
  bool has_parameters = false;
};
constexpr LayerRow layer_rows[] = {{"conv", NetworkLayer::Kind::convolution, true},
                                   {"linear", NetworkLayer::Kind::linear, true},
                                   {"batch_norm", NetworkLayer::Kind::batch_norm},
                                   {"relu", NetworkLayer::Kind::relu},
                                   {"sigmoid", NetworkLayer::Kind::sigmoid},
                                   {"gelu", NetworkLayer::Kind::gelu},
                                   {"max_pool", NetworkLayer::Kind::max_pool, true},
                                   {"average_pool", NetworkLayer::Kind::average_pool, true},
                                   {"global_average_pool", NetworkLayer::Kind::global_average_pool},
                                   {"flatten", NetworkLayer::Kind::flatten},
                                   {"dropout", NetworkLayer::Kind::dropout, true},
                                   {"local_response_norm", NetworkLayer::Kind::local_response_norm},
                                   {"residual", NetworkLayer::Kind::residual, true},
                                   {"branches", NetworkLayer::Kind::branches, true},
                                   {"repeat", NetworkLayer::Kind::repeat, true}};

const LayerRow& find_row(const std::string& word, const Field& field) {
  std::vector<std::string> words;
  for (const LayerRow& row : layer_rows) {
    if (row.word == word) return row;
    words.emplace_back(row.word);
  }
  field.fail(fmt::format("unknown layer \"{}\"", word),
             did_you_mean(nearest_word(word, words), or_list(words, words.size())));
}

/// What stands behind a layer's word.
void read_parameters(const Field& field, NetworkLayer& layer, std::string_view word) {
  using enum NetworkLayer::Kind;
  if (layer.kind == dropout) {
    if (field.number() > 1.0) field.fail("above 1", "the share of values that is dropped, from 0 to 1");
  } else if (layer.kind == branches) {
    for (const Field& branch : field.list()) layer.bodies.push_back(read_layers(branch));
    if (layer.bodies.empty()) field.fail("no branches", "[ [ … ], [ … ] ]");
  } else {
    const MappingReader keys = field.mapping(*keys::key_of(keys::layer, word).value.forms().front().mapping);
    keys.fill(layer);
    if (layer.kind == residual || layer.kind == repeat) layer.bodies.push_back(read_layers(keys["body"]));
    if (layer.kind == residual) {
      const auto shortcut = keys.find("shortcut");
      layer.bodies.push_back(shortcut ? read_layers(*shortcut) : std::vector<NetworkLayer>{});
    }
    // Windows of a pooling layer do not overlap unless a stride says so.
    const bool pools = layer.kind == max_pool || layer.kind == average_pool;
    if (pools && !keys.has("stride")) layer.stride = layer.kernel_h;
  }
}

NetworkLayer read_layer(const Field& field) {
  NetworkLayer layer;
  layer.where = field.where();
  const bool alone = field.is_scalar();
  field.fail_if(!alone && (!field.is_mapping() || field.node().entries.size() != 1), "this is not one layer",
                "relu, or { conv: { out: 64, kernel: 3 } }");
  const LayerRow& row = find_row(alone ? field.text() : field.node().entries.front().key, field);
  layer.kind = row.kind;
  if (alone && row.has_parameters) {
    field.fail(fmt::format("{} without parameters", row.word), fmt::format("{{ {}: {{ … }} }}", row.word));
  }
  if (!alone && !row.has_parameters) field.fail(fmt::format("{} has no parameters", row.word), std::string(row.word));
  if (!alone) read_parameters(field.below(field.node().entries.front()), layer, row.word);
  return layer;
}

std::vector<NetworkLayer> read_layers(const Field& list) {
  std::vector<NetworkLayer> layers;
  for (const Field& field : list.list()) layers.push_back(read_layer(field));
  return layers;
}

}  // namespace

std::pair<std::int64_t, std::int64_t> read_pair(const Field& field, IntegerRange range) {
  if (field.is_scalar()) return {field.integer(range), field.integer(range)};
  const std::vector<Field> sides = field.list();
  if (sides.size() != 2) field.fail(fmt::format("{} numbers", sides.size()), "one number, or [height, width]");
  return {sides[0].integer(range), sides[1].integer(range)};
}

NetworkConfig read_network_model(const Field& field) {
  const MappingReader model = field.mapping(keys::model, keys::network_model);
  NetworkConfig config;
  const std::vector<Field> input = model["input"].list();
  model.fail_if(input.size() != 1 && input.size() != 3, "input", "{} numbers",
                "[channels, height, width] or [features]", input.size());
  config.channels = input[0].integer({1, largest_dimension});
  if (input.size() == 3) {
    config.height = input[1].integer({1, 100'000});
    config.width = input[2].integer({1, 100'000});
  }
  config.layers = read_layers(model["layers"]);
  if (config.layers.empty()) model.fail("layers", "no layers", "at least one layer, such as { linear: { out: 10 } }");
  return config;
}

}  // namespace foretrain
