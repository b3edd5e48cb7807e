// What training reads and writes over the network cards that it trains with: samples from a server of files,
// checkpoints to one or into other machines' memory.
#pragma once

#include <functional>
#include <optional>

#include "model/job/job.hpp"

namespace foretrain {

/// Predicts a scenario, estimated or simulated.
using Predict = std::function<Result(const Scenario&)>;

/// The scenario with what its loader reads from storage that is a network's as traffic beside training: on each machine
/// its samples, less those in the page cache, over the time of a step, evenly through the cards of its GPUs. The server
/// is taken to hang on the fabric where nobody else is in its way. Nothing where no sample comes over the cards.
std::optional<Scenario> with_loader_traffic(const Scenario& scenario, const Predict& predict);

/// How much longer a step takes while a checkpoint is on its way over those cards: each machine's part at the rate at
/// which it is written, to a server or into the next machine's memory. 1 where it takes another way, or training waits.
double longer_beside_write(const Scenario& scenario, const Predict& predict);

/// The scenario beside its own storage traffic. `alone` predicts a scenario whose steps take `longer` times as long
/// beside a write.
Result beside_storage(const Scenario& scenario,
                      const std::function<Result(const Scenario& scenario, double longer)>& alone);

}  // namespace foretrain
