// Caches, address translation and memory: what a walk over a working set costs on a processor, from its description.
#pragma once

#include <string>

#include "model/hardware/cpu.hpp"
#include "model/hardware/gpu.hpp"
#include "model/workload/host_operators.hpp"

namespace foretrain {

struct WalkCost {
  Seconds time;
  Seconds per_access;     ///< one thread waits so long
  double accesses = 0.0;  ///< all threads' together
  Bytes bytes;            ///< asked for by the program; a copy counts what it copies once
  std::string bound;      ///< largest part of the time: "L1", "L2", "L3", "memory", "TLB", "remote memory"
};

/// Prices a walk. The caches are in the state that earlier passes left. Throws ImpossiblePlan when the CPU has
/// no described hierarchy, or the walk asks for what it has not (more threads than cores, another socket).
WalkCost memory_walk_cost(const MemoryWalk& walk, const Cpu& cpu);

/// A chain of loads, one per 128-byte line of the working set, each as long as the GPU's memory takes to answer. No
/// load hits the L2, which the lines of the whole walk pass through (LRU).
WalkCost gpu_chase_cost(const GpuChase& walk, const Gpu& gpu);

/// Share of a walk's accesses, in steady state, whose line lies in a cache of `lines_per_set` = lines that fall on one
/// set on average over ways. `even`: each set gets the same number of lines; else pages fall on sets at random, and the
/// number is Poisson distributed. `cyclic`: the same order each time, where LRU keeps a set that holds all its lines
/// and nothing of one that does not; else places come in random order, and a set keeps as many as it has ways.
double cache_share(double lines_per_set, int ways, bool even, bool cyclic);

}  // namespace foretrain
