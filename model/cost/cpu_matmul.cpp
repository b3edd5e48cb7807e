#include "model/cost/cpu_matmul.hpp"

#include <algorithm>
#include <cmath>

#include "model/base/error.hpp"
#include "model/base/number.hpp"
#include "model/cost/memory_hierarchy.hpp"

namespace foretrain {

namespace {

// The register tile and cache blocks follow from the description, as Goto and van de Geijn derive them ("Anatomy of
// High-Performance Matrix Multiplication", ACM TOMS 34, 2008) and Low et al. analytically ("Analytical Modeling Is
// Enough for High-Performance BLIS", ACM TOMS 43, 2016).
struct Blocking {
  double rows, columns;  ///< size of a register tile
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
// number of cycles per tile and block of depth. C is cleared once, and read and written once per block of depth.
// Packing reads A and B once, from where they lie when a whole product has gone by since, and writes them to blocks
// that stay in the L2. All that adds to the arithmetic: a tile begins and ends with its part of C, and a block is
// packed before it is used. Products of few multiply-adds are done in place by
// the thread that asks. Threads share out the tiles of C.
CpuMatmulCost cpu_matmul_cost(const CpuMatmul& work, const Cpu& cpu) {
  if (!cpu.hierarchy) throw ImpossiblePlan("the memory hierarchy of " + cpu.name + " is not described");
  if (work.threads < 1 || work.threads > cpu.cores) {
    throw ImpossiblePlan(cpu.name + " has not as many cores as the product has threads");
  }
  const MemoryHierarchy& memory = *cpu.hierarchy;
  const Bytes element = bytes_per_element(work.precision);
  const Blocking tile = blocking(memory, element);
  const auto m = number(work.m), n = number(work.n), k = number(work.k);
  const MatrixLibrary& library = cpu.matrix_library;
  const bool in_place = m * n * k <= library.small_product && Bytes(memory.vector_bytes) >= library.small_vector;
  const double asked = in_place ? 1.0 : work.threads;
  const double threads = std::min(asked, std::ceil(m / tile.rows) * std::ceil(n / tile.columns));

  // fp64 has half as many lanes. `fp32_rate` is stated at `clock`.
  const double per_cycle = cpu.fp32_rate.value() / (cpu.cores * cpu.clock.value()) * 4.0 / element.value();
  const double tiles = std::ceil(m / tile.rows) * std::ceil(n / tile.columns);
  const double depths = std::ceil(k / tile.depth);
  const double cycles_of_tile = 2.0 * tile.rows * tile.columns * k / (per_cycle * library.kernel_share);
  const double rounds = std::ceil(tiles / threads);
  const Seconds arithmetic = rounds * (cycles_of_tile + depths * library.tile_cycles) / cpu.core_clock;

  const Bytes operands = (m * k + k * n) * element, result = m * n * element;
  constexpr Bytes least(1024.0);
  MemoryWalk reading;
  reading.threads = static_cast<int>(threads);
  reading.working_set = std::max(operands + result, least);
  reading.between = arithmetic;
  MemoryWalk packing = reading;
  packing.access = WalkAccess::write;
  packing.working_set = std::max(std::min(operands, tile.block_rows * tile.depth * element * threads), least);
  packing.between = Seconds(0.0);
  const auto moved = [&cpu](const MemoryWalk& walk, Bytes bytes) {
    return memory_walk_cost(walk, cpu).time * (bytes / walk.working_set);
  };
  const Seconds packed = in_place ? Seconds(0.0) : moved(reading, operands) + moved(packing, operands);
  MemoryWalk updating = reading;
  updating.access = WalkAccess::write;
  updating.working_set = std::max(result, least);
  updating.between = arithmetic / depths;
  const Seconds updated = moved(updating, result) * (in_place ? 1.0 : depths + 1.0);

  const Seconds fixed = library.call + (threads > 1.0 ? library.join : Seconds(0.0));
  CpuMatmulCost cost;
  cost.time = arithmetic + updated + packed + fixed;
  cost.flops = Flops(2.0 * m * n * k);
  cost.bytes = in_place ? operands + result : 2.0 * operands + (2.0 * depths + 1.0) * result;
  const Seconds moving = updated + packed;
  cost.bound = fixed > arithmetic + moving ? "latency" : arithmetic >= moving ? "compute" : "memory";
  return cost;
}

}  // namespace foretrain
