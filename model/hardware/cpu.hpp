// One node's processors and their memory hierarchy, as datasheets and measurements describe them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "model/base/constant.hpp"
#include "model/base/quantity.hpp"

namespace foretrain {

/// One level of cache, data side. Latency and bandwidths are those of one core whose working set lies in this level.
struct CacheLevel {
  std::string name;              ///< "L1", "L2", "L3"
  Bytes size;                    ///< of one instance, all of its cores together
  int ways = 1;                  ///< associativity
  int shared_by = 1;             ///< cores per instance
  Seconds latency;               ///< from address to value of a dependent load
  BytesPerSecond read, write;    ///< sustained; writing includes fetching the line and casting it out
  BytesPerSecond shared_read{};  ///< all cores of one instance together; zero: as many times `read`
  bool hashed = false;           ///< the set is a hash of the whole address: strides and pages do not matter
  bool victim = false;           ///< holds what falls out of the level above, in addition to it
  /// With a cache that other virtual machines of the processor fill as well: the time it keeps a line that is not asked
  /// for (the "characteristic time" of Che, Tung and Wang). Zero: this machine has the cache for itself.
  Seconds residence{};
  bool operator==(const CacheLevel&) const = default;
};

/// Address translation. A load whose page misses the first level waits for the second; missing both, it waits for a
/// page walk.
struct Tlb {
  int entries = 64, huge_entries = 32;  ///< first level: small pages, huge pages
  int second_entries = 1024;            ///< second level, shared by both sizes
  Seconds second_latency;               ///< added by a hit in the second level
  int walkers = 1;                      ///< page walks at the same time
  bool operator==(const Tlb&) const = default;
};

/// Caches and memory of a core.
struct MemoryHierarchy {
  std::string name;                ///< microarchitecture
  std::vector<CacheLevel> caches;  ///< from the core outwards, at least one
  Tlb tlb;
  Bytes line{64.0};
  Bytes small_page{4096.0}, huge_page{2097152.0};
  Bytes fetch{64.0};           ///< fetched by a miss of a core's caches: a pair of lines if a prefetcher completes it
  int line_fill_buffers = 10;  ///< misses of loads that a core has in flight
  int prefetched_lines = 10;   ///< lines that a core has in flight from memory when a prefetcher runs ahead
  Bytes prefetch_stride{0.0};  ///< the longest stride that a prefetcher follows
  double loads_per_cycle = 2.0;
  int vector_bytes = 32;            ///< of the widest load
  Seconds memory_latency;           ///< of a dependent load from memory of the own socket, translation known
  double memory_efficiency = 1.0;   ///< share of Cpu::memory_bandwidth that reading with all cores reaches
  double memory_write_share = 0.5;  ///< of the reading bandwidth: each written line is fetched and cast out
  Seconds remote_latency;           ///< the same from memory of another socket; zero: unknown
  BytesPerSecond remote_bandwidth;  ///< between two sockets, one direction; zero: unknown
  /// A hypervisor maps the machine's pages in small pages of its own: every walk is two, and huge pages are not.
  bool virtualised = false;
  bool operator==(const MemoryHierarchy&) const = default;
};

/// Costs of a matrix library besides arithmetic, on any processor.
struct MatrixLibrary {
  double kernel_share = 1.0;   ///< of the multiply-add peak that the innermost loop reaches
  double tile_cycles = 0.0;    ///< per register tile and block of depth: starting, draining, adding to the result
  Seconds call;                ///< checking arguments, taking buffers
  Seconds join;                ///< waking other threads and waiting for the last
  double small_product = 0.0;  ///< up to so many multiply-adds operands are not packed
  Bytes small_vector{};        ///< by kernels for vectors of at least this width
  bool operator==(const MatrixLibrary&) const = default;
};

struct Cpu {
  std::string name;
  int sockets = 1;
  int cores = 1;  ///< physical, all sockets together
  Hertz clock;
  Bytes memory;                     ///< all sockets together
  BytesPerSecond memory_bandwidth;  ///< all sockets together, datasheet
  FlopsPerSecond fp32_rate;         ///< all cores together
  Hertz core_clock;                 ///< of one busy core; `clock` where the description states no `boost_clock`
  std::optional<MemoryHierarchy> hierarchy = std::nullopt;
  MatrixLibrary matrix_library;
  std::vector<Constant> hierarchy_constants = {};  ///< figures of the hierarchy with their sources
  bool operator==(const Cpu&) const = default;
};

}  // namespace foretrain
