// The part "compute": matrix products on the processor's cores, by OpenBLAS where it is installed.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "model/base/number.hpp"
#include "model/base/units.hpp"
#include "model/cost/cpu_matmul.hpp"
#include "validate/host_calibration/blas.hpp"
#include "validate/host_calibration/calibrate.hpp"
#include "validate/host_calibration/processors.hpp"
#include "validate/measure/clock.hpp"

namespace foretrain {

namespace {

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
Sampled time_products(const Blas& blas, const Shape& shape, Seconds budget, bool alone) {
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
        for (int i = 0; i < repetitions; ++i) blas.multiply(shape.m, shape.n, shape.k, a.data(), b.data(), c.data());
        return work * repetitions / (time() - start);
      },
      {.warm_up = 1, .least = 3, .most = 300, .target = 0.005, .budget = budget});
}

void measure_products(const CalibrationSettings& settings, const RowSink& sink) {
  const std::optional<Blas> blas = Blas::load();
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
                                   ? time_products<float>(*blas, shape, budget, count == 1)
                                   : time_products<double>(*blas, shape, budget, count == 1);
          std::vector<double>& values = sampled[parameters].values;
          values.insert(values.end(), more.values.begin(), more.values.end());
          if (round + 1 < rounds) continue;
          BenchmarkRow row = row_of("cpu_matmul", parameters, sampled[parameters], "FLOP/s");
          row.note = blas->kernels();
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
