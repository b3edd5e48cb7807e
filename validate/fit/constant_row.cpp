#include "validate/fit/constant_row.hpp"

#include <vector>

#include "model/base/error.hpp"
#include "model/base/text.hpp"

namespace foretrain {

const ConstantRow& constant_row(const std::string& name) {
  std::vector<std::string> known;
  for (const ConstantRow& row : calibration_rows()) {
    if (row.name == name) return row;
    known.push_back(row.name);
  }
  const auto nearest = nearest_word(name, known);
  throw UsageError("unknown constant " + name + (nearest ? "; did you mean " + *nearest + "?" : ""));
}

std::string energy_name(std::size_t generation, bool tensor) {
  return "power." + std::string(chip_generations[generation].name) + (tensor ? "_tensor_pj" : "_vector_pj");
}

}  // namespace foretrain
