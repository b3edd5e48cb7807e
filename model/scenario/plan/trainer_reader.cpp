#include "model/scenario/plan/trainer_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "model/base/hash.hpp"
#include "model/base/number.hpp"
#include "model/base/session.hpp"
#include "model/base/text.hpp"
#include "model/base/units.hpp"
#include "model/base/words.hpp"
#include "model/parallelism/plan.hpp"
#include "model/scenario/catalogue.hpp"
#include "model/scenario/hardware/calibration_reader.hpp"
#include "model/scenario/keys/member.hpp"
#include "model/scenario/model/model_reader.hpp"
#include "model/scenario/overrides.hpp"
#include "model/scenario/plan/plan_reader.hpp"

namespace foretrain {

namespace {

/// What is trained, and on what: no habit changes it.
struct Trainee {
  Trainee(const YamlNode& document, const Cluster& cluster)
      : on_processors(cluster.node.gpu.processor.has_value()), architecture(cluster.node.gpu.architecture) {
    constexpr const char* key = "workload.train.model";
    const YamlNode* stated = document.at(key);
    if (stated == nullptr) return;  // its reader complains
    const ModelConfig model = read_model(Field(*stated, key));
    transformer = !std::holds_alternative<NetworkConfig>(model.shape);
    experts = model.has_experts();
  }
  bool on_processors;
  std::string architecture;
  bool transformer = false, experts = false;
};

/// A training as habits see it: what its document states so far, or what holds where it states nothing.
struct Training {
  const YamlNode& document;
  const Trainee& trainee;

