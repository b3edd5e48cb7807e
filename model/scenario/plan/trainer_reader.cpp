#include "model/scenario/plan/trainer_reader.hpp"

#include <bitset>

#include "model/base/hash.hpp"
#include "model/base/number.hpp"
#include "model/base/session.hpp"
#include "model/base/text.hpp"
#include "model/scenario/catalogue.hpp"
#include "model/scenario/document_walk.hpp"
#include "model/scenario/hardware/calibration_reader.hpp"
#include "model/scenario/keys/conditions.hpp"
#include "model/scenario/keys/member.hpp"
#include "model/scenario/overrides.hpp"

namespace foretrain {

namespace {

constexpr std::string_view master_weights = "workload.train.master_weights";

constexpr std::size_t most_settings = 100;

/// A training as settings see it: what is stated of it so far, else what holds where nothing is.
struct Training {
  const YamlNode& document;
  const Cluster& cluster;
  TrainWorkload& train;
  Plan& plan;
  bool states_master_weights;
  Framework found = {};
  std::bitset<most_settings> decided = {};  ///< in the order of keys::framework_keys()

  [[nodiscard]] keys::Situation situation() const { return {cluster, plan, &train}; }
  /// The record that the key of a setting fills.
  [[nodiscard]] void* record_of(const keys::Key& key) const {
    using keys::detail::record_of;
    for (const auto& [record, type] :
         {record_of(plan), record_of(plan.sync), record_of(train), record_of(train.code)}) {
      if (key.member.record == type) return record;
    }
    throw InternalError(fmt::format("the setting {} fills nothing", key.name));
  }
};

std::size_t number_of(const keys::FrameworkKey& key) {
  return static_cast<std::size_t>(&key - keys::framework_keys().data());
}

std::string_view flag_word(bool value) { return value ? "true" : "false"; }

/// The training's value of each key of `when:`, as a file writes it.
struct Condition {
  std::string_view key;
  std::string_view (*own)(const Training& one);
};
constexpr Condition conditions[] = {
    {"kernels", [](const Training& one) { return name(one.train.code.kernels); }},
    {"attention", [](const Training& one) { return name(one.train.attention); }},
    {"execution", [](const Training& one) { return name(one.plan.execution); }},
    {"architecture", [](const Training& one) { return std::string_view(one.cluster.node.gpu.architecture); }},
    {"context", [](const Training& one) { return flag_word(one.plan.context > 1); }},
    {"servers", [](const Training& one) { return flag_word(has_servers(one.plan.sync.algorithm)); }},
    {"interleaved", [](const Training& one) { return flag_word(one.plan.interleave > 1); }},
    {"split_backward", [](const Training& one) { return flag_word(splits_backward(one.plan.schedule)); }},
    {"adapters", [](const Training& one) { return flag_word(one.train.parts.lora.has_value()); }},
    {"master_weights",
     [](const Training& one) { return flag_word(one.train.master_weights || !one.states_master_weights); }},
    {"precision", [](const Training& one) { return name(one.train.precision); }},
    {"optimizer", [](const Training& one) { return name(one.train.optimizer); }},
    {"zero", [](const Training& one) { return std::string_view("0123").substr(at_index(one.plan.zero), 1); }}};

/// `when:` of a setting or a refusal: words of which the training has one, for each condition that is stated.
using When = std::vector<std::pair<const Condition*, std::vector<std::string_view>>>;

When read_when(const std::optional<Field>& field) {
  When when;
  if (!field) return when;
  const MappingReader keys = field->mapping();
  for (const Condition& condition : conditions) {
    const auto stated = keys.find(condition.key);
    if (!stated) continue;
    auto& [own, words] = when.emplace_back(&condition, std::vector<std::string_view>());
    for (const Field& one : stated->values()) {
      one.require_form();
      words.push_back(one.text());
    }
  }
  return when;
}

bool holds(const When& when, const Training& training) {
  return std::ranges::all_of(when, [&](const auto& one) {
    return std::ranges::find(one.second, one.first->own(training)) != one.second.end();
  });
}

/// Provenance of a setting: a size as its number; a word or a flag as 1. Throws ScenarioError for an
/// empty source.
Constant setting_provenance(const std::string& key, const MappingReader& setting) {
  const std::string& text = setting["value"].text();
  const std::string& source = setting["source"].text();
  setting.fail_if(trim(source).empty(), "source", "an empty source", "documentation or code of the framework");
  const bool is_size = text.find_first_of("0123456789") == 0;
  const NumberAndUnit parts = is_size ? split_number_and_unit(text) : NumberAndUnit{1.0, ""};
  return {is_size ? key : key + "=" + text, parts.number, parts.unit, setting["kind"].as<ConstantKind>(), source};
}

/// A trainer's value for a key, and the trainings that have it.
struct FrameworkValue {
  const keys::FrameworkKey* key;
  When when;
  Field value;  ///< a scalar
  Constant provenance;
  bool as_new;  ///< what a new plan or training has
};

/// A trainer's file as it was read. The session keeps all documents, so that a document's place tells it apart.
struct TrainerFileKey {
  struct Read {
    MappingReader keys;  ///< by our names
    std::string stem;
    std::vector<FrameworkValue> settings;  ///< of one key the first that holds counts
  };
  using Value = const Read;
  const YamlNode* document;

