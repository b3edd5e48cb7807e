#include "validate/cuda/math/operator_runner.hpp"

#include <stdexcept>

#include "validate/cuda/math/attention_shape.hpp"
#include "validate/cuda/math/convolution.hpp"
#include "validate/cuda/math/matmul.hpp"
#include "validate/cuda/math/streaming.hpp"

namespace foretrain::gpu {

namespace {

using Made = std::unique_ptr<OperatorRunner>;

struct RunnerRow {
  const char* kind;
  Made (*make)(const OperatorSpec&, const RunnerSetting&);
};

Made make_matmul(const OperatorSpec& spec, const RunnerSetting& setting) {
  return std::make_unique<MatmulRunner>(matmul_shape(spec), setting);
}

#ifdef FORETRAIN_HAS_CUDNN
Made make_convolution(const OperatorSpec& spec, const RunnerSetting& setting) {
  return std::make_unique<ConvolutionRunner>(convolution_shape(spec), setting);
}
#else
Made make_convolution(const OperatorSpec&, const RunnerSetting&) {
  throw GpuError(Fault::unsupported, "this build is without cuDNN: install it and build again (CUDNN_HOME)");
}
#endif

constexpr RunnerRow rows[] = {{"matmul", make_matmul},
                              {"convolution", make_convolution},
                              {"attention", make_attention},
                              {"elementwise", make_elementwise},
                              {"reduction", make_reduction},
                              {"copy", make_copy},
                              {"traffic", make_traffic},
                              {"softmax", make_softmax},
                              {"layer_norm", make_layer_norm},
                              {"cross_entropy", make_cross_entropy},
                              {"batch_norm", make_batch_norm},
                              {"pooling", make_pooling},
                              {"embedding", make_embedding},
                              {"optimizer", make_optimizer},
                              {"gradient_clipping", make_gradient_clipping}};

}  // namespace

std::unique_ptr<OperatorRunner> make_runner(const OperatorSpec& spec, const RunnerSetting& setting) {
  for (const RunnerRow& row : rows) {
    if (spec.kind == row.kind) return row.make(spec, setting);
  }
  throw std::invalid_argument("no operator \"" + spec.kind + "\" runs on a GPU");
}

}  // namespace foretrain::gpu
