#include "validate/cuda/math/operator_runner.hpp"

#include "validate/cuda/math/streaming.hpp"

namespace foretrain::gpu {

std::unique_ptr<OperatorRunner> make_runner(const OperatorSpec& spec, const RunnerSetting& setting) {
  if (spec.kind == "matmul") return make_matmul(spec, setting);
  if (spec.kind == "convolution") return make_convolution(spec, setting);
  if (spec.kind == "attention") return make_attention(spec, setting);
  return std::make_unique<StreamingRunner>(spec, setting);
}

}  // namespace foretrain::gpu
