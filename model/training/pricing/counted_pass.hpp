// A forward pass of experts that the host has to wait for: how many tokens each expert has is known on the device, and
// the host reads it back before it launches what depends on it (Megatron-Core, transformer/moe/token_dispatcher.py,
// tokens_per_expert.to("cpu") and the event that is waited for). The queue of launches is empty then.
#pragma once

#include <array>

#include "model/base/quantity.hpp"
#include "model/cost/calibration.hpp"
#include "model/cost/launches.hpp"
#include "model/workload/model.hpp"

namespace foretrain {

/// Three stretches from one layer's counts to the next one's, layers being alike: kernels up to the exchange of tokens,
/// the experts' own, and those behind the exchange back, with the next layer's attention and router.
using CountedPass = std::array<LaunchTotals, 3>;

/// To which of the stretches operators belong, by index into the layer's forward pass.
std::array<std::vector<Operator>, 3> counted_stretches(const Layer& layer);

/// Time by which a layer takes longer than the longer of its launches and its kernels with `exchanges`. With h and d
/// those of a stretch, and H the host's time until then, the device is done with it at
///   t = max(t + d, H + launch latency)
/// beginning a launch latency behind the counts; each of the two exchanges follows its stretch. The host has the next
/// counts when the last kernel is done and seen.
Seconds idle_behind_counts(const CountedPass& pass, Seconds exchanges, const HostConstants& constants);

}  // namespace foretrain
