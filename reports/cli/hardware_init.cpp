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
  write_new_file(options.output, own_node(options.node));
}

}  // namespace

void add_hardware_init(CLI::App& hardware) {
  const auto options = std::make_shared<HardwareInit>();
  OwnNode& node = options->node;
  CLI::App* command =
      hardware.add_subcommand("init", "write a machine of one's own: a commented node file, its PCIe tree drawn");
  command->add_option("NAME", node.name, "what results call the machine");
  command->add_option("--like", node.like,
                      "a machine of `foretrain hardware list` that it is as, but for what follows");
  command->add_option("--gpu", node.gpu, "its GPUs: a name of `foretrain hardware list`");
  add_number(*command, "--gpus", node.gpus, 1, 1024, "how many GPUs it has");
  add_choice(
      *command, "--links", {std::begin(gpu_link_words) + 1, std::end(gpu_link_words)},
      [&node](std::size_t place) { node.links = static_cast<GpuLinks>(place + 1); }, "how GPUs are joined beside PCIe");
  add_number(*command, "--sockets", node.sockets, 1, 1024, "processors");
  add_number(*command, "--switches", node.switches, 0, 1024,
             "PCIe switches, on which GPUs and cards hang; 0: on the processors");
  add_number(*command, "--nics", node.nics, 0, 1024, "network cards");
  command->add_option("--nic-bandwidth", node.nic_bandwidth, "what one of them carries")->type_name("'400 Gbit/s'");
  command->add_option("-o,--output", options->output, "where to write it (default: the terminal)")
      ->type_name("FILE.yaml");
  command->callback([options] { write_own_node(*options); });
}

}  // namespace foretrain
