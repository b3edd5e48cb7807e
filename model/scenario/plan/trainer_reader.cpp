#include "model/scenario/plan/trainer_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "model/base/hash.hpp"
#include "model/base/session.hpp"
#include "model/base/text.hpp"
#include "model/base/units.hpp"
#include "model/base/words.hpp"
#include "model/collectives/operation.hpp"
#include "model/parallelism/plan.hpp"
#include "model/scenario/catalogue.hpp"
#include "model/scenario/model/model_reader.hpp"
#include "model/scenario/plan/plan_reader.hpp"
#include "model/scenario/workload/workload_reader.hpp"
#include "model/scenario/yaml_reader.hpp"
#include "model/workload/training.hpp"

namespace foretrain {

namespace {

/// Plans and trainings to which a habit means something.
enum class Belongs {
  everywhere,
  to_servers,
  to_transformers,
  to_transformers_on_gpus,  ///< processors have plain kernels alone
  to_plain_kernels,
  to_networks,           ///< of layers, on GPUs
  to_tensor_ranks,       ///< that divide the sequence, whose gathers and scatters could hide behind products
  to_pipelines,          ///< with several stages
  to_context_ranks,      ///< that share a sequence
  to_experts,            ///< models that have any
  to_divided_gradients,  ///< ZeRO-2's
  to_divided_states,     ///< gradients that ZeRO-1's ranks, or ZeRO-2's which keep them whole, sum up
  to_updated_parts,      ///< ZeRO-1's and 2's, whose weights come back to all ranks
  to_short_weights,      ///< fewer than four bytes each, updated in fp32
  to_adapters
};

Belongs belongs_to(std::string_view key) {
  static constexpr std::pair<std::string_view, Belongs> habits[] = {
#define HABIT(key, belongs) {key, Belongs::belongs},
#include "model/scenario/keys/habits.def"
  };
  return std::ranges::find(habits, key, &std::pair<std::string_view, Belongs>::first)->second;
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

bool synchronises_by_servers(const YamlNode& document) {
  constexpr const char* key = "plan.sync.algorithm";
  const YamlNode* algorithm = document.at(key);
  return algorithm != nullptr && has_servers(Field(*algorithm, key).choice<SyncAlgorithm>());
}

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

/// A factor of the plan; 1 where it is left out or is no number yet.
std::int64_t factor_at(const YamlNode& document, std::string_view key) {
  const YamlNode* node = document.at(key);
  const bool number =
      node != nullptr && node->is_scalar() && node->scalar.find_first_not_of("0123456789") == std::string::npos;
  return number && !node->scalar.empty() ? Field(*node, std::string(key)).integer() : 1;
}

std::int64_t zero_of(const YamlNode& document) {
  const YamlNode* stated = document.at("plan.zero");
  return stated != nullptr ? zero_level(Field(*stated, "plan.zero")) : 0;
}

std::string_view word_at(const YamlNode& document, std::string_view key, std::string_view otherwise) {
  const YamlNode* node = document.at(key);
  return node != nullptr && node->is_scalar() ? std::string_view(node->scalar) : otherwise;
}

/// The format of the training's products, or of what a mapping names as their preset.
Precision precision_of(const YamlNode& document) {
  constexpr std::string_view key = "workload.train.precision";
  const YamlNode* stated = document.at(key);
  const bool parts = stated != nullptr && stated->is_mapping();
  const std::string_view word = word_at(document, parts ? "workload.train.precision.preset" : key, "bf16");
  return value_of<Precision>(word).value_or(Precision::bf16);  // the reader complains about unknown ones
}

std::string_view optimizer_word(const YamlNode& document) {
  return word_at(document, "workload.train.optimizer", name(TrainWorkload{}.optimizer));
}

bool has_short_weights(const YamlNode& document) {
  const Precision kept = storage_precision(precision_of(document));
  return bytes_per_element(kept) < bytes_per_element(Precision::fp32) &&
         !has_8bit_states(value_of<Optimizer>(optimizer_word(document)).value_or(Optimizer::adamw));
}

/// Whether the trait is one of all plans, although some have nothing to which it means something.
bool would_matter(Belongs to) {
  return to == Belongs::to_divided_gradients || to == Belongs::to_divided_states || to == Belongs::to_tensor_ranks ||
         to == Belongs::to_short_weights || to == Belongs::to_updated_parts || to == Belongs::to_pipelines ||
         to == Belongs::to_plain_kernels;
}

bool belongs(Belongs to, const YamlNode& document, const Trainee& trainee) {
  switch (to) {
    case Belongs::to_servers:
      return synchronises_by_servers(document);
    case Belongs::to_transformers:
      return trainee.transformer;
    case Belongs::to_transformers_on_gpus:
      return trainee.transformer && !trainee.on_processors;
    case Belongs::to_plain_kernels:
      return !trainee.on_processors &&
             (!trainee.transformer || word_at(document, "workload.train.kernels", "") == name(KernelSet::plain));
    case Belongs::to_networks:
      return !trainee.transformer && !trainee.on_processors;
    case Belongs::to_tensor_ranks:
      return factor_at(document, "plan.tensor") > 1 && word_at(document, "plan.sequence_parallel", "") == "true";
    case Belongs::to_divided_gradients:
      return zero_of(document) == 2;
    case Belongs::to_divided_states:
      return zero_of(document) == 1 ||
             (zero_of(document) == 2 && word_at(document, "plan.zero.gradients", "") == name(ZeroGradients::kept));
    case Belongs::to_updated_parts:
      return zero_of(document) == 1 || zero_of(document) == 2;
    case Belongs::to_short_weights:
      return has_short_weights(document);
    case Belongs::to_adapters:
      return document.at("workload.train.lora") != nullptr;
    case Belongs::to_experts:
      return trainee.experts;
    case Belongs::to_context_ranks:
      return factor_at(document, "plan.context") > 1;
    case Belongs::to_pipelines:
      return factor_at(document, "plan.pipeline") > 1;
    case Belongs::everywhere:
      break;
  }
  return true;
}

/// `when: { zero: [0, 1], servers: false, interleaved: true, precision: fp16, adapters: false, master_weights: true }`
bool holds(const Field& when, const YamlNode& document, const Trainee& trainee) {
  const MappingReader keys = when.mapping(keys::condition);
  if (const auto kernels = keys.find("kernels")) {
    const std::string_view usual = name(usual_kernels(trainee.on_processors));
    if (word_at(document, "workload.train.kernels", usual) != name(kernels->choice<KernelSet>())) return false;
  }
  if (const auto execution = keys.find("execution")) {
    const std::string_view own = word_at(document, "plan.execution", name(ExecutionMode::eager));
    if (own != name(execution->choice<ExecutionMode>())) return false;
  }
  if (const auto known = keys.find("architecture")) {
    const auto is_own = [&](const Field& one) { return one.text() == trainee.architecture; };
    if (std::ranges::none_of(known->list_or_one(), is_own)) return false;
  }
  if (const auto context = keys.find("context")) {
    if (context->flag() != (factor_at(document, "plan.context") > 1)) return false;
  }
  if (const auto servers = keys.find("servers")) {
    if (servers->flag() != synchronises_by_servers(document)) return false;
  }
  if (const auto interleaved = keys.find("interleaved")) {
    if (interleaved->flag() != (factor_at(document, "plan.interleave") > 1)) return false;
  }
  if (const auto split = keys.find("split_backward")) {
    const auto schedule = value_of<PipelineSchedule>(word_at(document, "plan.schedule", ""));
    if (split->flag() != (schedule && splits_backward(*schedule))) return false;
  }
  if (const auto adapters = keys.find("adapters")) {
    if (adapters->flag() != (document.at("workload.train.lora") != nullptr)) return false;
  }
  if (const auto copies = keys.find("master_weights")) {
    if (copies->flag() != (word_at(document, "workload.train.master_weights", "true") == "true")) return false;
  }
  if (const auto formats = keys.find("precision")) {
    const std::vector<Field> list = formats->list_or_one();
    const Precision own = precision_of(document);
    if (std::ranges::none_of(list, [&](const Field& one) { return one.choice<Precision>() == own; })) return false;
  }
  if (const auto optimizers = keys.find("optimizer")) {
    const std::string_view own = optimizer_word(document);
    const auto is_own = [&](const Field& one) { return name(one.choice<Optimizer>()) == own; };
    if (std::ranges::none_of(optimizers->list_or_one(), is_own)) return false;
  }
  const auto levels = keys.find("zero");
  if (!levels) return true;
  constexpr IntegerRange zero_range{0, 3};
  const std::vector<Field> list = levels->list_or_one();
  return std::ranges::any_of(list, [&](const Field& level) { return level.integer(zero_range) == zero_of(document); });
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

/// What the trainer refuses to run, with its reason.
void check_refusals(const MappingReader& file, const YamlNode& document, const Trainee& trainee,
                    const SourcePosition& named) {
  const auto refusals = file.find("refuses");
  if (!refusals) return;
  for (const Field& one : refusals->list()) {
    const MappingReader refusal = one.mapping(keys::refusal);
    const std::string key = refusal["key"].text(), instead = refusal["instead"].text(),
                      source = refusal["source"].text();
    const auto when = refusal.find("when");
    if (factor_at(document, key) < 2 || (when && !holds(*when, document, trainee))) continue;
    const YamlNode* guilty = document.at(key);
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
std::optional<Field> holding(const Field& habits, const YamlNode& document, const Trainee& trainee) {
  const std::vector<Field> all = habits.is_mapping() ? std::vector{habits} : habits.list();
  for (const Field& one : all) {
    const auto when = one.mapping(keys::habit).find("when");
    if (!when || holds(*when, document, trainee)) return one;
  }
  return std::nullopt;
}

/// Adds what the trainer's file says of keys that the document leaves out.
void add_habits(const std::filesystem::path& path, Trait::From from, const Trainee& trainee, TrainedScenario& result) {
  const MappingReader file = trainer_file(cached_yaml_file(path.string()));
  const MappingReader habits = file["habits"].mapping(keys::habits);
  for (const keys::Key& row : keys::habits.keys) {
    const auto stated = habits.find(row.name);
    if (!stated) continue;
    const auto habit = holding(*stated, result.document, trainee);
    if (!habit) continue;
    const auto told = session().known(HabitKey{&habit->node()}, [&] {
      const MappingReader keys = habit->mapping(keys::habit);
      const Field value = keys["value"];
      return HabitKey::Told{habit_provenance(fmt::format("{}.{}", path.stem().string(), row.name), keys),
                            &value.node()};
    });
    if (std::ranges::find(result.traits, row.name, &Trait::key) != result.traits.end()) continue;
    const Trait trait{std::string(row.name), told->value->scalar, from, told->constant.source};
    const Belongs to = belongs_to(row.name);
    if (!belongs(to, result.document, trainee)) {
      if (would_matter(to)) result.traits.push_back(trait);
    } else if (add_missing(result.document, row.name, *told->value)) {
      result.traits.push_back(trait);
      if (from == Trait::From::trainer) result.habits.push_back(told->constant);
    }
  }
}

/// Who states kernels and names no trainer has code of their own, of which own-code.yaml says the rest. Fused, it fuses
/// norms first, and the rest is plain: taken for a tuned recipe, such runs are predicted 11 to 24 % too fast (Aleph
/// Alpha's, InternEvo's and nanotron's, 570 rows). Whole modules are the framework's to state.
void add_own_code(const std::filesystem::path& file, const Trainee& trainee, TrainedScenario& result) {
  constexpr std::string_view kernels = "workload.train.kernels", fusions = "workload.train.fusions";
  const YamlNode* stated = result.document.at(kernels);
  if (stated == nullptr) return;
  if (word_at(result.document, kernels, "") == name(KernelSet::fused) && result.document.at(fusions) == nullptr) {
    const SourcePosition where = stated->where;
    const std::string norm(name(Fusion::norm));
    add_missing(result.document, fusions, yaml_scalar(norm, where));
    result.document.find("workload")->value.find("train")->value.find("kernels")->value =
        yaml_scalar(std::string(name(KernelSet::plain)), where);
    result.traits.push_back({std::string(fusions), norm, Trait::From::assumed,
                             "kernels: fused without a trainer: norms, which own code fuses first"});
  }
  add_habits(file, Trait::From::assumed, trainee, result);
}

}  // namespace

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

MappingReader trainer_file(const YamlNode& document) {
  MappingReader file = Field(document, "").mapping(keys::trainer);
  if (file["kind"].text() != "trainer") file.fail("kind", "this file is no trainer", "kind: trainer");
  return file;
}

MappingReader named_trainer(const Field& name) {
  return trainer_file(cached_yaml_file(catalogue_file(CatalogueSection::trainer, name).string()));
}

TrainedScenario with_trainer(const YamlNode& document, const Cluster& cluster) {
  TrainedScenario result{document, {}, {}, {}};
  if (document.at("workload.train") == nullptr) return result;
  for (const keys::Key& row : keys::habits.keys) {
    const YamlNode* stated = document.at(row.name);
    if (stated != nullptr)
      result.traits.push_back({std::string(row.name), written(*stated), Trait::From::scenario, ""});
  }
  const auto file_named = [](const Field& name) { return catalogue_file(CatalogueSection::trainer, name); };
  const auto assumed_file = [&](const char* name) { return file_named(Field(yaml_scalar(name, {}), "plan.trainer")); };
  const std::filesystem::path rest = assumed_file(default_trainer);
  const YamlNode* named = document.at("plan.trainer");
  const std::filesystem::path path = named != nullptr ? file_named(Field(*named, "plan.trainer")) : rest;
  const Trainee trainee(document, cluster);
  if (named == nullptr && trainee.transformer && !trainee.on_processors)
    add_own_code(assumed_file(own_code), trainee, result);
  if (named != nullptr) {
    const auto base = trainer_file(cached_yaml_file(path.string())).find("base");
    std::vector<std::filesystem::path> files = {path};
    if (base) files.push_back(file_named(*base));
    for (const std::filesystem::path& file : files) add_habits(file, Trait::From::trainer, trainee, result);
    for (const std::filesystem::path& file : files) {
      check_refusals(trainer_file(cached_yaml_file(file.string())), result.document, trainee, named->where);
    }
  }
  add_habits(rest, Trait::From::assumed, trainee, result);
  result.trainer = path.stem().string();
  return result;
}

}  // namespace foretrain
