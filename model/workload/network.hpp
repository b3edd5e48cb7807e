// Convolutional networks and multi-layer perceptrons: from a list of layers to operators with shapes.
#pragma once

#include <cstdint>
#include <string>

#include "model/hardware/precision.hpp"
#include "model/workload/model.hpp"
#include "model/workload/model_config.hpp"
#include "model/workload/trainer_code.hpp"

namespace foretrain {

/// Works out every shape and lists what one training step of `micro_batch` samples launches, as PyTorch with cuDNN does
/// in eager mode.
///
/// A Layer of the result starts at each top-level convolution, linear layer, residual block or set of branches and
/// takes along what follows it (norm, activation, pooling); equal neighbours share a LayerGroup. Softmax and
/// cross-entropy are added as a last layer, which no pipeline can split off.
///
/// With 16-bit precisions activations take 2 bytes, trainable numbers are fp32 and cast once per pass (autocast); with
/// fp8 activations stay bf16. Input samples are copied to the device in the number format of the activations. Kept for
/// the backward pass: inputs of convolutions, linear layers, norms and pooling, outputs of ReLU and sigmoid, dropout
/// masks and pooling indices. Each tensor once, however many operators keep it (so ReLU in place costs nothing extra).
///
/// `code`: how images lie in memory, and whether batch norms are one kernel with what lies behind them.
///
/// Throws ScenarioError at NetworkLayer::where when shapes do not fit.
Model build_network(const NetworkConfig& config, std::string name, std::int64_t micro_batch, Precision precision,
                    const TrainerCode& code = {});

}  // namespace foretrain
