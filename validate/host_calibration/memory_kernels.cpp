#include "validate/host_calibration/memory_kernels.hpp"

#include <cstdint>

namespace foretrain {

namespace {

// The same loops for every width: V is the vector type of a width that the enclosing function's target has. Addresses
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

/// A load even if its value is unused: no call of memcpy, and no arithmetic, which would take issue slots.
template <typename V>
FORETRAIN_INLINE void load(V& to, const std::byte* from) {
  __builtin_memcpy(&to, from, sizeof(V));
  asm volatile("" : FORETRAIN_VECTOR(to));
}

template <typename V>
FORETRAIN_INLINE void store(std::byte* to, const V& from) {
  __builtin_memcpy(to, &from, sizeof(V));
}

// Many vectors a turn, 1 KiB at most, so that the loop's own instructions do not count; as many passes as asked for
// inside, so that calls and the last turn's mispredicted branch do not either.
template <typename V>
FORETRAIN_INLINE void read_loop(const std::byte* data, std::size_t bytes, std::size_t passes) {
  V value;
  for (std::size_t pass = 0; pass < passes; ++pass) {
    for (const std::byte *at = data, *end = data + bytes; at != end; at += 16 * sizeof(V)) {
#pragma GCC unroll 16
      for (std::size_t i = 0; i < 16; ++i) load(value, at + i * sizeof(V));
    }
  }
}

template <typename V>
FORETRAIN_INLINE void write_loop(std::byte* data, std::size_t bytes, std::size_t passes) {
  V value{};
  asm volatile("" : FORETRAIN_VECTOR(value));  // no call of memset
  for (std::size_t pass = 0; pass < passes; ++pass) {
    for (std::byte *at = data, *end = data + bytes; at != end; at += 8 * sizeof(V)) {
#pragma GCC unroll 8
      for (std::size_t i = 0; i < 8; ++i) store(at + i * sizeof(V), value);
    }
    asm volatile("" : : : "memory");  // each pass stores anew
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
      store(to, x);
      store(to + v, y);
      store(to + 2 * v, z);
      store(to + 3 * v, w);
    }
    asm volatile("" : : : "memory");
  }
}

// NOLINTBEGIN(bugprone-macro-parentheses): a target is no expression
#define FORETRAIN_KERNELS(NAME, V, TARGET)                                                             \
  TARGET void read_##NAME(const std::byte* d, std::size_t n, std::size_t p) { read_loop<V>(d, n, p); } \
  TARGET void write_##NAME(std::byte* d, std::size_t n, std::size_t p) { write_loop<V>(d, n, p); }     \
  TARGET void copy_##NAME(std::byte* to, const std::byte* from, std::size_t n, std::size_t p) {        \
    copy_loop<V>(to, from, n, p);                                                                      \
  }                                                                                                    \
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
