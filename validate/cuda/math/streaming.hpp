// Operators bound by memory, on own kernels.
#pragma once

#include <functional>
#include <vector>

#include "validate/cuda/math/format.hpp"
#include "validate/cuda/math/operator_runner.hpp"

namespace foretrain::gpu {

struct StreamingTensor {
  Format format = Format::fp32;
  std::int64_t elements = 1;
  Use use = Use::read;
};
using StreamingOperands = std::vector<void*>;  ///< one for each tensor

/// An operator of own kernels: which tensors it has, what puts it on a stream, and what its results must be.
struct StreamingParts {
  using Work = std::function<void(const StreamingOperands&, cudaStream_t)>;
  std::vector<StreamingTensor> tensors;
  Work prepare;  ///< contents that are not random numbers; once for every set of operands; may be empty
  Work launch;
  Work check;   ///< compares the results of a launch; throws GpuError; empty where they mean nothing
  Work verify;  ///< where a launch followed by `check` does not do: launches by itself, and compares
  int kernels = 1;
};

class StreamingRunner final : public OperatorRunner {
 public:
  StreamingRunner(StreamingParts parts, const RunnerSetting& setting);

  void launch(cudaStream_t stream, int turn) override;
  void verify(cudaStream_t stream) override;
  [[nodiscard]] std::size_t bytes() const override;
  [[nodiscard]] int operand_sets() const override { return static_cast<int>(sets_.size()); }
  [[nodiscard]] int kernels() const override { return parts_.kernels; }

 private:
  StreamingParts parts_;
  std::vector<DeviceBuffer> own_;
  std::vector<StreamingOperands> sets_;
};

/// Compares sampled numbers of a result with expected(i), within `relative` of that and rounding of the format.
void expect_numbers(const std::string& what, Format format, const void* result, std::int64_t count,
                    const std::function<double(std::int64_t)>& expected, double relative, cudaStream_t stream);
/// What rounding to the format, after fp32 arithmetic that loses `relative`, may change of a number.
double tolerance_of(Format format, double number, double relative);

/// Format of a streaming operator's tensors. Throws GpuError with Fault::unsupported beside fp32, tf32, fp16 and bf16.
Format streaming_format(const OperatorSpec& spec);
/// `pass: forward | backward` (= forward).
bool is_backward(const OperatorSpec& spec);
std::size_t to_size(std::int64_t number);
inline float* floats(void* tensor) { return static_cast<float*>(tensor); }

#define STREAMING_OPERATOR(name) StreamingParts name##_parts(const OperatorSpec& spec);
#include "validate/cuda/math/operators.def"

}  // namespace foretrain::gpu
