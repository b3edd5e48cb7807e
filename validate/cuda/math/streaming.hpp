// Operators bound by memory, on own kernels.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "validate/cuda/math/format.hpp"
#include "validate/cuda/math/operator_runner.hpp"

namespace foretrain::gpu {

/// An operator of own kernels: which tensors it has, what puts it on a stream, and what its results must be.
class StreamingRunner final : public OperatorRunner {
 public:
  struct Tensor {
    Format format = Format::fp32;
    std::int64_t elements = 1;
    /// One for all sets of operands, and no other operator's: what must keep its contents (indices, counters).
    bool own = false;
  };
  using Operands = std::vector<void*>;  ///< one for each tensor
  using Work = std::function<void(const Operands&, cudaStream_t)>;
  struct Parts {
    std::vector<Tensor> tensors;
    Work prepare;  ///< contents that are not random numbers; once for every set of operands; may be empty
    Work launch;
    Work verify;  ///< launches, and compares; throws GpuError
    int kernels = 1;
  };

  StreamingRunner(Parts parts, const RunnerSetting& setting);

  void launch(cudaStream_t stream, int turn) override;
  void verify(cudaStream_t stream) override { parts_.verify(sets_.front(), stream); }
  [[nodiscard]] std::size_t bytes() const override;
  [[nodiscard]] int operand_sets() const override { return static_cast<int>(sets_.size()); }
  [[nodiscard]] int kernels() const override { return parts_.kernels; }

 private:
  Parts parts_;
  std::vector<DeviceBuffer> own_;
  std::vector<Operands> sets_;
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

using MadeRunner = std::unique_ptr<OperatorRunner>;
MadeRunner make_elementwise(const OperatorSpec& spec, const RunnerSetting& setting);
MadeRunner make_reduction(const OperatorSpec& spec, const RunnerSetting& setting);
MadeRunner make_copy(const OperatorSpec& spec, const RunnerSetting& setting);
MadeRunner make_traffic(const OperatorSpec& spec, const RunnerSetting& setting);
MadeRunner make_softmax(const OperatorSpec& spec, const RunnerSetting& setting);
MadeRunner make_layer_norm(const OperatorSpec& spec, const RunnerSetting& setting);
MadeRunner make_cross_entropy(const OperatorSpec& spec, const RunnerSetting& setting);
MadeRunner make_batch_norm(const OperatorSpec& spec, const RunnerSetting& setting);
MadeRunner make_pooling(const OperatorSpec& spec, const RunnerSetting& setting);
MadeRunner make_embedding(const OperatorSpec& spec, const RunnerSetting& setting);
MadeRunner make_optimizer(const OperatorSpec& spec, const RunnerSetting& setting);
MadeRunner make_gradient_clipping(const OperatorSpec& spec, const RunnerSetting& setting);

}  // namespace foretrain::gpu
