#include "validate/cuda/math/operator_runner.hpp"

#include <stdexcept>

#include "validate/cuda/math/streaming.hpp"

namespace foretrain::gpu {

std::unique_ptr<OperatorRunner> make_runner(const OperatorSpec& spec, const RunnerSetting& setting) {
#define LIBRARY_OPERATOR(name) \
  if (spec.kind == #name) return make_##name(spec, setting);
#define STREAMING_OPERATOR(name) \
  if (spec.kind == #name) return std::make_unique<StreamingRunner>(name##_parts(spec), setting);
#include "validate/cuda/math/operators.def"
  throw std::invalid_argument("no operator \"" + spec.kind + "\" runs on a GPU");
}

}  // namespace foretrain::gpu
