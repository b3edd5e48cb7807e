#include "model/cost/gemm.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <span>

#include "model/base/number.hpp"
#include "model/cost/gemm_tiles.hpp"
#include "model/cost/power.hpp"

namespace foretrain {
namespace {

using namespace gemm_tiles;

// Twice the deepest splitting that NVIDIA's exhaustive search tries (CUDALibrarySamples, cuBLASLt LtSgemmCustomFind: 2
// to 32), for the long sums of weight gradients: modelling choice.
constexpr double max_split = 64.0;
// Parts of two waves leave at most half of the device idle at the end; more waves only add partial results: modelling
// choice.
constexpr int split_waves = 2;

// Loads that a multiprocessor's load/store units start per clock (architecture whitepapers, Volta to Hopper); each
// element of a tile is loaded and put into shared memory.
constexpr double load_lanes = 32.0;
constexpr double loads_per_piece = 2.0;
constexpr Bytes longest_load(16.0);
// Pieces below four bytes cannot be copied beside the multiplication (PTX ISA, cp.async): they pass through registers.
constexpr Bytes shortest_copy(4.0);

// Schedulers of Volta and later start one instruction a clock, those before two (CUDA C++ Programming Guide,
// multiprocessor of each compute capability). Four of 16 lanes each make 64; more than half as many again are 128.
constexpr double single_issue_since = 7.0, lanes_of_two_clocks = 96.0;

// In fp32 cuBLAS takes tiles of 128 × 128 wherever these occupy every multiprocessor, whatever the last wave wastes
// (its products of aligned rows on V100 and A100 take time in whole waves of these).
constexpr std::size_t vector_tile = 15;
static_assert(tiles[vector_tile].rows == 128.0 && tiles[vector_tile].columns == 128.0);

bool takes_vector_tile(const Gemm& gemm, Bytes load, const Gpu& gpu) {
  const double rows = number(gemm.m) * per_row[vector_tile], columns = number(gemm.n) * per_column[vector_tile];
  return gemm.precision == Precision::fp32 && load == longest_load && !gemm.narrow_tiles && !gemm.unequal_rows &&
         std::min(rows, columns) >= 1.0 && number(gemm.batch) * std::ceil(rows) * std::ceil(columns) >= gpu.sms;
}

// Instructions of a product's kernels. warps: mma.sync, or CUDA cores; thread blocks start one after the other. From
// Hopper on, where operands may be fetched by the copy engine, kernels stay on their multiprocessor and write one tile
// while they compute the next (CUTLASS 3, persistent warp-specialised kernels). warp_groups: instructions of four warps
// (PTX ISA: wgmma). tensor_memory: operands from shared memory, results to a memory of their own (PTX ISA: tcgen05).
enum class InnerProduct { warps, warp_groups, tensor_memory };

// Whether no instruction for a whole tile reads the operands.
bool takes_earlier_kernels(const Gemm& gemm, Bytes load) { return load < longest_load || gemm.across_k; }

InnerProduct inner_product(const Gemm& gemm, Bytes load, const Gpu& gpu) {
  const bool tensor = uses_tensor_cores(gpu, gemm.precision) && has_warp_groups(gpu);
  if (!tensor || takes_earlier_kernels(gemm, load)) return InnerProduct::warps;
  return has_tensor_memory(gpu) ? InnerProduct::tensor_memory : InnerProduct::warp_groups;
}

// Inference engines multiply nvfp4 by a tile of 128 × 256 on one multiprocessor, where training libraries share
// operands between two. Sums are not split. Rounds follow the shorter side of the result, so each tile of 128 along the
// longer side reads that operand again, unless the L2 holds it (CUTLASS 3: raster order by its heuristic, no swizzle).
// A multiprocessor is filled from the L2 at 64 bytes a clock, the power of two next to the 58 to 64 that fit 120
// products of TensorRT-LLM on B200 and GB200.
constexpr double narrow_format_side = 128.0, fill_bytes_per_clock = 64.0;

bool has_narrow_format(const Gemm& gemm, const Gpu& gpu) {
  return gemm.of_engine && gpu.arithmetic_precision(gemm.precision) == Precision::nvfp4;
}

// Hopper keeps 14 bits of a sum in fp8, so CUDA cores add each 128 elements of k to a second set of registers (CUTLASS
// 3, accumulator promotion every four instructions; arXiv 2412.19437, section 3.3.2), which leaves half as many for a
// tile.
constexpr double promoted_every = 128.0, promoted_area = 320.0 * 128.0 / 2.0;

// Shape and device as plain numbers in base units: the search below evaluates dozens of candidates.
struct Problem {
  double batch, m, n, k;
  double part_row;  // rows of tiles that members with different row counts lose beside those of their mean
  double sms, per_sm;
  std::size_t first, last;            // tiles that its kernels have, without the last
  bool splits;                        // k among multiprocessors
  double lone_rounds;                 // share of a tile's busy_rounds that it takes at least
  double seconds_per_flop;            // of a multiprocessor at the boost clock, unlimited tile
  double most_area;                   // elements of a tile
  double promotion;                   // time of a promoted product over a plain one
  double tile_loss;                   // elements
  double tile_start;                  // seconds; none where kernels stay and hide them
  double hides_start;                 // 1 where a tile starts while others of its multiprocessor multiply
  double vector_compute;              // seconds, multiplied on all CUDA cores
  double vector_start, vector_fixed;  // of a matrix times a vector
  double seconds_per_load;            // of one multiprocessor, one element of A or B
  double seconds_per_read;            // the same, from shared memory by instructions that have no registers
  double seconds_per_address;         // of one multiprocessor, one element of A or B
  double memory;                      // seconds of traffic to device memory
  double part;                        // seconds to write and read the unsplit result once, in fp32, through the L2
  double fixed;                       // seconds
  double slowdown;                    // of all but start and drain
  double exposed;
  double loads_apart;  // 1 where loads take turns with multiplications, 0 where they run beside them
};

// Much faster than std::ceil and std::floor without SSE 4.1, for 0 <= x < 2^51: from there to 2^52 a double holds whole
// numbers alone, so that the sum is rounded to the nearest one.
double nearest(double x) {
  constexpr double whole_numbers = 4503599627370496.0;
  return (x + whole_numbers) - whole_numbers;
}
double round_up(double x) {
  const double whole = nearest(x);
  return whole + (whole < x ? 1.0 : 0.0);
}
double round_down(double x) {
  const double whole = nearest(x);
  return whole - (whole > x ? 1.0 : 0.0);
}

// Operands and result over bandwidth. One round of tiles covers about a square of the result of side sqrt(S · resident
// elements); operands larger than the L2 are read again for the next round.
Seconds memory_time(const Gemm& gemm, const Gpu& gpu, const Calibration& calibration) {
  const double shorter = number(std::min(gemm.m, gemm.n)), longer = number(std::max(gemm.m, gemm.n));
  Bytes read = gemm.operands;
  if (has_narrow_format(gemm, gpu)) {
    const Bytes again = shorter * number(gemm.k) * bytes_per_element(gemm.precision);
    const Bytes missed = std::max(Bytes(0.0), again - gpu.l2_cache) * number(gemm.batch);
    read += missed * (std::ceil(longer / narrow_format_side) - 1.0);
  } else if (gemm.operands > gpu.l2_cache * number(gemm.batch)) {
    read *= std::max(1.0, shorter / std::sqrt(gpu.sms * resident_elements));
  }
  return (read + gemm.result) / (gpu.memory_bandwidth * calibration.streaming.bandwidth_efficiency);
}

// Operands whose rows do not begin at multiples of 16 bytes cannot be fetched by Hopper's copy engine, from whose
// shared memory alone its wide instructions read (PTX ISA, tensor maps: strides in units of 16 bytes). Libraries then
// take the kernels of earlier generations: Ampere's for pieces of 4 bytes and more, below that Turing's (their names
// say so: cutlass_80_tensorop_s16816gemm, cutlass_75_tensorop_s1688gemm_align1), which multiply 1,024 and 512 pairs of
// 2-byte operands a clock and multiprocessor (architecture whitepapers).
FlopsPerSecond tensor_rate(const Gemm& gemm, Bytes load, const Gpu& gpu) {
  const FlopsPerSecond rate = gpu.matrix_rate(gemm.precision);
  if (!takes_earlier_kernels(gemm, load) || gpu.boost_clock.value() == 0.0) return rate;
  const double pairs = load < shortest_copy ? 512.0 : 1024.0;
  const double operations = 2.0 * pairs * (bytes_per_element(Precision::fp16) / bytes_per_element(gemm.precision));
  return std::min(rate, FlopsPerSecond(operations * gpu.sms * gpu.boost_clock.value()));
}

FlopsPerSecond vector_rate(Precision precision, const Gpu& gpu, const MatmulConstants& c) {
  return gpu.matrix_rate(precision) * (c.vector_efficiency * (shares_issue_slots(gpu) ? c.issue_share : 1.0));
}

Problem state(const Gemm& gemm, const Gpu& gpu, const Calibration& calibration) {
  const MatmulConstants& c = calibration.matmul;
  const bool tensor = uses_tensor_cores(gpu, gemm.precision);
  const Bytes load = gemm.load_width.value() > 0.0 ? gemm.load_width : longest_load;
  const FlopsPerSecond rate = tensor ? tensor_rate(gemm, load, gpu) : vector_rate(gemm.precision, gpu, c);
  Problem p{};
  p.batch = number(gemm.batch);
  p.m = number(gemm.m);
  p.n = number(gemm.n);
  p.k = number(gemm.k);
  p.part_row = gemm.unequal_rows ? 0.5 : 0.0;
  p.sms = gpu.sms;
  p.per_sm = 1.0 / p.sms;
  const bool narrow_format = has_narrow_format(gemm, gpu);
  const InnerProduct inner = inner_product(gemm, load, gpu);
  const bool stays = inner != InnerProduct::warps;
  p.first = stays && !gemm.narrow_tiles && !narrow_format ? 0 : first_common_tile;
  p.last = narrow_format ? first_common_tile + 1 : tensor && !gemm.narrow_tiles ? first_narrow_tile : tile_count;
  if (takes_vector_tile(gemm, load, gpu)) p.first = vector_tile, p.last = vector_tile + 1;
  p.splits = !narrow_format && !gemm.whole_sums;
  p.lone_rounds = gemm.whole_sums ? 1.0 : 0.0;
  p.slowdown = 1.0 / gemm.speed;
  p.seconds_per_flop = p.sms / rate.value();
  p.vector_compute = 2.0 * p.batch * p.m * p.n * p.k / gpu.matrix_rate(Precision::fp32).value();
  p.tile_loss = tensor && inner != InnerProduct::tensor_memory ? c.tile_loss : 0.0;
  p.hides_start = gemm.narrow_tiles ? 1.0 : 0.0;
  p.vector_start = (gpu.memory_latency * c.tile_latencies).value();
  p.tile_start = stays ? 0.0 : p.vector_start;
  if (gpu.boost_clock.value() > 0.0) {
    p.seconds_per_load =
        loads_per_piece * (bytes_per_element(gemm.precision) / load) / (load_lanes * gpu.boost_clock.value());
    if (narrow_format) {
      p.seconds_per_load = bytes_per_element(gemm.precision).value() / (fill_bytes_per_clock * gpu.boost_clock.value());
    }
  }
  if (inner == InnerProduct::tensor_memory && gpu.boost_clock.value() > 0.0) {
    p.seconds_per_read = bytes_per_element(gemm.precision).value() / (shared_bytes_per_clock * gpu.boost_clock.value());
  }
  constexpr double flops_per_instruction = 2.0;
  p.seconds_per_address =
      gemm.address_instructions * flops_per_instruction * p.sms / gpu.matrix_rate(Precision::fp32).value();
  p.memory = memory_time(gemm, gpu, calibration).value();
  p.part = (2.0 * p.batch * p.m * p.n * bytes_per_element(Precision::fp32) / gpu.l2_bandwidth).value();
  p.loads_apart = load < shortest_copy ? 1.0 : 0.0;
  p.vector_fixed = c.fixed_us * 1e-6;
  switch (inner) {
    case InnerProduct::warps:
      p.fixed = p.vector_fixed;
      p.exposed = c.exposed_share;
      break;
    case InnerProduct::warp_groups:
      p.fixed = c.warp_group_fixed_us * 1e-6;
      p.exposed = c.warp_group_exposed_share;
      break;
    case InnerProduct::tensor_memory:
      p.fixed = c.tensor_memory_fixed_us * 1e-6;
      p.exposed = c.tensor_memory_exposed_share;
      break;
  }
  p.exposed = gemm.exposed_share.value_or(p.exposed);
  const bool promoted = gemm.promoted && inner == InnerProduct::warp_groups;
  const double additions = rate / (promoted_every * gpu.matrix_rate(Precision::fp32));  // an operation, not two
  p.promotion = promoted ? 1.0 + p.exposed * additions : 1.0;
  p.most_area = promoted ? promoted_area : std::numeric_limits<double>::infinity();
  p.seconds_per_flop *= p.promotion;
  return p;
}

struct Candidate {
  double compute = 0.0, start = 0.0, fixed = 0.0;  // seconds
  double waits = 0.0;                              // of `compute`, for starts that hide behind nothing

