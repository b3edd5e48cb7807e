// torchtitan's configuration (torchtitan/config/job_config.py), also with the keys of its older versions.
#include <fmt/format.h>

#include <toml++/toml.h>
#include <algorithm>
#include <sstream>

#include "model/base/text.hpp"
#include "model/scenario/catalogue.hpp"
#include "reports/import/importer.hpp"
#include "reports/import/settings.hpp"
#include "reports/import/training_log.hpp"

namespace foretrain {

std::string torchtitan_name_of_today(std::string key) {
  static constexpr std::pair<std::string_view, std::string_view> renamed[] = {
#define RENAMED(before, now) {before, now},
#include "reports/import/settings.def"
  };
  const auto row = std::ranges::find(renamed, key, &std::pair<std::string_view, std::string_view>::first);
  return row == std::end(renamed) ? std::move(key) : std::string(row->second);
}

namespace {

std::string toml_text(const toml::node& node) {
  if (const auto text = node.value_exact<std::string>()) return *text;
  std::ostringstream out;
  node.visit([&](const auto& value) { out << value; });
  return out.str();
}

SourcePosition toml_position(const toml::source_region& source, const std::string& file) {
  return {file, static_cast<int>(source.begin.line), static_cast<int>(source.begin.column)};
}

void add_toml(const toml::table& table, const std::string& path, const std::string& file,
              std::vector<ForeignSetting>& settings) {
  for (const auto& [key, value] : table) {
    const std::string name = path.empty() ? std::string(key.str()) : path + "." + std::string(key.str());
    if (const toml::table* inner = value.as_table()) {
      add_toml(*inner, name, file, settings);
    } else {
      settings.push_back({torchtitan_name_of_today(name), toml_text(value), toml_position(key.source(), file), name});
    }
  }
}

/// In the order of the file.
std::vector<ForeignSetting> toml_settings(const ImportInput& input) {
  std::vector<ForeignSetting> settings;
  try {
    add_toml(toml::parse(input.text, input.file), "", input.file, settings);
  } catch (const toml::parse_error& error) {
    const std::string_view what = error.description();  // "Error while parsing value: …"
    const std::size_t colon = what.find(": ");
    throw ScenarioError(toml_position(error.source(), input.file), "",
                        std::string(colon == std::string_view::npos ? what : what.substr(colon + 2)), "TOML");
  }
  std::ranges::stable_sort(settings, {},
                           [](const ForeignSetting& s) { return std::pair(s.where.line, s.where.column); });
  return settings;
}

/// "llama3" and "8B" are the catalogue's llama3-8b; of DeepSeek-V3 it has one size alone.
void set_torchtitan_model(Settings& settings, Draft& draft) {
  const ForeignSetting *name = settings.find("model.name"), *flavor = settings.find("model.flavor");
  std::string wanted = name != nullptr ? name->value : std::string();
  if (flavor != nullptr) wanted += (wanted.empty() ? "" : "-") + flavor->value;
  std::string word = to_lower(wanted);
  std::ranges::replace(word, '_', '-');
  if (word == "deepseek-v3-671b") word = "deepseek-v3";
  const auto known = list_models();
  const bool found = name != nullptr && std::ranges::find(known, word, &CatalogueEntry::name) != known.end();
  if (found) {
    draft.set("workload.train.model.preset", word, *name, flavor != nullptr ? ", " + named(*flavor) : "");
  } else if (wanted.empty()) {
    draft.assume("workload.train.model.preset", "llama3-8b",
                 "the file names no model; --set workload.train.model.preset=NAME");
  } else if (!draft.has("workload.train.model.preset")) {
    const std::vector<std::string> near = near_names(word, catalogue_names(known));
    fail(name != nullptr ? *name : *flavor, fmt::format("the catalogue has no {}", word),
         fmt::format("{}--set workload.train.model.preset=NAME of `foretrain models list`",
                     near.empty() ? "" : or_list(near) + ", by "));
  }
}

/// Weights, gradients and states in two bytes, without an fp32 copy: trained in this type alone.
void set_torchtitan_type(Settings& settings, Draft& draft) {
  const ForeignSetting* type = settings.find("training.dtype");
  if (type == nullptr || type->value == "float32") return;
  if (type->value != "bfloat16") fail(*type, fmt::format("unknown type \"{}\"", type->value), "float32 or bfloat16");
  draft.set("workload.train.precision", "bf16", *type);
  draft.set("workload.train.master_weights", "false", *type);
}

/// A rank's batch is one micro-batch, or a pipeline's of several.
void set_torchtitan_batch(Settings& settings, Draft& draft) {
  if (number_of(draft, "plan.pipeline") == 1) {
    set_rows(settings, "torchtitan_rank", draft);
    draft.assume("workload.train.micro_batch", "1", "no local_batch_size");
    return;
  }
  set_rows(settings, "torchtitan_pipeline", draft);
  draft.assume("workload.train.micro_batch", "1", "pipeline_parallel_microbatch_size is 1 unless stated");
  constexpr const char* key = "training.local_batch_size";
  if (const auto samples = settings.whole(key)) set_batch_of_rank(draft, *samples, *settings.find(key));
}

void set_recomputation(Settings& settings, Draft& draft) {
  const ForeignSetting* mode = settings.find("activation_checkpoint.mode");
  const ForeignSetting* option = settings.find("activation_checkpoint.selective_ac_option");
  if (mode == nullptr) return;
  if (mode->value == "full") return draft.set("workload.train.recompute", "full", *mode);
  if (mode->value != "selective")
    fail(*mode, fmt::format("unknown mode \"{}\"", mode->value), "none, selective or full");
  if (option != nullptr && option->value != "op") {
    draft.set("workload.train.recompute", "full", *mode);
    return draft.set("workload.train.recompute_layers", "1 of " + *whole_number(*option), *option);
  }
  draft.set("workload.train.recompute", "selective_operators", *mode);
}

void set_float8(Settings& settings, Draft& draft) {
  set_rows(settings, "torchtitan_float8", draft);
  const ForeignSetting* converters = settings.find("model.converters");
  if (converters != nullptr && converters->value.find("float8") != std::string::npos) {
    draft.set("workload.train.precision", "fp8", *converters);
    const ForeignSetting* recipe = settings.find("float8.recipe_name");
    const bool by_rows = recipe != nullptr && recipe->value.starts_with("rowwise");
    if (by_rows) draft.set("workload.train.fp8.scaling", "row", *recipe);
  }
}

/// Schedules are stated also where there is no pipeline. One of several chunks a stage has two unless more is said.
void set_torchtitan_schedule(Settings& settings, Draft& draft) {
  Draft unused = draft;
  const bool has_stages = number_of(draft, "plan.pipeline") > 1;
  set_rows(settings, "torchtitan_schedule", has_stages ? draft : unused);
  if (draft.scalar("plan.schedule") == "interleaved") {
    draft.assume("plan.interleave", "2", "two chunks per stage, torchtitan's default without layers_per_stage");
  }
}

/// Compiled is the model, or nothing but the loss.
void set_torchtitan_execution(Settings& settings, Draft& draft) {
  const ForeignSetting* components = settings.find("compile.components");
  if (components != nullptr && components->value.find("model") == std::string::npos) return;
  set_rows(settings, "torchtitan_execution", draft);
}

/// `shard`: GPUs that divide a replica's weights, 0 for all that are left; `ranks`: these, and those of a sequence.
void set_torchtitan_sharding(Settings& settings, Draft& draft, std::int64_t shard, std::int64_t ranks,
                             bool replicated) {
  const ForeignSetting* says = settings.find("parallelism.data_parallel_shard_degree");
  const SourcePosition where = says != nullptr ? says->where : draft.nowhere();
  const std::string comment = says != nullptr ? named(*says) : "data_parallel_shard_degree is all unless stated";
  if (shard == 1 || (replicated && ranks == 1)) {
    draft.set("plan.framework", "ddp", where, comment);
    return;
  }
  draft.set("plan.framework", "torchtitan", where, comment);
  if (replicated) {
    draft.set("plan.zero", yaml_entries({{"stage", "3"}, {"shard", std::to_string(ranks)}}, where), where, comment);
  }
  draft.set("plan.zero", "3", where, comment);
  const ForeignSetting* reshard = settings.find("parallelism.fsdp_reshard_after_forward");
  if (reshard != nullptr && reshard->value != "default") {
    draft.set("plan.reshard_after_forward", reshard->value == "always" ? "true" : "false", *reshard);
  }
}

}  // namespace

std::string import_torchtitan(const ImportInput& input) {
  require_config_text(input);
  return torchtitan_scenario(input, Settings(toml_settings(input)));
}

std::string torchtitan_scenario(const ImportInput& input, Settings settings) {
  Draft draft(input);
  draft.set("name", file_stem(input), draft.nowhere(), "");
  const auto degree = [&](const std::string& of) {
    return settings.whole("parallelism." + of + "_degree").value_or(of == "data_parallel_shard" ? 0 : 1);
  };
  const std::int64_t tensor = degree("tensor_parallel"), pipeline = degree("pipeline_parallel");
  const std::int64_t context = degree("context_parallel"), replicate = degree("data_parallel_replicate");
  const std::int64_t shard = degree("data_parallel_shard");  // 0: all that are left
  constexpr double most = 1e9;
  const double gpus = static_cast<double>(tensor) * static_cast<double>(pipeline) * static_cast<double>(context) *
                      static_cast<double>(replicate) * static_cast<double>(std::max<std::int64_t>(shard, 1));
  if (gpus > most) throw ScenarioError(draft.nowhere(), "parallelism", "degrees for more than 10⁹ GPUs", "fewer");
  TrainingSize size;
  size.replica = tensor * pipeline * context;
  if (shard > 0) {
    size.gpus = size.replica * replicate * shard;
    size.told_by = "the product of the degrees of parallelism";
  } else {
    size.replica *= replicate;
  }
  const std::int64_t left = set_cluster(draft, size) / (tensor * pipeline * replicate);
  set_torchtitan_model(settings, draft);
  set_float8(settings, draft);
  set_rows(settings, "torchtitan", draft);
  set_torchtitan_type(settings, draft);
  draft.assume("workload.train.precision", "bf16", "mixed_precision_param is bfloat16 unless stated");
  set_torchtitan_schedule(settings, draft);
  set_torchtitan_execution(settings, draft);
  set_torchtitan_batch(settings, draft);
  set_recomputation(settings, draft);
  set_torchtitan_sharding(settings, draft, shard, shard > 0 ? shard * context : left, replicate > 1);
  if (tensor > 1)
    draft.set("plan.sequence_parallel", "true", draft.nowhere(), "torchtitan's tensor parallelism has it");
  if (settings.flag("training.enable_cpu_offload")) {
    const ForeignSetting& offload = *settings.find("training.enable_cpu_offload");
    draft.set("plan.offload", yaml_list({"optimizer", "parameters"}, offload.where), offload);
  }
  return finished_training(settings, draft, "torchtitan");
}

}  // namespace foretrain
