#include "model/cost/memory_hierarchy.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <vector>

#include "model/base/error.hpp"
#include "model/base/number.hpp"

namespace foretrain {

namespace {

/// Below or at `count` of a Poisson distribution of this mean.
double poisson_up_to(int count, double mean) {
  if (count < 0) return 0.0;
  // Far from the mean the normal approximation is exact to the last digit that matters, and the sum would underflow.
  if (mean > 600.0) return 0.5 * std::erfc((mean - count - 0.5) / std::sqrt(2.0 * mean));
  double term = std::exp(-mean), sum = term;
  for (int i = 1; i <= count; ++i) {
    term *= mean / i;
    sum += term;
  }
  return std::min(sum, 1.0);
}

/// A walk as the hierarchy sees it: one thread's part of it.
struct Footprint {
  Bytes set;              ///< bytes that one thread's places span
  Bytes whole_set;        ///< of all threads that share a cache
  Bytes step;             ///< between places, at least a line
  double lines = 0.0;     ///< touched by one thread per pass
  double accesses = 0.0;  ///< a thread's in one pass; a copy's accesses read and write one element each
  double lines_per_access = 0.0;
  double crossing = 0.0;  ///< share of accesses that touch two lines
  bool cyclic = true;     ///< the same order each time, as that of a chain of pointers
};

double share_crossing(Bytes element, Bytes step, Bytes offset, Bytes line) {
  const double at = std::fmod(offset.value(), line.value());
  if (std::fmod(step.value(), line.value()) == 0.0) return at + element.value() > line.value() ? 1.0 : 0.0;
  // Places move through the line: those that begin within the last element - 1 bytes cross, unless they fit exactly.
  const double grid = std::fmod(step.value(), element.value()) == 0.0 ? element.value() : 1.0;
  if (std::fmod(line.value(), grid) == 0.0 && std::fmod(at, grid) == 0.0 && grid == element.value()) return 0.0;
  return std::min(1.0, (grid == element.value() ? element.value() : element.value() - 1.0) / line.value());
}

Bytes element_of(const MemoryWalk& walk, const MemoryHierarchy& memory) {
  if (walk.element.value() > 0.0) return walk.element;
  return Bytes(walk.pattern == WalkPattern::sequential ? memory.vector_bytes : 8.0);
}

Footprint footprint(const MemoryWalk& walk, const MemoryHierarchy& memory) {
  Footprint f;
  const Bytes line = memory.line, element = element_of(walk, memory);
  f.whole_set = walk.working_set;
  f.set = walk.working_set / number(walk.threads);
  const double copies = walk.access == WalkAccess::copy ? 2.0 : 1.0;
  Bytes stride = element;
  if (walk.pattern == WalkPattern::strided) stride = walk.stride;
  if (walk.pattern == WalkPattern::random || walk.pattern == WalkPattern::pointer_chase) stride = line;
  f.accesses = std::max(1.0, f.set / copies / stride);
  f.step = std::max(stride, line);
  f.crossing = share_crossing(element, stride, walk.offset, line);
  f.lines_per_access = std::min(1.0, stride / line) * std::max(1.0, element / std::min(stride, line));
  if (stride >= 2.0 * line || walk.pattern == WalkPattern::random)
    f.lines_per_access += f.crossing;  // else the next one's
  f.lines = std::max(1.0, f.set / f.step);
  f.cyclic = walk.pattern != WalkPattern::random && walk.direction != WalkDirection::alternating;
  return f;
}

/// Small pages that the processor's translation knows the working set by: where a hypervisor maps the machine in small
/// pages of its own, no other are left.
Bytes page_of(const MemoryWalk& walk, const MemoryHierarchy& memory) {
  return walk.huge_pages && !memory.virtualised ? memory.huge_page : memory.small_page;
}

// The lines of a walk fall on sets / gcd(sets, step / line) sets of a cache whose index is plain address bits, as far
// as these bits lie within a page. The page's own number is as good as random (Hill and Smith, "Evaluating
// Associativity in CPU Caches", IEEE Transactions on Computers 38, 1989). A hashed index spreads every step evenly.
// Other virtual machines replace all ways of a set once per residence. How many of their lines fall on one set between
// two uses of a line is Poisson distributed like pages are (Che, Tung and Wang, "Hierarchical Web Caching Systems",
// IEEE Journal on Selected Areas in Communications 20, 2002: a line stays when it is used again within the cache's
// characteristic time).
double share_in(const CacheLevel& level, const Footprint& f, Bytes page, Bytes line, int threads, Seconds between) {
  const double sharers = std::min(threads, level.shared_by);
  const double sets = std::max(1.0, std::floor(level.size / (line * number(level.ways))));
  const double lines = f.lines * sharers;
  const double sets_per_page = page / line;
  const bool even = level.hashed || sets <= sets_per_page;
  double own = lines / sets;
  if (!level.hashed) {
    const auto step = static_cast<std::int64_t>(std::llround(f.step / line));
    const auto counted = static_cast<std::int64_t>(even ? sets : sets_per_page);
    const double used = number(counted / std::gcd(counted, std::max<std::int64_t>(step, 1)));
    own = lines / (even ? used : used * sets / sets_per_page);
  }
  const double alone = cache_share(own, level.ways, even, f.cyclic);
  if (!(level.residence.value() > 0.0)) return alone;
  const double strangers = level.ways * (between / level.residence);
  if (!even || !f.cyclic) return std::min(alone, cache_share(own + strangers, level.ways, false, f.cyclic));
  return std::min(alone, poisson_up_to(level.ways - static_cast<int>(std::ceil(std::max(own, 1.0))), strangers));
}

/// Share of accesses that each cache, and at the end memory, serves, where this much time lies between two passes.
std::vector<double> shares_of(const MemoryHierarchy& memory, const Footprint& f, Bytes page, int threads,
                              Seconds between) {
  std::vector<double> shares;
  double within = 0.0;
  Bytes held{0.0};
  for (const CacheLevel& level : memory.caches) {
    CacheLevel grown = level;
    if (level.victim) grown.size += held;  // the content of the level above need not be here as well
    held = level.size;
    // A level that holds the lines of several cores has not less than one core's share of them.
    const double up_to_here = std::max(within, share_in(grown, f, page, memory.line, threads, between));
    shares.push_back(up_to_here - within);
    within = up_to_here;
  }
  shares.push_back(1.0 - within);
  return shares;
}

struct Translation {
  Seconds latency;  ///< added to a load that waits for its address
  Seconds busy;     ///< the page walkers are, for each access
};

// Pages of the working set against the entries of the two levels, as a cache of one set. A walk's last step loads an
// entry of 8 bytes per page; the steps before it hit the walkers' own caches. In a virtual machine it is two such
// steps, the guest's table and the hypervisor's, of which huge pages of the guest save the first (Bhargava et al.,
// "Accelerating Two-Dimensional Page Walks for Virtualized Systems", ASPLOS 2008). An entry comes from the innermost
// cache of which the tables would fill at most an eighth: data stream through it between two uses of an entry, and take
// the rest (assumption; pointer chases over 64 MiB to 1 GiB in a virtual machine on Emerald Rapids agree).
Translation translation(const MemoryWalk& walk, const MemoryHierarchy& memory, const Footprint& f, Bytes page) {
  const double pages = std::max(1.0, f.set / std::max(page, f.step));
  // A walk in order translates a page once for all of its places; a random one comes back to it again and again.
  const bool in_order = walk.pattern == WalkPattern::sequential || walk.pattern == WalkPattern::strided;
  const bool cyclic = in_order && f.cyclic;
  const double weight = in_order ? std::min(1.0, f.set / f.accesses / page) : 1.0;
  const Tlb& tlb = memory.tlb;
  const int first = page > memory.small_page ? tlb.huge_entries : tlb.entries;
  const double in_first = cache_share(pages, first, true, cyclic);
  const double in_second = std::max(in_first, cache_share(pages, tlb.second_entries, true, cyclic));
  const double tables = memory.virtualised && !walk.huge_pages ? 2.0 : 1.0;
  const Bytes table = Bytes(8.0) * pages * tables;
  Seconds entry = memory.memory_latency;
  for (const CacheLevel& level : memory.caches) {
    if (level.size >= 8.0 * table) {
      entry = level.latency;
      break;
    }
  }
  if (memory.caches.size() > 1) entry = std::max(entry, memory.caches[1].latency);  // data displaces it from the L1
  const Seconds one_walk = entry * tables;
  const double second_hits = weight * (in_second - in_first), walks = weight * (1.0 - in_second);
  return {second_hits * tlb.second_latency + walks * (tlb.second_latency + one_walk),
          walks * one_walk / number(tlb.walkers)};
}

/// Bandwidth of one core in a level shared with other cores.
BytesPerSecond core_share(BytesPerSecond alone, BytesPerSecond together, int threads) {
  return together.value() > 0.0 ? std::min(alone, together / number(threads)) : alone;
}

/// A level beyond the first as the walk uses it.
struct Source {
  std::string name;
  Seconds latency;
  BytesPerSecond read, write;  ///< one thread's
  bool fetches_pairs = false;  ///< beyond the core's own caches
  Seconds copied = {};         ///< memory: a line that is read and one that is written, by one of the threads
};

// Memory: one core has `prefetched_lines` in flight, so that its bandwidth is lines · line / latency (Little's law);
// all together reach the chips' bandwidth. Writing fetches the line and casts it out: half as fast, or faster where the
// way out does not wait for the way in.
Source memory_source(const MemoryWalk& walk, const Cpu& cpu, const MemoryHierarchy& memory) {
  Source source{walk.remote ? "remote memory" : "memory",
                walk.remote ? memory.remote_latency : memory.memory_latency,
                {},
                {},
                true};
  BytesPerSecond together = cpu.memory_bandwidth * memory.memory_efficiency;  // threads lie spread over sockets
  if (walk.remote) together = std::min(together, memory.remote_bandwidth);
  const BytesPerSecond alone = memory.line * number(memory.prefetched_lines) / source.latency;
  source.read = core_share(alone, together, walk.threads);
  source.write = source.read * memory.memory_write_share;
  // A copy: a core only waits for the two lines that it fetches, and what it casts out leaves then, unless that
  // takes longer. On the chips' wires, which all cores share, everything takes turns.
  const BytesPerSecond wires = together / number(walk.threads);
  const double share = memory.memory_write_share;
  source.copied = std::max(memory.line / alone * std::max(2.0, 1.0 / share), memory.line / wires * (1.0 + 1.0 / share));
  return source;
}

std::vector<Source> sources(const MemoryWalk& walk, const Cpu& cpu, const MemoryHierarchy& memory) {
  std::vector<Source> result;
  for (std::size_t i = 0; i < memory.caches.size(); ++i) {
    const CacheLevel& level = memory.caches[i];
    const int together = std::min(walk.threads, level.shared_by);
    const BytesPerSecond read = core_share(level.read, level.shared_read, together);
    result.push_back({level.name, level.latency, read, level.write * (read / level.read), i >= 2});
  }
  result.push_back(memory_source(walk, cpu, memory));
  return result;
}

// One access that waits for none before it. Its lines come from a level at the rate at which that level delivers to a
// core; without a prefetcher no faster than line_fill_buffers of them per latency. A copy's reading and writing take
// turns, except in memory (memory_source); loads and stores to the L1 do not, and run beside what comes from further
// out. An access that crosses a line takes the L1 twice, and what the second one finds missing cannot be asked for
// before: that time adds.
Seconds streamed(const MemoryWalk& walk, const MemoryHierarchy& memory, const Footprint& f, const Source& source,
                 bool prefetched) {
  const Bytes line = memory.line;
  double lines = f.lines_per_access;
  // A pair of lines is fetched where one is asked for, unless the other one is asked for as well.
  const bool alone = walk.pattern == WalkPattern::strided ? walk.stride > line : walk.pattern == WalkPattern::random;
  const double run = std::max(1.0, walk.burst / line), pair = memory.fetch / line;
  if (source.fetches_pairs && alone) {
    lines *=
        walk.pattern == WalkPattern::random ? std::ceil(run / pair) * pair / run : std::min(pair, walk.stride / line);
  }
  Seconds time;
  if (walk.access != WalkAccess::write) time += lines * line / source.read;
  if (walk.access != WalkAccess::read) time += lines * line / source.write;
  if (walk.access == WalkAccess::copy && source.copied.value() > 0.0) time = lines * source.copied;
  const double together = walk.pattern == WalkPattern::random ? run : 1.0;  // sequential lines are prefetched
  if (!prefetched) {
    time = std::max(time, source.latency / number(memory.line_fill_buffers) / together * (1.0 + f.crossing));
  }
  return time;
}

Seconds in_core(const MemoryWalk& walk, const Cpu& cpu, const MemoryHierarchy& memory, const Footprint& f) {
  const CacheLevel& first = memory.caches.front();
  const Bytes element = element_of(walk, memory);
  const Seconds issue = 1.0 / (cpu.core_clock * memory.loads_per_cycle);
  const Seconds read = std::max(issue, element / first.read), write = std::max(issue, element / first.write);
  const Seconds time = walk.access == WalkAccess::read ? read : std::max(read, write);
  return time * (1.0 + f.crossing);
}

void require_possible(const MemoryWalk& walk, const Cpu& cpu) {
  if (!cpu.hierarchy) throw ImpossiblePlan("the memory hierarchy of " + cpu.name + " is not described");
  if (walk.threads < 1 || walk.threads > cpu.cores) {
    throw ImpossiblePlan(cpu.name + " has not as many cores as the walk has threads");
  }
  if (walk.remote && (cpu.sockets < 2 || !(cpu.hierarchy->remote_latency.value() > 0.0) ||
                      !(cpu.hierarchy->remote_bandwidth.value() > 0.0))) {
    throw ImpossiblePlan("no memory of another socket is described for " + cpu.name);
  }
}

// The walk when so much time lies between two uses of a line.
WalkCost steady_walk(const MemoryWalk& walk, const Cpu& cpu, Seconds between) {
  const MemoryHierarchy& memory = *cpu.hierarchy;
  const Footprint f = footprint(walk, memory);
  const Bytes page = page_of(walk, memory);
  const std::vector<double> shares = shares_of(memory, f, page, walk.threads, between);
  const std::vector<Source> from = sources(walk, cpu, memory);
  const Translation translated = translation(walk, memory, f, page);
  const bool waits = walk.pattern == WalkPattern::pointer_chase;
  const bool prefetched = walk.pattern == WalkPattern::sequential ||
                          (walk.pattern == WalkPattern::strided && walk.stride <= memory.prefetch_stride);

  const Seconds core = in_core(walk, cpu, memory, f);
  Seconds time, longest, beyond_first;
  std::string bound = from.front().name;
  const auto take = [&](Seconds part, const std::string& name) {
    time += part;
    if (part > longest) {
      longest = part;
      bound = name;
    }
  };
  for (std::size_t i = 0; i < from.size(); ++i) {
    if (waits) {
      take(shares[i] * from[i].latency * (1.0 + f.crossing), from[i].name);
    } else if (i > 0) {
      beyond_first += shares[i] * streamed(walk, memory, f, from[i], prefetched);
      take(shares[i] * streamed(walk, memory, f, from[i], prefetched), from[i].name);
    }
  }
  if (waits) {
    take(translated.latency, "TLB");
  } else {
    take(f.crossing > 0.0 && beyond_first > core ? core * (f.crossing / (1.0 + f.crossing)) : Seconds(0.0),
         from.front().name);
    if (core > time) {
      time = core;
      bound = from.front().name;
    }
    // Walks of several loads overlap with each other and with the data's own way, as far as the buffers reach.
    const Seconds unhidden =
        prefetched ? translated.busy : std::max(translated.busy, translated.latency / memory.line_fill_buffers);
    if (unhidden > time) {
      time = unhidden;
      bound = "TLB";
    }
  }
  const double threads = walk.threads;
  WalkCost cost;
  cost.per_access = time;
  cost.accesses = f.accesses * threads * walk.passes;
  cost.time = time * (f.accesses * walk.passes);
  cost.bytes = cost.accesses * element_of(walk, memory);
  cost.bound = bound;
  return cost;
}

}  // namespace

double cache_share(double lines_per_set, int ways, bool even, bool cyclic) {
  if (!(lines_per_set > 0.0)) return 1.0;
  if (even) {
    if (lines_per_set <= ways) return 1.0;
    return cyclic ? 0.0 : ways / lines_per_set;
  }
  // The share of lines in sets with at most `ways`: E[X; X <= ways] / E[X] = P(X <= ways - 1).
  const double kept_whole = poisson_up_to(ways - 1, lines_per_set);
  if (cyclic) return kept_whole;
  return std::min(1.0, kept_whole + ways * (1.0 - poisson_up_to(ways, lines_per_set)) / lines_per_set);
}

WalkCost memory_walk_cost(const MemoryWalk& walk, const Cpu& cpu) {
  require_possible(walk, cpu);
  // A cache that other virtual machines fill as well keeps the less of a walk the longer a pass takes, which then takes
  // longer still: from a walk that finds everything where its size lets it be, to the time that agrees with itself.
  WalkCost cost = steady_walk(walk, cpu, walk.between);
  const auto shared = [](const CacheLevel& level) { return level.residence.value() > 0.0; };
  if (!std::any_of(cpu.hierarchy->caches.begin(), cpu.hierarchy->caches.end(), shared)) return cost;
  constexpr int most = 64;
  for (int i = 0; i < most; ++i) {
    const Seconds last = cost.time;
    cost = steady_walk(walk, cpu, walk.between + last / walk.passes);
    if (cost.time <= last * 1.0001) break;
  }
  return cost;
}

WalkCost gpu_chase_cost(const GpuChase& walk, const Gpu& gpu) {
  constexpr Bytes gpu_line(128.0);
  WalkCost cost;
  cost.accesses = std::max(1.0, walk.working_set / gpu_line);
  cost.per_access = gpu.memory_latency;
  cost.time = cost.accesses * cost.per_access;
  cost.bytes = cost.accesses * Bytes(8.0);
  cost.bound = "memory";
  return cost;
}

}  // namespace foretrain
