#include "validate/host_calibration/arithmetic.hpp"

#include "validate/measure/clock.hpp"

namespace foretrain {

#if defined(__x86_64__)

namespace {

// Twelve accumulators: more than two units of four cycles have on the way.
#define FORETRAIN_TWELVE(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11)
#define FORETRAIN_REGISTERS \
  "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm15"
#define FORETRAIN_WIDE(N) "vfmadd231ps %%zmm15, %%zmm15, %%zmm" #N "\n"
#define FORETRAIN_HALF(N) "vfmadd231ps %%ymm15, %%ymm15, %%ymm" #N "\n"
#define FORETRAIN_ZERO(N) "vpxor %%xmm" #N ", %%xmm" #N ", %%xmm" #N "\n"  // no denormals, no infinities

constexpr int fma_turns = 5'000, in_a_turn = 12;

__attribute__((target("avx512f"))) double wide_fma() {
  asm volatile(FORETRAIN_TWELVE(FORETRAIN_ZERO) FORETRAIN_ZERO(15) : : : FORETRAIN_REGISTERS);
  const double start = now();
  for (int i = 0; i < fma_turns; ++i) asm volatile(FORETRAIN_TWELVE(FORETRAIN_WIDE) : : : FORETRAIN_REGISTERS);
  return fma_turns * in_a_turn / (now() - start);
}

__attribute__((target("avx2,fma"))) double half_fma() {
  asm volatile(FORETRAIN_TWELVE(FORETRAIN_ZERO) FORETRAIN_ZERO(15) : : : FORETRAIN_REGISTERS);
  const double start = now();
  for (int i = 0; i < fma_turns; ++i) asm volatile(FORETRAIN_TWELVE(FORETRAIN_HALF) : : : FORETRAIN_REGISTERS);
  return fma_turns * in_a_turn / (now() - start);
}

}  // namespace

double multiply_adds_per_second() {
  if (__builtin_cpu_supports("avx512f")) return wide_fma();
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return half_fma();
  return 0.0;
}

#else

double multiply_adds_per_second() { return 0.0; }

#endif

}  // namespace foretrain
