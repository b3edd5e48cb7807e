// Whether work that is divided by the speed of devices can be divided so.
#pragma once

#include "model/scenario/scenario.hpp"

namespace foretrain {

/// Throws ScenarioError at the guilty key: a batch that is split unequally with a pipeline, with parameter servers or
/// with gradients that are synchronised after every micro-batch; processors that train beside GPUs otherwise than
/// behind them and with data parallelism alone.
void check_split(const Scenario& scenario);

/// Stated layers of stages that do not add up to the model's.
void check_stage_layers(const Scenario& scenario);

}  // namespace foretrain
