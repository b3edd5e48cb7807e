// Bad scenarios: every case of tests/scenario/bad/*.txt is refused at the place that `^` marks, with the whole message.
//   @ …   the lines of a scenario, or the file that holds it or a calibration (JSON). A case fills its … in turn (" ||
//   " between them), or
//         replaces lines: "5|…" the fifth, "|…" puts one more behind
//   = …   what the message says behind its position; … stands for anything, "accepted" for a scenario that is good
//   # …   a comment
#include <filesystem>

#include "model/base/files.hpp"
#include "model/base/session.hpp"
#include "model/base/text.hpp"
#include "model/scenario/catalogue.hpp"
#include "model/scenario/hardware/calibration_reader.hpp"
#include "model/scenario/hardware/hardware_reader.hpp"
#include "model/scenario/keys/key_tree.hpp"
#include "model/scenario/load/load.hpp"
#include "model/scenario/model/model_reader.hpp"
#include "tests/catch.hpp"
#include "tests/complaint.hpp"
#include "tests/scenario/mappings.hpp"

using namespace foretrain;

namespace {

const std::filesystem::path folder = FORETRAIN_SOURCE_DIR "/tests/scenario/bad";

/// The lines of a file, and an empty one behind the last.
std::vector<std::string> lines_of(const std::filesystem::path& file) { return split(read_text_file(file), '\n'); }

std::string complaint_about(const std::string& text, const std::vector<std::string>& overrides = {}) {
  return test::complaint_of([&] {
    if (text.starts_with("{\n")) {
      const YamlNode document = parse_yaml(text, "bad.yaml");
      static_cast<void>(read_calibration(Field(document, "")));
    } else {
      load_scenario_text(text, "bad.yaml", overrides);
    }
  });
}

/// The scenario of a case: its template with what the case says.
std::string filled(std::vector<std::string> scenario, const std::vector<std::string>& said) {
  std::size_t line = 0;
  std::string inserted;
  for (const std::string& text : said) {
    const std::size_t bar = text.find('|');
    if (text.substr(0, bar).find_first_not_of("0123456789") != std::string::npos) {
      inserted += (inserted.empty() ? "" : "\n") + text;
    } else if (bar == 0) {
      scenario[line - 1] += "\n" + text.substr(1);
    } else {
      line = std::stoul(text);
      scenario[line - 1] = text.substr(bar + 1);
    }
  }
  std::string whole;
  for (const std::string& text : scenario) whole += text + "\n";
  constexpr std::string_view gap = "…", between = " || ";
  for (std::size_t at = whole.find(gap); at != std::string::npos; at = whole.find(gap)) {
    const std::string piece = inserted.substr(0, inserted.find(between));
    inserted.erase(0, piece.size() + between.size());
    whole.replace(at, gap.size(), piece);
  }
  return whole;
}

/// Takes the mark out of the text: "bad.yaml:3:7: ", where it stood.
std::string take_mark(std::string& text) {
  const std::size_t mark = text.find('^');
  REQUIRE(mark != std::string::npos);
  text.erase(mark, 1);
  const std::string before = text.substr(0, mark);
  return fmt::format("bad.yaml:{}:{}: ", std::ranges::count(before, '\n') + 1, mark - (before.rfind('\n') + 1) + 1);
}

/// Whether the pieces between … stand in the text one behind the other, the first at its beginning.
bool says(const std::string& text, std::string wanted) {
  constexpr std::string_view gap = "…";
  const std::size_t first = wanted.find(gap);
  if (first == std::string::npos) return text == wanted;
  if (!text.starts_with(wanted.substr(0, first))) return false;
  const std::string rest = wanted.substr(first + gap.size());
  for (std::size_t at = first; at <= text.size(); ++at) {
    if (rest.empty() || says(text.substr(at), rest)) return true;
  }
  return false;
}

void check_case(const std::vector<std::string>& scenario, const std::vector<std::string>& said, std::string wanted) {
  std::string text = filled(scenario, said);
  if (wanted != "accepted") wanted = take_mark(text) + wanted;
  const std::string complaint = complaint_about(text);
  INFO(text);
  INFO("says:   " << complaint);
  INFO("wanted: " << wanted);
  CHECK(says(complaint, wanted));
}

std::size_t check_file(const std::filesystem::path& file) {
  std::vector<std::string> scenario, said;
  std::string wanted;
  std::size_t cases = 0;
  bool shows = false;
  for (const std::string& line : lines_of(file)) {
    const bool expects = line.starts_with("= "), continues = shows;
    shows = line.starts_with("@ ");
    if (!expects && !wanted.empty()) {
      check_case(scenario, said, wanted);
      ++cases;
      said.clear();
      wanted.clear();
    }
    if (shows && !continues) scenario.clear();
    if (expects) wanted += (wanted.empty() ? "" : "\n") + line.substr(2);
    const bool is_file = line.ends_with(".yaml") || line.ends_with(".json");
    if (shows && is_file) scenario = lines_of(folder / line.substr(2));
    if (shows && !is_file) scenario.push_back(line.substr(2));
    if (!expects && !shows && !line.empty() && !line.starts_with('#')) said.push_back(line);
  }
  return cases;
}

/// Reads every bad scenario and what the catalogue has: readers ask for keys that are not there, too.
void read_everything() {
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() == ".txt") check_file(entry.path());
  }
  for (const CatalogueEntry& run : list_scenarios()) load_scenario(run.file);
  const std::string head = "cluster: { node: dgx-h100 }\nworkload: { train: { model: gpt2, global_batch: 8 } }\n";
  for (const CatalogueEntry& trainer : list_trainers()) {
    load_scenario_text(head + "plan: { trainer: " + trainer.name + " }\n", "keys.yaml");
  }
  load_scenario_text(
      "cluster: { node: dgx-h100, price: { of: p5.48xlarge, purchase: on_demand } }\nworkload: { train: { model: gpt2, "
      "global_batch: 8, data: { text: { distribution: fixed, value: 10 } } } }\n",
      "keys.yaml");
  for (const CatalogueEntry& entry : list_hardware()) {
    if (entry.kind == "node") read_node(Field(yaml_scalar(entry.file.string(), {}), ""));
  }
  for (const CatalogueEntry& entry : list_models()) {
    CHECK(read_model(Field(yaml_scalar(entry.file.string(), {}), "")).name == entry.name);
  }
}

