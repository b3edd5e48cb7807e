// Layers of networks (families mlp and cnn).
#include "model/scenario/keys/keys.hpp"
#include "model/scenario/keys/member.hpp"
#include "model/workload/model_config.hpp"

namespace foretrain::keys {

namespace {

constexpr Value layers_in_order = list(mapping(layer) | text);
constexpr Value one_or_two = whole | list(whole);
constexpr IntegerRange layer_width{1, 100'000'000}, layer_window{1, 10'000};
constexpr Key has_bias = member<&NetworkLayer::bias>("Whether a bias is added.");

// Words without parameters (relu, flatten, …) are written without a mapping.
constexpr Key layer_keys[] = {
    {"conv", mapping(convolution_layer), "", "A convolution."},
    {"linear", mapping(linear_layer), "", "A linear layer."},
    {"max_pool", mapping(pool_layer), "", "The largest value of each window."},
    {"average_pool", mapping(pool_layer), "", "The mean of each window."},
    {"dropout", number, "", "Share of values that is dropped."},
    {"residual", mapping(residual), "", "Layers whose result is added to their input."},
    {"branches", list_of_lists(mapping(layer) | text), "", "Lists of layers side by side, whose results are joined."},
    {"repeat", mapping(repeated), "", "Layers several times over."},
};

constexpr Key convolution_layer_keys[] = {
    needed<&NetworkLayer::out>("Filters.", {.range = layer_width}),
    {"kernel", one_or_two, "needed", "Side of a filter, or [height, width]."},
    member<&NetworkLayer::stride>("Pixels from one window to the next.", {.range = layer_window}),
    {"pad", one_or_two, "0", "Pixels of zeros around the input, or [height, width]."},
    member<&NetworkLayer::groups>("Groups of channels that are convolved apart.", {.range = layer_width}),
    has_bias,
};

constexpr Key linear_layer_keys[] = {
    needed<&NetworkLayer::out>("Features of the result.", {.range = layer_width}),
    has_bias,
};

constexpr Key pool_layer_keys[] = {
    {"kernel", one_or_two, "needed", "Side of a window, or [height, width]."},
    member<&NetworkLayer::stride>("Pixels from one window to the next.", {.usual = "kernel", .range = layer_window}),
    {"pad", one_or_two, "0", "Pixels around the input, or [height, width]."},
};

constexpr Key residual_keys[] = {
    {"body", layers_in_order, "needed", "The layers."},
    {"shortcut", layers_in_order, "nothing", "Layers on the way past them."},
};

constexpr Key repeated_keys[] = {
    needed<&NetworkLayer::times>("How often.", {.range = {1, 100'000}}),
    {"body", layers_in_order, "needed", "The layers."},
};

}  // namespace

constinit const Mapping layer = {"layer", layer_keys};
constinit const Mapping convolution_layer = {"convolutional layer", convolution_layer_keys};
constinit const Mapping linear_layer = {"linear layer", linear_layer_keys};
constinit const Mapping pool_layer = {"pooling layer", pool_layer_keys};
constinit const Mapping residual = {"residual", residual_keys};
constinit const Mapping repeated = {"repetition", repeated_keys};

}  // namespace foretrain::keys
