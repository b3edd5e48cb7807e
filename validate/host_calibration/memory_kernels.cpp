#include "validate/host_calibration/memory_kernels.hpp"

namespace foretrain {

namespace {

// The same loops for every width: W is the vector type of a width that the enclosing function's target has. Addresses
// need no alignment: memcpy of a vector becomes one unaligned load or store.
using V16 = std::uint64_t __attribute__((vector_size(16)));
using V32 = std::uint64_t __attribute__((vector_size(32)));
using V64 = std::uint64_t __attribute__((vector_size(64)));

#define FORETRAIN_INLINE __attribute__((always_inline)) inline
// A vector register in an assembler statement. Clang checks its size before it knows the target of the function that a
// loop is inlined into.
#if defined(__clang__)
#define FORETRAIN_VECTOR "+m"
#elif defined(__x86_64__)
#define FORETRAIN_VECTOR "+x"
#else
#define FORETRAIN_VECTOR "+w"
#endif

template <typename V>
FORETRAIN_INLINE void load(V& to, const std::byte* from) {
  __builtin_memcpy(&to, from, sizeof(V));
}
template <typename V>
FORETRAIN_INLINE void store(std::byte* to, const V& from) {
  __builtin_memcpy(to, &from, sizeof(V));
}

template <typename V>
FORETRAIN_INLINE std::uint64_t fold(const V& a, const V& b, const V& c, const V& d) {
  const V all = (a | b) | (c | d);
  std::uint64_t result = 0;
  for (std::size_t i = 0; i < sizeof(V) / sizeof(std::uint64_t); ++i) result |= all[i];
  return result;
}

/// into |= two vectors. AVX-512 has one instruction for it; two would keep both of its vector units busy, with nothing
/// left for the loop, and the L1 would wait.
template <typename V>
FORETRAIN_INLINE void gather(V& into, const std::byte* first, const std::byte* second) {
  V x, y;
  load(x, first);
  load(y, second);
#if defined(__x86_64__) && !defined(__clang__)
  if constexpr (sizeof(V) == 64) {
    asm("vpternlogq $0xfe, %2, %1, %0" : "+x"(into) : "x"(x), "xm"(y));
    return;
  }
#endif
  into |= x | y;
}

// Sixteen vectors a turn, 1 KiB at most, so that the loop's own instructions do not count; as many passes as asked for
// inside, so that calls, the last turn's mispredicted branch and the folding of the sums do not either.
template <typename V>
FORETRAIN_INLINE std::uint64_t read_loop(const std::byte* data, std::size_t bytes, std::size_t passes) {
  constexpr std::size_t step = sizeof(V);
  V a{}, b{}, c{}, d{};
  for (std::size_t pass = 0; pass < passes; ++pass) {
    for (const std::byte *at = data, *end = data + bytes; at != end; at += 16 * step) {
      gather(a, at, at + step);
      gather(b, at + 2 * step, at + 3 * step);
      gather(c, at + 4 * step, at + 5 * step);
      gather(d, at + 6 * step, at + 7 * step);
      gather(a, at + 8 * step, at + 9 * step);
      gather(b, at + 10 * step, at + 11 * step);
      gather(c, at + 12 * step, at + 13 * step);
      gather(d, at + 14 * step, at + 15 * step);
    }
    asm volatile("" : : : "memory");  // each pass loads anew
  }
  return fold(a, b, c, d);
}

template <typename V>
FORETRAIN_INLINE void write_loop(std::byte* data, std::size_t bytes, std::size_t passes) {
  constexpr std::size_t v = sizeof(V);
  V value{};
  asm volatile("" : FORETRAIN_VECTOR(value));  // no call of memset
  for (std::size_t pass = 0; pass < passes; ++pass) {
    for (std::byte *at = data, *end = data + bytes; at != end; at += 8 * v) {
      store(at, value);
      store(at + v, value);
      store(at + 2 * v, value);
      store(at + 3 * v, value);
      store(at + 4 * v, value);
      store(at + 5 * v, value);
      store(at + 6 * v, value);
      store(at + 7 * v, value);
    }
    asm volatile("" : : : "memory");
  }
}

template <typename V>
FORETRAIN_INLINE void copy_loop(std::byte* destination, const std::byte* source, std::size_t bytes,
                                std::size_t passes) {
  constexpr std::size_t v = sizeof(V);
  V x, y, z, w;
  for (std::size_t pass = 0; pass < passes; ++pass) {
    std::byte* to = destination;
    for (const std::byte *at = source, *end = source + bytes; at != end; at += 4 * v, to += 4 * v) {
      load(x, at);
      load(y, at + v);
      load(z, at + 2 * v);
      load(w, at + 3 * v);
      // No call of memcpy, which would write past the caches.
      asm volatile("" : FORETRAIN_VECTOR(x), FORETRAIN_VECTOR(y), FORETRAIN_VECTOR(z), FORETRAIN_VECTOR(w));
      store(to, x);
      store(to + v, y);
      store(to + 2 * v, z);
      store(to + 3 * v, w);
    }
    asm volatile("" : : : "memory");
  }
}

// NOLINTBEGIN(bugprone-macro-parentheses): a target is no expression
#define FORETRAIN_KERNELS(NAME, V, TARGET)                                                                             \
  TARGET std::uint64_t read_##NAME(const std::byte* d, std::size_t n, std::size_t p) { return read_loop<V>(d, n, p); } \
  TARGET void write_##NAME(std::byte* d, std::size_t n, std::size_t p) { write_loop<V>(d, n, p); }                     \
  TARGET void copy_##NAME(std::byte* to, const std::byte* from, std::size_t n, std::size_t p) {                        \
    copy_loop<V>(to, from, n, p);                                                                                      \
  }                                                                                                                    \
  constexpr MemoryKernels kernels_##NAME{read_##NAME, write_##NAME, copy_##NAME, static_cast<int>(sizeof(V))};
// NOLINTEND(bugprone-macro-parentheses)

FORETRAIN_KERNELS(plain, V16, )
#if defined(__x86_64__)
FORETRAIN_KERNELS(avx2, V32, __attribute__((target("avx2"))))
FORETRAIN_KERNELS(avx512, V64, __attribute__((target("avx512f"))))
#endif

}  // namespace

const MemoryKernels& memory_kernels() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) return kernels_avx512;
  if (__builtin_cpu_supports("avx2")) return kernels_avx2;
#endif
  return kernels_plain;
}

}  // namespace foretrain
