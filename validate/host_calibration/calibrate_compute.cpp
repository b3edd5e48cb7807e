// The part "compute": matrix products on the processor's cores, by OpenBLAS where it is installed.
#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "model/base/number.hpp"
#include "model/base/units.hpp"
#include "model/cost/cpu_matmul.hpp"
#include "validate/host_calibration/calibrate.hpp"
#include "validate/host_calibration/processors.hpp"
#include "validate/measure/clock.hpp"

namespace foretrain {

namespace {

/// C = A · B, square or not, row-major without gaps, as cblas_sgemm and cblas_dgemm are called.
template <typename T>
using Gemm = void (*)(int, int, int, int, int, int, T, const T*, int, const T*, int, T, T*, int);

/// OpenBLAS, where the system has it: loaded when it is asked for, since it starts threads of its own.
struct Blas {
  Gemm<float> single = nullptr;
  Gemm<double> twice = nullptr;
  void (*set_threads)(int) = nullptr;
  char* (*core)() = nullptr;  ///< for which processor the kernels in use were written: "SkylakeX"
};

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

/// Nothing when OpenBLAS is not installed.
std::optional<Blas> load_blas() {
  choose_kernels();
  // It stays loaded: its threads run its code until the program ends.
  void* library = dlopen("libopenblas.so.0", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) library = dlopen("libopenblas.so", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return std::nullopt;
  Blas blas;
  const auto find = [library](auto& function, const char* name) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, name));
    return function != nullptr;
  };
  find(blas.core, "openblas_get_corename");
  const bool whole = find(blas.single, "cblas_sgemm") && find(blas.twice, "cblas_dgemm") &&
                     find(blas.set_threads, "openblas_set_num_threads");
  return whole ? std::optional(blas) : std::nullopt;
}

using Parameters = std::map<std::string, std::string>;

struct Shape {
  int m, n, k;
};
// Squares from a few tiles to many caches, a short k, and a skinny product of few rows.
constexpr Shape shapes[] = {{64, 64, 64},       {128, 128, 128},    {256, 256, 256},  {512, 512, 512},
                            {1024, 1024, 1024}, {2048, 2048, 2048}, {2048, 2048, 32}, {16, 2048, 2048}};

int parameter(const Parameters& parameters, const char* key) {
  return static_cast<int>(parse_integer(parameters.at(key), 1, 1'000'000));
}

template <typename T>
Sampled time_products(Gemm<T> gemm, const Shape& shape, Seconds budget, bool alone) {
  const auto elements = [](int a, int b) { return at_index(a) * at_index(b); };
  const std::vector<T> a(elements(shape.m, shape.k), T(1)), b(elements(shape.k, shape.n), T(1));
  std::vector<T> c(elements(shape.m, shape.n));
  const double work = 2.0 * shape.m * shape.n * shape.k;
  // A single thread by the processor time that it got, several by the clock: their rates add up only as far as they ran
  // at the same time.
  const auto time = alone ? thread_time : now;
  const int repetitions = std::max(1, static_cast<int>(2e7 / work));
  return sample(
      [&] {
        const double start = time();
        for (int i = 0; i < repetitions; ++i) {
          gemm(row_major, not_transposed, not_transposed, shape.m, shape.n, shape.k, T(1), a.data(), shape.k, b.data(),
               shape.n, T(0), c.data(), shape.n);
        }
        return work * repetitions / (time() - start);
      },
      {.warm_up = 1, .least = 3, .most = 300, .target = 0.005, .budget = budget});
}

void measure_products(const CalibrationSettings& settings, const RowSink& sink) {
  const std::optional<Blas> blas = load_blas();
  if (!blas) {
    sink(not_measured("cpu_matmul", {}, "OpenBLAS is not installed (Debian: libopenblas0)"));
    return;
  }
  std::vector<int> threads = {1};
  if (settings.node.cpu.cores > 1) threads.push_back(settings.node.cpu.cores);
  // In rounds over all of them, and a single thread on another processor in each: what other virtual machines take of
  // the processor changes within seconds.
  const int rounds = settings.quick ? 1 : 3;
  const Seconds budget = settings.budget / number(2 * std::size(shapes) * threads.size()) / rounds;
  std::map<Parameters, Sampled> sampled;
  const std::vector<int> processors = own_processors();
  for (int round = 0; round < rounds; ++round) {
    for (const int count : threads) {
      blas->set_threads(count);
      std::optional<BoundTo> bound;
      if (count == 1) bound.emplace(processors[at_index(round) % processors.size()]);
      for (const char* precision : {"fp32", "fp64"}) {
        for (const Shape& shape : shapes) {
          if (settings.quick && shape.m >= 2048 && shape.k >= 2048) continue;  // a second and more on a slow machine
          const Parameters parameters = {{"m", fmt::format("{}", shape.m)},
                                         {"n", fmt::format("{}", shape.n)},
                                         {"k", fmt::format("{}", shape.k)},
                                         {"precision", precision},
                                         {"threads", fmt::format("{}", count)}};
          const Sampled more = std::string_view(precision) == "fp32"
                                   ? time_products(blas->single, shape, budget, count == 1)
                                   : time_products(blas->twice, shape, budget, count == 1);
          std::vector<double>& values = sampled[parameters].values;
          values.insert(values.end(), more.values.begin(), more.values.end());
          if (round + 1 < rounds) continue;
          BenchmarkRow row = row_of("cpu_matmul", parameters, sampled[parameters], "FLOP/s");
          if (blas->core != nullptr) row.note = blas->core();
          sink(std::move(row));
        }
      }
    }
  }
}

std::optional<double> predict_product(const BenchmarkRow& row, const Node& node) {
  if (!node.cpu.hierarchy || row.samples == 0) return std::nullopt;
  CpuMatmul work;
  work.m = parameter(row.parameters, "m");
  work.n = parameter(row.parameters, "n");
  work.k = parameter(row.parameters, "k");
  work.threads = parameter(row.parameters, "threads");
  work.precision = row.parameters.at("precision") == "fp64" ? Precision::fp64 : Precision::fp32;
  const CpuMatmulCost cost = cpu_matmul_cost(work, node.cpu);
  return (cost.flops / cost.time).value();
}

}  // namespace

std::vector<HostBenchmark> compute_benchmarks() {
  return {{"compute", "cpu_matmul", "matrix products by OpenBLAS", Seconds(30.0), Seconds(5.0), 0.25, measure_products,
           predict_product}};
}

}  // namespace foretrain
