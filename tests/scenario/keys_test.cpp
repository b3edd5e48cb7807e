// The tables of keys: every key is described, none twice, and each is read by somebody.
#include "model/scenario/keys/keys.hpp"

#include "model/base/text.hpp"
#include "model/scenario/keys/key_tree.hpp"
#include "model/scenario/keys/member.hpp"
#include "model/scenario/load/load.hpp"
#include "model/scenario/yaml_reader.hpp"
#include "reports/keys/keys.hpp"
#include "tests/catch.hpp"
#include "tests/complaint.hpp"
#include "tests/scenario/mappings.hpp"

using namespace foretrain;

namespace {

std::vector<keys::Place> all_places() {
  std::vector<keys::Place> all;
  for (const keys::FileKind& file : keys::files()) {
    for (keys::Place& place : keys::places(file, keys::Repeats::left_out)) all.push_back(std::move(place));
  }
  return all;
}

/// A type that no file has.
struct Choir {
  bool sings = false;
};

}  // namespace

TEST_CASE("Every key has a sentence, and a value that can be described") {
  for (const keys::Place& place : all_places()) {
    INFO(place.path);
    CHECK(place.key->meaning.size() > 4);
    CHECK((place.key->meaning.ends_with('.') || place.key->meaning.ends_with('?')));
    CHECK_FALSE(keys::describe(place.key->value).empty());
  }
}

TEST_CASE("A key behind a list says so, one behind names of the file's own too") {
  std::set<std::string> paths;
  for (const keys::Place& place : all_places()) paths.insert(place.path);
  CHECK(paths.contains("cluster.groups[].nodes"));
  CHECK_FALSE(paths.contains("cluster.groups.nodes"));
  CHECK(std::ranges::any_of(paths, [](const std::string& path) { return path.find(".NAME") != std::string::npos; }));
}

TEST_CASE("No mapping has a key twice, and no two mappings one name") {
  std::set<std::string_view> names;
  std::size_t count = 0;
  for (const keys::Mapping* mapping : test::all_mappings()) {
    INFO(mapping->name);
    CHECK(names.insert(mapping->name).second);
    std::set<std::string_view> own;
    for (const keys::Key& key : mapping->keys) CHECK(own.insert(key.name).second);
    count += mapping->keys.size();
  }
  CHECK(count > 450);
}

TEST_CASE("What others call a key leads to one of ours") {
  std::set<std::string> known;
  for (const keys::Place& place : keys::places(keys::files().front(), keys::Repeats::listed)) known.insert(place.path);
  for (const char* word : {"tp", "pp", "dp", "cp", "ep", "tensor_model_parallel_size", "seq_len", "micro-batch-size",
                           "gradient_accumulation_steps", "world_size", "ZeRO_stage"}) {
    INFO(word);
    const auto ours = keys::our_name(word);
    REQUIRE(ours.has_value());
    CHECK(known.contains(std::string(ours->substr(0, ours->find_first_of(": ")))));
  }
  CHECK_FALSE(keys::our_name("tensor").has_value());
}

TEST_CASE("What holds without a key is what a new record has in the member that the key fills") {
  const auto usual = [](const keys::Mapping& mapping, std::string_view name) {
    return keys::usual_of(keys::key_of(mapping, name));
  };
  CHECK(usual(keys::sync, "overlap") == "true");
  CHECK(usual(keys::sync, "servers") == "1");
  CHECK(usual(keys::sync, "algorithm") == "auto");
  CHECK(usual(keys::plan, "processes") == "per_gpu");
  CHECK(usual(keys::train, "layer_overhead") == "0 us");
  CHECK(usual(keys::disk_requests, "zone") == "0.5");
  // In words, where a new record has something else or a row tells more.
  CHECK(usual(keys::sync, "parameter_precision") == "that of the weights");
  CHECK(usual(keys::transformer, "layers") == "needed");
  // Whatever a row says as a number or a flag is read as one.
  for (const keys::Place& place : all_places()) {
    const keys::Key& key = *place.key;
    const keys::Form& form = key.value.all[0];
    if (form.kind == keys::Form::Kind::flag && key.usual.empty() && key.member.set != nullptr) {
      INFO(place.path);
      const std::string reported = keys::usual_of(key);
      CHECK((reported == "true" || reported == "false"));
    }
  }
}

TEST_CASE("A row that is added to a table is read, explained, completed and in the schema") {
  std::vector<keys::Key> rows(keys::plan.keys.begin(), keys::plan.keys.end());
  rows.push_back(keys::member<&Choir::sings>("Whether it sings."));
  const keys::Mapping longer = {"plan", rows};
  const keys::Mapping* const tables[] = {&longer};
  const keys::FileKind file = {"choir", tables};

  const YamlNode document = parse_yaml("{ tensor: 2, sings: true }", "choir.yaml");
  const MappingReader reader = Field(document, "plan").mapping(longer);
  Choir choir;
  Plan plan;
  reader.fill(choir);
  reader.fill(plan);
  CHECK((choir.sings && plan.tensor == 2));
  // The source of pages, help and completion.
  const std::vector<keys::Place> all = keys::places(file, keys::Repeats::listed);
  const auto place = std::ranges::find(all, "sings", &keys::Place::path);
  REQUIRE(place != all.end());
  CHECK(keys::describe(place->key->value) == "true or false");
  CHECK(keys::usual_of(*place->key) == "false");
  const std::string schema = keys_schema(file, [](keys::Catalogue) { return std::vector<std::string>(); });
  CHECK_THAT(schema, Catch::Contains("\"description\": \"Whether it sings. Without it: false.\""));
}

