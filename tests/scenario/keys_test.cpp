// The tables of keys: every key is described, none twice, and each is read by somebody.
#include "model/scenario/keys/keys.hpp"

#include "model/base/session.hpp"
#include "model/base/text.hpp"
#include "model/scenario/catalogue.hpp"
#include "model/scenario/hardware/hardware_reader.hpp"
#include "model/scenario/keys/key_tree.hpp"
#include "model/scenario/keys/member.hpp"
#include "model/scenario/load/load.hpp"
#include "model/scenario/model/model_reader.hpp"
#include "model/scenario/plan/plan_reader.hpp"
#include "reports/keys/keys_schema.hpp"
#include "tests/catch.hpp"
#include "tests/complaint.hpp"

using namespace foretrain;

namespace {

std::vector<keys::Place> all_places() {
  std::vector<keys::Place> all;
  for (const keys::FileKind& file : keys::files()) {
    for (keys::Place& place : keys::places(file, keys::Repeats::left_out)) all.push_back(std::move(place));
  }
  return all;
}

void add_mappings(const keys::Mapping& mapping, std::set<const keys::Mapping*>& all) {
  if (!all.insert(&mapping).second) return;
  for (const keys::Key& key : mapping.keys) {
    for (const keys::Form& form : key.value.forms()) {
      if (form.mapping != nullptr) add_mappings(*form.mapping, all);
    }
  }
  for (const keys::Variant& variant : mapping.variants) add_mappings(*variant.keys, all);
}

void read_workload_text(const std::string& workload) {
  const std::string head = "cluster: { node: { preset: dgx-h100, storage: hdd-10k } }\nworkload: ";
  load_scenario_text(head + workload + "\n", "keys.yaml");
}

/// Reads what the catalogue has, and of the rest one text for each reader: readers ask for keys that are not there,
/// too.
void read_everything() {
  for (const CatalogueEntry& run : list_scenarios()) load_scenario(run.file);
  for (const CatalogueEntry& entry : list_hardware()) {
    const YamlNode name = yaml_scalar(entry.file.string(), {});
    if (entry.kind == "node") read_node(Field(name, ""));
    if (entry.kind == "gpu") read_gpu(Field(name, ""));
  }
  for (const CatalogueEntry& entry : list_models()) {
    const YamlNode name = yaml_scalar(entry.file.string(), {});
    read_model(Field(name, ""));
  }
  for (const char* fabric : {"{ kind: dragonfly, nodes_per_router: 1, routers_per_group: 1, groups: 2 }",
                             "{ kind: torus, dimensions: 2 }", "{ kind: sites, distance: 10 km, bandwidth: 1 Gbit/s }",
                             "{ kind: fat_tree, nodes_per_leaf: 1, nodes_per_pod: 1 }"}) {
    load_scenario_text(std::string("cluster: { node: dgx-h100, nodes: 2, network: { fabric: ") + fabric +
                           " } }\nworkload: { collective: { operation: all_reduce, size: 1 MB } }\n",
                       "keys.yaml");
  }
  for (const char* op :
       {"{ kind: matmul, m: 8, n: 8, k: 8 }", "{ kind: matmul, on: cpu, m: 8, n: 8, k: 8 }",
        "{ kind: copy, size: 1 MB }",
        "{ kind: convolution, batch: 1, channels: 1, height: 8, width: 8, filters: 1, kernel: 3 }",
        "{ kind: attention, batch: 1, heads: 1, head_dim: 64, lengths: { distribution: lognormal, count: 2, mean: 64, "
        "spread: 2 } }",
        "{ kind: attention, batch: 1, heads: 1, head_dim: 64, sequence: 64 }", "{ kind: elementwise, elements: 8 }",
        "{ kind: batch_norm, batch: 1, channels: 1, height: 8, width: 8 }", "{ kind: softmax, rows: 8, columns: 8 }",
        "{ kind: pooling, batch: 1, channels: 1, height: 8, width: 8, kernel: 2 }",
        "{ kind: embedding, tokens: 8, width: 8, vocabulary: 8 }", "{ kind: optimizer, parameters: 8 }",
        "{ kind: gradient_clipping, parameters: 8 }", "{ kind: disk_read }", "{ kind: disk_write, order: sequential }",
        "{ kind: memory_access, working_set: 1 MB, pattern: strided, stride: 64 B }",
        "{ kind: memory_walk, on: cpu, working_set: 1 MB }", "{ kind: memory_walk, on: gpu, working_set: 1 GB }",
        "{ kind: data_loader, batch: 1, workers: 1, dataset: { sample: 1 KB }, storage: { kind: network, "
        "read_bandwidth: 1 GB/s, read_latency: 1 ms, random_read_iops: 10, round_trip: 1 ms } }"}) {
    INFO(op);
    REQUIRE_NOTHROW(read_workload_text(std::string("{ operator: ") + op + " }"));
  }
  const std::string train = "{ train: { model: llama3-8b, global_batch: 64, ";
  for (const char* rest :
       {"precision: { fp8: { scaling: current } } } }", "checkpoint: { every: 100 } } }", "lora: { rank: 8 } } }",
        "micro_batch: 4, data: { text: { distribution: uniform, from: 4000, to: 4100 }, batching: { kind: packing, "
        "length: 8192 } } } }",
        "data: { text: { distribution: lognormal, mean: 10, spread: 20 % } } } }",
        "data: { text: { distribution: fixed, value: 10 } } } }",
        "data: { text: { distribution: histogram, values: [1, 2], weights: [1, 1] } } } }"}) {
    INFO(rest);
    REQUIRE_NOTHROW(read_workload_text(train + rest));
  }
  read_workload_text(
      "{ tasks: [ { id: a, on: 'gpu0:h2d', run: { copy: { from: cpu, to: gpu0, size: 1 MB } } }, { id: b, on: cpu, "
      "run: { "
      "item: { from: gpu0 } } }, { id: c, on: cpu, run: { print: { from: gpu0, size: 1 MB } } }, { id: d, on: cpu, "
      "run: { "
      "page_lock: { size: 1 MB } } }, { id: e, on: cpu, run: { kind: sleep, time: 1 ms } }, { id: f, on: gpu0, run: { "
      "forward: { "
      "model: mlp-d2l } } }, { loop: 2, tasks: [ { id: g, on: gpu0, run: { matmul: { m: 1, n: 1, k: 1 } } } ] } ] }");
  load_scenario_text(
      "cluster:\n  groups: [ { node: dgx-h100 }, { node: dgx-a100-80gb } ]\n  jitter: { compute: 1 %, rack: 1 %, "
      "nodes_per_rack: 1, throttle: { share: 1 %, speed: 80 % } }\n"
      "  faults: [ { node: 0, gpu: 1, speed: 50 % }, { node: 0, card: 1, failed: true } ]\n"
      "  network: { transport: { protocol: tcp } }\n"
      "workload: { train: { model: gpt2, global_batch: 16 } }\nbackground: [ { from: gpu0, to: gpu8 } ]\n",
      "keys.yaml");
  load_scenario_text(
      "cluster: { node: dgx-h100, price: { of: p5.48xlarge, purchase: on_demand }, energy: { grid: world } }\n"
      "workload: { train: { model: gpt2, global_batch: 8 } }\n",
      "keys.yaml");
  load_scenario_text(
      "cluster: { groups: [ { node: dgx-h100 }, { node: hgx-h200 } ], energy: world }\n"
      "workload: { train: { model: gpt2, global_batch: 16 } }\n",
      "keys.yaml");
  load_scenario_text(
      "cluster: { node: dgx-h100 }\nworkload: { train: { model: gpt2, global_batch: 8 } }\n"
      "plan: { zero: { stage: 3, shard: 4 }, sync: { algorithm: auto } }\n",
      "keys.yaml");
  load_scenario_text(
      "cluster: { node: dgx-h100 }\nworkload: { train: { model: gpt2, global_batch: 8 } }\n"
      "plan: { sync: { algorithm: parameter_server, slow_workers: { count: 1, factor: 2 } } }\n",
      "keys.yaml");
  for (const CatalogueEntry& trainer : list_trainers()) {
    load_scenario_text(
        "cluster: { node: dgx-h100 }\nworkload: { train: { model: gpt2, global_batch: 8 } }\nplan: { trainer: " +
            trainer.name + " }\n",
        "keys.yaml");
  }
}

std::set<const keys::Key*> keys_asked_for() {
  Session fresh;
  const SessionScope scope(fresh);
  const AskedKeys& asked = fresh.part<AskedKeys>();
  read_everything();
  return asked.keys;
}

/// What no file has.
struct Choir {
  bool sings = false;
};

/// Whether the reader of this key looks for it before, or without, opening the mapping, or leaves it to people.
bool read_otherwise(const keys::Place& place) {
  if (place.key->meaning.ends_with("not read.")) return true;
  for (const char* word : {"description", "sources", "kind", "preset", "hf", "on", "repeat"}) {
    if (place.key->name == word) return true;
  }
  return false;
}

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
  std::set<const keys::Mapping*> all;
  for (const keys::FileKind& file : keys::files()) {
    for (const keys::Mapping* table : file.tables) add_mappings(*table, all);
  }
  std::set<std::string_view> names;
  std::size_t count = 0;
  for (const keys::Mapping* mapping : all) {
    INFO(mapping->name);
    CHECK(names.insert(mapping->name).second);
    std::set<std::string_view> own;
    for (const keys::Key& key : mapping->keys) CHECK(own.insert(key.name).second);
    count += mapping->keys.size();
  }
  CHECK(count > 450);
}

