#include <fmt/format.h>

#include <array>
#include <iterator>
#include <optional>
#include <string>
#include <vector>

#include "model/base/error.hpp"
#include "model/base/files.hpp"
#include "model/base/format.hpp"
#include "model/base/text.hpp"
#include "model/base/words.hpp"
#include "model/scenario/catalogue.hpp"
#include "model/scenario/hardware/hardware_reader.hpp"
#include "model/scenario/load/load.hpp"
#include "model/scenario/model/model_reader.hpp"
#include "model/workload/build.hpp"
#include "model/workload/transformer_parameters.hpp"
#include "reports/cli/command.hpp"
#include "reports/cli/options.hpp"
#include "reports/import/own_node.hpp"
#include "reports/print/number.hpp"
#include "reports/print/table.hpp"
#include "reports/print/wiring_text.hpp"

namespace foretrain {

namespace {

// What a name of the catalogue stands for: its figures, then its file as it is written, comments included.

/// Figures above the file that they were read from.
std::string with_file(const std::string& figures, const std::filesystem::path& file) {
  const std::string text = read_text_file(file);
  return fmt::format("{}\n# {}\n{}{}", figures, file.string(), text, text.ends_with('\n') ? "" : "\n");
}
std::string with_file(const TextTable& figures, const std::filesystem::path& file) {
  return with_file(figures.text(0), file);
}

YamlNode name_node(const std::string& name) { return yaml_scalar(name, {"", 0, 0}); }

void add_parts(TextTable& table, const TransformerConfig& config) {
  table.add_row({"layers", fmt::format("{}, {} wide, {} heads, {} of keys and values", config.layers, config.hidden,
                                       config.heads, config.kv_heads)});
  table.add_row({"feed-forward", fmt::format("{} wide{}", config.ffn_hidden, config.gated_ffn ? ", gated" : "")});
  if (config.experts > 1) {
    table.add_row({"experts", fmt::format("{}, {} of them for each token", config.experts, config.experts_per_token)});
    TransformerConfig met = config;
    met.experts = config.experts_per_token;
    table.add_row({"parameters that a token meets", format_count(transformer_parameters(met))});
  }
  table.add_row({"sequence", fmt::format("{} tokens", tokens_of_sample(config))});
  if (config.decoder_layers > 0) {
    table.add_row({"decoder", fmt::format("{} layers, {} tokens", config.decoder_layers, config.decoder_sequence)});
  }
}

void add_rates(TextTable& table, const Gpu& gpu) {
  for (std::size_t p = 0; p < precision_count; ++p) {
    if (gpu.tensor_rate[p].value() > 0.0) {
      table.add_row({fmt::format("tensor cores, {}", names_of<Precision>[p]), format_rate(gpu.tensor_rate[p])});
    }
  }
  table.add_row({"CUDA cores, fp32", format_rate(gpu.vector_rate[static_cast<std::size_t>(Precision::fp32)])});
}

TextTable gpu_figures(const Gpu& gpu) {
  TextTable table("ll");
  table.add_row({"GPU", fmt::format("{} ({}), {} multiprocessors", gpu.name, gpu.architecture, gpu.sms)});
  add_rates(table, gpu);
  table.add_row({"memory", fmt::format("{}, {}", format_bytes(gpu.memory), format_bandwidth(gpu.memory_bandwidth))});
  table.add_row({"board power", fmt::format("{:.0f} W", gpu.board_power_watts)});
  return table;
}

/// With its wiring.
std::string node_figures(const Node& node) {
  TextTable table("ll");
  table.add_row({"machine", fmt::format("{}: {}", node.name, node.description)});
  table.add_row({"GPUs", fmt::format("{} x {}, {} each", node.gpus, node.gpu.name, format_bytes(node.gpu.memory))});
  add_rates(table, node.gpu);
  table.add_row({"processors",
                 fmt::format("{}, {} cores, {}", node.cpu.name, node.cpu.cores, format_binary_bytes(node.cpu.memory))});
  const Network& network = node.network;
  table.add_row({"network cards", network.nics_per_node == 0 ? "none"
                                                             : fmt::format("{} x {:.4g} Gbit/s", network.nics_per_node,
                                                                           network.nic_bandwidth.value() * 8e-9)});
  if (node.storage.exists()) table.add_row({"storage", node.storage.name});
  return table.text(0) + "\n" + wiring_text(node, network, 0);
}

/// The file of the first section that has the name.
std::optional<std::pair<CatalogueSection, std::filesystem::path>> hardware_file(const YamlNode& name) {
  for (const CatalogueSection section : {CatalogueSection::node, CatalogueSection::gpu, CatalogueSection::fabric}) {
    try {
      return std::pair(section, catalogue_file(section, Field(name, "")));
    } catch (const ScenarioError&) {  // perhaps another section has it
    }
  }
  return std::nullopt;
}

std::string shown_model(const std::string& name) {
  const YamlNode written = name_node(name);
  const ModelConfig model = read_model(Field(written, ""));
  const double parameters = build_model(model, {}).parameters;
  TextTable table("ll");
  table.add_row({"model", model.name});
  table.add_row({"parameters", format_count(parameters)});
  if (const auto* transformer = std::get_if<TransformerConfig>(&model.shape)) add_parts(table, *transformer);
  if (const auto* whole = std::get_if<VisionLanguageConfig>(&model.shape)) add_parts(table, whole->language);
  table.add_row({"weights in bf16", format_bytes(Bytes(2.0 * parameters))});
  table.add_row({"with gradients and AdamW's states in fp32", format_bytes(Bytes(14.0 * parameters))});
  return with_file(table, catalogue_file(CatalogueSection::model, Field(written, "")));
}

std::string shown_hardware(const std::string& name) {
  const YamlNode written = name_node(name);
  const auto found = hardware_file(written);
  if (!found) {
    const std::vector<std::string> near = near_names(name, catalogue_names(list_hardware()));
    throw UsageError(
        fmt::format("unknown hardware \"{}\"; {}", name,
                    near.empty() ? "`foretrain hardware list`" : fmt::format("did you mean {}?", or_list(near))));
  }
  const auto& [section, file] = *found;
  if (section == CatalogueSection::node) return with_file(node_figures(read_node(Field(written, ""))), file);
  if (section == CatalogueSection::gpu) return with_file(gpu_figures(read_gpu(Field(written, ""))), file);
  return with_file(TextTable("ll"), file);
}

// Each throws ScenarioError for a name that the catalogue does not have.
std::string shown_scenario(const std::string& name) {
  const YamlNode written = name_node(name);
  const Scenario scenario = load_scenario(name);
  TextTable table("ll");
  table.add_row({"scenario", scenario.name});
  if (!scenario.description.empty()) table.add_row({"", scenario.description});
  table.add_row({"machines", fmt::format("{} x {}, {}", scenario.cluster.nodes, scenario.cluster.node.name,
                                         counted(scenario.cluster.gpus(), "GPU"))});
  if (const auto* train = std::get_if<TrainWorkload>(&scenario.workload)) {
    table.add_row({"training", fmt::format("{}, {} a step, {}", train->model.name,
                                           counted(train->global_batch, "sample"), foretrain::name(train->precision))});
  }
  return with_file(table, catalogue_file(CatalogueSection::run, Field(written, "")));
}

std::string shown_trainer(const std::string& name) {
  const YamlNode written = name_node(name);
  return with_file(TextTable("ll"), catalogue_file(CatalogueSection::trainer, Field(written, "")));
}

struct HardwareInit {
  OwnNode node;
  std::string output;
};

ExitStatus write_own_node(const HardwareInit& options) {
  if (options.node.like.empty() && options.node.gpu.empty()) {
    throw UsageError("what machine? --like NAME of `foretrain hardware list`, or --gpu NAME with what it is to have");
  }
  write_new_file(options.output, own_node(options.node));
  return ExitStatus::success;
}

void add_hardware_init(CLI::App& hardware, ExitStatus& status) {
  auto [command, options] = add_command<HardwareInit>(
      hardware, "init", "write a machine of one's own: a commented node file, its PCIe tree drawn", status,
      write_own_node);
  OwnNode& node = options.node;
  command.add_option("NAME", node.name, "what results call the machine");
  command.add_option("--like", node.like, "a machine of `foretrain hardware list`, to be changed in the file; else:");
  command.add_option("--gpu", node.gpu, "its GPUs: a name of `foretrain hardware list`");
  add_number(command, "--gpus", node.gpus, 1, 1024, "how many GPUs it has");
  add_choice(
      command, "--links", {std::begin(gpu_link_words) + 1, std::end(gpu_link_words)},
      [&node](std::size_t place) { node.links = static_cast<GpuLinks>(place + 1); }, "how GPUs are joined beside PCIe");
  add_number(command, "--sockets", node.sockets, 1, 1024, "processors");
  add_number(command, "--switches", node.switches, 0, 1024,
             "PCIe switches, on which GPUs and cards hang; 0: on the processors");
  add_number(command, "--nics", node.nics, 0, 1024, "network cards");
  add_text(command, "--nic-bandwidth", node.nic_bandwidth, "'400 Gbit/s'", "what one of them carries");
  add_text(command, "-o,--output", options.output, "FILE.yaml", "where to write it (default: the terminal)");
}

struct ListRow {
  const char* command;
  const char* help;
  std::vector<CatalogueEntry> (*entries)();
  std::string (*shown)(const std::string& name);
  void (*add_more)(CLI::App& command, ExitStatus& status) = nullptr;
};
constexpr std::array<ListRow, 4> lists = {
    {{"scenarios", "the scenarios that come with foretrain", list_scenarios, shown_scenario},
     {"hardware", "the machines and GPUs that it knows", list_hardware, shown_hardware, add_hardware_init},
     {"models", "the models that it knows", list_models, shown_model},
     {"trainers", "the trainers whose habits it knows", list_trainers, shown_trainer}}};

void print_list(const ListRow& list) {
  TextTable table("lll");
  for (const CatalogueEntry& entry : list.entries()) table.add_row({entry.name, entry.kind, entry.description});
  print_page(table.text(0));
}

}  // namespace

void add_list(CLI::App& app, ExitStatus& status) {
  for (const ListRow& row : lists) {
    CLI::App* command = app.add_subcommand(row.command, row.help);
    command->require_subcommand(1);
    command->add_subcommand("list", row.help)->callback([&row] { print_list(row); });
    const auto name = std::make_shared<std::string>();
    CLI::App* show = command->add_subcommand("show", "what a name stands for: figures, and the file with its comments");
    show->add_option("NAME", *name, "a name from `list`, a short one, or a file")->required();
    show->callback([&row, name] { print(row.shown(*name)); });
    if (row.add_more != nullptr) row.add_more(*command, status);
  }
}

}  // namespace foretrain
