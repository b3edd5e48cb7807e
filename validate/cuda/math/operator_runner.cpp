#include "validate/cuda/math/operator_runner.hpp"

#include <stdexcept>

#include "validate/cuda/math/attention_shape.hpp"
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

template <StreamingParts (*parts)(const OperatorSpec&)>
Made make_streaming(const OperatorSpec& spec, const RunnerSetting& setting) {
  return std::make_unique<StreamingRunner>(parts(spec), setting);
}

constexpr RunnerRow rows[] = {{"matmul", make_matmul},
                              {"convolution", make_convolution},
                              {"attention", make_attention},
                              {"elementwise", make_streaming<elementwise_parts>},
                              {"reduction", make_streaming<reduction_parts>},
                              {"copy", make_streaming<copy_parts>},
                              {"traffic", make_streaming<traffic_parts>},
                              {"softmax", make_streaming<softmax_parts>},
                              {"layer_norm", make_streaming<layer_norm_parts>},
                              {"cross_entropy", make_streaming<cross_entropy_parts>},
                              {"batch_norm", make_streaming<batch_norm_parts>},
                              {"pooling", make_streaming<pooling_parts>},
                              {"embedding", make_streaming<embedding_parts>},
                              {"optimizer", make_streaming<optimizer_parts>},
                              {"gradient_clipping", make_streaming<gradient_clipping_parts>}};

}  // namespace

std::unique_ptr<OperatorRunner> make_runner(const OperatorSpec& spec, const RunnerSetting& setting) {
  for (const RunnerRow& row : rows) {
    if (spec.kind == row.kind) return row.make(spec, setting);
  }
  throw std::invalid_argument("no operator \"" + spec.kind + "\" runs on a GPU");
}

}  // namespace foretrain::gpu
