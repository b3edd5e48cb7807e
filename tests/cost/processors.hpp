// A processor with round figures, for tests that work out what its memory does by hand.
#pragma once

#include "model/hardware/cpu.hpp"

namespace foretrain::test {

/// 4 GHz; L1 32 KiB, 8 ways (one page a way), 1 ns, 128 GB/s; L2 512 KiB, 8 ways, 4 ns, 64 GB/s; L3 8 MiB for 4 cores,
/// hashed, 16 ns, 32 GB/s; memory 100 ns, 25.6 GB/s of 4 cores. Ten fill buffers, 20 lines prefetched.
inline Cpu round_cpu() {
  Cpu cpu;
  cpu.name = "round";
  cpu.cores = 4;
  cpu.clock = cpu.core_clock = Hertz(4e9);
  cpu.memory = Bytes(64e9);
  cpu.memory_bandwidth = BytesPerSecond(25.6e9);
  cpu.fp32_rate = FlopsPerSecond(4 * 4e9 * 32);
  MemoryHierarchy memory;
  memory.caches = {{"L1", Bytes(32768.0), 8, 1, Seconds(1e-9), BytesPerSecond(128e9), BytesPerSecond(64e9)},
                   {"L2", Bytes(524288.0), 8, 1, Seconds(4e-9), BytesPerSecond(64e9), BytesPerSecond(32e9)},
                   {"L3", Bytes(8388608.0), 16, 4, Seconds(16e-9), BytesPerSecond(32e9), BytesPerSecond(16e9),
                    BytesPerSecond(64e9), true, false}};
  memory.tlb = {64, 32, 1024, Seconds(2e-9), 2};
  memory.line_fill_buffers = 10;
  memory.prefetched_lines = 20;
  memory.prefetch_stride = Bytes(2048.0);
  memory.loads_per_cycle = 2.0;
  memory.vector_bytes = 32;
  memory.memory_latency = Seconds(100e-9);
  cpu.hierarchy = memory;
  cpu.matrix_library = {1.0, 0.0, Seconds(0.0), Seconds(0.0)};
  return cpu;
}

}  // namespace foretrain::test
