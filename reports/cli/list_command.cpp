#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <optional>
#include <string>
#include <vector>

#include "model/base/error.hpp"
#include "model/base/files.hpp"
#include "model/base/format.hpp"
#include "model/base/text.hpp"
#include "model/scenario/catalogue.hpp"
#include "model/scenario/hardware/hardware_reader.hpp"
#include "model/scenario/model/model_reader.hpp"
#include "model/workload/build.hpp"
#include "model/workload/transformer_parameters.hpp"
#include "reports/cli/command.hpp"
#include "reports/cli/options.hpp"
#include "reports/import/own_node.hpp"
#include "reports/print/table.hpp"
#include "reports/print/wiring_text.hpp"

namespace foretrain {

namespace {

// Shows a name of the catalogue: figures that follow from its file, then the file as it is written.

std::string with_file(const std::string& figures, const std::filesystem::path& file) {
  const std::string text = read_text_file(file);
  return fmt::format("{}\n# {}\n{}{}", figures, file.string(), text, text.ends_with('\n') ? "" : "\n");
}

Field field_of(const std::string& name) { return {yaml_scalar(name, {"", 0, 0}), ""}; }

/// The file of the first section that has the name.
std::optional<std::pair<Catalogue, std::filesystem::path>> hardware_file(const Field& name) {
  for (const Catalogue section : {Catalogue::node, Catalogue::gpu, Catalogue::fabric}) {
    try {
      return std::pair(section, catalogue_file(section, name));
    } catch (const ScenarioError&) {  // perhaps another section has it
    }
  }
  return std::nullopt;
}

std::string shown_model(const std::string& name) {
  const ModelConfig model = read_model(field_of(name));
  const double parameters = build_model(model, {}).parameters;
  TextTable table("ll");
  table.add_row({"model", model.name});
  table.add_row({"parameters", format_count(parameters)});
  const auto* transformer = std::get_if<TransformerConfig>(&model.shape);
  if (transformer != nullptr && transformer->experts > 1) {
    TransformerConfig met = *transformer;
    met.experts = met.experts_per_token;
    table.add_row({"active parameters per token", format_count(transformer_parameters(met))});
  }
  table.add_row({"weights in bf16", format_bytes(Bytes(2.0 * parameters))});
  table.add_row({"weights, fp32 gradients and AdamW states", format_bytes(Bytes(14.0 * parameters))});
  return with_file(table.text(0), catalogue_file(Catalogue::model, field_of(name)));
}

std::string shown_hardware(const std::string& name) {
  const auto found = hardware_file(field_of(name));
  if (!found) {
    const std::vector<std::string> near = near_names(name, catalogue_names(list_hardware()));
    throw UsageError(fmt::format(
        "unknown hardware \"{}\"; {}", name,
        near.empty() ? "`foretrain hardware list` shows all" : fmt::format("did you mean {}?", or_list(near))));
  }
  const auto& [section, file] = *found;
  if (section != Catalogue::node) return with_file("", file);
  const Node node = read_node(field_of(name));
  return with_file(fmt::format("{}: {}\n\n{}", node.name, node.description, wiring_text(node, node.network, 0)), file);
}

/// Throws ScenarioError for a name that the catalogue does not have.
template <Catalogue section>
std::string shown_file(const std::string& name) {
  return with_file("", catalogue_file(section, field_of(name)));
}

struct HardwareInit {
  OwnNode node;
  std::string output;
};

ExitStatus write_own_node(const HardwareInit& options) {
  if (options.node.like.empty() && options.node.gpu.empty()) {
    throw UsageError(
        "--like or --gpu is required; --like NAME of `foretrain hardware list`, or --gpu NAME and the node's parts");
  }
  write_new_file(options.output, own_node(options.node));
  return ExitStatus::success;
}

void add_hardware_init(CLI::App& hardware, ExitStatus& status) {
  auto [command, options] = add_command<HardwareInit>(
      hardware, "init", "Write a commented node file for your own machine", status, write_own_node);
  OwnNode& node = options.node;
  command.add_option("NAME", node.name, "what results call the machine");
  command.add_option("--like", node.like, "a machine of `foretrain hardware list`, to be changed in the file; else:");
  command.add_option("--gpu", node.gpu, "its GPUs: a name of `foretrain hardware list`");
  add_number(command, "--gpus", node.gpus, 1, 1024, "how many GPUs it has");
  add_choice(
      command, "--links", {std::begin(gpu_link_words) + 1, std::end(gpu_link_words)},
      [&node](std::size_t place) { node.links = static_cast<GpuLinks>(place + 1); }, "links between GPUs besides PCIe");
  add_number(command, "--sockets", node.sockets, 1, 1024, "processors");
  add_number(command, "--switches", node.switches, 0, 1024, "PCIe switches of GPUs and NICs; 0: all on the processors");
  add_number(command, "--nics", node.nics, 0, 1024, "NICs");
  add_text(command, "--nic-bandwidth", node.nic_bandwidth, "'400 Gbit/s'", "bandwidth of one NIC");
  add_text(command, "-o,--output", options.output, "FILE.yaml", "file to write (default: standard output)");
}

struct ListRow {
  const char* command;
  const char* help;
  std::vector<CatalogueEntry> (*entries)();
  std::string (*shown)(const std::string& name);
  void (*add_more)(CLI::App& command, ExitStatus& status) = nullptr;
  bool is_former = false;  ///< a name that is still accepted
};
constexpr std::array<ListRow, 5> lists = {
    {{"scenarios", "List or show shipped scenarios", list_scenarios, shown_file<Catalogue::run>},
     {"hardware", "List or show known nodes and GPUs", list_hardware, shown_hardware, add_hardware_init},
     {"models", "List or show known models", list_models, shown_model},
     {"frameworks", "List or show known frameworks", list_trainers, shown_file<Catalogue::trainer>},
     {"trainers", "List or show known frameworks", list_trainers, shown_file<Catalogue::trainer>, nullptr, true}}};

void print_list(const ListRow& list, const std::string& word) {
  const std::vector<CatalogueEntry> entries = list.entries();
  const bool have_kinds = std::ranges::any_of(entries, [](const CatalogueEntry& entry) { return !entry.kind.empty(); });
  TextTable table(have_kinds ? "lll" : "ll");
  for (const CatalogueEntry& entry : entries) {
    std::vector<std::string> row = {entry.name, entry.kind, entry.description};
    if (!have_kinds) row.erase(row.begin() + 1);
    if (entry.name.find(word) != std::string::npos) table.add_row(std::move(row));
  }
  print_page(table.text(0));
}

}  // namespace

void add_list(CLI::App& app, ExitStatus& status) {
  for (const ListRow& row : lists) {
    CLI::App* command = app.add_subcommand(row.command, row.help);
    command->require_subcommand(1);
    if (row.is_former) command->group("");
    const auto word = std::make_shared<std::string>(), name = std::make_shared<std::string>();
    CLI::App* list = command->add_subcommand("list", row.help);
    list->add_option("WORD", *word, "list names that contain it");
    list->callback([&row, word] { print_list(row, *word); });
    CLI::App* show = command->add_subcommand("show", "Show the file of a name, with derived values");
    show->add_option("NAME", *name, "a name from `list`, its start, or a file")->required();
    show->callback([&row, name] { print(row.shown(*name)); });
    if (row.add_more != nullptr) row.add_more(*command, status);
  }
}

}  // namespace foretrain