  [[nodiscard]] double body(const Problem& p) const {
    return start + std::max(compute, p.memory) + p.exposed * std::min(compute, p.memory);
  }
  [[nodiscard]] double time(const Problem& p) const { return body(p) * p.slowdown + fixed; }
};

// Only tiles from p.first to p.last are worked out and looked at, which GCC does not see.
#pragma GCC diagnostic push
#ifndef __clang__
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

// Every tile on the problem, unsplit. Loops without branches, of which the compiler takes several turns at a time: a
// step is made of thousands of products.
struct Tilings {
  PerTile blocks;
  PerTile slice;    // seconds of one multiprocessor for a k of 1
  PerTile compute;  // seconds
  PerTile start;    // seconds
  PerTile waits;    // seconds

  explicit Tilings(const Problem& problem) {
    const Problem p = problem;  // a copy that no store into an array can change
    for (std::size_t i = p.first; i < p.last; ++i) {
      const double rows = p.m * per_row[i];
      blocks[i] = p.batch * (p.part_row > 0.0 ? rows + p.part_row : round_up(rows)) * round_up(p.n * per_column[i]);
    }
    for (std::size_t i = p.first; i < p.last; ++i) {
      const double arithmetic = 2.0 * area[i] * p.seconds_per_flop * (1.0 + p.tile_loss * loads[i]);
      const double read = instruction_reads[i] * p.seconds_per_read;
      const double multiply = arithmetic < read ? read : arithmetic;
      const double load = sides[i] * p.seconds_per_load;
      slice[i] = (multiply < load ? load : multiply) + p.loads_apart * (multiply < load ? multiply : load) +
                 sides[i] * p.seconds_per_address;
      if (area[i] > p.most_area) slice[i] = std::numeric_limits<double>::infinity();
    }
    for (std::size_t i = p.first; i < p.last; ++i) {
      const double waves = round_up(blocks[i] / p.sms), rounds = round_up(waves * per_resident[i]);
      const double alone = p.lone_rounds * busy_rounds[i];
      // If starts hide, tiles of a round multiply while others start, and take no less than one with its start.
      const double multiply = (waves < alone ? alone : waves) * p.k * slice[i];
      const double started = p.hides_start * rounds * (p.tile_start + p.k * slice[i]);
      compute[i] = multiply < started ? started : multiply;
      waits[i] = compute[i] - multiply;
      start[i] = (1.0 - p.hides_start) * rounds * p.tile_start;
    }
  }
  [[nodiscard]] Candidate unsplit(const Problem& p, std::size_t tile) const {
    return {compute[tile], start[tile], p.fixed, waits[tile]};
  }
};

struct Choice {
  Candidate candidate;
  double time = std::numeric_limits<double>::infinity();

