// One process of a small world: meets the others as the environment says, exchanges what the suite `collective` does,
// and prints one line.
#include <cstdio>
#include <string>

#include "validate/cuda/collective/world.hpp"

using namespace foretrain::gpu;

int main() {
  try {
    const Launched who = launched();
    const auto world = make_world(who);
    int decided = world->leads() ? 42 : 0;
    world->broadcast(&decided, sizeof(decided));
    std::string all;
    for (const std::string& text : world->gather("r" + std::string(static_cast<std::size_t>(world->rank()), 'x'))) {
      all += "[" + text + "]";
    }
    const double slowest = world->maximum(1.5 * world->rank());
    std::printf("rank %d of %d: %d %s %g %s\n", world->rank(), world->size(), decided, all.c_str(), slowest,
                world->transport().c_str());
    return 0;
  } catch (const std::exception& error) {
    std::printf("error: %s\n", error.what());
    return 1;
  }
}
