// Operators of GPUs that are stated by their shapes: alone, and in lists of tasks.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <string_view>

#include "model/scenario/keys/keys.hpp"

namespace foretrain::keys {

inline constexpr std::string_view device_operator_words[] = {
    "matmul",    "convolution",   "attention",  "elementwise",       "reduction",
    "copy",      "batch_norm",    "layer_norm", "softmax",           "pooling",
    "embedding", "cross_entropy", "optimizer",  "gradient_clipping", "memory_access"};
inline constexpr Variant device_operators[] = {{"matmul", &matmul},
                                               {"convolution", &convolution},
                                               {"attention", &attention},
                                               {"elementwise reduction", &elementwise},
                                               {"batch_norm", &batch_norm},
                                               {"layer_norm softmax cross_entropy", &rows},
                                               {"pooling", &pooling},
                                               {"embedding", &embedding},
                                               {"optimizer", &optimizer},
                                               {"gradient_clipping", &gradient_clipping},
                                               {"memory_access", &memory_access}};

/// One table behind another.
template <typename Row, std::size_t first_size, std::size_t second_size>
constexpr std::array<Row, first_size + second_size> joined(const Row (&first)[first_size],
                                                           const Row (&second)[second_size]) {
  std::array<Row, first_size + second_size> all{};
  std::ranges::copy(second, std::ranges::copy(first, all.begin()).out);
  return all;
}

}  // namespace foretrain::keys