TEST_CASE("Every key that is described is read") {
  const std::set<const keys::Key*> asked = keys_asked_for();
  // Read once a process, or by calibrations of machines and fits, which have tests of their own.
  const std::set<const keys::Mapping*> elsewhere = {
      &keys::calibration, &keys::constant, &keys::machine_calibration, &keys::fitted_constant, &keys::covariance,
      &keys::measured_gpu, &keys::architecture, &keys::operations, &keys::measured_matmul, &keys::run,
      &keys::architectures_file, &keys::layer,
      // Of learned stacks: tests/learn.
      &keys::learned, &keys::learned_cluster,
      // Looked up by name: model/scenario/hardware/hardware_reader.hpp.
      &keys::energy_file, &keys::failures_file, &keys::prices_file, &keys::offers, &keys::usual_figure};
  std::set<const keys::Key*> left_out;
  for (const keys::Mapping* mapping : elsewhere) {
    for (const keys::Key& key : mapping->keys) left_out.insert(&key);
  }
  // Looked for before their mapping is opened.
  const std::set<std::string> early = {"cluster.node.cpu.hierarchy.models",
                                       "cluster.node.cpu.hierarchy.slot",
                                       "cluster.node.cpu.hierarchy.memory.socket_bandwidth",
                                       "cluster.network.fabric.name",
                                       "cluster.network.fabric.switch_latency",
                                       "workload.train.model.name",
                                       "workload.train.model.family",
                                       "workload.train.model.published_batch",
                                       "workload.train.data.images.distribution",
                                       "workload.operator.batch",
                                       "plan.trainer"};
  left_out.insert(&keys::key_of(keys::trainer, "name"));  // by `foretrain trainers list`
  for (const keys::Place& place : all_places()) {
    if (early.contains(place.path)) left_out.insert(place.key);
  }
  std::string unread;
  for (const keys::Place& place : all_places()) {
    if (asked.contains(place.key) || left_out.contains(place.key) || read_otherwise(place)) continue;
    unread += place.path + " ";
  }
  INFO(unread);
  CHECK(unread.empty());
}

