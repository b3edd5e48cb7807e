// Scenarios as people might write them, made at random: any machine of the catalogue, model, plan and fault.
#pragma once

#include "tests/property/random.hpp"
#include "tests/property/settings.hpp"

namespace foretrain::test {

/// A training on at most 64 GPUs that can be predicted.
Settings random_plan(Random& random);

/// A collective on at most 64 GPUs that can be predicted.
Settings random_collective(Random& random);

}  // namespace foretrain::test
