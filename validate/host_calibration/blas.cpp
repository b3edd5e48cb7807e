#include "validate/host_calibration/blas.hpp"

#include <dlfcn.h>

#include <cstdlib>
#include <type_traits>

namespace foretrain {

namespace {

// Values of cblas.h, which need not be installed.
constexpr int row_major = 101, not_transposed = 111;

/// A library older than the processor does not know it, and falls back to kernels of the first 64-bit ones: 4 lanes of
/// 16. Kernels for what the processor can do are named instead, unless the user has named some.
void choose_kernels() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq")) {
    setenv("OPENBLAS_CORETYPE", "SkylakeX", 0);
  } else if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
    setenv("OPENBLAS_CORETYPE", "Haswell", 0);
  }
#endif
}

}  // namespace

std::optional<Blas> Blas::load() {
  choose_kernels();
  // It stays loaded: its threads run its code until the program ends.
  void* library = dlopen("libopenblas.so.0", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) library = dlopen("libopenblas.so", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return std::nullopt;
  Blas blas;
  const auto find = [library](auto& function, const char* name) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, name));
  };
  find(blas.single_, "cblas_sgemm");
  find(blas.twice_, "cblas_dgemm");
  find(blas.set_threads_, "openblas_set_num_threads");
  find(blas.core_, "openblas_get_corename");
  if (blas.single_ == nullptr || blas.twice_ == nullptr || blas.set_threads_ == nullptr) return std::nullopt;
  return blas;
}

void Blas::multiply(int m, int n, int k, const float* a, const float* b, float* c) const {
  single_(row_major, not_transposed, not_transposed, m, n, k, 1.0F, a, k, b, n, 0.0F, c, n);
}
void Blas::multiply(int m, int n, int k, const double* a, const double* b, double* c) const {
  twice_(row_major, not_transposed, not_transposed, m, n, k, 1.0, a, k, b, n, 0.0, c, n);
}

}  // namespace foretrain
