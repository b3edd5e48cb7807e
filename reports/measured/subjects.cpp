#include "reports/measured/subjects.hpp"

#include <cstddef>

#include "model/base/text.hpp"

namespace foretrain {

namespace {

constexpr const char* steps = "Training steps on GPUs";
constexpr const char* memory = "Peak GPU memory";
constexpr const char* kernels = "Kernels";
constexpr const char* collectives = "Collectives";
constexpr const char* hosts = "On CPU hosts: schedules, networks";

constexpr MeasuredSubject subjects[] = {
    {steps, "Llama 3.1 8B, 70B, H100, bf16", "step", "dgxc-llama3.1"},
    {steps, "Llama 3 8B, 70B, H100, B200, fp8", "step", "dgxc-fp8 mbridge-dense"},
    {steps, "Llama 3 70B, GB200, GB300", "energy", "mbridge-70b"},
    {steps, "MPT 125M-70B, FSDP, 8-64 A100", "step", "llm-foundry"},
    {steps, "Megatron-LM 1.7B-1T, A100", "step", "megatron-sc21 korthikanti"},
    {steps, "vTrain GPT 3.6B, 18.4B, A100", "step", "vtrain"},
    {steps, "Megatron-DeepSpeed 104-200B, A100", "framework", "bigscience"},
    {steps, "NeMo of 2024, 7B-175B, H100, fp8", "", "nemo-fp8-h100"},
    {steps, "NeMo of 2024, 4K-1M tokens, fp8", "attention", "nemo-fp8-h100-long-context"},
    {steps, "torchtitan Llama 3.1 8B, H100", "", "torchtitan-fsdp"},
    {steps, "torchtitan, context and tensor", "", "torchtitan-cp torchtitan-2d"},
    {steps, "Megatron-LM, no overlap, 8 B200", "energy", "simumax"},
    {steps, "Qwen3 30B, software of 2026", "dispatch", "mbridge-moe"},
    {steps, "Qwen3 30B, software of 2025", "dispatch",
     "mbridge-moe-b200-q30-fp8-earlier mbridge-moe-h100-q30-fp8-earlier"},
    {steps, "Qwen3 30B, B300, GB200, GB300", "dispatch", "mbridge-q30"},
    {steps, "DeepSeek-V3, B200, H100", "dispatch", "mbridge-dsv3"},
    {steps, "Grok-1, 8-2,048 H100", "dispatch", "grok1"},
    {steps, "Llama 3 8B, fine-tuning, LoRA", "", "sft lora"},
    {steps, "timm CNNs, one RTX 3090", "clock", "timm"},
    {steps, "ResNet-50, NVIDIA, A100, V100", "XLA", "dle"},
    {steps, "ResNet-50, BERT, ten frameworks", "in part", "dlperf"},
    {steps, "TensorFlow of 2017, P100, K80", "cuDNN", "tf2017"},
    {steps, "Horovod of 2017, 16 P100", "", "horovod"},
    {steps, "Dive into Deep Learning", "in part", "d2l"},
    {steps, "Reports of users", "in part", "report"},
    {memory, "torchtitan, FSDP", "loss", "torchtitan-fsdp", true},
    {memory, "torchtitan, context and tensor", "allocator", "torchtitan", true},
    {memory, "Megatron-LM, 8 B200", "", "simumax", true},
    {memory, "Megatron-DeepSpeed, A100", "framework", "bigscience", true},
    {memory, "Reports of users", "", "report", true},
    {kernels, "GEMM bf16, A100 to GB200, L40S", "tiles",
     "gemm-a100-bf16 gemm-h100-bf16 gemm-b200-bf16 gemm-gb200-bf16 gemm-l40s-bf16"},
    {kernels, "GEMM fp8, nvfp4, H100 to GB200", "tiles",
     "gemm-h100-fp8 gemm-b200-fp8 gemm-b200-nvfp4 gemm-gb200-fp8 gemm-gb200-nvfp4 gemm-l40s-fp8"},
    {kernels, "GEMM, DeepBench, V100, T4", "energy", "gemm-v100 gemm-t4"},
    {kernels, "GEMM, A100 PCIe", "tiles", "gemm-a100-pcie"},
    {kernels, "attention, FA2, cuDNN", "attention", "attention-flash attention-cudnn"},
    {kernels, "attention, TensorRT-LLM", "attention", "attention"},
    {collectives, "V100, A100, 4-16 H100, from 1 MB", "in part", "nccl-v100 nccl-a100 nccl-h100"},
    {collectives, "same sources, rows not fitted", "", "nccl-v100-held nccl-a100-held nccl-h100-held"},
    {collectives, "A100, H100, below 1 MB", "in part", "nccl-a100-small nccl-h100-small"},
    {collectives, "2-8 A100 to GB200, 1 KB-512 MB", "steps",
     "nccl-a100-all nccl-a100-reduce nccl-h100-all nccl-h100-reduce nccl-b200 nccl-gb200"},
    {collectives, "between nodes, from 1 MB", "NICs", "nccl-all nccl-reduce"},
    {collectives, "between nodes, below 1 MB", "NICs",
     "nccl-all_reduce-H100-2x8-KeitaW-small nccl-all_gather-A100-SXM4-40GB-2x4-argonne-lcf-small "
     "nccl-all_reduce-A100-SXM4-40GB-2x4-argonne-lcf-small nccl-alltoall-A100-SXM4-40GB-2x4-argonne-lcf-small"},
    {collectives, "degraded cluster, two H100 nodes", "", "nccl-h100-two-nodes"},
    {hosts, "all-reduce, 2-8 hosts", "latency", "host-"},
    {hosts, "DDP, parameter servers, one host", "operators", "hosts-"},
    {hosts, "ZeRO, FSDP, tensor, pipeline, MoE", "operators",
     "hosts-single hosts-replicas hosts-tensor hosts-pipeline hosts-sharded hosts-optimizer hosts-context "
     "hosts-experts hosts-mixed"},
    {hosts, "vision-language models", "", "hosts-vision"},
    {hosts, "replayed graphs and collectives", "", "own-"},
    {hosts, "whole trainings with failures", "start-up", "hosts-lengths hosts-checkpoints hosts-deaths"},
    {hosts, "peak memory", "process", "hosts-memory", true},
};

}  // namespace

std::span<const MeasuredSubject> measured_subjects() { return subjects; }

const MeasuredSubject* subject_of(std::string_view group, bool memory) {
  const MeasuredSubject* found = nullptr;
  std::size_t longest = 0;
  for (const MeasuredSubject& subject : subjects) {
    if (subject.memory != memory) continue;
    for (const std::string_view beginning : split(subject.groups, ' ')) {
      if (!group.starts_with(beginning) || beginning.size() <= longest) continue;
      found = &subject;
      longest = beginning.size();
    }
  }
  return found;
}

}  // namespace foretrain
