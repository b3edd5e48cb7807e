#include "model/cost/cpu_matmul.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "model/cost/memory_hierarchy.hpp"

namespace foretrain {

namespace {

// The register tile and cache blocks follow from the description, as Goto and van de Geijn derive them ("Anatomy of
// High-Performance Matrix Multiplication", ACM TOMS 34, 2008) and Low et al. analytically ("Analytical Modeling Is
// Enough for High-Performance BLIS", ACM TOMS 43, 2016).
struct Blocking {
  double rows, columns;  ///< of the register tile
  double depth;          ///< k of a block: a tile's operands fill half of the L1
  double block_rows;     ///< m of a block of A: with that depth it fills half of the L2
};

/// Two multiply-adds of four cycles need eight independent accumulators; more registers are used to reload less.
constexpr double tile_columns = 8.0;
constexpr double vectors_per_tile_row = 2.0;

Blocking blocking(const MemoryHierarchy& memory, Bytes element) {
  Blocking b{};
  const double lanes = memory.vector_bytes / element.value();
  b.rows = vectors_per_tile_row * lanes;
  b.columns = tile_columns;
  b.depth = std::floor(0.5 * (memory.caches.front().size / element) / (b.rows + b.columns) * 2.0);
  const Bytes second = memory.caches.size() > 1 ? memory.caches[1].size : memory.caches.front().size;
  b.block_rows = std::max(b.rows, std::floor(0.5 * (second / element) / b.depth));
  return b;
}

}  // namespace

// Arithmetic: full register tiles at the cores' multiply-add rate (edges are computed as whole tiles), plus a fixed
// number of cycles per tile and block of depth. C is read and written once per block of depth, which its prefetching
// hides behind arithmetic or the other way round. Packing reads and writes A and B once, at the bandwidth that a copy
// over that working set has, and hides behind nothing. Threads share out the tiles of C.
CpuMatmulCost cpu_matmul_cost(const CpuMatmul& work, const Cpu& cpu) {
  if (!cpu.hierarchy) throw std::invalid_argument("the memory hierarchy of " + cpu.name + " is not described");
  if (work.threads < 1 || work.threads > cpu.cores) {
    throw std::invalid_argument(cpu.name + " has not as many cores as the product has threads");
  }
  const MemoryHierarchy& memory = *cpu.hierarchy;
  const Bytes element = bytes_per_element(work.precision);
  const Blocking tile = blocking(memory, element);
  const auto m = static_cast<double>(work.m), n = static_cast<double>(work.n), k = static_cast<double>(work.k);
  const double threads = std::min<double>(work.threads, std::ceil(m / tile.rows) * std::ceil(n / tile.columns));

  // fp64 has half as many lanes. `fp32_rate` is stated at `clock`.
  const double per_cycle = cpu.fp32_rate.value() / (cpu.cores * cpu.clock.value()) * 4.0 / element.value();
  const double tiles = std::ceil(m / tile.rows) * std::ceil(n / tile.columns);
  const double depths = std::ceil(k / tile.depth);
  const MatrixLibrary& library = cpu.matrix_library;
  const double cycles_of_tile = 2.0 * tile.rows * tile.columns * k / (per_cycle * library.kernel_share);
  const double rounds = std::ceil(tiles / threads);
  const Seconds arithmetic = rounds * (cycles_of_tile + depths * library.tile_cycles) / cpu.core_clock;

  const Bytes operands = (m * k + k * n) * element, result = m * n * element;
  MemoryWalk packing;
  packing.access = WalkAccess::copy;
  packing.threads = static_cast<int>(threads);
  packing.working_set = std::max(2.0 * operands, Bytes(1024.0));
  const Seconds packed = memory_walk_cost(packing, cpu).time;
  MemoryWalk updating;
  updating.access = WalkAccess::write;
  updating.threads = packing.threads;
  updating.working_set = std::max(result, Bytes(1024.0));
  updating.passes = depths;
  const Seconds updated = memory_walk_cost(updating, cpu).time;

  const Seconds fixed = library.call + (threads > 1.0 ? library.join : Seconds(0.0));
  CpuMatmulCost cost;
  cost.time = std::max(arithmetic, updated) + packed + fixed;
  cost.flops = Flops(2.0 * m * n * k);
  cost.bytes = 2.0 * operands + 2.0 * depths * result;
  const bool computes = arithmetic >= updated && arithmetic >= packed;
  cost.bound = fixed > std::max(arithmetic, updated) + packed ? "latency" : computes ? "compute" : "memory";
  return cost;
}

}  // namespace foretrain
