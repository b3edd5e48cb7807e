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
constexpr double max_split = 64.0;
constexpr int split_waves = 4;

// Loads that a multiprocessor's load/store units start per clock (architecture whitepapers, Volta to Hopper); each
// element of a tile is loaded and put into shared memory.
constexpr double load_lanes = 32.0;
constexpr double loads_per_piece = 2.0;
constexpr Bytes longest_load(16.0);
// Pieces below four bytes cannot be copied beside the multiplication (PTX ISA, cp.async): they pass through registers.
constexpr Bytes shortest_copy(4.0);

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
  double vector_compute;    // seconds, multiplied on all CUDA cores
  double seconds_per_load;  // of one multiprocessor, one element of A or B
  double memory;            // seconds of traffic to device memory
  double part;              // seconds to write and read the unsplit result once, in fp32, through the L2
  double fixed;             // seconds
  double exposed;
  bool persistent;
  bool loads_apart;  // loads take turns with multiplications
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

double round_down(double x) { return static_cast<double>(static_cast<std::int64_t>(x)); }

// Operands and result over bandwidth. One round of tiles covers about a square of the result of side sqrt(S · resident
// elements); operands larger than the L2 are read again for the next round.
Seconds memory_time(const Gemm& gemm, const Gpu& gpu, const Calibration& calibration) {
  const double side = std::sqrt(gpu.sms * resident_elements);
  const double shorter = static_cast<double>(std::min(gemm.m, gemm.n));
  const bool stays = gemm.operands <= gpu.l2_cache * static_cast<double>(gemm.batch);
  const double readings = stays ? 1.0 : std::max(1.0, shorter / side);
  const Bytes operands = gemm.operands + (calibration.matmul.strided_traffic - 1.0) * gemm.by_k;
  return (operands * readings + gemm.result) / (gpu.memory_bandwidth * calibration.streaming.bandwidth_efficiency);
}

Problem state(const Gemm& gemm, const Gpu& gpu, const Calibration& calibration) {
  const MatmulConstants& c = calibration.matmul;
  const bool tensor = uses_tensor_cores(gpu, gemm.precision);
  const double clock = sustained_clock(gpu, gemm.precision, calibration.power);
  const FlopsPerSecond rate = gpu.matrix_rate(gemm.precision) * clock * (tensor ? 1.0 : c.vector_efficiency);
  const Bytes load = gemm.load_width.value() > 0.0 ? gemm.load_width : longest_load;
  Problem p{};
  p.batch = static_cast<double>(gemm.batch);
  p.m = static_cast<double>(gemm.m);
  p.n = static_cast<double>(gemm.n);
  p.k = static_cast<double>(gemm.k);
  p.sms = gpu.sms;
  p.seconds_per_flop = p.sms / rate.value();
  p.vector_compute = 2.0 * p.batch * p.m * p.n * p.k / gpu.matrix_rate(Precision::fp32).value();
  p.tile_loss = tensor ? c.tile_loss : 0.0;
  p.tile_start = (gpu.memory_latency * c.tile_latencies).value();
  if (gpu.boost_clock.value() > 0.0) {
    p.seconds_per_load =
        loads_per_piece * (bytes_per_element(gemm.precision) / load) / (load_lanes * gpu.boost_clock.value() * clock);
  }
  p.memory = memory_time(gemm, gpu, calibration).value();
  p.part = (2.0 * p.batch * p.m * p.n * bytes_per_element(Precision::fp32) / gpu.l2_bandwidth).value();
  p.loads_apart = load < shortest_copy;
  p.fixed = c.fixed_us * 1e-6;
  p.exposed = c.exposed_share;
  p.persistent = gpu.compute_capability >= persistent_kernels_since;
  return p;
}

Candidate price(const Problem& p, const Tile& tile, double blocks, double split) {
  const double waves = round_up(blocks * split / p.sms);
  const double rounds = p.persistent ? 1.0 : round_up(waves / tile.resident);
  const double depth = round_up(p.k / split);
  const double multiply = 2.0 * tile.area * p.seconds_per_flop * (1.0 + p.tile_loss * tile.boundary);
  const double load = (tile.rows + tile.columns) * p.seconds_per_load;
  Candidate candidate;
  candidate.compute = waves * depth * (p.loads_apart ? multiply + load : std::max(multiply, load));
  candidate.start = rounds * p.tile_start + (split > 1.0 ? split * p.part : 0.0);
  candidate.fixed = split > 1.0 ? 2.0 * p.fixed : p.fixed;
  return candidate;
}

// Besides whole products, those split so that the parts just fill one, two, … waves.
Candidate best_candidate(const Problem& p) {
  Candidate best;
  double shortest = std::numeric_limits<double>::infinity();
  const auto consider = [&](const Candidate& candidate) {
    const double time = candidate.body(p) + candidate.fixed;
    if (time >= shortest) return;
    shortest = time;
    best = candidate;
  };
  for (const Tile& tile : tiles) {
    const double blocks = p.batch * round_up(p.m / tile.rows) * round_up(p.n / tile.columns);
    consider(price(p, tile, blocks, 1.0));
    for (int waves = 1; waves <= split_waves && 2.0 * blocks <= waves * p.sms; ++waves) {
      const double split = std::min({max_split, p.k, round_down(waves * p.sms / blocks)});
      if (split >= 2.0) consider(price(p, tile, blocks, split));
    }
  }
  return best;
}

Bound vector_bound(const Problem& p) {
  if (p.tile_start + p.fixed > std::max(p.vector_compute, p.memory)) return Bound::latency;
  return p.vector_compute >= p.memory ? Bound::compute : Bound::memory;
}

}  // namespace

GemmTime gemm_time(const Gemm& gemm, const Gpu& gpu, const Calibration& calibration) {
  const Problem p = state(gemm, gpu, calibration);
  const Candidate best = best_candidate(p);
  if (gemm.m == 1 || gemm.n == 1) {
    // A matrix times a vector has a kernel without tiles, which multiplies each element as it arrives.
    const double body = p.tile_start + std::max(p.vector_compute, p.memory);
    if (body < best.body(p)) return {Seconds(body), Seconds(p.fixed), vector_bound(p)};
  }
  Bound bound = best.compute >= p.memory ? Bound::compute : Bound::memory;
  if (best.start + best.fixed > std::max(best.compute, p.memory)) bound = Bound::latency;
  return {Seconds(best.body(p)), Seconds(best.fixed), bound};
}

}  // namespace foretrain
