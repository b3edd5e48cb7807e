// The suite `collective` where several processes measure it together.
#pragma once

namespace foretrain::gpu {

/// What processes of rank 1 and above do while that of rank 0 runs the suite: they take part, and write nothing.
/// Returns when rank 0 says that this was all. Throws GpuError.
void follow_collective(bool verify);

}  // namespace foretrain::gpu
