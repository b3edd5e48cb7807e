#include <cstdlib>

#include "model/base/error.hpp"
#include "tests/catch.hpp"
#include "tests/import/samples.hpp"

using namespace foretrain;
using namespace foretrain::test;

namespace {

/// A few changes of a file, as broken disks, editors and people make them: bytes flipped, removed and doubled, lines
/// moved, the end cut off, numbers made huge, brackets opened.
std::string mutated(std::string text, std::mt19937& random) {
  const auto below = [&](std::size_t limit) { return limit == 0 ? 0 : static_cast<std::size_t>(random()) % limit; };
  static constexpr std::string_view pieces[] = {
      "0", "-1", "1e308", "99999999999999999999", "{", "[", "\"", "<pci>", "\n", "\0", "\xff", "$((1/0))", "--",
      ":", ",",  "null"};
  const std::size_t changes = 1 + below(4);
  for (std::size_t change = 0; change < changes && !text.empty(); ++change) {
    const std::size_t at = below(text.size()), length = 1 + below(20);
    switch (below(7)) {
      case 0:
        text[at] = static_cast<char>(random() % 256);
        break;
      case 1:
        text.erase(at, length);
        break;
      case 2:
        text.insert(at, text.substr(below(text.size()), length));
        break;
      case 3:
        text.resize(at);
        break;
      case 4:
        text.insert(at, pieces[below(std::size(pieces))]);
        break;
      case 5: {
        const std::size_t digit = text.find_first_of("0123456789", at);
        if (digit != std::string::npos) text.replace(digit, 1, pieces[below(4)]);
        break;
      }
      default: {
        const std::size_t line = text.find('\n', at);
        if (line != std::string::npos)
          text.insert(below(text.size()), text.substr(line, text.find('\n', line + 1) - line));
      }
    }
  }
  return text;
}

/// Number of mutated files for each sample: FORETRAIN_MUTATIONS, else some hundred in all for each importer.
int mutations() {
  const char* wanted = std::getenv("FORETRAIN_MUTATIONS");
  return wanted != nullptr ? std::atoi(wanted) : 60;
}

}  // namespace

TEST_CASE("a mutated file is imported or refused with its name, and nothing else happens") {
  for (const ImportSample& sample : import_samples) {
    const ImportInput whole = input_of(sample);
    for (int seed = 0; seed < mutations(); ++seed) {
      std::mt19937 random(static_cast<unsigned>(seed));
      ImportInput input = whole;
      input.text = mutated(whole.text, random);
      INFO(sample.file << ", seed " << seed);
      try {
        const std::string text = import_with(sample.importer, input);
        CHECK_FALSE(text.empty());
      } catch (const ScenarioError& error) {
        CHECK_FALSE(error.got().empty());
        CHECK(error.where().file == input.file);
      }
    }
  }
}
