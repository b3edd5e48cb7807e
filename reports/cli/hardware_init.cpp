#include "reports/cli/hardware_init.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <iterator>
#include <memory>
#include <system_error>

#include "model/base/error.hpp"
#include "model/base/files.hpp"
#include "reports/cli/options.hpp"
#include "reports/import/own_node.hpp"

namespace foretrain {

namespace {

struct HardwareInit {
  OwnNode node;
  std::string output;
};

void write_own_node(const HardwareInit& options) {
  if (options.node.like.empty() && options.node.gpu.empty()) {
    throw UsageError("what machine? --like NAME of `foretrain hardware list`, or --gpu NAME with what it is to have");
  }
  const std::string text = own_node(options.node);
  if (options.output.empty()) return print(text);
  std::error_code ignored;
  if (std::filesystem::exists(options.output, ignored)) {
    throw UsageError(fmt::format("{} exists; write to another file", options.output));
  }
  write_file(options.output, text);
}

}  // namespace

void add_hardware_init(CLI::App& hardware) {
  const auto options = std::make_shared<HardwareInit>();
  OwnNode& node = options->node;
  CLI::App* command =
      hardware.add_subcommand("init", "write a machine of one's own: a commented node file, its PCIe tree drawn");
  command->add_option("NAME", node.name, "what results call the machine");
  const auto number = [&](const char* name, int& value, int least, const char* what) {
    command->add_option(name, value, what)->type_name("N")->check(CLI::Range(least, 1024).description(""));
  };
  command->add_option("--like", node.like,
                      "a machine of `foretrain hardware list` that it is as, but for what follows");
  command->add_option("--gpu", node.gpu, "its GPUs: a name of `foretrain hardware list`");
  number("--gpus", node.gpus, 1, "how many GPUs it has");
  command
      ->add_option_function<std::string>(
          "--links",
          [&node](const std::string& word) {
            const auto* const found = std::find(std::begin(gpu_link_words), std::end(gpu_link_words), word);
            if (found == std::end(gpu_link_words)) {
              throw CLI::ValidationError(
                  "--links", "there is no " + word + "; write nvswitch, nvlink-mesh, nvlink-bridge or pcie");
            }
            node.links = static_cast<GpuLinks>(found - std::begin(gpu_link_words));
          },
          "how GPUs are joined beside PCIe")
      ->type_name("nvswitch|nvlink-mesh|nvlink-bridge|pcie");
  number("--sockets", node.sockets, 1, "processors");
  number("--switches", node.switches, 0, "PCIe switches, on which GPUs and cards hang; 0: on the processors");
  number("--nics", node.nics, 0, "network cards");
  command->add_option("--nic-bandwidth", node.nic_bandwidth, "what one of them carries")->type_name("'400 Gbit/s'");
  command->add_option("-o,--output", options->output, "where to write it (default: the terminal)")
      ->type_name("FILE.yaml");
  command->callback([options] { write_own_node(*options); });
}

}  // namespace foretrain
