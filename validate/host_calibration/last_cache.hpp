// How long the last cache keeps what this machine put there: where the processor is shared, other virtual machines fill
// it as well.
#pragma once

#include <vector>

#include "model/base/quantity.hpp"

namespace foretrain {

/// A load's time from data that no load had asked for during `age`.
struct AgedLoad {
  Seconds age, latency;
};

/// The age at which loads take half-way from the youngest ones' time to `outside`, which is what a load from memory
/// takes: between the last age that is still below and the next one. Zero where even the oldest is below: no other
/// machine fills the cache. `loads` from young to old.
Seconds half_way(const std::vector<AgedLoad>& loads, Seconds outside);

/// Brings a working set into the last cache (a pass over it, then other data, which displaces it from the second level
/// of that size), touches none of it for a while, and follows pointers in it: half_way() of several whiles. About three
/// seconds.
Seconds residence_in_last_cache(Bytes second_level);

}  // namespace foretrain
