// GEMMs by cuBLASLt.
#include <cublasLt.h>

#include <algorithm>
#include <stdexcept>
#include <type_traits>

#include "validate/cuda/math/format.hpp"
#include "validate/cuda/math/operator_runner.hpp"

namespace foretrain::gpu {

namespace {

/// C[m,n] (+)= A[m,k] · B[k,n] as in Matmul (model/workload/operator.hpp): rows lie one behind the other, a transposed
/// operand is stored the other way round.
struct MatmulShape {
  std::int64_t batch = 1, m = 1, n = 1, k = 1;
  bool accumulate = false, accumulate_fp32 = false, transpose_a = false, transpose_b = false, padded = false;
  std::string precision = "fp32";
};

/// Reads the fields of a `matmul`. Throws std::invalid_argument.
MatmulShape matmul_shape(const OperatorSpec& spec) {
  MatmulShape shape;
  shape.batch = spec.integer_or("batch", 1);
  shape.m = spec.integer("m");
  shape.n = spec.integer("n");
  shape.k = spec.integer("k");
  if (std::min({shape.batch, shape.m, shape.n, shape.k}) < 1) throw std::invalid_argument("matmul: a size below 1");
  shape.accumulate_fp32 = spec.flag("accumulate_fp32");
  shape.accumulate = spec.flag("accumulate") || shape.accumulate_fp32;
  shape.transpose_a = spec.flag("transpose_a");
  shape.transpose_b = spec.flag("transpose_b");
  shape.padded = spec.flag("padded");
  shape.precision = spec.text_or("precision", "fp32");
  return shape;
}

/// One matrix as it lies in memory.
struct StoredMatrix {
  Format format = Format::fp32;
  std::int64_t rows = 1, columns = 1;
  std::int64_t row_length = 1;  ///< elements between the starts of two rows
  std::int64_t batch = 1;
  [[nodiscard]] std::int64_t stride() const { return rows * row_length; }  ///< elements between two of the batch
  [[nodiscard]] std::size_t bytes() const { return static_cast<std::size_t>(batch * stride()) * size_of(format); }
};

/// Workspace of PyTorch and others on Hopper; less for older GPUs changes little (cuBLAS documentation,
/// cublasSetWorkspace).
constexpr std::size_t workspace_bytes = std::size_t{32} << 20;

/// One for each GPU, since it belongs to the device that is current when it is made (cublasLtCreate): making it takes
/// longer than many measurements, and it holds no state that matters.
cublasLtHandle_t handle() {
  static std::map<int, cublasLtHandle_t> handles;
  cublasLtHandle_t& made = handles[current_device()];
  if (made == nullptr) GPU_CHECK(cublasLtCreate(&made));
  return made;
}

StoredMatrix stored(Format format, std::int64_t rows, std::int64_t columns, std::int64_t batch, bool padded) {
  const auto unit = static_cast<std::int64_t>(padded ? std::max<std::size_t>(16 / size_of(format), 1) : 1);
  return {format, rows, columns, (columns + unit - 1) / unit * unit, batch};
}

/// fp8 and int8 tensor-core kernels read both operands along k: cuBLAS documentation, cublasLtMatmul(): "A must be
/// transposed and B non-transposed" for int8, and for fp8 on compute capabilities 8.9, 9.0 and 12.x.
bool along_k_only(Format format) {
  if (format == Format::int8) return true;
  const int capability = compute_capability();
  return format == Format::fp8 && (capability < 100 || capability >= 120);
}

Format result_format(Format operands, bool accumulate_fp32) {
  if (operands == Format::int8) return Format::int32;
  if (accumulate_fp32 && operands != Format::fp64) return Format::fp32;
  return operands == Format::fp8 ? Format::bf16 : operands;
}

cublasComputeType_t compute_type(const std::string& precision) {
  if (precision == "fp64") return CUBLAS_COMPUTE_64F;
  if (precision == "tf32") return CUBLAS_COMPUTE_32F_FAST_TF32;
  return precision == "int8" ? CUBLAS_COMPUTE_32I : CUBLAS_COMPUTE_32F;
}

cudaDataType_t scale_type(const std::string& precision) {
  if (precision == "fp64") return CUDA_R_64F;
  return precision == "int8" ? CUDA_R_32I : CUDA_R_32F;
}

template <typename Value>
void set(cublasLtMatmulDesc_t product, cublasLtMatmulDescAttributes_t attribute, Value value) {
  GPU_CHECK(cublasLtMatmulDescSetAttribute(product, attribute, &value, sizeof(value)));
}

/// cuBLASLt's attribute of the chosen algorithm; 0 if unknown.
std::uint32_t chosen(const cublasLtMatmulAlgo_t& algorithm, cublasLtMatmulAlgoConfigAttributes_t attribute) {
  std::uint32_t value = 0;
  std::size_t written = 0;
  const auto status = cublasLtMatmulAlgoConfigGetAttribute(&algorithm, attribute, &value, sizeof(value), &written);
  return status == CUBLAS_STATUS_SUCCESS ? value : 0;
}

class MatmulRunner final : public OperatorRunner {
 public:
  /// The first choice of cuBLASLt's heuristic with 32 MiB of workspace. fp8 (before Blackwell) and int8 exist for one
  /// storage only, that of transpose_b; operands are then stored so, whatever the flags say, as trainers do. Results
  /// are stored in the operands' precision, those of fp8 in bf16, of int8 in int32.
  MatmulRunner(const MatmulShape& shape, const RunnerSetting& setting) : shape_(shape) {
    const Format format = format_of(shape_.precision);
    if (along_k_only(format)) {
      shape_.transpose_a = false;
      shape_.transpose_b = true;
    }
    const MatmulShape& s = shape_;
    a_ = stored(format, s.transpose_a ? s.k : s.m, s.transpose_a ? s.m : s.k, s.batch, s.padded);
    b_ = stored(format, s.transpose_b ? s.n : s.k, s.transpose_b ? s.k : s.n, s.batch, s.padded);
    c_ = stored(result_format(format, s.accumulate_fp32), s.m, s.n, s.batch, s.padded);
    describe();
    choose();  // before memory is taken: what cannot be done costs none
    workspace_ = setting.memory.workspace(workspace_bytes);
    take(setting, {{a_.bytes(), a_.format, Use::read},
                   {b_.bytes(), b_.format, Use::read},
                   {c_.bytes(), c_.format, s.accumulate ? Use::kept : Use::written}});
  }