  void consider(const Problem& p, const Candidate& other) {
    const double other_time = other.time(p);
    if (other_time >= time) return;
    time = other_time;
    candidate = other;
  }
};

// Tiles that leave at least half of the multiprocessors idle, split into parts that just fill one wave or two.
void consider_splits(const Problem& p, const Tilings& tilings, std::size_t tile, Choice& best) {
  if (2.0 * tilings.blocks[tile] > p.sms) return;
  double before = 1.0;
  for (int filled = 1; filled <= split_waves; ++filled) {
    const double split = std::min({max_split, p.k, round_down(filled * p.sms / tilings.blocks[tile])});
    if (split <= before) continue;
    before = split;
    const double waves = round_up(tilings.blocks[tile] * split / p.sms);
    Candidate candidate;
    candidate.compute = waves * round_up(p.k / split) * tilings.slice[tile];
    candidate.start = round_up(waves * per_resident[tile]) * p.tile_start + split * p.part;
    candidate.fixed = 2.0 * p.fixed;
    best.consider(p, candidate);
  }
}

// Lower bound for all splittings of a tile: the fewest parts that fill a wave, its multiplications shared out among all
// multiprocessors or as finely as they get, and the traffic.
PerTile least_split_times(const Problem& problem, const Tilings& tilings) {
  const Problem p = problem;
  const double most = std::min(max_split, p.k), finest = 1.0 / most;
  PerTile start, compute, time;
  for (std::size_t i = p.first; i < p.last; ++i) {
    const double fits = p.sms / tilings.blocks[i];  // in one wave
    const double fewest = fits - 1.0 < most ? fits - 1.0 : most;
    start[i] = p.tile_start + 2.0 * p.fixed + (fewest < 2.0 ? 2.0 : fewest) * p.part;
    const double busy = tilings.blocks[i] * p.per_sm;
    compute[i] = p.k * tilings.slice[i] * (busy < finest ? finest : busy);
  }
  for (std::size_t i = p.first; i < p.last; ++i) time[i] = Candidate{compute[i], start[i], 0.0}.time(p);
  return time;
}

std::size_t index_of_least(const PerTile& times, const Problem& p) {
  double least = times[p.first];
  std::size_t index = p.first;
  for (std::size_t i = p.first + 1; i < p.last; ++i) {
    index = times[i] < least ? i : index;
    least = times[i] < least ? times[i] : least;
  }
  return index;
}

// Every tile unsplit; then those split that may be faster so, the most promising first.
Candidate best_candidate(const Problem& p) {
  const Tilings tilings(p);
  PerTile time;
  for (std::size_t i = p.first; i < p.last; ++i) time[i] = tilings.unsplit(p, i).time(p);
  const std::size_t fastest = index_of_least(time, p);
  Choice best{tilings.unsplit(p, fastest), time[fastest]};
  const auto blocks = std::span(tilings.blocks).subspan(p.first, p.last - p.first);
  if (!p.splits || 2.0 * *std::ranges::min_element(blocks) > p.sms) return best.candidate;

  PerTile least = least_split_times(p, tilings);
  for (;;) {
    const std::size_t promising = index_of_least(least, p);
    if (least[promising] >= best.time) return best.candidate;
    consider_splits(p, tilings, promising, best);
    least[promising] = std::numeric_limits<double>::infinity();
  }
}

#pragma GCC diagnostic pop

// The kernel at the clock that its own arithmetic leaves. Tensor cores that wait for memory or for their start take
// less power; on CUDA cores what loads and counts takes as much as what multiplies.
Candidate at_sustained_clock(Candidate kernel, const Problem& p, const Gemm& gemm, const Gpu& gpu,
                             const Calibration& calibration) {
  const double peak = 2.0 * p.batch * p.m * p.n * p.k / gpu.matrix_rate(gemm.precision).value();
  const double busy = uses_tensor_cores(gpu, gemm.precision) ? std::min(1.0, peak * p.promotion / kernel.time(p)) : 1.0;
  const double clock = sustained_clock(gpu, gemm.precision, calibration.power, busy);
  kernel.compute /= clock;
  kernel.waits /= clock;
  return kernel;
}

Bound vector_bound(const Problem& p) {
  if (p.vector_start + p.vector_fixed > std::max(p.vector_compute, p.memory)) return Bound::latency;
  return p.vector_compute >= p.memory ? Bound::compute : Bound::memory;
}

}  // namespace

// A scheduler starts one instruction a clock (Volta and later). Where it has 32 lanes, loads and addresses take turns
// with multiplications; where it has 16, a multiplication lasts two clocks and leaves room for them.
bool shares_issue_slots(const Gpu& gpu) {
  const double lanes = gpu.boost_clock.value() > 0.0
                           ? gpu.matrix_rate(Precision::fp32).value() / (2.0 * gpu.sms * gpu.boost_clock.value())
                           : 0.0;
  return gpu.compute_capability >= single_issue_since && lanes > lanes_of_two_clocks;
}

GemmTime gemm_time(const Gemm& gemm, const Gpu& gpu, const Calibration& calibration) {
  const Problem p = state(gemm, gpu, calibration);
  const Candidate best = at_sustained_clock(best_candidate(p), p, gemm, gpu, calibration);
  if (gemm.m == 1 || gemm.n == 1) {
    // A matrix times a vector has a kernel without tiles, which multiplies each element as it arrives.
    const double body = p.vector_start + std::max(p.vector_compute, p.memory);
    if (body + p.vector_fixed < best.time(p)) return {Seconds(body), Seconds(p.vector_fixed), vector_bound(p)};
  }
  const double multiply = best.compute - best.waits;
  Bound bound = multiply >= p.memory ? Bound::compute : Bound::memory;
  if (best.start + best.waits + best.fixed > std::max(multiply, p.memory)) bound = Bound::latency;
  return {Seconds(best.body(p) * p.slowdown), Seconds(best.fixed), bound};
}

}  // namespace foretrain
