#include "validate/cuda/math/attention_shape.hpp"

namespace foretrain::gpu {

std::unique_ptr<OperatorRunner> make_fused_attention(const AttentionShape&, const RunnerSetting&) {
  throw GpuError(Fault::unsupported, "fused attention is not measured yet; attention: standard is");
}

}  // namespace foretrain::gpu
