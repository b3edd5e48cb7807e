// Matrix products by cuBLASLt.
#pragma once

#include <cublasLt.h>

#include <memory>
#include <type_traits>
#include <vector>

#include "validate/cuda/math/format.hpp"
#include "validate/cuda/math/operator_runner.hpp"

namespace foretrain::gpu {

/// C[m,n] (+)= A[m,k] · B[k,n] as in Matmul (model/workload/operator.hpp): rows lie one behind the other, a transposed
/// operand is stored the other way round.
struct MatmulShape {
  std::int64_t batch = 1, m = 1, n = 1, k = 1;
  bool accumulate = false, accumulate_fp32 = false, transpose_a = false, transpose_b = false, padded = false;
  std::string precision = "fp32";
};

/// Reads the fields of a `matmul`. Throws std::invalid_argument.
MatmulShape matmul_shape(const OperatorSpec& spec);

/// One matrix as it lies in memory.
struct StoredMatrix {
  Format format = Format::fp32;
  std::int64_t rows = 1, columns = 1;
  std::int64_t row_length = 1;  ///< elements between the starts of two rows
  std::int64_t batch = 1;
  [[nodiscard]] std::int64_t stride() const { return rows * row_length; }  ///< elements between two of the batch
  [[nodiscard]] std::size_t bytes() const { return static_cast<std::size_t>(batch * stride()) * size_of(format); }
};

/// As a setting's rotation: operands are given with every launch_on().
inline constexpr int no_operands = -1;

class MatmulRunner final : public OperatorRunner {
 public:
  /// The first choice of cuBLASLt's heuristic with 32 MiB of workspace. fp8 (before Blackwell) and int8 exist for one
  /// storage only, that of transpose_b; operands are then stored so, whatever the flags say, as trainers do. Results
  /// are stored in the operands' precision, those of fp8 in bf16, of int8 in int32. Adding to C alternates with
  /// subtracting from it, so that its numbers stay in range however often it is launched.
  MatmulRunner(const MatmulShape& shape, const RunnerSetting& setting);

  void launch(cudaStream_t stream, int turn) override;
  [[nodiscard]] std::size_t bytes() const override { return a_.bytes() + b_.bytes() + c_.bytes(); }
  [[nodiscard]] int operand_sets() const override { return static_cast<int>(sets_.size()); }
  [[nodiscard]] int kernels() const override;
  /// Tile and stages by cuBLASLt's numbers (cublasLtMatmulTile_t, cublasLtMatmulStages_t).
  [[nodiscard]] std::map<std::string, std::string> parameters() const override;

  /// For operators made of several: C = alpha · A · B on operands given at launch, each aligned to 256 bytes.
  void launch_on(cudaStream_t stream, const void* a, const void* b, void* c, float alpha);
  [[nodiscard]] const StoredMatrix& a() const { return a_; }
  [[nodiscard]] const StoredMatrix& b() const { return b_; }
  [[nodiscard]] const StoredMatrix& c() const { return c_; }

 private:
  struct Destroy {
    void operator()(cublasLtMatmulDesc_t descriptor) const { cublasLtMatmulDescDestroy(descriptor); }
    void operator()(cublasLtMatrixLayout_t layout) const { cublasLtMatrixLayoutDestroy(layout); }
  };
  template <typename Handle>
  using Owned = std::unique_ptr<std::remove_pointer_t<Handle>, Destroy>;
  struct Operands {
    void *a, *b, *c;
  };

  static Owned<cublasLtMatrixLayout_t> layout_of(const StoredMatrix& matrix);
  void describe();
  void choose();

  MatmulShape shape_;
  StoredMatrix a_, b_, c_;
  std::vector<Operands> sets_;
  void* workspace_ = nullptr;
  const void* unit_scale_ = nullptr;  ///< a 1 on the device, for fp8
  DeviceBuffer scale_;
  Owned<cublasLtMatmulDesc_t> product_;
  Owned<cublasLtMatrixLayout_t> layout_a_, layout_b_, layout_c_;
  cublasLtMatmulHeuristicResult_t chosen_ = {};
};

}  // namespace foretrain::gpu
