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
#include "model/scenario/overrides.hpp"

namespace foretrain {

namespace {

constexpr std::string_view master_weights = "workload.train.master_weights";

/// A training as habits see it: what is stated of it so far, else what holds where nothing is.
struct Training {
  const Cluster& cluster;
  TrainWorkload& train;
  Plan& plan;
  bool states_master_weights;

  [[nodiscard]] bool is_transformer() const { return !std::holds_alternative<NetworkConfig>(train.model.shape); }
  [[nodiscard]] bool on_processors() const { return cluster.node.gpu.processor.has_value(); }
  [[nodiscard]] bool has_short_weights() const {
    return bytes_per_element(storage_precision(train.precision)) < bytes_per_element(Precision::fp32) &&
           !has_8bit_states(train.optimizer);
  }
  /// The record that the key of a habit fills.
  [[nodiscard]] void* record_of(const keys::Key& key) const {
    const std::pair<const void*, void*> records[] = {{&keys::type_of_record<Plan>, &plan},
                                                     {&keys::type_of_record<Sync>, &plan.sync},
                                                     {&keys::type_of_record<TrainWorkload>, &train},
                                                     {&keys::type_of_record<TrainerCode>, &train.code}};
    for (const auto& [type, record] : records) {
      if (key.member.record == type) return record;
    }
    throw InternalError(fmt::format("the habit {} fills nothing", key.name));
  }
};

/// Plans and trainings to which a habit means something.
struct Belongs {
  bool (*to)(const Training& one);
  bool asked_of_all = false;  ///< the trait is one of all plans, although some have nothing to which it means something
};
constexpr Belongs everywhere{[](const Training&) { return true; }};
constexpr Belongs to_servers{[](const Training& one) { return has_servers(one.plan.sync.algorithm); }};
constexpr Belongs to_transformers{[](const Training& one) { return one.is_transformer(); }};
// Processors have plain kernels alone.
constexpr Belongs to_transformers_on_gpus{
    [](const Training& one) { return one.is_transformer() && !one.on_processors(); }};
constexpr Belongs to_plain_kernels{[](const Training& one) {
                                     return !one.on_processors() &&
                                            (!one.is_transformer() || one.train.code.kernels == KernelSet::plain);
                                   },
                                   true};
// Of layers, on GPUs.
constexpr Belongs to_networks{[](const Training& one) { return !one.is_transformer() && !one.on_processors(); }};
// That divide the sequence, whose gathers and scatters could hide behind products.
constexpr Belongs to_tensor_ranks{[](const Training& one) { return one.plan.tensor > 1 && one.plan.sequence_parallel; },
                                  true};
constexpr Belongs to_pipelines{[](const Training& one) { return one.plan.pipeline > 1; }, true};
constexpr Belongs to_context_ranks{[](const Training& one) { return one.plan.context > 1; }};
constexpr Belongs to_experts{[](const Training& one) { return one.train.model.has_experts(); }};
constexpr Belongs to_divided_gradients{[](const Training& one) { return one.plan.zero == 2; }, true};
// Gradients that ZeRO-1's ranks, or ZeRO-2's which keep them whole, sum up.
constexpr Belongs to_divided_states{[](const Training& one) {
                                      return one.plan.zero == 1 ||
                                             (one.plan.zero == 2 && one.plan.zero_gradients == ZeroGradients::kept);
                                    },
                                    true};
// ZeRO-1's and 2's, whose weights come back to all ranks.
constexpr Belongs to_updated_parts{[](const Training& one) { return one.plan.zero == 1 || one.plan.zero == 2; }, true};
// Fewer than four bytes each, updated in fp32.
constexpr Belongs to_short_weights{[](const Training& one) { return one.has_short_weights(); }, true};
constexpr Belongs to_adapters{[](const Training& one) { return one.train.parts.lora.has_value(); }};

/// A key of a scenario that trainers decide where it is left out.
struct Habit {
  std::string_view key;
  Belongs belongs;
  const keys::Key* row;
};

/// The row of a key of a plan or a training.
const keys::Key& row_of(std::string_view dotted) {
  const std::pair<std::string_view, const keys::Mapping*> mappings[] = {{"plan.sync.", &keys::sync},
                                                                        {"plan.zero.", &keys::zero},
                                                                        {"plan.", &keys::plan},
                                                                        {"workload.train.", &keys::train}};
  const auto* const found =
      std::ranges::find_if(mappings, [&](const auto& one) { return dotted.starts_with(one.first); });
  return keys::key_of(*found->second, dotted.substr(found->first.size()));
}

/// In the order of keys::habits.
const std::vector<Habit>& all_habits() {
  static const std::vector<Habit> all = {
#define HABIT(key, to) {key, to, &row_of(key)},
#include "model/scenario/keys/habits.def"
  };
  return all;
}

std::string_view flag_word(bool value) { return value ? "true" : "false"; }

/// What the training has of each key of `when:`, as a file writes it.
struct Condition {
  std::string_view key;
  std::string_view (*own)(const Training& one);
};
constexpr Condition conditions[] = {
    {"kernels", [](const Training& one) { return name(one.train.code.kernels); }},
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

/// `when:` of a habit or a refusal: words of which the training has one, for each condition that is stated.
using When = std::vector<std::pair<const Condition*, std::vector<std::string_view>>>;

When read_when(const std::optional<Field>& field) {
  When when;
  if (!field) return when;
  const MappingReader keys = field->mapping(keys::condition);
  for (const Condition& condition : conditions) {
    const auto stated = keys.find(condition.key);
    if (!stated) continue;
    const keys::Key& row = keys::key_of(keys::condition, condition.key);
    const bool several = row.value.all[0].shape == keys::Form::Shape::one_or_list;
    auto& [own, words] = when.emplace_back(&condition, std::vector<std::string_view>());
    for (const Field& one : several ? stated->list_or_one() : std::vector{*stated}) {
      one.parse([&](const std::string& text) { keys::require_form(text, row); });
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

/// A trainer's value for a key, and the trainings that have it.
struct HabitValue {
  const Habit* habit;
  When when;
  const YamlNode* value;  ///< a scalar
  Constant provenance;
};

/// A trainer's file as it was read. The session keeps all documents, so that a document's place tells it apart.
struct TrainerFileKey {
  struct Read {
    MappingReader keys;
    std::string stem;
    std::vector<HabitValue> habits;  ///< of one key the first that holds counts
  };
  using Value = const Read;
  const YamlNode* document;

  bool operator==(const TrainerFileKey&) const = default;
  [[nodiscard]] std::uint64_t hash() const { return hash_of(reinterpret_cast<std::uintptr_t>(document)); }
  [[nodiscard]] std::size_t bytes(const Read& read) const { return 1000 + 500 * read.habits.size(); }
};
using TrainerFile = Session::Pointer<TrainerFileKey>;

/// Throws ScenarioError where it is another kind of file.
TrainerFile trainer_file(const Field& named) {
  const std::filesystem::path path = catalogue_file(CatalogueSection::trainer, named);
  const YamlNode& document = cached_yaml_file(path.string());
  return session().known(TrainerFileKey{&document}, [&] {
    TrainerFileKey::Read file{Field(document, "").mapping(keys::trainer), path.stem().string(), {}};
    if (file.keys["kind"].text() != "trainer") file.keys.fail("kind", "this file is no trainer", "kind: trainer");
    const MappingReader habits = file.keys["habits"].mapping(keys::habits);
    for (const Habit& habit : all_habits()) {
      const auto stated = habits.find(habit.key);
      if (!stated) continue;
      for (const Field& one : stated->is_mapping() ? std::vector{*stated} : stated->list()) {
        const MappingReader keys = one.mapping(keys::habit);
        file.habits.push_back({&habit, read_when(keys.find("when")), &keys["value"].node(),
                               habit_provenance(fmt::format("{}.{}", file.stem, habit.key), keys)});
      }
    }
    return file;
  });
}

/// One that comes with the program.
TrainerFile own_file_of_trainer(const char* name) {
  const YamlNode written = yaml_scalar(name, {});
  return trainer_file(Field(written, "plan.trainer"));
}

/// A training, what is stated of it, and what becomes known of its traits.
struct Trained {
  const YamlNode& document;
  Training training;
  Framework found = {};
};

/// What the trainer refuses to run, with its reason.
void check_refusals(const MappingReader& file, const Trained& trained) {
  const auto refusals = file.find("refuses");
  if (!refusals) return;
  for (const Field& one : refusals->list()) {
    const MappingReader refusal = one.mapping(keys::refusal);
    const std::string key = refusal["key"].text(), instead = refusal["instead"].text(),
                      source = refusal["source"].text();
    const YamlNode* guilty = trained.document.at(key);
    if (guilty == nullptr || guilty->scalar == "1" || !holds(read_when(refusal.find("when")), trained.training)) {
      continue;
    }
    throw ScenarioError(guilty->where, key, fmt::format("{} refuses this: {}", file["name"].text(), source), instead);
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

/// Adds what the trainer's file says of keys that nobody has decided yet.
void add_habits(const TrainerFile& file, Trait::From from, Trained& trained) {
  std::vector<Trait>& traits = trained.found.traits;
  const Habit* told = nullptr;
  for (const HabitValue& one : file->habits) {
    const Habit& habit = *one.habit;
    if (told == &habit || !holds(one.when, trained.training)) continue;
    told = &habit;
    if (std::ranges::find(traits, habit.key, &Trait::key) != traits.end()) continue;
    const bool belongs = habit.belongs.to(trained.training);
    if (!belongs && !habit.belongs.asked_of_all) continue;
    traits.push_back({std::string(habit.key), one.value->scalar, from, one.provenance.source});
    // What ZeRO-2 would do is asked of plans with other levels, too.
    if (!belongs && habit.key != "plan.zero.gradients") continue;
    Field(*one.value, std::string(habit.key)).fill(*habit.row, trained.training.record_of(*habit.row));
    trained.training.states_master_weights |= habit.key == master_weights;
    if (!belongs || from != Trait::From::trainer) continue;
    trained.found.habits.push_back(one.provenance);
    trained.found.where.emplace_back(habit.key, one.value->where);
  }
}

/// Who states kernels and names no trainer has code of their own, of which own-code.yaml says the rest. Fused, it fuses
/// norms first, and the rest is plain: taken for a tuned recipe, such runs are predicted 11 to 24 % too fast (Aleph
/// Alpha's, InternEvo's and nanotron's, 570 rows). Whole modules are the framework's to state.
void add_own_code(Trained& trained) {
  constexpr std::string_view kernels = "workload.train.kernels", fusions = "workload.train.fusions";
  if (trained.document.at(kernels) == nullptr) return;
  TrainerCode& code = trained.training.train.code;
  if (code.kernels == KernelSet::fused && trained.document.at(fusions) == nullptr) {
    code.fusions.add(Fusion::norm);
    code.kernels = KernelSet::plain;
    trained.found.traits.push_back({std::string(fusions), std::string(name(Fusion::norm)), Trait::From::assumed,
                                    "kernels: fused without a trainer: norms, which own code fuses first"});
  }
  add_habits(own_file_of_trainer(own_code), Trait::From::assumed, trained);
}

/// A part of the file of the scenario's trainer.
std::optional<Field> part_of_trainer(const YamlNode& document, std::string_view part) {
  const YamlNode* named = document.at("plan.trainer");
  if (named == nullptr) return std::nullopt;
  return named_trainer(Field(*named, "plan.trainer")).find(part);
}

}  // namespace

MappingReader named_trainer(const Field& name) { return trainer_file(name)->keys; }

Framework apply_framework(const YamlNode& document, const Cluster& cluster, TrainWorkload& train, Plan& plan) {
  Trained trained{document, {cluster, train, plan, document.at(master_weights) != nullptr}};
  Framework& found = trained.found;
  for (const Habit& habit : all_habits()) {
    const YamlNode* stated = document.at(habit.key);
    if (stated != nullptr) {
      found.traits.push_back({std::string(habit.key), written(*stated), Trait::From::scenario, ""});
    }
  }
  found.name = default_trainer;
  if (const YamlNode* named = document.at("plan.trainer")) {
    std::vector<TrainerFile> files = {trainer_file(Field(*named, "plan.trainer"))};
    found.name = files.front()->stem;
    if (const auto base = files.front()->keys.find("base")) files.push_back(trainer_file(*base));
    for (const TrainerFile& file : files) add_habits(file, Trait::From::trainer, trained);
    for (const TrainerFile& file : files) check_refusals(file->keys, trained);
  } else if (trained.training.is_transformer() && !trained.training.on_processors()) {
    add_own_code(trained);
  }
  add_habits(own_file_of_trainer(default_trainer), Trait::From::assumed, trained);
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