  bool operator==(const TrainerFileKey&) const = default;
  [[nodiscard]] std::uint64_t hash() const { return hash_of(reinterpret_cast<std::uintptr_t>(document)); }
  [[nodiscard]] std::size_t bytes(const Read& read) const { return 1000 + 500 * read.settings.size(); }
};
using TrainerFile = Session::Pointer<TrainerFileKey>;

/// Throws ScenarioError where it is another kind of file.
TrainerFile trainer_file(const Field& named) {
  const std::filesystem::path path = catalogue_file(Catalogue::trainer, named);
  const YamlNode& document = cached_yaml_file(path.string());
  return session().known(TrainerFileKey{&document}, [&] {
    YamlNode renamed = document;
    use_our_names_of_settings(renamed);
    TrainerFileKey::Read file{Field(std::move(renamed), "").mapping(keys::trainer), path.stem().string(), {}};
    const std::string& kind = file.keys["kind"].text();
    file.keys.fail_if(kind != "framework" && kind != "trainer", "kind", "not a framework file", "kind: framework");
    const MappingReader settings = file.keys["settings"].mapping(keys::framework_settings);
    for (const keys::FrameworkKey& key : keys::framework_keys()) {
      const auto stated = settings.find(key.name);
      if (!stated) continue;
      for (const Field& one : stated->is_mapping() ? std::vector{*stated} : stated->list()) {
        const MappingReader keys = one.mapping();
        const Constant provenance = setting_provenance(fmt::format("{}.{}", file.stem, key.name), keys);
        const auto& written = key.row->member.written;
        file.settings.push_back({&key, read_when(keys.find("when")), Field(keys["value"].node(), key.name), provenance,
                                 written != nullptr && written(nullptr, *key.row) == keys["value"].text()});
      }
    }
    return file;
  });
}

/// One that comes with the program.
TrainerFile own_file_of_trainer(const char* name) { return trainer_file({yaml_scalar(name, {}), "plan.framework"}); }

/// Throws if the framework refuses to run the training, with its reason.
void check_refusals(const MappingReader& file, const Training& training) {
  for (const Field& one : file.list("refuses")) {
    const MappingReader refusal = one.mapping();
    const std::string key = refusal["key"].text(), instead = refusal["instead"].text(),
                      source = refusal["source"].text();
    const When when = read_when(refusal.find("when"));
    const YamlNode* guilty = training.document.at(key);
    if (guilty == nullptr || number_behind(guilty->scalar, "").value_or(1) < 2 || !holds(when, training)) continue;
    throw ScenarioError(guilty->where, key, fmt::format("{} refuses this: {}", file["name"].text(), source), instead);
  }
}

/// Adds what the trainer's file says of keys that nobody has decided yet.
void add_settings(const TrainerFile& file, ResolvedSetting::From from, Training& training) {
  const keys::FrameworkKey* reported = nullptr;
  for (const FrameworkValue& one : file->settings) {
    const keys::FrameworkKey& key = *one.key;
    if (reported == &key || training.decided[number_of(key)] || !holds(one.when, training)) continue;
    reported = &key;
    const bool means_something = key.row->framework->means_something(training.situation());
    if (!means_something && !key.row->framework->asked_of_all) continue;
    training.decided.set(number_of(key));
    training.found.settings.push_back({key.name, one.value.text(), from, one.provenance.source});
    // The setting of ZeRO-2 is needed by plans with other stages, too.
    if (!means_something && key.name != "plan.zero.gradients") continue;
    if (!one.as_new) one.value.fill(*key.row, training.record_of(*key.row));
    training.states_master_weights |= key.name == master_weights;
    if (!means_something || from != ResolvedSetting::From::trainer) continue;
    training.found.constants.push_back(one.provenance);
    training.found.where.emplace_back(key.name, one.value.where());
  }
}

/// `kernels: fused` of a scenario is short for all that the framework's file fuses then
/// (`fusions` on condition of kernels), and the rest is plain; for everything where the file says nothing.
void expand_kernels(const TrainerFile& file, ResolvedSetting::From from, Training& training) {
  constexpr std::string_view fusions = "workload.train.fusions";
  if (training.document.at("workload.train.kernels") == nullptr || training.document.at(fusions) != nullptr) return;
  ResolvedSetting setting{std::string(fusions), "", from, ""};
  for (const FrameworkValue& one : file->settings) {
    const bool of_kernels =
        std::ranges::any_of(one.when, [](const auto& stated) { return stated.first->key == "kernels"; });
    if (one.key->name != fusions || !of_kernels || !holds(one.when, training)) continue;
    one.value.fill(*one.key->row, training.record_of(*one.key->row));
    training.decided.set(number_of(*one.key));
    setting.value += (setting.value.empty() ? "" : ", ") + one.value.text();
    setting.source = one.provenance.source;
    if (from != ResolvedSetting::From::trainer) continue;
    training.found.constants.push_back(one.provenance);
    training.found.where.emplace_back(one.key->name, one.value.where());
  }
  if (setting.value.empty()) return;
  training.train.code.kernels = KernelSet::unfused;
  training.found.settings.push_back(setting);
}

/// A part of the file of the scenario's trainer.
std::optional<Field> part_of_trainer(const YamlNode& document, std::string_view part) {
  const YamlNode* named = document.at("plan.framework");
  if (named == nullptr) return std::nullopt;
  return named_trainer(Field(*named, "plan.framework")).find(part);
}

}  // namespace

MappingReader named_trainer(const Field& name) { return trainer_file(name)->keys; }

Framework apply_framework(const YamlNode& document, const Cluster& cluster, TrainWorkload& train, Plan& plan) {
  Training training{document, cluster, train, plan, document.at(master_weights) != nullptr};
  Framework& found = training.found;
  const std::vector<keys::FrameworkKey>& all = keys::framework_keys();
  found.settings.reserve(all.size());
  const YamlNode* mapping = nullptr;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (i == 0 || all[i].mapping != all[i - 1].mapping) mapping = document.at(all[i].mapping);
    const YamlEntry* entry = mapping == nullptr ? nullptr : mapping->find(all[i].row->name);
    if (entry == nullptr) continue;
    found.settings.push_back({all[i].name, in_one_line(entry->value), ResolvedSetting::From::scenario, ""});
    training.decided.set(i);
  }
  found.name = default_trainer;
  if (const YamlNode* named = document.at("plan.framework")) {
    std::vector<TrainerFile> files = {trainer_file(Field(*named, "plan.framework"))};
    found.name = files.front()->stem;
    if (const auto base = files.front()->keys.find("base")) files.push_back(trainer_file(*base));
    for (const TrainerFile& file : files) expand_kernels(file, ResolvedSetting::From::trainer, training);
    for (const TrainerFile& file : files) add_settings(file, ResolvedSetting::From::trainer, training);
    for (const TrainerFile& file : files) check_refusals(file->keys, training);
  } else if (keys::to_transformers_on_gpus.means_something(training.situation()) &&
             document.at("workload.train.kernels") != nullptr) {
    // Who states kernels and names no trainer has code of their own, of which own-code.yaml says the rest.
    const TrainerFile file = own_file_of_trainer(own_code);
    expand_kernels(file, ResolvedSetting::From::assumed, training);
    add_settings(file, ResolvedSetting::From::assumed, training);
  }
  add_settings(own_file_of_trainer(default_trainer), ResolvedSetting::From::assumed, training);
  return std::move(found);
}

