#include "tests/golden.hpp"

#include "tests/catch.hpp"
#include "tests/import/samples.hpp"

using namespace foretrain;
using namespace foretrain::test;

TEST_CASE("every sample is imported as its golden output shows", "[golden]") {
  for (const ImportSample& sample : import_samples) {
    const ImportInput input = input_of(sample);
    INFO(sample.importer << " " << sample.file);
    const std::string text = import_with(sample.importer, input);
    CHECK(text == golden("import/" + input.file + ".txt", text));
  }
}

TEST_CASE("every importer has a sample") {
  for (const Importer& importer : importers()) {
    INFO(importer.word);
    CHECK(std::ranges::find(import_samples, importer.word, &ImportSample::importer) != import_samples.end());
  }
}