TEST_CASE("Every value that a scenario resolves to says where it comes from") {
  const Scenario scenario = load_scenario_text(
      "cluster: { node: dgx-h100, nodes: 2 }\nworkload: { train: { model: { family: gpt, layers: 2, hidden: 768,\n"
      "  heads: 12, vocabulary: 50304, sequence: 1024 }, global_batch: 64, micro_batch: 2 } }\n"
      "plan: { tensor: 2, trainer: fsdp }\n",
      "own.yaml",
      {"plan.sync.bucket=10 MB", "workload.train.global_batch_per_gpu=2", "--calibration calibration=published"});
  std::map<std::string, ResolvedSetting> resolved;
  for (const ResolvedSetting& value : resolved_values(scenario)) {
    INFO(value.key);
    CHECK(resolved.emplace(value.key, value).second);
    CHECK_FALSE((value.value.empty() || value.source.empty()));
  }
  CHECK(resolved.size() > 100);
  CHECK_FALSE(resolved.contains("plan.sync.servers"));  // there are none
  const auto reported = [&](const char* key) {
    const ResolvedSetting& value = resolved.at(key);
    return fmt::format("{} {} {}", value.value, name(value.from), value.source);
  };
  CHECK(reported("plan.tensor") == "2 scenario own.yaml:4:17");
  CHECK(reported("calibration") == "published command_line --calibration published");
  CHECK(reported("workload.train.model.ffn_hidden") == "3072 assumed default: 4 x hidden; gated 8/3 x hidden");
  CHECK(reported("workload.train.global_batch") == "32 assumed default: global_batch_per_gpu x GPUs");
  CHECK(reported("plan.sync.bucket") == "10 MB command_line --set plan.sync.bucket=10 MB");
  CHECK(reported("plan.zero").starts_with("3 trainer fsdp: "));
  CHECK(reported("plan.data") == "8 assumed default: what tensor, pipeline and context leave");
  CHECK(reported("cluster.network.nic_bandwidth") == "400 Gbit/s assumed default: the node's");
  CHECK(reported("plan.schedule") == "1f1b assumed default: 1f1b; interleaved with interleave");
}

TEST_CASE("All unknown keys of a file are reported at once, each with what was meant") {
  const std::string text =
      "cluster: { node: dgx-h100, num_nodes: 2 }\n"
      "workload: { train: { model: { preset: llama3-8b, seq_len: 4096 }, global_batch: 64, optimiser: adamw } }\n"
      "plan: { tp: 8, sync: { bukket: 25 MB } }\n";
  std::string reported;
  try {
    load_scenario_text(text, "wrong.yaml");
  } catch (const ScenarioError& error) {
    reported = error.what();
  }
  // One line for each of the five, wherever it stands.
  CHECK(std::ranges::count(reported, '\n') == 4);
  for (const char* line :
       {"wrong.yaml:1:28: cluster.num_nodes: unknown key; foretrain calls it cluster.nodes",
        "wrong.yaml:2:50: workload.train.model.seq_len: unknown key; foretrain calls it "
        "workload.train.model.sequence",
        "wrong.yaml:2:85: workload.train.optimiser: unknown key; did you mean workload.train.optimizer?",
        "wrong.yaml:3:9: plan.tp: unknown key; foretrain calls it plan.tensor",
        "wrong.yaml:3:24: plan.sync.bukket: unknown key; did you mean plan.sync.bucket?"}) {
    CHECK_THAT(reported, Catch::Contains(line));
  }
}

TEST_CASE("A bare `on` that PyYAML has read and written again is reported as what it was") {
  const auto reported = [](const std::string& workload) {
    return test::complaint_of(
        [&] { load_scenario_text("cluster: { node: dgx-h100 }\nworkload: " + workload + "\n", "dumped.yaml"); });
  };
  const std::string task =
      "{ tasks: [ { id: a, KEY: gpu0, run: { matmul: { m: 64, n: 64, k: 64, precision: bf16 } } } ] }";
  const auto with_key = [&](const std::string& key) { return std::string(task).replace(task.find("KEY"), 3, key); };
  CHECK(reported(with_key("on")) == "accepted");
  CHECK(reported(with_key("\"on\"")) == "accepted");
  CHECK_THAT(reported(with_key("true")),
             Catch::StartsWith("dumped.yaml:2:31: workload.tasks[0].true: unknown key; \"on\", in quotes: ") &&
                 Catch::Contains("PyYAML"));
  const std::string sum = "{ operator: { kind: sum, true: cpu, size: 1 MB, precision: fp32 } }";
  CHECK_THAT(reported(sum), Catch::Contains("workload.operator.true: unknown key; \"on\", in quotes: "));
}

TEST_CASE("An error of another kind brings the unknown keys along") {
  try {
    load_scenario_text(
        "cluster: { node: dgx-h100 }\nworkload: { train: { model: gpt2, global_batch: many } }\nplan: { tp: 8 }\n",
        "wrong.yaml");
    FAIL("accepted");
  } catch (const ScenarioError& error) {
    CHECK(error.key() == "workload.train.global_batch");
    CHECK_THAT(std::string(error.what()), Catch::Contains("\nwrong.yaml:3:9: plan.tp: unknown key"));
  }
}
