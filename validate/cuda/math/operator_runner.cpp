#include "validate/cuda/math/operator_runner.hpp"

#include <stdexcept>

#include "validate/cuda/math/matmul.hpp"

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

constexpr RunnerRow rows[] = {{"matmul", make_matmul}};

}  // namespace

std::unique_ptr<OperatorRunner> make_runner(const OperatorSpec& spec, const RunnerSetting& setting) {
  for (const RunnerRow& row : rows) {
    if (spec.kind == row.kind) return row.make(spec, setting);
  }
  throw std::invalid_argument("no operator \"" + spec.kind + "\" runs on a GPU");
}

}  // namespace foretrain::gpu