TEST_CASE("What others call a key leads to one of ours") {
  std::set<std::string> known;
  for (const keys::Place& place : keys::places(keys::files().front(), keys::Repeats::told)) known.insert(place.path);
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
  CHECK(usual(keys::train, "layer_overhead") == "0");
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
      const std::string told = keys::usual_of(key);
      CHECK((told == "true" || told == "false"));
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
  // What pages, help and completion are made of.
  const std::vector<keys::Place> all = keys::places(file, keys::Repeats::told);
  const auto place = std::ranges::find(all, "sings", &keys::Place::path);
  REQUIRE(place != all.end());
  CHECK(keys::describe(place->key->value) == "true or false");
  CHECK(keys::usual_of(*place->key) == "false");
  const std::string schema = keys_schema(file, [](keys::Catalogue) { return std::vector<std::string>(); });
  CHECK_THAT(schema, Catch::Contains("\"description\": \"Whether it sings. Without it: false.\""));
}

TEST_CASE("Dotted keys and their words are listed for whoever completes them") {
  const std::vector<std::string> keys = keys::dotted_keys();
  for (const char* key :
       {"plan.tensor", "plan.sync.bucket", "cluster.node.gpu.memory", "workload.train.model.layers"}) {
    CHECK(std::ranges::find(keys, key) != keys.end());
  }
  const std::vector<std::string> optimizers = keys::words_of("workload.train.optimizer");
  CHECK(std::ranges::find(optimizers, "adamw") != optimizers.end());
  CHECK(keys::words_of("plan.sequence_parallel") == std::vector<std::string>{"true", "false"});
  CHECK(keys::words_of("cluster.nodes").empty());
}

