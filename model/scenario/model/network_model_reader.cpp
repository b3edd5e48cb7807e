#include <fmt/format.h>

#include <utility>

#include "model/base/text.hpp"
#include "model/scenario/model/model_reader.hpp"

namespace foretrain {

namespace {

using Kind = NetworkLayer::Kind;
constexpr std::int64_t largest_dimension = 100'000'000;
constexpr IntegerRange window_range{1, 10'000};
constexpr IntegerRange pad_range{0, 10'000};

std::vector<NetworkLayer> read_layers(const Field& list);

void read_window(const MappingReader& keys, NetworkLayer& layer) {
  std::tie(layer.kernel_h, layer.kernel_w) = read_pair(keys["kernel"], window_range);
  if (const auto pad = keys.find("pad")) std::tie(layer.pad_h, layer.pad_w) = read_pair(*pad, pad_range);
}

void read_convolution(const Field& field, NetworkLayer& layer) {
  const MappingReader keys = field.mapping(keys::convolution_layer);
  keys.fill(layer);
  read_window(keys, layer);
}

void read_linear(const Field& field, NetworkLayer& layer) { field.mapping(keys::linear_layer).fill(layer); }

/// Windows of a pooling layer do not overlap unless a stride says so.
void read_pool(const Field& field, NetworkLayer& layer) {
  const MappingReader keys = field.mapping(keys::pool_layer);
  read_window(keys, layer);
  layer.stride = layer.kernel_h;
  keys.fill(layer);
}

void read_dropout(const Field& field, NetworkLayer&) {
  if (field.number() > 1.0) field.fail("above 1", "the share of values that is dropped, from 0 to 1");
}

void read_residual(const Field& field, NetworkLayer& layer) {
  const MappingReader keys = field.mapping(keys::residual);
  layer.bodies.push_back(read_layers(keys["body"]));
  const auto shortcut = keys.find("shortcut");
  layer.bodies.push_back(shortcut ? read_layers(*shortcut) : std::vector<NetworkLayer>{});
}

void read_branches(const Field& field, NetworkLayer& layer) {
  for (const Field& branch : field.list()) layer.bodies.push_back(read_layers(branch));
  if (layer.bodies.empty()) field.fail("no branches", "[ [ … ], [ … ] ]");
}

void read_repeat(const Field& field, NetworkLayer& layer) {
  const MappingReader keys = field.mapping(keys::repeated);
  keys.fill(layer);
  layer.bodies.push_back(read_layers(keys["body"]));
}

struct LayerRow {
  std::string_view word;
  Kind kind;
  void (*read)(const Field&, NetworkLayer&);  ///< nullptr: a word without parameters
};
constexpr LayerRow layer_rows[] = {{"conv", Kind::convolution, read_convolution},
                                   {"linear", Kind::linear, read_linear},
                                   {"batch_norm", Kind::batch_norm, nullptr},
                                   {"relu", Kind::relu, nullptr},
                                   {"sigmoid", Kind::sigmoid, nullptr},
                                   {"gelu", Kind::gelu, nullptr},
                                   {"max_pool", Kind::max_pool, read_pool},
                                   {"average_pool", Kind::average_pool, read_pool},
                                   {"global_average_pool", Kind::global_average_pool, nullptr},
                                   {"flatten", Kind::flatten, nullptr},
                                   {"dropout", Kind::dropout, read_dropout},
                                   {"local_response_norm", Kind::local_response_norm, nullptr},
                                   {"residual", Kind::residual, read_residual},
                                   {"branches", Kind::branches, read_branches},
                                   {"repeat", Kind::repeat, read_repeat}};

const LayerRow& find_row(const std::string& word, const Field& field) {
  std::vector<std::string> words;
  for (const LayerRow& row : layer_rows) {
    if (row.word == word) return row;
    words.emplace_back(row.word);
  }
  field.fail(fmt::format("unknown layer \"{}\"", word),
             did_you_mean(nearest_word(word, words), or_list(words, words.size())));
}

NetworkLayer read_layer(const Field& field) {
  NetworkLayer layer;
  layer.where = field.where();
  if (field.is_scalar()) {
    const LayerRow& row = find_row(field.text(), field);
    if (row.read != nullptr) {
      field.fail(fmt::format("{} without parameters", row.word), fmt::format("{{ {}: {{ … }} }}", row.word));
    }
    layer.kind = row.kind;
    return layer;
  }
  field.fail_if(!field.is_mapping() || field.node().entries.size() != 1, "this is not one layer",
                "relu, or { conv: { out: 64, kernel: 3 } }");
  const YamlEntry& entry = field.node().entries.front();
  const LayerRow& row = find_row(entry.key, field);
  if (row.read == nullptr) field.fail(fmt::format("{} has no parameters", row.word), std::string(row.word));
  layer.kind = row.kind;
  row.read(field.below(entry), layer);
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
  if (input.size() != 1 && input.size() != 3) {
    model.fail("input", fmt::format("{} numbers", input.size()), "[channels, height, width] or [features]");
  }
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
