#include "validate/host_calibration/processors.hpp"

#include <algorithm>
#include <barrier>
#include <cstdint>
#include <functional>
#include <thread>

#include "model/base/number.hpp"
#include "validate/measure/clock.hpp"

namespace foretrain {

std::vector<int> own_processors() {
  std::vector<int> result;
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) == 0) {
    for (int i = 0; i < CPU_SETSIZE; ++i) {
      if (CPU_ISSET(i, &set)) result.push_back(i);
    }
  }
  if (result.empty()) result.push_back(0);
  return result;
}

BoundTo::BoundTo(int processor) {
  CPU_ZERO(&before_);
  sched_getaffinity(0, sizeof before_, &before_);
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(at_index(processor), &one);
  sched_setaffinity(0, sizeof one, &one);
}

BoundTo::~BoundTo() { sched_setaffinity(0, sizeof before_, &before_); }

#if defined(__x86_64__)
namespace {

/// Multiplications a second, of four chains that wait for nothing but the multiplier.
double multiply() {
  constexpr int turns = 50'000;
  std::uint64_t a = 3, b = 5, c = 7, d = 9;
  const double start = now();
  for (int i = 0; i < turns; ++i) {
    asm volatile("imul %0, %0\n imul %1, %1\n imul %2, %2\n imul %3, %3" : "+r"(a), "+r"(b), "+r"(c), "+r"(d));
  }
  return 4.0 * turns / (now() - start);
}

// Twelve accumulators: more than two units of four cycles have on the way.
#define FORETRAIN_TWELVE(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11)
#define FORETRAIN_REGISTERS \
  "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm15"
#define FORETRAIN_WIDE(N) "vfmadd231ps %%zmm15, %%zmm15, %%zmm" #N "\n"
#define FORETRAIN_HALF(N) "vfmadd231ps %%ymm15, %%ymm15, %%ymm" #N "\n"
#define FORETRAIN_ZERO(N) "vpxor %%xmm" #N ", %%xmm" #N ", %%xmm" #N "\n"  // no denormals, no infinities

#define FORETRAIN_FMA(NAME, TARGET, STEP)                                                           \
  __attribute__((target(TARGET))) double NAME() {                                                   \
    constexpr int turns = 5'000, in_a_turn = 12;                                                    \
    asm volatile(FORETRAIN_TWELVE(FORETRAIN_ZERO) FORETRAIN_ZERO(15) : : : FORETRAIN_REGISTERS);    \
    const double start = now();                                                                     \
    for (int i = 0; i < turns; ++i) asm volatile(FORETRAIN_TWELVE(STEP) : : : FORETRAIN_REGISTERS); \
    return turns * in_a_turn / (now() - start);                                                     \
  }
FORETRAIN_FMA(wide_fma, "avx512f", FORETRAIN_WIDE)
FORETRAIN_FMA(half_fma, "avx2,fma", FORETRAIN_HALF)

/// Two threads that do nothing but multiply integers, of which a core starts one a cycle: together they do twice one's
/// work on two cores and as much as one on the same. Other machines' work on the cores takes from both, so that the
/// best of several trials counts.
double work_of_two(int first, int second) {
  constexpr int trials = 20;
  double alone = 0.0, together = 0.0;
  for (int trial = 0; trial < trials; ++trial) {
    {
      const BoundTo bound(trial % 2 == 0 ? first : second);
      alone = std::max(alone, multiply());
    }
    std::barrier meet(2);
    const auto work_on = [&meet](int processor, double& work) {
      const BoundTo bound(processor);
      meet.arrive_and_wait();
      work = multiply();
    };
    double own = 0.0, other = 0.0;
    std::thread thread(work_on, second, std::ref(other));
    work_on(first, own);
    thread.join();
    together = std::max(together, own + other);
  }
  return together / alone;
}

}  // namespace

double multiply_adds_per_second() {
  if (__builtin_cpu_supports("avx512f")) return wide_fma();
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return half_fma();
  return 0.0;
}

int threads_of_first_core() {
  const std::vector<int> processors = own_processors();
  int count = 1;
  for (std::size_t i = 1; i < processors.size(); ++i) {
    if (work_of_two(processors.front(), processors[i]) < 1.5) ++count;  // half-way between one core and two
  }
  return processors.size() > 1 ? count : 0;
}
#else
double multiply_adds_per_second() { return 0.0; }
int threads_of_first_core() { return 0; }
#endif

double core_clock() {
  constexpr int additions = 400'000;
  double best = 0.0;
  for (int repetition = 0; repetition < 25; ++repetition) {
    std::uint64_t x = 1, one = 1;
    const double start = now();
    for (int i = 0; i < additions; i += 8) {
#if defined(__x86_64__)
      asm volatile(
          "add %1, %0\n add %1, %0\n add %1, %0\n add %1, %0\n add %1, %0\n add %1, %0\n add %1, %0\n add %1, %0"
          : "+r"(x)
          : "r"(one));
#else
      for (int j = 0; j < 8; ++j) asm volatile("add %0, %0, %1" : "+r"(x) : "r"(one));
#endif
    }
    asm volatile("" : : "r"(x));
    best = std::max(best, additions / (now() - start));
  }
  return best;
}

}  // namespace foretrain
