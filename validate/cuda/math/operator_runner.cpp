#include "validate/cuda/math/operator_runner.hpp"

#include <algorithm>

#include "validate/cuda/math/attention_shape.hpp"

namespace foretrain::gpu {

void OperatorRunner::take(const RunnerSetting& setting, const std::vector<Operand>& operands) {
  setting.memory.begin_operator();
  for (const Operand& operand : operands) bytes_ += operand.bytes;
  std::size_t sets = static_cast<std::size_t>(setting.rotation);
  if (sets == 0) {
    const std::size_t fitting = usable_memory() / 2 / std::max<std::size_t>(bytes_, 1);
    sets = std::clamp<std::size_t>(fitting, 1, static_cast<std::size_t>(rotation_for(bytes_)));
  }
  for (std::size_t i = 0; i < sets; ++i) {
    OperandSet& set = sets_.emplace_back();
    for (const Operand& operand : operands) {
      set.push_back(setting.memory.take(operand.bytes, operand.format, operand.use));
    }
  }
}

std::unique_ptr<OperatorRunner> make_runner(const OperatorSpec& spec, const RunnerSetting& setting) {
  if (spec.kind == "matmul") return make_matmul(spec, setting);
  if (spec.kind == "convolution") return make_convolution(spec, setting);
  if (spec.kind == "attention") return make_attention(spec, setting);
  return make_streaming(spec, setting);
}

#ifndef FORETRAIN_HAS_CUDNN

namespace {

constexpr const char* without_cudnn = "this build is without cuDNN: install it and build again (CUDNN_HOME)";

}  // namespace

std::unique_ptr<OperatorRunner> make_convolution(const OperatorSpec&, const RunnerSetting&) {
  throw GpuError(Fault::unsupported, without_cudnn);
}

std::unique_ptr<OperatorRunner> make_fused_attention(const AttentionShape&, const RunnerSetting&) {
  throw GpuError(Fault::unsupported, without_cudnn);
}

#endif

}  // namespace foretrain::gpu
