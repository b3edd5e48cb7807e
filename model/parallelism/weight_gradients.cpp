#include "model/parallelism/weight_gradients.hpp"

#include <algorithm>
#include <iterator>

namespace foretrain {

bool is_weight_gradient(const Operator& op) {
  if (const auto* product = std::get_if<Matmul>(&op.work)) return product->transpose_a;
  const auto* convolution = std::get_if<Convolution>(&op.work);
  return convolution != nullptr && convolution->pass == ConvolutionPass::weight_gradient;
}

Bytes kept_for_weight_gradients(const Layer& layer) {
  Bytes kept;
  for (const Operator& op : layer.backward) {
    if (!is_weight_gradient(op)) continue;
    const Bytes element = bytes_per_element(op.precision);
    if (const auto* product = std::get_if<Matmul>(&op.work)) {
      const double both = (number(product->m) + number(product->n)) * number(product->k);
      kept += number(product->batch) * both * element;
    } else {
      const auto& convolution = std::get<Convolution>(op.work);
      kept += (convolution.inputs() + convolution.outputs()) * element;
    }
  }
  return kept;
}

Layer without_weight_gradients(const Layer& layer) {
  Layer inputs = layer;
  std::erase_if(inputs.backward, is_weight_gradient);
  return inputs;
}

Layer weight_gradients_alone(const Layer& layer) {
  Layer weights;
  weights.name = layer.name;
  weights.recomputable = false;
  weights.routes_tokens = layer.routes_tokens;
  std::ranges::copy_if(layer.backward, std::back_inserter(weights.backward), is_weight_gradient);
  return weights;
}

}  // namespace foretrain
