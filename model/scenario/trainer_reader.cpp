#include "model/scenario/trainer_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "model/base/text.hpp"
#include "model/base/units.hpp"
#include "model/base/words.hpp"
#include "model/collectives/operation.hpp"
#include "model/scenario/catalogue.hpp"
#include "model/scenario/model_reader.hpp"
#include "model/scenario/plan_reader.hpp"
#include "model/scenario/yaml_reader.hpp"

namespace foretrain {

namespace {

/// What a trainer may state. Earlier rows are added first, since later ones may hang on them.
struct HabitRow {
  std::string_view key;
  enum class Belongs {
    everywhere,
    to_servers,
    to_transformers,
    to_tensor_ranks,
    to_pipelines
  } belongs = Belongs::everywhere;
};
constexpr std::array<HabitRow, 22> habit_rows = {{{"plan.zero"},
                                                  {"plan.sync.algorithm"},
                                                  {"plan.sync.bucket"},
                                                  {"plan.sync.first_bucket"},
                                                  {"plan.sync.bucketing"},
                                                  {"plan.sync.overlap"},
                                                  {"plan.sync.every_micro_batch"},
                                                  {"plan.sync.gradient_precision"},
                                                  {"plan.sync.assignment", HabitRow::Belongs::to_servers},
                                                  {"plan.sync.split", HabitRow::Belongs::to_servers},
                                                  {"plan.sync.priority", HabitRow::Belongs::to_servers},
                                                  {"plan.sync.barrier", HabitRow::Belongs::to_servers},
                                                  {"plan.sync.local_reduce", HabitRow::Belongs::to_servers},
                                                  {"plan.sync.consistency", HabitRow::Belongs::to_servers},
                                                  {"plan.tensor_overlap", HabitRow::Belongs::to_tensor_ranks},
                                                  {"plan.pipeline_messages", HabitRow::Belongs::to_pipelines},
                                                  {"plan.execution"},
                                                  {"plan.processes"},
                                                  {"workload.train.kernels", HabitRow::Belongs::to_transformers},
                                                  {"workload.train.master_weights"},
                                                  {"workload.train.layer_overhead"},
                                                  {"workload.train.reserved_memory"}}};

/// Adds the value unless the key is there. Where a single value stands in the way, the reader complains later.
bool add_missing(YamlNode& document, std::string_view key, const YamlNode& value) {
  if (document.at(key) != nullptr) return false;
  YamlNode* node = &document;
  for (const std::string& word : split(key, '.')) {
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

bool trains_transformer(const YamlNode& document) {
  constexpr const char* key = "workload.train.model";
  const YamlNode* model = document.at(key);
  return model != nullptr && !std::holds_alternative<NetworkConfig>(read_model(Field(*model, key)).shape);
}

/// A factor of the plan; 1 where it is left out or is no number yet.
std::int64_t factor_at(const YamlNode& document, std::string_view key) {
  const YamlNode* node = document.at(key);
  const bool number =
      node != nullptr && node->is_scalar() && node->scalar.find_first_not_of("0123456789") == std::string::npos;
  return number && !node->scalar.empty() ? Field(*node, std::string(key)).integer() : 1;
}

/// Whether a single value stands there, and says this.
bool says(const YamlNode& document, std::string_view key, std::string_view word) {
  const YamlNode* node = document.at(key);
  return node != nullptr && node->is_scalar() && node->scalar == word;
}

/// Whether gathers and scatters of tensor ranks could hide behind products: not without sequence parallelism, in nvfp4,
/// for which Transformer Engine has no user buffers, and beside adapters.
bool hides_tensor_collectives(const YamlNode& document) {
  return factor_at(document, "plan.tensor") > 1 && says(document, "plan.sequence_parallel", "true") &&
         !says(document, "workload.train.precision", "nvfp4") && document.at("workload.train.lora") == nullptr;
}

/// Of those who name no trainer: tensor and pipeline parallelism together with ZeRO-1 or 2 in fp16 is what Megatron-LM
/// with DeepSpeed's engine offers; Megatron-LM's own distributed optimizer came later, and with bf16. Who hides its
/// gradients and has sequence parallelism as well trains as NVIDIA's recipes do.
std::optional<std::string> usual_trainer(const YamlNode& document) {
  constexpr const char* precision = "workload.train.precision";
  const bool first = says(document, "plan.zero", "1");
  if (!first && !says(document, "plan.zero", "2")) return std::nullopt;
  std::optional<std::string> usual;
  if (says(document, precision, "fp16")) {
    if (factor_at(document, "plan.tensor") > 1 && factor_at(document, "plan.pipeline") > 1)
      usual = "megatron-deepspeed";
  } else if (first && hides_tensor_collectives(document) && says(document, "plan.sync.overlap", "true") &&
             !says(document, "workload.train.kernels", "plain")) {
    const bool short_format =
        says(document, precision, "bf16") || says(document, precision, "fp8") || says(document, precision, "mxfp8");
    if (short_format) usual = "nemo";
  }
  return usual && trains_transformer(document) ? usual : std::nullopt;
}

bool belongs(const HabitRow& row, const YamlNode& document) {
  switch (row.belongs) {
    case HabitRow::Belongs::to_servers:
      return synchronises_by_servers(document);
    case HabitRow::Belongs::to_transformers:
      return trains_transformer(document);
    case HabitRow::Belongs::to_tensor_ranks:
      return hides_tensor_collectives(document);
    case HabitRow::Belongs::to_pipelines:
      return factor_at(document, "plan.pipeline") > 1;
    case HabitRow::Belongs::everywhere:
      break;
  }
  return true;
}

/// `when: { zero: [0, 1], servers: false, interleaved: true }`
bool holds(const Field& when, const YamlNode& document) {
  const MappingReader keys = when.mapping(keys::condition);
  if (const auto servers = keys.find("servers")) {
    if (servers->flag() != synchronises_by_servers(document)) return false;
  }
  if (const auto interleaved = keys.find("interleaved")) {
    if (interleaved->flag() != (factor_at(document, "plan.interleave") > 1)) return false;
  }
  const auto levels = keys.find("zero");
  if (!levels) return true;
  constexpr IntegerRange zero_range{0, 3};
  const YamlNode* stated = document.at("plan.zero");
  const std::int64_t zero = stated != nullptr ? zero_level(Field(*stated, "plan.zero")) : 0;
  const std::vector<Field> list = levels->list_or_one();
  return std::ranges::any_of(list, [&](const Field& level) { return level.integer(zero_range) == zero; });
}

/// A size as its number; of a word or a flag, that it holds.
Constant provenance(const std::string& habit, const MappingReader& keys) {
  const std::string& text = keys["value"].text();
  Constant constant{habit, 1.0, "", keys["kind"].choice<ConstantKind>(), keys["source"].text()};
  if (trim(constant.source).empty()) keys.fail("source", "an empty source", "where the trainer says or does so");
  if (text.find_first_of("0123456789") == 0) {
    const NumberAndUnit parts = split_number_and_unit(text);
    constant.value = parts.number;
    constant.unit = parts.unit;
  } else {
    constant.name += "=" + text;
  }
  return constant;
}

Field habits_of(const YamlNode& trainer) {
  const MappingReader file = Field(trainer, "").mapping(keys::trainer);
  if (file["kind"].text() != "trainer") file.fail("kind", "this file is no trainer", "kind: trainer");
  return file["habits"];
}

}  // namespace

bool has_trainer(const YamlNode& document) {
  if (document.at("workload.train") == nullptr) return false;
  return document.at("plan.trainer") != nullptr || usual_trainer(document).has_value();
}

TrainedScenario with_trainer(const YamlNode& document) {
  const YamlNode* stated = document.at("plan.trainer");
  const YamlNode usual = yaml_scalar(usual_trainer(document).value_or(""), document.where);
  const Field name(stated != nullptr ? *stated : usual, "plan.trainer");
  const std::filesystem::path path = catalogue_file(CatalogueSection::trainer, name);
  const MappingReader habits = habits_of(cached_yaml_file(path.string())).mapping(keys::habits);
  TrainedScenario result{document, {}};
  for (const HabitRow& row : habit_rows) {
    const auto habit = habits.find(row.key);
    if (!habit) continue;
    const MappingReader keys = habit->mapping(keys::habit);
    const Constant constant = provenance(fmt::format("{}.{}", path.stem().string(), row.key), keys);
    const auto when = keys.find("when");
    if (!belongs(row, result.document) || (when && !holds(*when, result.document))) continue;
    if (add_missing(result.document, row.key, keys["value"].node())) result.habits.push_back(constant);
  }
  return result;
}

}  // namespace foretrain