  /// Adding to C alternates with subtracting from it, so that its numbers stay in range however often it is launched.
  void launch(cudaStream_t stream, int turn) override {
    // The host's alpha and beta are read during the call, in the scale type.
    union Number {
      float fp32;
      double fp64;
      std::int32_t int32;
    };
    const auto number = [this](float value) {
      if (shape_.precision == "fp64") return Number{.fp64 = value};
      return shape_.precision == "int8" ? Number{.int32 = static_cast<std::int32_t>(value)} : Number{.fp32 = value};
    };
    const bool subtract = shape_.accumulate && turn / operand_sets() % 2 == 1;
    const Number alpha = number(subtract ? -1.0F : 1.0F), beta = number(shape_.accumulate ? 1.0F : 0.0F);
    void *const a = operands(turn)[0], *const b = operands(turn)[1], *const c = operands(turn)[2];
    GPU_CHECK(cublasLtMatmul(handle(), product_.get(), &alpha, b, layout_b_.get(), a, layout_a_.get(), &beta, c,
                             layout_c_.get(), c, layout_c_.get(), &chosen_.algo, workspace_, workspace_bytes, stream));
  }

  [[nodiscard]] int kernels() const override {
    const bool reduces =
        chosen(chosen_.algo, CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME) > CUBLASLT_REDUCTION_SCHEME_INPLACE;
    return reduces && chosen(chosen_.algo, CUBLASLT_ALGO_CONFIG_SPLITK_NUM) > 1 ? 2 : 1;
  }

  /// Tile and stages by cuBLASLt's numbers (cublasLtMatmulTile_t, cublasLtMatmulStages_t).
  [[nodiscard]] std::map<std::string, std::string> parameters() const override {
    const auto number = [&](cublasLtMatmulAlgoConfigAttributes_t attribute) {
      return std::to_string(chosen(chosen_.algo, attribute));
    };
    return {{"algorithm", number(CUBLASLT_ALGO_CONFIG_ID) + "." + number(CUBLASLT_ALGO_CONFIG_CUSTOM_OPTION)},
            {"tile", number(CUBLASLT_ALGO_CONFIG_TILE_ID)},
            {"stages", number(CUBLASLT_ALGO_CONFIG_STAGES_ID)},
            {"split_k", number(CUBLASLT_ALGO_CONFIG_SPLITK_NUM)},
            {"workspace_bytes", std::to_string(chosen_.workspaceSize)}};
  }