  [[nodiscard]] bool states(std::string_view key) const { return document.at(key) != nullptr; }
  [[nodiscard]] std::string_view word(std::string_view key, std::string_view otherwise) const {
    const YamlNode* node = document.at(key);
    return node != nullptr && node->is_scalar() ? std::string_view(node->scalar) : otherwise;
  }
  /// A factor of the plan; 1 where it is left out or is no number yet.
  [[nodiscard]] std::int64_t factor(std::string_view key) const {
    const std::string_view text = word(key, "");
    const bool number = !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
    return number ? Field(*document.at(key), std::string(key)).integer() : 1;
  }
  [[nodiscard]] int zero() const {
    const YamlNode* stated = document.at("plan.zero");
    return stated != nullptr ? zero_level(Field(*stated, "plan.zero")) : 0;
  }
  /// The format of the training's products, or of what a mapping names as their preset.
  [[nodiscard]] Precision precision() const {
    constexpr std::string_view key = "workload.train.precision", parts = "workload.train.precision.preset";
    return value_of<Precision>(word(key, word(parts, "bf16"))).value_or(Precision::bf16);  // its reader complains
  }
  [[nodiscard]] std::string_view optimizer() const {
    return word("workload.train.optimizer", name(TrainWorkload{}.optimizer));
  }
  [[nodiscard]] bool has_servers() const {
    constexpr const char* key = "plan.sync.algorithm";
    const YamlNode* algorithm = document.at(key);
    return algorithm != nullptr && foretrain::has_servers(Field(*algorithm, key).choice<SyncAlgorithm>());
  }
  [[nodiscard]] bool has_short_weights() const {
    return bytes_per_element(storage_precision(precision())) < bytes_per_element(Precision::fp32) &&
           !has_8bit_states(value_of<Optimizer>(optimizer()).value_or(Optimizer::adamw));
  }
  [[nodiscard]] bool has_plain_kernels() const {
    const bool plain = word("workload.train.kernels", "") == name(KernelSet::plain);
    return !trainee.on_processors && (!trainee.transformer || plain);
  }
  [[nodiscard]] bool divides_sequences() const {
    return factor("plan.tensor") > 1 && word("plan.sequence_parallel", "") == "true";
  }
  [[nodiscard]] bool splits_backward() const {
    const auto schedule = value_of<PipelineSchedule>(word("plan.schedule", ""));
    return schedule && foretrain::splits_backward(*schedule);
  }
};

/// Plans and trainings to which a habit means something.
struct Belongs {
  bool (*to)(const Training& one);
  bool asked_of_all = false;  ///< the trait is one of all plans, although some have nothing to which it means something
};
constexpr Belongs everywhere{[](const Training&) { return true; }};
constexpr Belongs to_servers{[](const Training& one) { return one.has_servers(); }};
constexpr Belongs to_transformers{[](const Training& one) { return one.trainee.transformer; }};
// Processors have plain kernels alone.
constexpr Belongs to_transformers_on_gpus{
    [](const Training& one) { return one.trainee.transformer && !one.trainee.on_processors; }};
constexpr Belongs to_plain_kernels{[](const Training& one) { return one.has_plain_kernels(); }, true};
// Of layers, on GPUs.
constexpr Belongs to_networks{
    [](const Training& one) { return !one.trainee.transformer && !one.trainee.on_processors; }};
// That divide the sequence, whose gathers and scatters could hide behind products.
constexpr Belongs to_tensor_ranks{[](const Training& one) { return one.divides_sequences(); }, true};
constexpr Belongs to_pipelines{[](const Training& one) { return one.factor("plan.pipeline") > 1; }, true};
constexpr Belongs to_context_ranks{[](const Training& one) { return one.factor("plan.context") > 1; }};
constexpr Belongs to_experts{[](const Training& one) { return one.trainee.experts; }};
constexpr Belongs to_divided_gradients{[](const Training& one) { return one.zero() == 2; }, true};
// Gradients that ZeRO-1's ranks, or ZeRO-2's which keep them whole, sum up.
constexpr Belongs to_divided_states{
    [](const Training& one) {
      return one.zero() == 1 || (one.zero() == 2 && one.word("plan.zero.gradients", "") == name(ZeroGradients::kept));
    },
    true};
// ZeRO-1's and 2's, whose weights come back to all ranks.
constexpr Belongs to_updated_parts{[](const Training& one) { return one.zero() == 1 || one.zero() == 2; }, true};
// Fewer than four bytes each, updated in fp32.
constexpr Belongs to_short_weights{[](const Training& one) { return one.has_short_weights(); }, true};
constexpr Belongs to_adapters{[](const Training& one) { return one.states("workload.train.lora"); }};

/// By the rows of keys::habits.
constexpr Belongs belongs[] = {
#define HABIT(key, to) to,
#include "model/scenario/keys/habits.def"
};

std::string_view flag_word(bool value) { return value ? "true" : "false"; }

/// What the training has of each key of `when:`, as a file writes it.
struct Condition {
  std::string_view key;
  std::string_view (*own)(const Training& one);
};
constexpr Condition conditions[] = {
    {"kernels",
     [](const Training& one) {
       return one.word("workload.train.kernels", name(usual_kernels(one.trainee.on_processors)));
     }},
    {"execution", [](const Training& one) { return one.word("plan.execution", name(ExecutionMode::eager)); }},
    {"architecture", [](const Training& one) { return std::string_view(one.trainee.architecture); }},
    {"context", [](const Training& one) { return flag_word(one.factor("plan.context") > 1); }},
    {"servers", [](const Training& one) { return flag_word(one.has_servers()); }},
    {"interleaved", [](const Training& one) { return flag_word(one.factor("plan.interleave") > 1); }},
    {"split_backward", [](const Training& one) { return flag_word(one.splits_backward()); }},
    {"adapters", [](const Training& one) { return flag_word(one.states("workload.train.lora")); }},
    {"master_weights",
     [](const Training& one) { return flag_word(one.word("workload.train.master_weights", "true") == "true"); }},
    {"precision", [](const Training& one) { return name(one.precision()); }},
    {"optimizer", [](const Training& one) { return one.optimizer(); }},
    {"zero", [](const Training& one) { return std::string_view("0123").substr(at_index(one.zero()), 1); }}};

/// `when: { zero: [0, 1], servers: false, interleaved: true, precision: fp16, adapters: false, master_weights: true }`
bool holds(const Field& when, const Training& training) {
  const MappingReader keys = when.mapping(keys::condition);
  return std::ranges::all_of(conditions, [&](const Condition& condition) {
    const auto stated = keys.find(condition.key);
    if (!stated) return true;
    const keys::Key& row = keys::key_of(keys::condition, condition.key);
    const bool several = row.value.all[0].shape == keys::Form::Shape::one_or_list;
    return std::ranges::any_of(several ? stated->list_or_one() : std::vector{*stated}, [&](const Field& one) {
      one.parse([&](const std::string& text) { keys::require_form(text, row); });
      return one.text() == condition.own(training);
    });
  });
}

/// Adds the value unless the key is there. Where a single value stands in the way, the reader complains later.
bool add_missing(YamlNode& document, std::string_view key, const YamlNode& value) {
  if (document.at(key) != nullptr) return false;
  YamlNode* node = &document;
  for (const std::string& word : split(key, '.')) {
    if (node->is_scalar() && key.starts_with("plan.zero.")) {  // a level by itself: `zero: 2`
      const YamlNode level = *node;
      *node = yaml_mapping(level.where);
      node->entries.push_back(YamlEntry{"stage", level.where, level});
    }
    if (!node->is_mapping()) return false;
    YamlEntry* entry = node->find(word);
    if (entry == nullptr) entry = &node->entries.emplace_back(YamlEntry{word, value.where, yaml_mapping(value.where)});
    node = &entry->value;
  }
  *node = value;
  return true;
}

/// A habit of a trainer's file. The session keeps all files that it has read, so that a node's place tells it apart.
struct HabitKey {
  struct Told {
    Constant constant;
    const YamlNode* value;  ///< a scalar
  };
  using Value = const Told;
  const YamlNode* habit;

