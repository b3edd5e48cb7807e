#include <cstdlib>
#include <span>
#include <string_view>

#include "tests/catch.hpp"
#include "tests/property/properties.hpp"

namespace foretrain::test {

int scenarios_to_try(int usual) {
  const char* stated = std::getenv("FORETRAIN_TRIES");
  return stated == nullptr ? usual : std::atoi(stated);
}

unsigned seed_to_use(unsigned usual) {
  const char* stated = std::getenv("FORETRAIN_SEED");
  return stated == nullptr ? usual : static_cast<unsigned>(std::atoi(stated));
}

bool is_wanted(std::string_view property) {
  const char* part = std::getenv("FORETRAIN_PROPERTY");
  return part == nullptr || property.find(part) != std::string_view::npos;
}

void hold_for_all(std::span<const NamedProperty> properties, Settings (*random_settings)(Random&), int scenarios,
                  unsigned seed) {
  Random random(seed);
  for (int i = 0; i < scenarios; ++i) {
    const Settings settings = random_settings(random);
    for (const NamedProperty& property : properties) {
      const Violation violation = is_wanted(property.name) ? check(property.property, settings) : std::nullopt;
      if (!violation) continue;
      const Settings smallest = shrink(settings, property.property);
      const Violation shown = check(property.property, smallest);
      FAIL_CHECK(property.name << "\n" << shown.value_or(*violation) << "\n" << yaml_of(smallest));
    }
  }
}

}  // namespace foretrain::test
