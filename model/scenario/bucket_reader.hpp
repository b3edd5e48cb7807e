// `plan.sync.bucket:` how many gradients are synchronised at once.
#pragma once

#include "model/parallelism/plan.hpp"
#include "model/scenario/yaml_reader.hpp"

namespace foretrain {

/// A size, or a trainer's rule.
void read_bucket(const Field& field, Sync& sync);

/// The size that the plan's rule comes to, once the rest of the plan is known.
void set_bucket(Plan& plan);

}  // namespace foretrain
