// OpenBLAS, where the system has it: loaded when it is asked for, since it starts threads of its own.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

namespace foretrain {

class Blas {
 public:
  /// Nothing when OpenBLAS is not installed.
  static std::unique_ptr<Blas> load();
  ~Blas();
  Blas(const Blas&) = delete;
  Blas& operator=(const Blas&) = delete;

  void set_threads(int threads) const;
  /// For which processor the kernels in use were written: "SkylakeX".
  [[nodiscard]] std::string kernels() const;
  /// C = A · B, square or not, row-major without gaps.
  void multiply(int m, int n, int k, const float* a, const float* b, float* c) const;
  void multiply(int m, int n, int k, const double* a, const double* b, double* c) const;

 private:
  struct Functions;
  explicit Blas(std::unique_ptr<Functions> functions);
  std::unique_ptr<Functions> functions_;
};

}  // namespace foretrain
