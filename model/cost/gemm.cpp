#include "model/cost/gemm.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "model/cost/power.hpp"

namespace foretrain {
namespace {

// Accumulators of resident tiles fill half of a multiprocessor's 64 Ki registers.
constexpr double resident_elements = 32768.0;
constexpr double max_resident = 8.0;
constexpr int max_split = 64;

// From Hopper on, kernels stay on their multiprocessor and write one tile while they compute the next (CUTLASS 3,
// persistent warp-specialised kernels).
constexpr double persistent_kernels_since = 9.0;

struct Tile {
  double rows, columns;
  double area = rows * columns;
  double boundary = 1.0 / rows + 1.0 / columns;  // loads per multiplication
  double resident = std::clamp(resident_elements / area, 1.0, max_resident);
};

// Thread-block tiles of cuBLAS and CUTLASS kernels.
constexpr std::array<Tile, 14> tiles = {{{256, 128},
                                         {128, 256},
                                         {128, 128},
                                         {256, 64},
                                         {64, 256},
                                         {128, 64},
                                         {64, 128},
                                         {64, 64},
                                         {128, 32},
                                         {32, 128},
                                         {64, 32},
                                         {32, 64},
                                         {128, 16},
                                         {64, 16}}};

// Shape and device as plain numbers in base units: the search below evaluates some fifty candidates.
struct Problem {
  double batch, m, n, k;
  double sms;
  double seconds_per_flop;  // of one multiprocessor at the sustained clock, unlimited tile
  double tile_loss;         // elements
  double tile_start;        // seconds
  double memory;            // seconds of traffic to device memory
  double part;              // seconds to write and read the unsplit result once, in fp32, through the L2
  double fixed;             // seconds
  double exposed;
  bool persistent;
};

struct Candidate {
  double compute = 0.0, start = 0.0, fixed = 0.0;  // seconds

  [[nodiscard]] double body(const Problem& p) const {
    return start + std::max(compute, p.memory) + p.exposed * std::min(compute, p.memory);
  }
};

// Much faster than std::ceil without SSE 4.1; arguments are positive and far below 2^63.
double round_up(double x) {
  const auto whole = static_cast<double>(static_cast<std::int64_t>(x));
  return whole < x ? whole + 1.0 : whole;
}

// Operands and result over bandwidth. One round of tiles covers about a square of the result of side sqrt(S · resident
// elements); operands larger than the L2 are read again for the next round.
Seconds memory_time(const Gemm& gemm, const Gpu& gpu, const StreamingConstants& constants) {
  const double side = std::sqrt(gpu.sms * resident_elements);
  const double shorter = static_cast<double>(std::min(gemm.m, gemm.n));
  const bool stays = gemm.operands <= gpu.l2_cache * static_cast<double>(gemm.batch);
  const double readings = stays ? 1.0 : std::max(1.0, shorter / side);
  return (gemm.operands * readings + gemm.result) / (gpu.memory_bandwidth * constants.bandwidth_efficiency);
}

Problem state(const Gemm& gemm, const Gpu& gpu, const Calibration& calibration) {
  const MatmulConstants& c = calibration.matmul;
  const bool tensor = uses_tensor_cores(gpu, gemm.precision);
  const FlopsPerSecond rate = gpu.matrix_rate(gemm.precision) *
                              sustained_clock(gpu, gemm.precision, calibration.power) *
                              (tensor ? 1.0 : c.vector_efficiency);
  Problem p{};
  p.batch = static_cast<double>(gemm.batch);
  p.m = static_cast<double>(gemm.m);
  p.n = static_cast<double>(gemm.n);
  p.k = static_cast<double>(gemm.k);
  p.sms = gpu.sms;
  p.seconds_per_flop = p.sms / rate.value();
  p.tile_loss = tensor ? c.tile_loss : 0.0;
  p.tile_start = (gpu.memory_latency * c.tile_latencies).value();
  p.memory = memory_time(gemm, gpu, calibration.streaming).value();
  p.part = (2.0 * p.batch * p.m * p.n * bytes_per_element(Precision::fp32) / gpu.l2_bandwidth).value();
  p.fixed = c.fixed_us * 1e-6;
  p.exposed = c.exposed_share;
  p.persistent = gpu.compute_capability >= persistent_kernels_since;
  return p;
}

Candidate price(const Problem& p, const Tile& tile, double blocks, double split) {
  const double waves = round_up(blocks * split / p.sms);
  const double rounds = p.persistent ? 1.0 : round_up(waves / tile.resident);
  const double flops = waves * round_up(p.k / split) * 2.0 * tile.area;
  Candidate candidate;
  candidate.compute = flops * p.seconds_per_flop * (1.0 + p.tile_loss * tile.boundary);
  candidate.start = rounds * p.tile_start + (split > 1.0 ? split * p.part : 0.0);
  candidate.fixed = split > 1.0 ? 2.0 * p.fixed : p.fixed;
  return candidate;
}

Candidate best_candidate(const Problem& p) {
  Candidate best;
  double shortest = std::numeric_limits<double>::infinity();
  for (const Tile& tile : tiles) {
    const double blocks = p.batch * round_up(p.m / tile.rows) * round_up(p.n / tile.columns);
    for (int split = 1; split == 1 || (split <= max_split && blocks * split < 2.0 * p.sms); split *= 2) {
      const Candidate candidate = price(p, tile, blocks, split);
      const double time = candidate.body(p) + candidate.fixed;
      if (time < shortest) {
        shortest = time;
        best = candidate;
      }
    }
  }
  return best;
}

}  // namespace

GemmTime gemm_time(const Gemm& gemm, const Gpu& gpu, const Calibration& calibration) {
  const Problem p = state(gemm, gpu, calibration);
  const Candidate best = best_candidate(p);
  Bound bound = best.compute >= p.memory ? Bound::compute : Bound::memory;
  if (best.start + best.fixed > std::max(best.compute, p.memory)) bound = Bound::latency;
  return {Seconds(best.body(p)), Seconds(best.fixed), bound};
}

}  // namespace foretrain
