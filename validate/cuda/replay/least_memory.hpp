// What a graph needs of a GPU's memory, without CUDA.
#pragma once

#include <cstddef>

#include "validate/replay/graph.hpp"

namespace foretrain::gpu {

/// What the memory of one GPU has to hold, as far as the graph tells before anything is allocated: the operands of its
/// largest operator on each stream, the buffers of its copies and of its largest bucket.
std::size_t least_memory(const replay::Graph& graph);

}  // namespace foretrain::gpu
