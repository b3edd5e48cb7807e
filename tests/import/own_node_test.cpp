#include "reports/import/own_node.hpp"

#include "model/scenario/catalogue.hpp"
#include "model/scenario/hardware/hardware_reader.hpp"
#include "tests/catch.hpp"

namespace foretrain::test {

namespace {

/// Without what says where figures come from, which names files.
Node as_built(Node node) {
  node.constants.clear();
  node.gpu.constants.clear();
  return node;
}

Node read_text(const std::string& text) { return as_built(read_node(Field(parse_yaml(text, "own.yaml"), ""))); }

Node of_catalogue(const std::string& name) {
  const YamlNode written = yaml_scalar(name, {"", 0, 0});
  return as_built(read_node(Field(written, "")));
}

}  // namespace

TEST_CASE("Every machine of the catalogue comes back as a commented file that describes the same") {
  for (const std::string& name : catalogue_names(list_hardware(), "node")) {
    INFO(name);
    const std::string text = own_node(name);
    // Two nodes that are equal in all but where their figures come from are predicted alike.
    CHECK(read_text(text) == of_catalogue(name));
    CHECK_THAT(text, Catch::Contains("# How many GPUs the machine has."));
    CHECK_THAT(text, Catch::Contains("#   cpu0"));
  }
}

TEST_CASE("A machine of the catalogue takes another name; one that there is not is answered by those near it") {
  CHECK_THAT(own_node("dgx-h100", "mine"), Catch::Contains("\nname: mine ") && Catch::StartsWith("# mine: a machine"));
  CHECK_THROWS_WITH(own_node("dgx-h1000"), Catch::Contains("dgx-h100"));
}

}  // namespace foretrain::test
