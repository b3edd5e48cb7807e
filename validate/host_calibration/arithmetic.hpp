// What the cores' vector units do at most, without any memory.
#pragma once

namespace foretrain {

/// Fused multiply-adds of the widest vectors that one core of this processor does in a second, in registers alone.
/// Zero where there is no loop for the processor.
double multiply_adds_per_second();

}  // namespace foretrain
