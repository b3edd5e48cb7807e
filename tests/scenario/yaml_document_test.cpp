#include "model/scenario/yaml_document.hpp"

#include "model/base/files.hpp"
#include "model/base/session.hpp"
#include "model/scenario/catalogue.hpp"
#include "model/scenario/load/load.hpp"
#include "model/scenario/overrides.hpp"
#include "tests/base/temporary_folder.hpp"
#include "tests/catch.hpp"
#include "tests/complaint.hpp"

using namespace foretrain;

namespace {

std::string complaint(std::string_view text) {
  return test::complaint_of([&] { parse_yaml(text, "t.yaml"); });
}

std::string repeated(std::string_view piece, int times) {
  std::string text;
  for (int i = 0; i < times; ++i) text += piece;
  return text;
}

}  // namespace

TEST_CASE("The catalogue's files are packed as they are read; a copy is found, one that says something else is not") {
  std::vector<CatalogueEntry> entries = list_hardware();
  for (const auto& more : {list_models(), list_trainers()}) entries.insert(entries.end(), more.begin(), more.end());
  for (const CatalogueEntry& entry : entries) {
    const std::string path = entry.file.string();
    const std::optional<YamlNode> packed = packed_tree(path);
    REQUIRE(packed);
    CHECK(*packed == parse_yaml(read_text_file(path), path));
  }
  const TemporaryFolder folder;
  const std::string text = read_text_file(data_directory() / "models/gpt2.yaml"), before = data_directory().string();
  const std::string copy = folder.write("models/gpt2.yaml", text).string();
  setenv("FORETRAIN_SCENARIOS", folder.path().c_str(), 1);
  Session fresh;
  const SessionScope scope(fresh);
  CHECK(packed_tree(copy));
  folder.write("models/gpt2.yaml", text + "# of another size\n");
  CHECK_FALSE(packed_tree(copy));
  setenv("FORETRAIN_SCENARIOS", before.c_str(), 1);
}

TEST_CASE("Values know where they stand; lines and columns count from 1") {
  const YamlNode document = parse_yaml("a: 1\nb:\n  c: [x, \"y z\"]\n", "t.yaml");
  REQUIRE(document.is_mapping());
  const YamlNode& list = document.find("b")->value.find("c")->value;
  REQUIRE(list.items.size() == 2);
  CHECK(list.items[1].scalar == "y z");
  CHECK(list.items[1].where.text() == "t.yaml:3:10");  // "  c: [x, " are nine characters
  CHECK(document.find("b")->where.text() == "t.yaml:2:1");
  CHECK(document.find("none") == nullptr);
}

TEST_CASE("What YAML allows and surprises is refused") {
  CHECK(complaint("a: &x 1\nb: *x\n") ==
        "t.yaml:1:4: an anchor (&name); the value itself; anchors and aliases are not supported");
  CHECK(complaint("a: !!int 1\n").find("t.yaml:1:4: the tag") == 0);
  CHECK(complaint("a: 1\n---\nb: 2\n").find("a second document begins here") != std::string::npos);
  CHECK(complaint("a: 1\nb: 2\na: 3\n") ==
        "t.yaml:3:1: a: this key is given twice; one value (the first is in line 1)");
  CHECK(complaint("[a]: 1\n").find("t.yaml:1:1: a list as a key") == 0);
  CHECK(complaint("") == "t.yaml: the file is empty; keys and their values, as `key: value`");
  CHECK(complaint("# only a comment\n").find("the file is empty") != std::string::npos);
}

