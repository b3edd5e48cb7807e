// One operator, ready to be put on a stream: its operands, descriptors, workspace and algorithm.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "validate/cuda/math/operands.hpp"
#include "validate/cuda/math/operator_spec.hpp"

namespace foretrain::gpu {

/// Context of a runner beside its specification.
struct RunnerSetting {
  OperandPool& memory;
  /// Sets of operands; 0: as many as it takes to find none of them in the L2, as far as half of the free memory
  /// reaches.
  int rotation = 1;
};

struct Operand {
  std::size_t bytes = 0;
  Format format = Format::fp32;
  Use use = Use::read;
};

class OperatorRunner {
 public:
  virtual ~OperatorRunner() = default;
  OperatorRunner(const OperatorRunner&) = delete;
  OperatorRunner& operator=(const OperatorRunner&) = delete;

  /// Puts the operator on the stream. Turns cycle through the sets of operands. Neither allocates nor synchronises, so
  /// that it can be captured in a CUDA graph (after one launch outside of it, which loads the kernels).
  virtual void launch(cudaStream_t stream, int turn) = 0;
  /// Kernels that one launch puts on the stream, as far as is known (a library may use more).
  [[nodiscard]] virtual int kernels() const { return 1; }
  /// Chosen implementation ("algorithm", "tile", "workspace", …), for a record's parameters.
  [[nodiscard]] virtual std::map<std::string, std::string> parameters() const { return {}; }
  [[nodiscard]] std::size_t bytes() const { return bytes_; }
  /// Sets of operands that turns cycle through.
  [[nodiscard]] int operand_sets() const { return static_cast<int>(sets_.size()); }

 protected:
  using OperandSet = std::vector<void*>;
  OperatorRunner() = default;
  /// Takes memory for as many sets of these operands as the setting asks for.
  void take(const RunnerSetting& setting, const std::vector<Operand>& operands);
  /// In the order in which they were taken.
  [[nodiscard]] const OperandSet& operands(int turn) const {
    return sets_[static_cast<std::size_t>(turn) % sets_.size()];
  }

 private:
  std::size_t bytes_ = 0;
  std::vector<OperandSet> sets_;
};

/// Runner of products, convolutions and attention, and of whatever traffic_of() knows.
/// Throws GpuError with Fault::unsupported where this GPU, or this build, cannot do it, saying why;
/// Fault::out_of_memory; std::invalid_argument for a specification that is wrong.
std::unique_ptr<OperatorRunner> make_runner(const OperatorSpec& spec, const RunnerSetting& setting);

/// By NVIDIA's libraries; Fault::unsupported where one is not built in.
std::unique_ptr<OperatorRunner> make_matmul(const OperatorSpec& spec, const RunnerSetting& setting);
std::unique_ptr<OperatorRunner> make_convolution(const OperatorSpec& spec, const RunnerSetting& setting);
std::unique_ptr<OperatorRunner> make_attention(const OperatorSpec& spec, const RunnerSetting& setting);
/// By one kernel that reads and writes as many bytes; its results are no operator's.
std::unique_ptr<OperatorRunner> make_streaming(const OperatorSpec& spec, const RunnerSetting& setting);

}  // namespace foretrain::gpu
