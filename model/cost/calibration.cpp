#include "model/cost/calibration.hpp"

#include <algorithm>

#include "model/base/text.hpp"

namespace foretrain {
namespace {

std::vector<ConstantRow> make_rows() {
  std::vector<ConstantRow> rows;
  const auto add = [&rows](std::string name, const char* unit, auto field, double minimum, double maximum,
                           bool optional = false) {
    rows.push_back({std::move(name), unit, field, minimum, maximum, optional});
  };
#define PART(Type, part)                  \
  {                                       \
    const std::string prefix = #part "."; \
    const auto part_of = [](Calibration& c) -> Type& { return c.part; };
#define CONSTANT(name, unit, minimum, maximum) \
  add(                                         \
      prefix + #name, unit, [=](Calibration& c) -> TrackedNumber& { return part_of(c).name; }, minimum, maximum);
#define GENERATIONS(minimum, most_vector, most_tensor)                                               \
  for (std::size_t i = 0; i < chip_generations.size(); ++i) {                                        \
    const auto watts = [=](Calibration& c) -> GenerationPower& { return part_of(c).generation[i]; }; \
    const std::string generation = prefix + std::string(chip_generations[i].name);                   \
    const auto vector = [=](Calibration& c) -> TrackedNumber& { return watts(c).vector_pj; };        \
    const auto tensor = [=](Calibration& c) -> TrackedNumber& { return watts(c).tensor_pj; };        \
    add(generation + "_vector_pj", "", vector, minimum, most_vector, true);                          \
    add(generation + "_tensor_pj", "", tensor, minimum, most_tensor, true);                          \
  }
#define END_PART(Type, part) }
#include "model/cost/calibration.def"
  return rows;
}

}  // namespace

const std::vector<ConstantRow>& calibration_rows() {
  static const std::vector<ConstantRow> rows = make_rows();
  return rows;
}

void number_constants(Calibration& calibration) {
  std::size_t number = 0;
  for (const ConstantRow& row : calibration_rows()) row.noted(calibration).set_number(number++);
}

const ConstantRow* find_constant(std::string_view name) {
  const auto found = std::ranges::find(calibration_rows(), name, &ConstantRow::name);
  return found == calibration_rows().end() ? nullptr : &*found;
}

std::optional<std::string> nearest_constant(std::string_view name) {
  std::vector<std::string> known;
  for (const ConstantRow& row : calibration_rows()) known.push_back(row.name);
  return nearest_word(name, known);
}

}  // namespace foretrain