TEST_CASE("Directives, and ends of lines that nobody sees, are refused at once") {
  std::string tags;
  for (int i = 0; i < 100'000; ++i) tags += fmt::format("%TAG !t{}! tag:t\n", i);  // libyaml compares each with all
  CHECK(complaint(tags + "---\na: 1\n") == "t.yaml:1:1: a directive (%TAG); values without tags");
  CHECK(complaint("a: 1  # 5 %TAG\n") == "accepted");
  CHECK(complaint("a: 1\n# harmless\u2028b: 2\n") ==
        "t.yaml:2:1: a separator of lines other than a line end; plain line ends");
}

TEST_CASE("Malformed YAML is refused with the place") {
  CHECK(complaint("a:\n\tb: 1\n") == "t.yaml:2:1: this line is indented with a tab; spaces for indentation");
  CHECK(complaint("a: {b: 1\n").find("not valid YAML") != std::string::npos);
  CHECK(complaint("a: \"open\nb: 1\n").find("t.yaml:1:4: not valid YAML") == 0);  // where the quote begins
  CHECK(complaint("{ a: 1\n").find("every bracket closed") != std::string::npos);
  CHECK(complaint("text: 4 GPUs: 60 ms\n").find("t.yaml:1:13: a second \": \" in one line") == 0);
}

TEST_CASE("Nested references and brackets are refused before they grow") {
  // nine levels of ten references each would be 10⁹ values
  std::string bomb = "a: &a [x, x, x, x, x, x, x, x, x, x]\n";
  for (char level = 'b'; level < 'j'; ++level) {
    bomb +=
        std::string(1, level) + ": &" + level + " [" + repeated(std::string("*") + char(level - 1) + ", ", 10) + "]\n";
  }
  CHECK(complaint(bomb).find("t.yaml:1:4: an anchor") == 0);
  CHECK(complaint("a: " + repeated("[", 1000) + repeated("]", 1000)).find("nested deeper than 64 levels") !=
        std::string::npos);
  CHECK(complaint("a:\n  " + std::string(15'000'000, '[')) ==
        "t.yaml:2:66: nested deeper than 64 levels; a flatter structure");  // at once, without memory for all
  CHECK(complaint("a: " + repeated("{b: ", 100'000)).find("nested deeper than 64 levels") != std::string::npos);
  CHECK(complaint("a: [" + repeated("1,", 300'000) + "]").find("more than 200000 values") != std::string::npos);
  std::string wide;
  for (int i = 0; i < 2000; ++i) wide += fmt::format("k{}: 1\n", i);
  CHECK(complaint(wide).find("t.yaml:1001:1: more than 1000 keys") == 0);
}

TEST_CASE("Brackets that are never closed cost no memory, however many") {
  CHECK(complaint("a:\n  " + std::string(15'000'000, '[')) ==
        "t.yaml:2:66: nested deeper than 64 levels; a flatter structure");
}

TEST_CASE("Escapes of quoted values write no control characters") {
  CHECK(complaint("a: \"\\e[31m\"\n") ==
        "t.yaml:1:4: a value with a control character; a value of letters, digits and signs");
  CHECK(complaint("a: \"tab\\t, line\\n\"\n") == "accepted");
}

TEST_CASE("Dotted keys obey the limits of files") {
  YamlNode document = parse_yaml("a: 1\n", "t.yaml");
  const auto complaint_of = [&](const std::string& text) -> std::string {
    return test::complaint_of([&] { apply_override(document, parse_override(text)); });
  };
  CHECK(complaint_of(repeated("k.", 63) + "k=1") == "accepted");
  CHECK(complaint_of(repeated("k.", 64) + "k=1").ends_with("a key of 65 parts; at most 64 words joined by dots"));
  CHECK(complaint_of(repeated("k.", 50'000) + "k=1").size() < 1500);
  CHECK(complaint_of("name=\x1B[2J").find("byte 0x1b is no text") != std::string::npos);
}

TEST_CASE("Nesting is allowed up to its limit") {
  // 64 levels: 63 lists inside of the outermost mapping
  CHECK(complaint("a: " + repeated("[", 63) + repeated("]", 63)) == "accepted");
  CHECK(complaint("a: " + repeated("[", 64) + repeated("]", 64)) != "accepted");
}

TEST_CASE("A JSON file is read as it is") {
  const YamlNode document = parse_yaml("{\n\t\"a\": 1,\n\t\"b\": [true, null]\n}\n", "t.json");
  CHECK(document.find("a")->value.scalar == "1");
  CHECK(document.find("b")->value.items[1].is_null());
  CHECK(parse_yaml(R"({"a": "\ud83d\ude00", "b": "\\ud83d"})", "t.json").find("a")->value.scalar == "\U0001F600");
}

TEST_CASE("A cached file is read again when it has changed") {
  const TemporaryFolder folder;
  const auto path = folder.write("a.yaml", "a: 1\n");
  const YamlNode& first = cached_yaml_file(path.string());
  CHECK(&cached_yaml_file(path.string()) == &first);
  folder.write("a.yaml", "a: 2\n");
  std::filesystem::last_write_time(path, std::filesystem::last_write_time(path) + std::chrono::seconds(2));
  CHECK(cached_yaml_file(path.string()).find("a")->value.scalar == "2");
  CHECK(first.find("a")->value.scalar == "1");
}

TEST_CASE("Scenario files that are none") {
  const TemporaryFolder folder;
  const auto text_of = [](const std::filesystem::path& path) -> std::string {
    return test::complaint_of([&] { load_scenario(path); });
  };
  CHECK(text_of(folder.write("empty.yaml", "")).find("empty.yaml: the file is empty") != std::string::npos);
  CHECK(text_of("no-such-run").find("unknown scenario \"no-such-run\"") != std::string::npos);
  CHECK(text_of(folder.write("list.yaml", "- a\n")).find(":1:1: a list where a mapping belongs") != std::string::npos);
}
