#include "validate/cuda/math/matmul.hpp"

#include <algorithm>
#include <cstdio>
#include <stdexcept>

#include "validate/cuda/core/per_device.hpp"
#include "validate/cuda/math/format.hpp"

namespace foretrain::gpu {

namespace {

/// What PyTorch and others give on Hopper; less for older GPUs changes little (cuBLAS documentation,
/// cublasSetWorkspace).
constexpr std::size_t workspace_bytes = std::size_t{32} << 20;

/// One for each GPU, since it belongs to the device that is current when it is made (cublasLtCreate): making it takes
/// longer than many measurements, and it holds no state that matters.
cublasLtHandle_t handle() {
  static PerDevice<cublasLtHandle_t> handles;
  cublasLtHandle_t& made = handles.here();
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
  if (accumulate_fp32) return Format::fp32;
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

/// What cuBLASLt says of the algorithm that it chose; 0 for what it does not say.
std::uint32_t chosen(const cublasLtMatmulAlgo_t& algorithm, cublasLtMatmulAlgoConfigAttributes_t attribute) {
  std::uint32_t value = 0;
  std::size_t written = 0;
  const auto status = cublasLtMatmulAlgoConfigGetAttribute(&algorithm, attribute, &value, sizeof(value), &written);
  return status == CUBLAS_STATUS_SUCCESS ? value : 0;
}

void check_alignment(const MatmulShape& shape, Format format) {
  const auto multiple = [](std::int64_t size, std::int64_t of) { return size % of == 0; };
  if (format == Format::int8 && !(multiple(shape.n, 4) && multiple(shape.k, 4))) {
    throw GpuError(Fault::unsupported, "int8 products need n and k to be multiples of 4");
  }
  if (format == Format::fp8 && !(multiple(shape.n, 16) && multiple(shape.k, 16))) {
    throw GpuError(Fault::unsupported, "fp8 products need n and k to be multiples of 16");
  }
  if (format == Format::int8 && (shape.accumulate || shape.accumulate_fp32)) {
    throw GpuError(Fault::unsupported, "int8 products are not added to anything here");
  }
}

}  // namespace

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

MatmulRunner::MatmulRunner(const MatmulShape& shape, const RunnerSetting& setting) : shape_(shape) {
  const Format format = format_of(shape_.precision);
  check_alignment(shape_, format);
  if (along_k_only(format)) {
    shape_.transpose_a = false;
    shape_.transpose_b = true;
  }
  const MatmulShape& s = shape_;
  a_ = stored(format, s.transpose_a ? s.k : s.m, s.transpose_a ? s.m : s.k, s.batch, s.padded);
  b_ = stored(format, s.transpose_b ? s.n : s.k, s.transpose_b ? s.k : s.n, s.batch, s.padded);
  const bool wide = s.accumulate_fp32 && format != Format::fp64;
  c_ = stored(result_format(format, wide), s.m, s.n, s.batch, s.padded);
  if (format == Format::fp8) {
    const float one = 1.0F;
    scale_ = DeviceBuffer(sizeof(one));
    GPU_CHECK(cudaMemcpy(scale_.data(), &one, sizeof(one), cudaMemcpyHostToDevice));
    unit_scale_ = scale_.data();
  }
  describe();
  choose();  // before memory is taken: what cannot be done costs none
  setting.memory.begin_operator();
  workspace_ = setting.memory.workspace(workspace_bytes);
  const int sets = setting.rotation == no_operands ? 0 : gpu::operand_sets(setting.rotation, bytes());
  for (int i = 0; i < sets; ++i) {
    const Use result = s.accumulate ? Use::kept : Use::written;
    sets_.push_back({setting.memory.take(a_.bytes(), a_.format, Use::read),
                     setting.memory.take(b_.bytes(), b_.format, Use::read),
                     setting.memory.take(c_.bytes(), c_.format, result)});
  }
}

/// cuBLASLt counts columns first. A matrix whose rows lie one behind the other is, to it, the transposed matrix; so it
/// is asked for Cᵀ = Bᵀ · Aᵀ, and our B is its A.
MatmulRunner::Owned<cublasLtMatrixLayout_t> MatmulRunner::layout_of(const StoredMatrix& matrix) {
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

void MatmulRunner::describe() {
  cublasLtMatmulDesc_t product = nullptr;
  GPU_CHECK(cublasLtMatmulDescCreate(&product, compute_type(shape_.precision), scale_type(shape_.precision)));
  product_.reset(product);
  set<std::int32_t>(product, CUBLASLT_MATMUL_DESC_TRANSA, shape_.transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N);
  set<std::int32_t>(product, CUBLASLT_MATMUL_DESC_TRANSB, shape_.transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N);
  if (a_.format == Format::fp8) {
    set(product, CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, unit_scale_);
    set(product, CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, unit_scale_);
    set<std::int8_t>(product, CUBLASLT_MATMUL_DESC_FAST_ACCUM, 1);
  }
  layout_a_ = layout_of(a_);
  layout_b_ = layout_of(b_);
  layout_c_ = layout_of(c_);
}

void MatmulRunner::choose() {
  cublasLtMatmulPreference_t preference = nullptr;
  GPU_CHECK(cublasLtMatmulPreferenceCreate(&preference));
  const std::unique_ptr<std::remove_pointer_t<cublasLtMatmulPreference_t>,
                        cublasStatus_t (*)(cublasLtMatmulPreference_t)>
      owned(preference, cublasLtMatmulPreferenceDestroy);
  GPU_CHECK(cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace_bytes,
                                                 sizeof(workspace_bytes)));
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

void MatmulRunner::launch_on(cudaStream_t stream, const void* a, const void* b, void* c, float alpha) {
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
  const Number factor = number(alpha), kept = number(shape_.accumulate ? 1.0F : 0.0F);
  GPU_CHECK(cublasLtMatmul(handle(), product_.get(), &factor, b, layout_b_.get(), a, layout_a_.get(), &kept, c,
                           layout_c_.get(), c, layout_c_.get(), &chosen_.algo, workspace_, workspace_bytes, stream));
}

void MatmulRunner::launch(cudaStream_t stream, int turn) {
  const int sets = operand_sets();
  const Operands& operands = sets_[static_cast<std::size_t>(turn % sets)];
  const bool subtract = shape_.accumulate && turn / sets % 2 == 1;
  launch_on(stream, operands.a, operands.b, operands.c, subtract ? -1.0F : 1.0F);
}

int MatmulRunner::kernels() const {
  const bool reduces = chosen(chosen_.algo, CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME) > CUBLASLT_REDUCTION_SCHEME_INPLACE;
  return reduces && chosen(chosen_.algo, CUBLASLT_ALGO_CONFIG_SPLITK_NUM) > 1 ? 2 : 1;
}

std::map<std::string, std::string> MatmulRunner::parameters() const {
  const auto number = [&](cublasLtMatmulAlgoConfigAttributes_t attribute) {
    return std::to_string(chosen(chosen_.algo, attribute));
  };
  char waves[32] = "";
  std::snprintf(waves, sizeof(waves), "%.3f", static_cast<double>(chosen_.wavesCount));
  std::map<std::string, std::string> texts = {
      {"algorithm", number(CUBLASLT_ALGO_CONFIG_ID) + "." + number(CUBLASLT_ALGO_CONFIG_CUSTOM_OPTION)},
      {"tile", number(CUBLASLT_ALGO_CONFIG_TILE_ID)},
      {"stages", number(CUBLASLT_ALGO_CONFIG_STAGES_ID)},
      {"split_k", number(CUBLASLT_ALGO_CONFIG_SPLITK_NUM)},
      {"workspace_bytes", std::to_string(chosen_.workspaceSize)},
      {"waves", waves}};
  if (along_k_only(a_.format)) texts["storage"] = "both operands along k";
  return texts;
}

std::unique_ptr<OperatorRunner> make_matmul(const OperatorSpec& spec, const RunnerSetting& setting) {
  return std::make_unique<MatmulRunner>(matmul_shape(spec), setting);
}

}  // namespace foretrain::gpu
