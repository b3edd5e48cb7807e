// `plan.sync.bucket:` how many gradients are synchronised at once.
#pragma once

#include <string>
#include <vector>

#include "model/parallelism/plan.hpp"
#include "model/scenario/yaml_reader.hpp"

namespace foretrain {

/// The names of the rules in scenarios/buckets.yaml.
std::vector<std::string> bucket_rule_names();

/// A size, or the name of a rule of scenarios/buckets.yaml.
void read_bucket(const Field& field, Sync& sync);

/// The size that the plan's rule comes to, once the rest of the plan is known.
void set_bucket(Plan& plan);

}  // namespace foretrain