 private:
  struct Destroy {
    void operator()(cublasLtMatmulDesc_t descriptor) const { cublasLtMatmulDescDestroy(descriptor); }
    void operator()(cublasLtMatrixLayout_t layout) const { cublasLtMatrixLayoutDestroy(layout); }
    void operator()(cublasLtMatmulPreference_t preference) const { cublasLtMatmulPreferenceDestroy(preference); }
  };
  template <typename Handle>
  using Owned = std::unique_ptr<std::remove_pointer_t<Handle>, Destroy>;

  /// cuBLASLt counts columns first. A matrix whose rows lie one behind the other is, to it, the transposed matrix; so
  /// it is asked for Cᵀ = Bᵀ · Aᵀ, and our B is its A.
  static Owned<cublasLtMatrixLayout_t> layout_of(const StoredMatrix& matrix) {
    cublasLtMatrixLayout_t layout = nullptr;
    GPU_CHECK(cublasLtMatrixLayoutCreate(&layout, cuda_type(matrix.format), static_cast<std::uint64_t>(matrix.columns),
                                         static_cast<std::uint64_t>(matrix.rows), matrix.row_length));
    Owned<cublasLtMatrixLayout_t> owned(layout);
    const auto batch = static_cast<std::int32_t>(matrix.batch);
    const std::int64_t stride = matrix.stride();
    GPU_CHECK(cublasLtMatrixLayoutSetAttribute(layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &batch, sizeof(batch)));
    GPU_CHECK(
        cublasLtMatrixLayoutSetAttribute(layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &stride, sizeof(stride)));
    return owned;
  }

  void describe() {
    cublasLtMatmulDesc_t product = nullptr;
    GPU_CHECK(cublasLtMatmulDescCreate(&product, compute_type(shape_.precision), scale_type(shape_.precision)));
    product_.reset(product);
    set<std::int32_t>(product, CUBLASLT_MATMUL_DESC_TRANSA, shape_.transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N);
    set<std::int32_t>(product, CUBLASLT_MATMUL_DESC_TRANSB, shape_.transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N);
    if (a_.format == Format::fp8) {
      const float one = 1.0F;
      unit_scale_ = DeviceBuffer(sizeof(one));
      GPU_CHECK(cudaMemcpy(unit_scale_.data(), &one, sizeof(one), cudaMemcpyHostToDevice));
      set<const void*>(product, CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, unit_scale_.data());
      set<const void*>(product, CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, unit_scale_.data());
      set<std::int8_t>(product, CUBLASLT_MATMUL_DESC_FAST_ACCUM, 1);
    }
    layout_a_ = layout_of(a_);
    layout_b_ = layout_of(b_);
    layout_c_ = layout_of(c_);
  }

  void choose() {
    cublasLtMatmulPreference_t preference = nullptr;
    GPU_CHECK(cublasLtMatmulPreferenceCreate(&preference));
    const Owned<cublasLtMatmulPreference_t> owned(preference);
    GPU_CHECK(cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                                   &workspace_bytes, sizeof(workspace_bytes)));
    int found = 0;
    const cublasStatus_t status =
        cublasLtMatmulAlgoGetHeuristic(handle(), product_.get(), layout_b_.get(), layout_a_.get(), layout_c_.get(),
                                       layout_c_.get(), preference, 1, &chosen_, &found);
    if (status == CUBLAS_STATUS_NOT_SUPPORTED || (status == CUBLAS_STATUS_SUCCESS && found == 0)) {
      throw GpuError(Fault::unsupported, "cuBLASLt has no kernel for this product on this GPU");
    }
    GPU_CHECK(status);
    GPU_CHECK(chosen_.state);
  }

  MatmulShape shape_;
  StoredMatrix a_, b_, c_;
  void* workspace_ = nullptr;
  DeviceBuffer unit_scale_;  ///< a 1 on the device, for fp8
  Owned<cublasLtMatmulDesc_t> product_;
  Owned<cublasLtMatrixLayout_t> layout_a_, layout_b_, layout_c_;
  cublasLtMatmulHeuristicResult_t chosen_ = {};
};

}  // namespace

std::unique_ptr<OperatorRunner> make_matmul(const OperatorSpec& spec, const RunnerSetting& setting) {
  return std::make_unique<MatmulRunner>(matmul_shape(spec), setting);
}

}  // namespace foretrain::gpu
