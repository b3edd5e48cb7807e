#include <algorithm>
#include <cmath>

#include "model/cost/kernels.hpp"

namespace foretrain {
namespace {

// A warp's reads are served in sectors of 32 bytes, four of which make a line of 128 (CUDA programming guide, device
// memory accesses).
constexpr Bytes sector_size(32.0);

// The L1 delivers a line a clock and multiprocessor (architecture whitepapers, Volta to Hopper).
constexpr double l1_bytes_per_cycle = 128.0;

// The share of the scratchpad memory that plain loads may use as L1: assumption, some of it is kept for the driver and
// for kernels that share the multiprocessor.
constexpr double l1_share = 0.9;

struct Level {
  BytesPerSecond bandwidth;
  Seconds latency;
  Bytes piece;  ///< delivered at a time
};

// Bytes moved for each read: neighbours share pieces as long as the next read begins in the same one.
Bytes moved_per_read(const MemoryAccess& work, Bytes piece) {
  const Bytes whole = piece * std::ceil(work.element / piece);
  if (work.pattern == AccessPattern::sequential) return work.element;
  return work.pattern == AccessPattern::strided ? std::min(std::max(work.element, work.stride), whole) : whole;
}

}  // namespace

double thread_blocks(const MemoryAccess& work) {
  return work.pattern == AccessPattern::dependent ? 1.0 : std::ceil(work.reads * work.element / bytes_of_a_block);
}

// The working set lives in the smallest level that holds it. Data larger than the L2 come from device memory, and a
// part of them, as large as the L2, still from there. Throughput patterns are bound by the bytes that sectors carry;
// a chain of dependent reads by the latency of its level, one read after the other.
KernelTime kernel_time(const MemoryAccess& work, Precision /*precision*/, int /*kernels*/, const Gpu& gpu,
                       const Calibration& calibration) {
  const AccessConstants& c = calibration.access;
  const bool chain = work.pattern == AccessPattern::dependent;
  const double clock = gpu.boost_clock.value();
  const double sms = chain ? 1.0 : gpu.sms;
  const Bytes l1_size = gpu.shared_memory_per_sm * (l1_share * sms);
  const double efficiency = calibration.streaming.bandwidth_efficiency;

  // The L1 holds a share of its own per multiprocessor; it serves a warp's reads bank by bank, four bytes wide.
  const Level l1{BytesPerSecond(l1_bytes_per_cycle * sms * clock), Seconds(c.l1_cycles / clock), Bytes(4.0)};
  const Level l2{gpu.l2_bandwidth * efficiency, Seconds(c.l2_cycles / clock), sector_size};
  const Level device{gpu.memory_bandwidth * efficiency, gpu.memory_latency, sector_size};
  const auto seconds_per_read = [&](const Level& level) {
    return chain ? level.latency : moved_per_read(work, level.piece) / level.bandwidth;
  };

  Seconds per_read = seconds_per_read(l1);
  if (work.working_set > l1_size) {
    const double beyond = std::clamp(1.0 - gpu.l2_cache / work.working_set, 0.0, 1.0);
    per_read = std::max(per_read, seconds_per_read(l2) * (1.0 - beyond) + seconds_per_read(device) * beyond);
  }
  const Seconds fixed(calibration.streaming.kernel_us * 1e-6);
  const Seconds body = work.reads * per_read;
  return {fixed + body, chain || fixed > body ? Bound::latency : Bound::memory};
}

}  // namespace foretrain