double learned_share(const Field& field) { return field.parse(split_number_and_unit).number / 100.0; }

std::vector<Constant> add_learned_cluster(YamlNode& document) {
  std::vector<Constant> added;
  const auto cluster = part_of_trainer(document, "cluster");
  if (!cluster) return added;
  const MappingReader figures = cluster->mapping(keys::learned_cluster);
  for (const keys::Key& row : keys::learned_cluster.keys) {
    const auto figure = figures.find(row.name);
    const std::string key = join_path("cluster", row.name);
    if (!figure || document.at(key) != nullptr) continue;
    const MappingReader setting = figure->mapping();
    apply_override(document, {key, setting["value"].text(), setting["value"].where()});
    added.push_back(setting_provenance(key, setting));
  }
  return added;
}

void adopt_learned_constants(const YamlNode& document, Calibration& calibration) {
  if (const auto constants = part_of_trainer(document, "constants")) adopt_constants(*constants, calibration);
}

std::optional<LearnedRange> learned_range(const YamlNode& document) {
  const auto learned = part_of_trainer(document, "learned");
  if (!learned) return std::nullopt;
  const MappingReader keys = learned->mapping();
  const std::vector<Field> nodes = keys["nodes"].list();
  if (nodes.size() != 2) keys.fail("nodes", "no two numbers", "[ the least, the most ]");
  const auto memory = keys.find("memory_shortfall");
  return LearnedRange{learned_share(keys["spread"]), memory ? learned_share(*memory) : 0.0, nodes[0].as<int>(),
                      nodes[1].as<int>()};
}

std::vector<int> learned_groups(const YamlNode& document) {
  const auto learned = part_of_trainer(document, "learned");
  const auto groups = learned ? learned->mapping().find("groups") : std::nullopt;
  std::vector<int> sizes;
  if (!groups) return sizes;
  for (const Field& size : groups->list()) sizes.push_back(size.as<int>());
  if (sizes.size() != 3) groups->fail("no three numbers", "[ data, tensor, pipeline ]");
  return sizes;
}

}  // namespace foretrain
