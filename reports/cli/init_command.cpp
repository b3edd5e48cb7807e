#include <fmt/format.h>

#include <algorithm>

#include "model/base/error.hpp"
#include "model/base/files.hpp"
#include "model/base/text.hpp"
#include "model/planning/plan_search.hpp"
#include "model/scenario/catalogue.hpp"
#include "model/scenario/keys/key_tree.hpp"
#include "model/scenario/load/load.hpp"
#include "reports/cli/command.hpp"
#include "reports/cli/options.hpp"

namespace foretrain {

namespace {

struct InitOptions {
  std::string model, node = "dgx-h100", network, precision = "bf16", tokens, output;
  int gpus = 0, nodes = 0;
  std::int64_t batch = 0, sequence = 0;
};

/// "key: value  # what the key means", with the sentence of the tables.
std::string commented(int indent, const keys::Mapping& mapping, std::string_view key, std::string_view value) {
  const std::string line = fmt::format("{:{}}{}: {}", "", indent, key, value);
  return fmt::format("{:<42}  # {}\n", line, keys::key_of(mapping, key).meaning);
}

struct Machines {
  int nodes = 1;
  int used_of_each = 0;  ///< 0: all
  std::int64_t gpus = 0;
  bool has_network = false;
};

/// Those that hold so many GPUs, or as many as are wanted.
Machines machines_for(const InitOptions& options) {
  const YamlNode name = yaml_scalar(options.node, {"--node", 0, 0});
  const YamlNode& node = cached_yaml_file(catalogue_file(CatalogueSection::node, Field(name, "")).string());
  const YamlNode* stated = node.at("gpus");
  const int each = stated == nullptr ? 1 : static_cast<int>(Field(*stated, "gpus").integer());
  Machines machines{std::max(options.nodes, 1), 0, options.gpus, node.find("network") != nullptr};
  if (options.gpus == 0) {
    machines.gpus = std::int64_t{1} * machines.nodes * each;
  } else if (options.gpus < each) {
    machines.used_of_each = options.gpus;
  } else if (options.gpus % each == 0) {
    machines.nodes = options.gpus / each;
  } else {
    throw UsageError(fmt::format("--gpus {}: {} has {} GPUs; write {} or {}", options.gpus, options.node, each,
                                 options.gpus / each * each, (options.gpus / each + 1) * each));
  }
  return machines;
}

/// "8 x 400 Gbit/s" → cards of a machine, and what one carries.
std::pair<std::string, std::string> cards_of(const std::string& network) {
  const std::size_t times = network.find('x');
  if (times == std::string::npos) {
    throw UsageError(
        fmt::format("--network {}: write cards of a machine x bandwidth of one: \"8 x 400 Gbit/s\"", network));
  }
  return {std::string(trim(network.substr(0, times))), std::string(trim(network.substr(times + 1)))};
}

std::string cluster_lines(const InitOptions& options, const Machines& machines) {
  std::string text = "cluster:\n" + commented(2, keys::cluster, "node", options.node) +
                     commented(2, keys::cluster, "nodes", std::to_string(machines.nodes));
  if (machines.used_of_each > 0) {
    text += commented(2, keys::cluster, "gpus_per_node", std::to_string(machines.used_of_each));
  }
  if (options.network.empty()) return text;
  const auto [cards, bandwidth] = cards_of(options.network);
  return text + "  network:\n" + commented(4, keys::network, "nics_per_node", cards) +
         commented(4, keys::network, "nic_bandwidth", bandwidth) +
         (machines.has_network ? "" : commented(4, keys::network, "latency", "5 us"));
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

std::string scenario_text(const InitOptions& options, const std::string& cluster, std::int64_t batch,
                          const FoundValues& found) {
  const std::string model = options.sequence == 0
                                ? options.model
                                : fmt::format("{{ preset: {}, sequence: {} }}", options.model, options.sequence);
  std::string text = cluster + "workload:\n  train:\n" + commented(4, keys::train, "model", model) +
                     commented(4, keys::train, "global_batch", std::to_string(batch)) +
                     commented(4, keys::train, "precision", options.precision);
  if (!options.tokens.empty()) text += commented(4, keys::train, "samples", options.tokens);
  text += found_lines(found, keys::train, "workload.train.", 4);
  const std::string plan = found_lines(found, keys::plan, "plan.", 2);
  return plan.empty() ? text : text + "plan:\n" + plan;
}

/// The fastest plan by estimate that fits.
FoundValues best_plan(const std::string& text) {
  using enum PlanDimension;
  PlanDimensions chosen;
  for (const PlanDimension dimension :
       {tensor, context, pipeline, data, micro_batch, recompute, sequence_parallel, zero}) {
    chosen.set(dimension);
  }
  std::vector<PlanSpace> spaces;
  spaces.emplace_back(parse_yaml(text, "foretrain init"), "init", chosen);
  const PlanSearch search = search_plans(spaces, {PlanObjective{}}, 1);
  if (search.best.empty()) {
    throw UsageError("no plan fits the GPUs' memory; more GPUs, a larger batch, a smaller model, or `foretrain plan`");
  }
  return spaces.front().overrides(search.best.front().point);
}

std::string initial_scenario(const InitOptions& options) {
  const Machines machines = machines_for(options);
  const std::string cluster = cluster_lines(options, machines);
  const std::int64_t batch = options.batch > 0 ? options.batch : 8 * machines.gpus;
  const FoundValues plan = best_plan(scenario_text(options, cluster, batch, {}));
  const std::string title = fmt::format("{} on {} x {}", options.model, machines.nodes, options.node);
  return fmt::format(
             "# {}: the fastest plan by estimate. Predict it with `foretrain predict FILE`; `foretrain help KEY`\n"
             "# tells of a key, `foretrain keys` lists all, `foretrain plan FILE` compares plans.\n",
             title) +
         commented(0, keys::scenario, "name", title) + scenario_text(options, cluster, batch, plan);
}

}  // namespace

void add_init(CLI::App& app, ExitStatus&) {
  const auto options = std::make_shared<InitOptions>();
  CLI::App* command =
      app.add_subcommand("init", "write a scenario to begin with: model, machines, the best plan for both");
  const auto positive = CLI::Range(1, 1'000'000'000).description("");
  command->add_option("--model", options->model, "what is trained: a name from `foretrain models list`")->required();
  command->add_option("--node", options->node, "the machines (default: dgx-h100): `foretrain hardware list`");
  CLI::Option* gpus = command->add_option("--gpus", options->gpus, "GPUs in all")->type_name("N")->check(positive);
  command->add_option("--nodes", options->nodes, "machines")->type_name("N")->check(positive)->excludes(gpus);
  command
      ->add_option("--network", options->network, "cards of a machine x bandwidth of one, where not the machine's own")
      ->type_name("\"8 x 400 Gbit/s\"");
  command->add_option("--batch", options->batch, "samples of a step (default: 8 a GPU)")
      ->type_name("N")
      ->check(positive);
  command->add_option("--sequence", options->sequence, "tokens of a sample (default: the model's)")
      ->type_name("N")
      ->check(positive);
  command->add_option("--precision", options->precision, "the format of products (default: bf16)");
  command->add_option("--tokens", options->tokens, "the whole training, such as \"15T tokens\"");
  command->add_option("-o,--output", options->output, "where to write it (default: the terminal)")
      ->type_name("FILE.yaml");
  command->callback([options] {
    const std::string text = initial_scenario(*options);
    if (options->output.empty()) return print(text);
    std::error_code ignored;
    if (std::filesystem::exists(options->output, ignored)) {
      throw UsageError(fmt::format("{} exists; write to another file", options->output));
    }
    write_file(options->output, text);
  });
}

}  // namespace foretrain
