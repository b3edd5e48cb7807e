#include "model/training/pricing/counted_pass.hpp"

#include <algorithm>

namespace foretrain {

std::array<std::vector<Operator>, 3> counted_stretches(const Layer& layer) {
  std::array<std::vector<Operator>, 3> stretches;
  const auto is_of = [](LayerPart part) { return [part](const Operator& op) { return op.part == part; }; };
  const auto routed = std::find_if(layer.forward.rbegin(), layer.forward.rend(), is_of(LayerPart::router)).base();
  const auto experts = std::find_if(routed, layer.forward.end(), is_of(LayerPart::experts));
  const auto back = std::find_if_not(experts, layer.forward.end(), is_of(LayerPart::experts));
  stretches[0].assign(routed, experts);
  stretches[1].assign(experts, back);
  stretches[2].assign(back, layer.forward.end());
  stretches[2].insert(stretches[2].end(), layer.forward.begin(), routed);
  return stretches;
}

Seconds idle_behind_counts(const CountedPass& pass, Seconds exchanges, const HostConstants& constants) {
  const Seconds latency = launch_latency(constants);
  Seconds host, kernels, done = latency;
  for (std::size_t i = 0; i < pass.size(); ++i) {
    host += pass[i].host;
    kernels += pass[i].device;
    done = std::max(done + pass[i].device, host + latency);
    if (i + 1 < pass.size()) done += exchanges / 2.0;
  }
  return done + synchronize_time(constants) - std::max(host, kernels + exchanges);
}

}  // namespace foretrain
