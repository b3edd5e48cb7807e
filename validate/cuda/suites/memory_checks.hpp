// The kernels that touch memory, against the host: they are timed only when they read and write what they should.
#pragma once

namespace foretrain::gpu {

/// Runs each of them once on small data. Throws GpuError with Fault::failed, which says what is wrong.
void check_memory_kernels(int device);

}  // namespace foretrain::gpu
