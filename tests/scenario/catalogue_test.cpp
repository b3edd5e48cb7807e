#include "model/scenario/catalogue.hpp"

#include <algorithm>
#include <cstdlib>
#include <string>

#include "model/scenario/load/load.hpp"
#include "tests/base/temporary_folder.hpp"
#include "tests/catch.hpp"

using namespace foretrain;

namespace {

/// Sets FORETRAIN_SCENARIOS for the length of a test.
class ScenariosAt {
 public:
  explicit ScenariosAt(const std::filesystem::path& folder) : before_(std::getenv("FORETRAIN_SCENARIOS")) {
    setenv("FORETRAIN_SCENARIOS", folder.c_str(), 1);
  }
  ~ScenariosAt() { setenv("FORETRAIN_SCENARIOS", before_.c_str(), 1); }
  ScenariosAt(const ScenariosAt&) = delete;
  ScenariosAt& operator=(const ScenariosAt&) = delete;

 private:
  std::string before_;
};

}  // namespace

TEST_CASE("The environment names the data folder") {
  const TemporaryFolder folder;
  const ScenariosAt chosen(folder.path());
  CHECK(data_directory() == folder.path());
}

TEST_CASE("Listings have names, files, kinds and one line each, sorted") {
  const TemporaryFolder folder;
  folder.write("hardware/b.yaml", "kind: node\ndescription: >-\n  two\n  lines\n");
  folder.write("hardware/a.yaml", "kind: node\nname: a\n");
  folder.write("hardware/links.yaml", "kind: links\n");
  folder.write("hardware/notes.txt", "no YAML");
  folder.write("hardware/gpus/g.yaml", "kind: gpu\nname: g\n");
  folder.write("models/m.yaml", "family: gpt\ndescription: a model\n");
  folder.write("runs/r.yaml", "name: a run\n");
  const ScenariosAt chosen(folder.path());

  const auto hardware = list_hardware();
  REQUIRE(hardware.size() == 3);  // links are no hardware of their own
  CHECK(hardware[0].name == "a");
  CHECK(hardware[0].description == "a");  // the name where there is no description
  CHECK(hardware[1].description == "two lines");
  CHECK(hardware[2].kind == "gpu");
  REQUIRE(list_models().size() == 1);
  CHECK(list_models()[0].kind == "gpt");
  CHECK(list_models()[0].description == "a model");
  REQUIRE(list_scenarios().size() == 1);
  CHECK(list_scenarios()[0].name == "r");
  CHECK(list_scenarios()[0].description == "a run");
}

TEST_CASE("A name finds its file, a path is relative to the file that mentions it") {
  const TemporaryFolder folder;
  folder.write("hardware/box.yaml", "kind: node\n");
  folder.write("mine/own.yaml", "kind: node\n");
  const ScenariosAt chosen(folder.path());
  const auto file = [&](const std::string& text) {
    const YamlNode name = yaml_scalar(text, {(folder.path() / "mine" / "scenario.yaml").string(), 3, 9});
    return catalogue_file(CatalogueSection::node, Field(name, "cluster.node"));
  };
  CHECK(file("box") == folder.path() / "hardware" / "box.yaml");
  CHECK(file("own.yaml") == folder.path() / "mine" / "own.yaml");
  CHECK_THROWS_WITH(file("bxo"), Catch::Contains(":3:9: cluster.node: unknown node \"bxo\"; did you mean box?"));
  CHECK_THROWS_WITH(file("gone.yaml"), Catch::Contains("no file \"gone.yaml\""));
}

TEST_CASE("Runs are found by topic and by their former names, and listed with the topic's number") {
  CHECK(load_scenario("r10-ring-4").name == load_scenario("sync-ring-4").name);
  CHECK(load_scenario("r15-lora").name == load_scenario("vision-language-lora").name);
  for (const CatalogueEntry& entry : list_scenarios()) {
    if (entry.name == "loading-workers") CHECK(entry.kind == "R7");
    if (entry.name == "gpt3-175b-1024-a100") CHECK(entry.kind == "run");
  }
}

TEST_CASE("Short names stand for what the catalogue has") {
  const auto file = [](CatalogueSection section, const std::string& text) {
    const YamlNode name = yaml_scalar(text, {});
    return catalogue_file(section, Field(name, "name")).stem().string();
  };
  CHECK(file(CatalogueSection::node, "h100") == "dgx-h100");
  CHECK(file(CatalogueSection::node, "P5") == "p5.48xlarge");
  CHECK(file(CatalogueSection::gpu, "h100") == "h100-sxm-80gb");
  CHECK(file(CatalogueSection::model, "llama3.1-70b") == "llama3-70b");
  const YamlNode& aliases = cached_yaml_file((data_directory() / "aliases.yaml").string());
  const std::pair<const char*, CatalogueSection> sections[] = {
      {"node", CatalogueSection::node}, {"GPU", CatalogueSection::gpu}, {"model", CatalogueSection::model}};
  REQUIRE(aliases.entries.size() == 3);
  for (const auto& [word, section] : sections) {
    for (const YamlEntry& entry : aliases.find(word)->value.entries) {
      INFO(entry.key);
      CHECK(file(section, entry.key) == entry.value.scalar);
    }
  }
}
