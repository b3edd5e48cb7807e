#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "model/base/text.hpp"
#include "model/base/words.hpp"
#include "model/scenario/model/model_reader.hpp"

namespace foretrain {

namespace {

constexpr std::int64_t largest_dimension = 100'000'000;

std::vector<NetworkLayer> read_layers(const Field& list);

NetworkLayer::Kind kind_of(const std::string& word, const Field& field) {
  if (const auto kind = value_of<NetworkLayer::Kind>(word)) return *kind;
  const std::vector<std::string> words(names_of<NetworkLayer::Kind>.begin(), names_of<NetworkLayer::Kind>.end());
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
    const bool pools = layer.kind == max_pool || layer.kind == average_pool;
    if (pools || layer.kind == convolution) {
      std::tie(layer.kernel_h, layer.kernel_w) = read_pair(keys["kernel"], {1, 10'000});
      if (const auto pad = keys.find("pad")) std::tie(layer.pad_h, layer.pad_w) = read_pair(*pad, {0, 10'000});
    }
    // Windows of a pooling layer do not overlap unless a stride says so.
    if (pools && !keys.has("stride")) layer.stride = layer.kernel_h;
  }
}

NetworkLayer read_layer(const Field& field) {
  NetworkLayer layer;
  layer.where = field.where();
  const bool alone = field.is_scalar();
  field.fail_if(!alone && (!field.is_mapping() || field.node().entries.size() != 1), "this is not one layer",
                "relu, or { conv: { out: 64, kernel: 3 } }");
  const std::string& word = alone ? field.text() : field.node().entries.front().key;
  layer.kind = kind_of(word, field);
  const bool has_parameters = std::ranges::find(keys::layer.keys, word, &keys::Key::name) != keys::layer.keys.end();
  field.fail_if(alone && has_parameters, "{0} without parameters", "{{ {0}: {{ … }} }}", word);
  field.fail_if(!alone && !has_parameters, "{0} has no parameters", "{0}", word);
  if (!alone) read_parameters(field.below(field.node().entries.front()), layer, word);
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
