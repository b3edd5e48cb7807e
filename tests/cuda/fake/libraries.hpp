// Stand-ins for NVIDIA's libraries, by functions of the same names, without the headers of the originals, whose
// prototypes would have every argument of what is only looked up written out.
#pragma once

#include "tests/cuda/fake/settings.hpp"
#include "tests/cuda/fake/world.hpp"

/// Succeeds, and does nothing.
#define ACCEPTS(name) \
  int name() { return 0; }
/// Succeeds, and makes a handle of something that is never looked into.
#define MAKES(name)       \
  int name(void** made) { \
    static int thing = 0; \
    *made = &thing;       \
    return 0;             \
  }

namespace fake {

/// Work of a library: 0 where it could be put on the stream, else its status for what failed.
inline int run(cudaStream_t stream, double seconds, int failed) {
  const std::lock_guard<std::mutex> guard(World::get().mutex);
  return World::get().launch(stream, seconds) == cudaSuccess ? 0 : failed;
}

}  // namespace fake
