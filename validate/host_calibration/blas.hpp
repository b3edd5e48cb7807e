// OpenBLAS, where the system has it: loaded when it is asked for, since it starts threads of its own.
#pragma once

#include <optional>
#include <string>

namespace foretrain {

class Blas {
 public:
  /// Nothing when OpenBLAS is not installed.
  static std::optional<Blas> load();

  void set_threads(int threads) const { set_threads_(threads); }
  /// For which processor the kernels in use were written: "SkylakeX".
  [[nodiscard]] std::string kernels() const { return core_ != nullptr ? core_() : ""; }
  /// C = A · B, square or not, row-major without gaps.
  void multiply(int m, int n, int k, const float* a, const float* b, float* c) const;
  void multiply(int m, int n, int k, const double* a, const double* b, double* c) const;

 private:
  template <typename T>
  using Gemm = void (*)(int, int, int, int, int, int, T, const T*, int, const T*, int, T, T*, int);

  Blas() = default;
  Gemm<float> single_ = nullptr;
  Gemm<double> twice_ = nullptr;
  void (*set_threads_)(int) = nullptr;
  char* (*core_)() = nullptr;
};

}  // namespace foretrain