TEST_CASE("Every row of a training's tables has a value that says where it comes from") {
  const Scenario scenario = load_scenario_text(
      "cluster: { node: dgx-h100, nodes: 2 }\nworkload: { train: { model: gpt2, global_batch: 64 } }\n"
      "plan: { tensor: 2, trainer: fsdp }\n",
      "own.yaml", {"plan.sync.bucket=10 MB"});
  std::map<std::string, Trait> resolved;
  for (const Trait& value : resolved_values(scenario)) CHECK(resolved.emplace(value.key, value).second);
  for (const auto& [path, table] : {std::pair("cluster", &keys::cluster), std::pair("cluster.network", &keys::network),
                                    std::pair("plan", &keys::plan), std::pair("plan.sync", &keys::sync),
                                    std::pair("workload.train", &keys::train)}) {
    for (const keys::Key& key : table->keys) {
      const std::string dotted = join_path(path, key.name);
      if (dotted == "cluster.network" || dotted == "plan.sync") continue;  // told key by key
      INFO(dotted);
      REQUIRE(resolved.contains(dotted));
      CHECK_FALSE((resolved.at(dotted).value.empty() || resolved.at(dotted).source.empty()));
    }
  }
  const auto told = [&](const char* key) {
    const Trait& value = resolved.at(key);
    return fmt::format("{} {} {}", value.value, name(value.from), value.source);
  };
  CHECK(told("plan.tensor") == "2 scenario own.yaml:3:17");
  CHECK(told("plan.sync.bucket") == "10 MB command_line --set plan.sync.bucket=10 MB");
  CHECK(told("plan.zero").starts_with("3 trainer fsdp: "));
  CHECK(told("plan.data") == "8 assumed what tensor, pipeline and context leave");
  CHECK(told("cluster.network.nic_bandwidth") == "400 Gbit/s assumed the node's");
  CHECK(told("plan.schedule") == "1f1b assumed 1f1b; interleaved with interleave");
}

TEST_CASE("All unknown keys of a file are told at once, each with what was meant") {
  const std::string text =
      "cluster: { node: dgx-h100, num_nodes: 2 }\n"
      "workload: { train: { model: { preset: llama3-8b, seq_len: 4096 }, global_batch: 64, optimiser: adamw } }\n"
      "plan: { tp: 8, sync: { bukket: 25 MB } }\n";
  std::string told;
  try {
    load_scenario_text(text, "wrong.yaml");
  } catch (const ScenarioError& error) {
    told = error.what();
  }
  // One line for each of the five, wherever it stands.
  CHECK(std::ranges::count(told, '\n') == 4);
  for (const char* line : {"wrong.yaml:1:28: cluster.num_nodes: unknown key; foretrain calls it cluster.nodes",
                           "wrong.yaml:2:50: workload.train.model.seq_len: unknown key; foretrain calls it "
                           "workload.train.model.sequence",
                           "wrong.yaml:2:85: workload.train.optimiser: unknown key; did you mean optimizer?",
                           "wrong.yaml:3:9: plan.tp: unknown key; foretrain calls it plan.tensor",
                           "wrong.yaml:3:24: plan.sync.bukket: unknown key; did you mean bucket?"}) {
    CHECK_THAT(told, Catch::Contains(line));
  }
}

TEST_CASE("A bare `on` that PyYAML has read and written again is told as what it was") {
  const auto told = [](const std::string& workload) {
    return test::complaint_of(
        [&] { load_scenario_text("cluster: { node: dgx-h100 }\nworkload: " + workload + "\n", "dumped.yaml"); });
  };
  const std::string task =
      "{ tasks: [ { id: a, KEY: gpu0, run: { matmul: { m: 64, n: 64, k: 64, precision: bf16 } } } ] }";
  const auto with_key = [&](const std::string& key) { return std::string(task).replace(task.find("KEY"), 3, key); };
  CHECK(told(with_key("on")) == "accepted");
  CHECK(told(with_key("\"on\"")) == "accepted");
  CHECK_THAT(told(with_key("true")),
             Catch::StartsWith("dumped.yaml:2:31: workload.tasks[0].true: unknown key; \"on\", in quotes: ") &&
                 Catch::Contains("PyYAML"));
  const std::string sum = "{ operator: { kind: sum, true: cpu, size: 1 MB, precision: fp32 } }";
  CHECK_THAT(told(sum), Catch::Contains("workload.operator.true: unknown key; \"on\", in quotes: "));
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