  bool operator==(const HabitKey&) const = default;
  [[nodiscard]] std::uint64_t hash() const { return hash_of(reinterpret_cast<std::uintptr_t>(habit)); }
  [[nodiscard]] std::size_t bytes(const Told& told) const { return sizeof(Told) + told.constant.source.size() + 100; }
};

/// A trainer's file; throws ScenarioError where it is another kind of file.
struct TrainerFile {
  explicit TrainerFile(std::filesystem::path file)
      : path(std::move(file)), keys(Field(cached_yaml_file(path.string()), "").mapping(keys::trainer)) {
    if (keys["kind"].text() != "trainer") keys.fail("kind", "this file is no trainer", "kind: trainer");
  }
  explicit TrainerFile(const Field& name) : TrainerFile(catalogue_file(CatalogueSection::trainer, name)) {}
  std::filesystem::path path;
  MappingReader keys;
};

/// One that comes with the program.
TrainerFile own_file_of_trainer(const char* name) {
  const YamlNode written = yaml_scalar(name, {});
  return TrainerFile(Field(written, "plan.trainer"));
}

/// What the trainer refuses to run, with its reason.
void check_refusals(const MappingReader& file, const Training& training, const SourcePosition& named) {
  const auto refusals = file.find("refuses");
  if (!refusals) return;
  for (const Field& one : refusals->list()) {
    const MappingReader refusal = one.mapping(keys::refusal);
    const std::string key = refusal["key"].text(), instead = refusal["instead"].text(),
                      source = refusal["source"].text();
    const auto when = refusal.find("when");
    if (training.factor(key) < 2 || (when && !holds(*when, training))) continue;
    const YamlNode* guilty = training.document.at(key);
    throw ScenarioError(guilty != nullptr ? guilty->where : named, key,
                        fmt::format("{} refuses this: {}", file["name"].text(), source), instead);
  }
}

std::string written(const YamlNode& node) {
  if (node.is_scalar()) return node.scalar;
  std::string text;
  for (const YamlNode& one : node.items) text += (text.empty() ? "" : ", ") + written(one);
  if (node.is_sequence()) return "[" + text + "]";
  for (const YamlEntry& entry : node.entries) {
    text += fmt::format("{}{}: {}", text.empty() ? "" : ", ", entry.key, written(entry.value));
  }
  return "{ " + text + " }";
}

/// The first of the key's habits that holds: a habit, or a list of them for different trainings.
std::optional<Field> holding(const Field& habits, const Training& training) {
  for (const Field& one : habits.is_mapping() ? std::vector{habits} : habits.list()) {
    const auto when = one.mapping(keys::habit).find("when");
    if (!when || holds(*when, training)) return one;
  }
  return std::nullopt;
}

/// What a habit says of itself: of a size its number; of a word or a flag, that it holds. Throws ScenarioError for an
/// empty source.
Constant habit_provenance(const std::string& key, const MappingReader& habit) {
  const std::string& text = habit["value"].text();
  Constant constant{key, 1.0, "", habit["kind"].choice<ConstantKind>(), habit["source"].text()};
  if (trim(constant.source).empty()) habit.fail("source", "an empty source", "where the trainer says or does so");
  if (text.find_first_of("0123456789") == 0) {
    const NumberAndUnit parts = split_number_and_unit(text);
    constant.value = parts.number;
    constant.unit = parts.unit;
  } else {
    constant.name += "=" + text;
  }
  return constant;
}

/// Adds what the trainer's file says of keys that the document leaves out.
void add_habits(const TrainerFile& file, Trait::From from, const Trainee& trainee, TrainedScenario& result) {
  const MappingReader habits = file.keys["habits"].mapping(keys::habits);
  const Training training{result.document, trainee};
  for (std::size_t i = 0; i < keys::habits.keys.size(); ++i) {
    const std::string_view key = keys::habits.keys[i].name;
    const auto stated = habits.find(key);
    if (!stated) continue;
    const auto habit = holding(*stated, training);
    if (!habit) continue;
    const auto told = session().known(HabitKey{&habit->node()}, [&] {
      const MappingReader keys = habit->mapping(keys::habit);
      const Field value = keys["value"];
      return HabitKey::Told{habit_provenance(fmt::format("{}.{}", file.path.stem().string(), key), keys),
                            &value.node()};
    });
    if (std::ranges::find(result.traits, key, &Trait::key) != result.traits.end()) continue;
    const Trait trait{std::string(key), told->value->scalar, from, told->constant.source};
    if (!belongs[i].to(training)) {
      if (belongs[i].asked_of_all) result.traits.push_back(trait);
    } else if (add_missing(result.document, key, *told->value)) {
      result.traits.push_back(trait);
      if (from == Trait::From::trainer) result.habits.push_back(told->constant);
    }
  }
}

/// Who states kernels and names no trainer has code of their own, of which own-code.yaml says the rest. Fused, it fuses
/// norms first, and the rest is plain: taken for a tuned recipe, such runs are predicted 11 to 24 % too fast (Aleph
/// Alpha's, InternEvo's and nanotron's, 570 rows). Whole modules are the framework's to state.
void add_own_code(const Trainee& trainee, TrainedScenario& result) {
  constexpr std::string_view kernels = "workload.train.kernels", fusions = "workload.train.fusions";
  const YamlNode* stated = result.document.at(kernels);
  if (stated == nullptr) return;
  if (stated->scalar == name(KernelSet::fused) && result.document.at(fusions) == nullptr) {
    const SourcePosition where = stated->where;
    const std::string norm(name(Fusion::norm));
    add_missing(result.document, fusions, yaml_scalar(norm, where));
    result.document.find("workload")->value.find("train")->value.find("kernels")->value =
        yaml_scalar(std::string(name(KernelSet::plain)), where);
    result.traits.push_back({std::string(fusions), norm, Trait::From::assumed,
                             "kernels: fused without a trainer: norms, which own code fuses first"});
  }
  add_habits(own_file_of_trainer(own_code), Trait::From::assumed, trainee, result);
}

/// A part of the file of the scenario's trainer.
std::optional<Field> part_of_trainer(const YamlNode& document, std::string_view part) {
  const YamlNode* named = document.at("plan.trainer");
  if (named == nullptr) return std::nullopt;
  return named_trainer(Field(*named, "plan.trainer")).find(part);
}

}  // namespace

MappingReader named_trainer(const Field& name) { return TrainerFile(name).keys; }

TrainedScenario with_trainer(const YamlNode& document, const Cluster& cluster) {
  TrainedScenario result{document, {}, {}, {}};
  if (document.at("workload.train") == nullptr) return result;
  for (const keys::Key& row : keys::habits.keys) {
    const YamlNode* stated = document.at(row.name);
    if (stated != nullptr)
      result.traits.push_back({std::string(row.name), written(*stated), Trait::From::scenario, ""});
  }
  const Trainee trainee(document, cluster);
  result.trainer = default_trainer;
  if (const YamlNode* named = document.at("plan.trainer")) {
    std::vector<TrainerFile> files = {TrainerFile(Field(*named, "plan.trainer"))};
    result.trainer = files.front().path.stem().string();
    if (const auto base = files.front().keys.find("base")) files.emplace_back(*base);
    for (const TrainerFile& file : files) add_habits(file, Trait::From::trainer, trainee, result);
    for (const TrainerFile& file : files) check_refusals(file.keys, {result.document, trainee}, named->where);
  } else if (trainee.transformer && !trainee.on_processors) {
    add_own_code(trainee, result);
  }
  add_habits(own_file_of_trainer(default_trainer), Trait::From::assumed, trainee, result);
  return result;
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
    const MappingReader habit = figure->mapping(keys::habit);
    apply_override(document, {key, habit["value"].text(), habit["value"].where()});
    added.push_back(habit_provenance(key, habit));
  }
  return added;
}

void adopt_learned_constants(const YamlNode& document, Calibration& calibration) {
  if (const auto constants = part_of_trainer(document, "constants")) {
    adopt_constants(*constants, keys::constant, calibration);
  }
}

std::optional<LearnedRange> learned_range(const YamlNode& document) {
  const auto learned = part_of_trainer(document, "learned");
  if (!learned) return std::nullopt;
  const MappingReader keys = learned->mapping(keys::learned);
  const std::vector<Field> nodes = keys["nodes"].list();
  if (nodes.size() != 2) keys.fail("nodes", "no two numbers", "[ the least, the most ]");
  const auto memory = keys.find("memory_shortfall");
  return LearnedRange{learned_share(keys["spread"]), memory ? learned_share(*memory) : 0.0,
                      static_cast<int>(nodes[0].integer()), static_cast<int>(nodes[1].integer())};
}

}  // namespace foretrain
