// A machine's file as people read it: each key with its meaning, and what is remarked beside the key it is of.
#include "reports/import/node_file.hpp"

#include "model/scenario/catalogue.hpp"
#include "tests/catch.hpp"

using namespace foretrain;

TEST_CASE("A remark stands on the line of its key, in mappings below others too") {
  const YamlNode written = yaml_scalar("dgx-a100-80gb", {"", 0, 0});
  const YamlNode& document = cached_yaml_file(catalogue_file(CatalogueSection::node, Field(written, "")).string());
  const std::string text = commented_node(document, {{"gpus", "Of eight."}, {"cpu.sockets", "Of two."}}, "T");
  const auto line_with = [&](const std::string& words) {
    const std::size_t at = text.find(words);
    REQUIRE(at != std::string::npos);
    const std::size_t begin = text.rfind('\n', at) + 1;
    return text.substr(begin, text.find('\n', at) - begin);
  };
  CHECK_THAT(line_with("Of eight."), Catch::StartsWith("gpus: 8 "));
  CHECK_THAT(line_with("Of two."), Catch::StartsWith("  sockets: 2 "));
  CHECK_THAT(text, Catch::StartsWith("# T\n"));
  CHECK_THAT(text, Catch::Contains("\n  default: {"));  // in one line, as sources are
}
