#include "validate/host_calibration/blas.hpp"

#include <dlfcn.h>

#include <cstdlib>
#include <utility>

namespace foretrain {

namespace {

// Values of cblas.h, which need not be installed.
constexpr int row_major = 101, not_transposed = 111;

template <typename T>
using Gemm = void (*)(int, int, int, int, int, int, T, const T*, int, const T*, int, T, T*, int);

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

struct Blas::Functions {
  void* library = nullptr;
  Gemm<float> single = nullptr;
  Gemm<double> twice = nullptr;
  void (*set_threads)(int) = nullptr;
  char* (*core)() = nullptr;

  Functions() = default;
  Functions(const Functions&) = delete;
  Functions& operator=(const Functions&) = delete;
  // The library stays loaded: its threads run its code until the program ends.
  ~Functions() = default;
};

Blas::Blas(std::unique_ptr<Functions> functions) : functions_(std::move(functions)) {}
Blas::~Blas() = default;

std::unique_ptr<Blas> Blas::load() {
  choose_kernels();
  auto f = std::make_unique<Functions>();
  for (const char* name : {"libopenblas.so.0", "libopenblas.so"}) {
    f->library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (f->library != nullptr) break;
  }
  if (f->library == nullptr) return nullptr;
  const auto find = [&](auto& function, const char* name) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(f->library, name));
  };
  find(f->single, "cblas_sgemm");
  find(f->twice, "cblas_dgemm");
  find(f->set_threads, "openblas_set_num_threads");
  find(f->core, "openblas_get_corename");
  if (f->single == nullptr || f->twice == nullptr || f->set_threads == nullptr) return nullptr;
  return std::unique_ptr<Blas>(new Blas(std::move(f)));
}

void Blas::set_threads(int threads) const { functions_->set_threads(threads); }

std::string Blas::kernels() const { return functions_->core != nullptr ? functions_->core() : ""; }

void Blas::multiply(int m, int n, int k, const float* a, const float* b, float* c) const {
  functions_->single(row_major, not_transposed, not_transposed, m, n, k, 1.0F, a, k, b, n, 0.0F, c, n);
}
void Blas::multiply(int m, int n, int k, const double* a, const double* b, double* c) const {
  functions_->twice(row_major, not_transposed, not_transposed, m, n, k, 1.0, a, k, b, n, 0.0, c, n);
}

}  // namespace foretrain
