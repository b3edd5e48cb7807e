#include "model/scenario/catalogue.hpp"

#include <cstdlib>

#include "model/base/session.hpp"
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
    return catalogue_file(Catalogue::node, Field(name, "cluster.node"));
  };
  CHECK(file("box") == folder.path() / "hardware" / "box.yaml");
  CHECK(file("own.yaml") == folder.path() / "mine" / "own.yaml");
  CHECK_THROWS_WITH(file("bxo"), Catch::Contains(":3:9: cluster.node: unknown node \"bxo\"; did you mean box?"));
  CHECK_THROWS_WITH(file("gone.yaml"), Catch::Contains("no file \"gone.yaml\""));
}

TEST_CASE("Letter case, hyphens and underscores make no other name, and parts of names are near ones") {
  const TemporaryFolder folder;
  for (const char* name : {"llama3-70b", "llama3-8b", "big-box-72", "a-b", "ab"}) {
    folder.write(std::string("models/") + name + ".yaml", "family: gpt\n");
  }
  const ScenariosAt chosen(folder.path());
  const auto found = [](const std::string& text) {
    return catalogue_file(Catalogue::model, Field(yaml_scalar(text, {"mine.yaml", 1, 8}), "model")).stem().string();
  };
  CHECK(found("Llama-3-70B") == "llama3-70b");
  CHECK(found("llama_3_8b") == "llama3-8b");
  CHECK(found("a-b") == "a-b");
  // Both a-b and ab could be meant by a_b.
  CHECK_THROWS_WITH(found("a_b"), Catch::Contains("did you mean a-b or ab?"));
  CHECK_THROWS_WITH(found("BOX72"), Catch::Contains("did you mean big-box-72?"));
  CHECK_THROWS_WITH(found("LLAMA"), Catch::Contains("did you mean llama3-70b or llama3-8b?"));
  folder.write("aliases.yaml", "model: { bigbox: big-box-72 }\n");
  CHECK(found("bigbox") == "big-box-72");
  CHECK_THROWS_WITH(found("bigbux"), Catch::Contains("did you mean bigbox?"));
}

TEST_CASE("A remote client's scenario reads only the catalogue, and does not tell which files there are") {
  const TemporaryFolder folder;
  folder.write("scenarios/models/known.yaml", "{ preset: ./other.yaml }\n");
  folder.write("scenarios/models/other.yaml", "family: gpt\n");
  folder.write("there.yaml", "family: gpt\n");
  const ScenariosAt chosen(folder.path() / "scenarios");
  Session session;
  const SessionScope strangers(session);
  refuse_paths();
  const auto file = [](const std::string& text, const std::string& written_in) {
    return catalogue_file(Catalogue::model, Field(yaml_scalar(text, {written_in, 1, 8}), "model"));
  };
  CHECK(file("known", "mine.yaml") == folder.path() / "scenarios/models/known.yaml");
  // A file of the catalogue may name others of its folder; a stranger may not, be they there or not.
  CHECK(file("./other.yaml", (folder.path() / "scenarios/models/known.yaml").string()).filename() == "other.yaml");
  for (const std::string& name :
       {(folder.path() / "there.yaml").string(), (folder.path() / "gone.yaml").string(),
        (folder.path() / "scenarios/models/known.yaml").string(), std::string("/dev/stdin")}) {
    CHECK_THROWS_WITH(file(name, "mine.yaml"), Catch::Contains("mine.yaml:1:8: model: a file, \"" + name) &&
                                                   Catch::Contains("a catalogue name"));
  }
}

TEST_CASE("Runs are found by topic and by their former names") {
  CHECK(load_scenario("r10-ring-4").name == load_scenario("sync-ring-4").name);
  CHECK(load_scenario("r15-lora").name == load_scenario("vision-language-lora").name);
}

TEST_CASE("Short names stand for what the catalogue has") {
  const auto file = [](Catalogue section, const std::string& text) {
    return catalogue_file(section, Field(yaml_scalar(text, {}), "name")).stem().string();
  };
  CHECK(file(Catalogue::node, "h100") == "dgx-h100");
  CHECK(file(Catalogue::node, "P5") == "p5.48xlarge");
  CHECK(file(Catalogue::gpu, "h100") == "h100-sxm-80gb");
  CHECK(file(Catalogue::model, "llama3.1-70b") == "llama3-70b");
  const YamlNode& aliases = cached_yaml_file((data_directory() / "aliases.yaml").string());
  const std::pair<const char*, Catalogue> sections[] = {{"node", Catalogue::node},
                                                        {"GPU", Catalogue::gpu},
                                                        {"model", Catalogue::model},
                                                        {"framework", Catalogue::trainer}};
  REQUIRE(aliases.entries.size() == std::size(sections));
  for (const auto& [word, section] : sections) {
    for (const YamlEntry& entry : aliases.find(word)->value.entries) {
      INFO(entry.key);
      CHECK(file(section, entry.key) == entry.value.scalar);
    }
  }
}
