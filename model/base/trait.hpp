// What differs between software stacks, by the key of a scenario that states it.
#pragma once

#include <string>

namespace foretrain {

/// A trait of a prediction: stated by the scenario, by the file of its trainer, or by nobody.
struct Trait {
  enum class From { scenario, trainer, assumed };

  std::string key;  ///< dotted, e.g. "plan.sync.bucket"
  std::string value;
  From from = From::assumed;
  std::string source;  ///< where the trainer says or does so; why it is assumed
  bool operator==(const Trait&) const = default;
};

}  // namespace foretrain
