// The files in tests/import/data, and which importer reads each. All were written for this project in their tools'
// formats, their figures made up, but for kineto_cpu.json, which PyTorch 1.13 wrote of a small network on a processor,
// and slurm_scontrol_22.05.txt, which Slurm 22.05.8 (`scontrol show topology`) says of machines that are not there.
#pragma once

#include <fmt/format.h>

#include <array>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/base/number.hpp"
#include "model/scenario/hardware/hardware_reader.hpp"
#include "reports/import/importer.hpp"

namespace foretrain::test {

struct ImportSample {
  std::string_view importer, file;
};
inline constexpr std::array<ImportSample, 32> import_samples = {
    {{"nccl-topology", "nccl_topology_hgx_h100.xml"},
     {"nccl-topology", "nccl_topology_v100.xml"},
     {"nccl-topology", "nccl_topology_virtual.xml"},
     {"nccl-topology", "nccl_topology_cloud.xml"},
     {"nvidia-smi", "nvidia_smi_h100.txt"},
     {"nvidia-smi", "nvidia_smi_a100_x4.txt"},
     {"nvidia-smi", "nvidia_smi_one.txt"},
     {"slurm", "slurm_scontrol.txt"},
     {"slurm", "slurm_scontrol_22.05.txt"},
     {"slurm", "slurm_topology.conf"},
     {"nccl-tests", "nccl_tests_all_reduce.txt"},
     {"nccl-tests", "nccl_tests_all_gather.log"},
     {"kineto", "kineto_gpu.json"},
     {"kineto", "kineto_cpu.json"},
     {"chakra", "chakra_step.0.et"},
     {"chakra", "chakra_step.0.json"},
     {"hf", "../../../scenarios/hugging_face/llama-3.1-8b.json"},
     {"megatron", "megatron_gpt3.sh"},
     {"megatron", "megatron_mixtral.txt"},
     {"megatron", "megatron_arrays.sh"},
     {"nemo", "nemo_llama3_70b.yaml"},
     {"deepspeed", "deepspeed_zero3.json"},
     {"deepspeed", "deepspeed_auto.json"},
     {"torchtitan", "torchtitan_llama3_8b.toml"},
     {"torchtitan", "torchtitan_pipeline.toml"},
     {"torchtitan", "torchtitan_deepseek.toml"},
     {"torchtitan", "torchtitan_2024.toml"},
     {"accelerate", "accelerate_fsdp.yaml"},
     {"accelerate", "accelerate_deepspeed.yaml"},
     {"accelerate", "accelerate_hsdp.yaml"},
     {"accelerate", "accelerate_one.yaml"},
     {"log", "log_megatron.txt"}}};

/// The sample's bytes, called after the file without its folder.
inline ImportInput input_of(const ImportSample& sample) {
  const std::string path = std::string(FORETRAIN_SOURCE_DIR) + "/tests/import/data/" + std::string(sample.file);
  ImportInput input;
  input.file = std::string(sample.file.substr(sample.file.rfind('/') + 1));
  input.text = read_imported_file(path);
  return input;
}

inline std::string import_with(std::string_view importer, const ImportInput& input) {
  setenv("FORETRAIN_SCENARIOS", FORETRAIN_SOURCE_DIR "/scenarios", 1);
  for (const Importer& one : importers()) {
    if (one.word == importer) return one.read(input);
  }
  throw std::logic_error("no importer of that word");
}

/// A text that is imported as if a file called "file" held it.
inline std::string import_text(std::string_view importer, std::string text, std::vector<std::string> overrides = {}) {
  ImportInput input;
  input.file = "file";
  input.text = std::move(text);
  input.overrides = std::move(overrides);
  return import_with(importer, input);
}

/// Its GPU and sockets, then links, a line for those of one kind that follow each other, then cards.
inline std::string wiring_of(const std::string& text) {
  const Node node = read_node(Field(parse_yaml(text, "imported.yaml"), ""));
  std::string words = fmt::format("\n{} x {}, {} sockets", node.gpus, node.gpu.name, node.cpu.sockets), before;
  for (const NodeLink& link : node.links) {
    const std::string kind = fmt::format("{} x {}", link.count, node.link_types[at_index(link.type)].name);
    words += kind == before ? ", " : "\n" + kind + ": ";
    words += node.vertices[at_index(link.a)].name + "-" + node.vertices[at_index(link.b)].name;
    before = kind;
  }
  words += "\n";
  for (const int place : node.nic_attachment) words += "card on " + node.vertices[at_index(place)].name + "\n";
  return words;
}

}  // namespace foretrain::test
