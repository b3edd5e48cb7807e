#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "model/base/error.hpp"
#include "model/base/files.hpp"
#include "model/base/format.hpp"
#include "model/base/text.hpp"
#include "model/planning/least_machines.hpp"
#include "model/planning/plan_search.hpp"
#include "model/planning/usual_batch.hpp"
#include "model/scenario/catalogue.hpp"
#include "model/scenario/hardware/hardware_reader.hpp"
#include "model/scenario/keys/key_tree.hpp"
#include "model/scenario/model/model_reader.hpp"
#include "reports/cli/command.hpp"
#include "reports/cli/options.hpp"
#include "reports/print/number.hpp"
#include "reports/print/table.hpp"

namespace foretrain {

namespace {

struct InitOptions {
  std::string model, node = "dgx-h100", tokens, output;
  int gpus = 0, nodes = 0;
  std::int64_t batch = 0, sequence = 0;
};

/// "key: value  # what the key means", with the sentence of the tables.
std::string commented(int indent, const keys::Mapping& mapping, std::string_view key, std::string_view value) {
  const std::string line = fmt::format("{:{}}{}: {}", "", indent, key, value);
  return fmt::format("{:<42}  # {}\n", line, keys::key_of(mapping, key).meaning);
}

/// Of the machine that is asked for, as its file says.
int gpus_of_machine(const InitOptions& options) {
  const Field node(yaml_scalar(options.node, {"--node", 0, 0}), "");
  const auto gpus = resolve_preset(node, Catalogue::node).find("gpus");
  return gpus ? gpus->as<int>() : 1;
}

/// Those that hold so many GPUs, or as many as are wanted; one where nothing is said.
MachineCount machines_for(const InitOptions& options, int gpus_each) {
  MachineCount machines{std::max(options.nodes, 1), gpus_each, true};
  if (options.gpus == 0) return machines;
  if (options.gpus < gpus_each) return {1, options.gpus, false};
  if (options.gpus % gpus_each != 0) {
    throw UsageError(fmt::format("--gpus {}: {} has {} GPUs; write {} or {}", options.gpus, options.node, gpus_each,
                                 options.gpus / gpus_each * gpus_each, (options.gpus / gpus_each + 1) * gpus_each));
  }
  machines.nodes = options.gpus / gpus_each;
  return machines;
}

std::string cluster_lines(const InitOptions& options, const MachineCount& machines) {
  std::string text = "cluster:\n" + commented(2, keys::cluster, "node", options.node) +
                     commented(2, keys::cluster, "nodes", std::to_string(machines.nodes));
  if (machines.all_gpus) return text;
  return text + commented(2, keys::cluster, "gpus_per_node", std::to_string(machines.gpus_per_node));
}

std::string model_text(const InitOptions& options) {
  return options.sequence == 0 ? options.model
                               : fmt::format("{{ preset: {}, sequence: {} }}", options.model, options.sequence);
}

/// `global_batch`, above it how many tokens these are and where the number comes from.
std::string batch_lines(const InitOptions& options, const MachineCount& machines) {
  const YamlNode train = parse_yaml("model: " + model_text(options), "--model");
  const Field model(*train.at("model"), "model");
  UsualBatch batch{options.batch, ""};
  if (options.batch == 0) batch = usual_batch(model, machines.gpus());
  const double tokens = tokens_of_samples(read_model(model));
  std::string reported =
      tokens > 0.0 ? fmt::format("{} tokens a step", format_count(tokens * static_cast<double>(batch.samples)))
                   : counted(batch.samples, "sample") + " a step";
  if (!batch.why.empty()) reported += "; " + batch.why;
  std::string text;
  for (const std::string& line : split(wrap(reported, 112, 0), '\n')) text += fmt::format("    # {}\n", line);
  return text + commented(4, keys::train, "global_batch", std::to_string(batch.samples));
}

/// Values of the plan and of the training, as a search found them: "plan.tensor=8", …
using FoundValues = std::vector<std::string>;

std::string found_lines(const FoundValues& found, const keys::Mapping& mapping, std::string_view prefix, int indent) {
  std::string text;
  for (const std::string& change : found) {
    const std::size_t equals = change.find('=');
    if (!change.starts_with(prefix)) continue;
    const std::string key = change.substr(prefix.size(), equals - prefix.size());
    text += commented(indent, mapping, key, change.substr(equals + 1));
  }
  return text;
}

std::string scenario_text(const InitOptions& options, const MachineCount& machines, const FoundValues& found) {
  std::string text = cluster_lines(options, machines) + "workload:\n  train:\n" +
                     commented(4, keys::train, "model", model_text(options)) + batch_lines(options, machines) +
                     commented(4, keys::train, "precision", "bf16");
  if (!options.tokens.empty()) text += commented(4, keys::train, "samples", options.tokens);
  text += found_lines(found, keys::train, "workload.train.", 4);
  const std::string plan = found_lines(found, keys::plan, "plan.", 2);
  return plan.empty() ? text : text + "plan:\n" + plan;
}

PlanDimensions searched_dimensions(const InitOptions& options) {
  using enum PlanDimension;
  PlanDimensions chosen;
  for (const PlanDimension dimension :
       {tensor, context, pipeline, data, micro_batch, recompute, sequence_parallel, zero}) {
    chosen.set(dimension);
  }
  const ModelConfig model = read_model(Field(yaml_scalar(options.model, {"--model", 0, 0}), ""));
  const auto* transformer = std::get_if<TransformerConfig>(&model.shape);
  chosen.set(expert, transformer != nullptr && transformer->experts > 1);
  return chosen;
}

/// The fastest plan by estimate that fits; nothing where none does.
std::optional<FoundValues> best_plan(const InitOptions& options, const std::string& text) {
  std::vector<PlanSpace> spaces;
  spaces.emplace_back(parse_yaml(text, "foretrain init"), "init", searched_dimensions(options));
  const PlanSearch search = search_plans(spaces, {PlanObjective{}}, 1);
  if (search.best.empty()) return std::nullopt;
  return spaces.front().overrides(search.best.front().point);
}

std::optional<MachineCount> least_machines(const InitOptions& options, int gpus_each, bool parts) {
  const auto on = [&](const MachineCount& machines) -> std::optional<YamlNode> {
    return parse_yaml(scenario_text(options, machines, {}), "foretrain init");
  };
  return foretrain::least_machines(on, searched_dimensions(options), {1, gpus_each, true}, parts);
}

std::string describe(const InitOptions& options, const MachineCount& machines) {
  return machines.all_gpus ? fmt::format("{} x {}", machines.nodes, options.node)
                           : fmt::format("{} of the GPUs of {}", machines.gpus_per_node, options.node);
}

[[noreturn]] void refuse(const InitOptions& options, int gpus_each, const MachineCount& machines) {
  const std::optional<MachineCount> least = least_machines(options, gpus_each, true);
  const std::string enough = !least
                                 ? "more GPUs, a larger batch, a smaller model, or `foretrain plan`"
                                 : fmt::format("the least that one fits on is {}, {}: --gpus {}",
                                               describe(options, *least), counted(least->gpus(), "GPU"), least->gpus());
  throw UsageError(
      fmt::format("no plan of {} fits the memory of {}; {}", options.model, describe(options, machines), enough));
}

std::string initial_scenario(const InitOptions& options) {
  const int gpus_each = gpus_of_machine(options);
  MachineCount machines = machines_for(options, gpus_each);
  const bool stated = options.gpus > 0 || options.nodes > 0;
  if (!stated) machines = least_machines(options, gpus_each, false).value_or(machines);
  const std::optional<FoundValues> plan = best_plan(options, scenario_text(options, machines, {}));
  if (!plan) refuse(options, gpus_each, machines);
  const std::string title = fmt::format("{} on {}", options.model, describe(options, machines));
  const std::string least =
      stated || machines.nodes == 1
          ? ""
          : fmt::format("# {} machines: the fewest with a plan that fits in memory.\n", machines.nodes);
  return fmt::format(
             "# {}: the fastest plan by estimate. Predict it with `foretrain predict FILE`; `foretrain help KEY`\n"
             "# explains a key, `foretrain keys` lists all, `foretrain plan FILE` compares plans.\n{}",
             title, least) +
         commented(0, keys::scenario, "name", title) + scenario_text(options, machines, *plan);
}

ExitStatus run(const InitOptions& options) {
  write_new_file(options.output, initial_scenario(options));
  return ExitStatus::success;
}

}  // namespace

void add_init(CLI::App& app, ExitStatus& status) {
  auto [command, options] = add_command<InitOptions>(
      app, "init", "Write a first scenario: a model, nodes, and the best plan for them", status, run);
  constexpr int most = 1'000'000'000;
  command.add_option("--model", options.model, "model: a name from `foretrain models list`")->required();
  command.add_option("--node", options.node, "node type: a name from `foretrain hardware list` (default: dgx-h100)");
  CLI::Option* gpus = add_number(command, "--gpus", options.gpus, 1, most, "number of GPUs");
  add_number(command, "--nodes", options.nodes, 1, most, "number of nodes (default: smallest that holds the model)")
      ->excludes(gpus);
  add_number(command, "--batch", options.batch, 1, most,
             "global batch in samples (default: as the model, or a similar one, was trained)");
  add_number(command, "--sequence", options.sequence, 1, most, "sequence length in tokens (default: the model's)");
  command.add_option("--tokens", options.tokens, "training length, such as \"15T tokens\"");
  add_text(command, "-o,--output", options.output, "FILE.yaml", "file to write (default: standard output)");
}

}  // namespace foretrain