/// Whether the reader of this key looks for it before, or without, opening the mapping, or leaves it to people.
bool read_otherwise(const keys::Place& place) {
  if (place.key->meaning.ends_with("not read.")) return true;
  for (const char* word : {"description", "sources", "kind", "preset", "hf", "on", "repeat"}) {
    if (place.key->name == word) return true;
  }
  return false;
}

}  // namespace

TEST_CASE("Bad scenarios: file, line, column, key, what is wrong, what would be right") {
  std::size_t cases = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".txt") continue;
    INFO(entry.path());
    cases += check_file(entry.path());
  }
  CHECK(cases > 580);
}

TEST_CASE("Overrides name themselves") {
  const std::string good = read_text_file(folder / "good.yaml");
  const std::pair<std::string, std::string> rows[] = {
      {"plan.tensr=2", "--set plan.tensr=2: plan.tensr: unknown key; did you mean plan.tensor?"},
      {"plan.tensor=4",
       "--set plan.tensor=4: plan.tensor: tensor 4 x pipeline 2 x context 1 x data 4 = 32, but the cluster has 16 "
       "GPUs…"},
      {"plan.tensor", "--set plan.tensor: this is no KEY=VALUE; for example plan.tensor=8"},
      {"plan..tensor=8", "…a part of this key is empty…"},
      {"plan.tensor=", "…this is no KEY=VALUE…"},
      {"plan.sync={ bucket: 3 MB/s }", "…plan.sync.bucket: \"3 MB/s\" is a bandwidth…"},
      {"plan.sync={ bucket", "…every bracket closed…"}};
  for (const auto& [change, wanted] : rows) {
    INFO(change);
    CHECK(says(complaint_about(good, {change}), wanted));
  }
}

TEST_CASE("Every key that is described is read") {
  Session fresh;
  const SessionScope scope(fresh);
  const std::set<const keys::Key*>& asked = fresh.part<AskedKeys>().keys;
  read_everything();
  std::vector<keys::Place> all;
  for (const keys::FileKind& file : keys::files()) {
    for (keys::Place& place : keys::places(file, keys::Repeats::left_out)) all.push_back(std::move(place));
  }
  // Read once a process, or by calibrations of machines and fits, which have tests of their own.
  const std::set<std::string_view> elsewhere = {
      "calibration", "constant", "calibration of a machine", "fitted constant", "covariance", "measured GPU",
      "architecture", "operations a clock", "measured GEMM", "work of a task", "file of architectures", "layer",
      // Of learned stacks: tests/learn.
      "learned", "settings of a cluster",
      // Read in part: model/scenario/hardware/hardware_table.cpp.
      "file of electricity", "file of failures", "file of prices", "offers", "default value"};
  std::set<const keys::Key*> left_out;
  for (const keys::Mapping* mapping : test::all_mappings()) {
    if (!elsewhere.contains(mapping->name)) continue;
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
                                       "plan.framework"};
  left_out.insert(&keys::key_of(keys::trainer, "name"));  // by `foretrain frameworks list`
  for (const keys::Place& place : all) {
    if (early.contains(place.path)) left_out.insert(place.key);
  }
  std::string unread;
  for (const keys::Place& place : all) {
    if (asked.contains(place.key) || left_out.contains(place.key) || read_otherwise(place)) continue;
    unread += place.path + " ";
  }
  INFO(unread);
  CHECK(unread.empty());
}
