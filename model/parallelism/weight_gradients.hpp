// Gradients of weights apart from those of inputs: what schedules may put off, and what waits with it.
#pragma once

#include "model/workload/model.hpp"

namespace foretrain {

/// Products dW = dyᵀ · x and their convolutions. All else belongs to the way back to the inputs: attention, norms with
/// the gradients of their scales, elementwise kernels, the look-up of embeddings.
bool is_weight_gradient(const Operator& op);

/// dy and x of all of a layer's products, which are kept from the one pass to the other (arXiv 2401.10241, table 1: 32
/// bytes for each token and hidden unit of a GPT block).
Bytes kept_for_weight_gradients(const Layer& layer);

/// The layer as its backward pass is done in two parts. What the stage before waits for, and the rest, which nothing in
/// the layer waits for and in which nothing is sent.
Layer without_weight_gradients(const Layer& layer);
Layer weight_gradients_alone(const Layer& layer);

}  // namespace foretrain
