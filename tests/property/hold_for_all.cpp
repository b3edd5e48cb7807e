
#include <atomic>
#include <cstdlib>
#include <thread>

#include "model/base/process.hpp"
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

namespace {

std::string violations_of(std::span<const NamedProperty> properties, const Settings& settings) {
  std::string text;
  for (const NamedProperty& property : properties) {
    const Violation violation = is_wanted(property.name) ? check(property.property, settings) : std::nullopt;
    if (!violation) continue;
    const Settings smallest = shrink(settings, property.property);
    const Violation shown = check(property.property, smallest);
    text += fmt::format("{}\n{}\n{}\n", property.name, shown.value_or(*violation), yaml_of(smallest));
  }
  return text;
}

/// A copy of this process that looks at some of the scenarios, and the file in which it leaves their violations.
struct Part {
  std::FILE* file = std::tmpfile();
  Process process;

  ~Part() { std::fclose(file); }
  [[nodiscard]] std::string text() const {
    std::fseek(file, 0, SEEK_END);
    std::string all(static_cast<std::size_t>(std::ftell(file)), '\0');
    std::rewind(file);
    all.resize(std::fread(all.data(), 1, all.size(), file));
    return all;
  }
};

}  // namespace

void hold_for_all(std::span<const NamedProperty> properties, Settings (*random_settings)(Random&), int scenarios,
                  unsigned seed) {
  Random random(seed);
  std::vector<Settings> all;
  for (int i = 0; i < scenarios; ++i) all.push_back(random_settings(random));
  const SharedMemory memory(sizeof(std::size_t));
  const std::atomic_ref next(memory.as<std::size_t>(1).front());
  std::vector<Part> parts(std::max(1U, std::thread::hardware_concurrency()));
  for (Part& part : parts) {
    part.process = Process::copy([&] {
      for (std::size_t i = next++; i < all.size(); i = next++) {
        std::fputs(violations_of(properties, all[i]).c_str(), part.file);
      }
      std::fflush(part.file);
    });
  }
  for (Part& part : parts) {
    CHECK(part.process.wait().well());
    if (const std::string text = part.text(); !text.empty()) FAIL_CHECK(text);
  }
}

}  // namespace foretrain::test
