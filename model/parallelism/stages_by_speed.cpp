// Stages that hold layers by the speed of their devices.
#include <algorithm>
#include <set>

#include "model/base/number.hpp"
#include "model/cost/operator_cost.hpp"
#include "model/parallelism/layout.hpp"
#include "model/parallelism/stages.hpp"

namespace foretrain {

namespace {

Seconds kernels_time(const Layer& layer, const Gpu& gpu, const Calibration& calibration) {
  Seconds time;
  for (const Operator& op : layer.operators()) time += operator_cost(op, gpu, calibration).device;
  return time;
}

StageTimes times_on(const Model& model, const Gpu& gpu, const Calibration& calibration) {
  StageTimes times;
  for (const LayerGroup& group : model.layers) {
    const Seconds each = kernels_time(group.layer, gpu, calibration);
    if (group.layer.splittable) {
      times.layers.insert(times.layers.end(), at_index(group.repeat), each);
    } else {
      (times.layers.empty() ? times.before : times.behind) += each * group.repeat;
    }
  }
  return times;
}

}  // namespace

/// By dynamic programming: with s stages for the first n layers, the least time of the slowest one.
std::vector<int> layers_by_speed(const std::vector<StageTimes>& stages) {
  const std::size_t layers = stages.front().layers.size();
  std::vector<std::vector<Seconds>> least(stages.size() + 1, std::vector<Seconds>(layers + 1, Seconds::infinity()));
  std::vector<std::vector<std::size_t>> begins(stages.size() + 1, std::vector<std::size_t>(layers + 1));
  least[0][0] = Seconds(0.0);
  for (std::size_t s = 0; s < stages.size(); ++s) {
    const StageTimes& stage = stages[s];
    for (std::size_t end = s + 1; end <= layers; ++end) {
      Seconds own = (s == 0 ? stage.before : Seconds(0.0)) + (s + 1 == stages.size() ? stage.behind : Seconds(0.0));
      for (std::size_t begin = end; begin-- > s;) {
        own += stage.layers[begin];
        if (own >= least[s + 1][end]) break;  // and longer the earlier it begins
        const Seconds slowest = std::max(least[s][begin], own);
        if (!(slowest < least[s + 1][end])) continue;
        least[s + 1][end] = slowest;
        begins[s + 1][end] = begin;
      }
    }
  }
  std::vector<int> sizes(stages.size());
  std::size_t end = layers;
  for (std::size_t s = stages.size(); s > 0; --s) {
    sizes[s - 1] = static_cast<int>(end - begins[s][end]);
    end = begins[s][end];
  }
  return sizes;
}

std::vector<int> layers_by_speed(const Model& model, const Plan& plan, const Cluster& cluster,
                                 const Calibration& calibration) {
  std::vector<StageTimes> stages;
  for (const std::vector<int>& nodes : nodes_of_stages(plan, cluster)) {
    std::set<int> groups;
    for (const int node : nodes) groups.insert(cluster.group_of_node(node));
    StageTimes& slowest = stages.emplace_back();
    for (const int group : groups) {
      const Node& node = cluster.groups.empty() ? cluster.node : cluster.groups[at_index(group)].node;
      StageTimes times = times_on(model, node.gpu, calibration);
      const auto sum = [](const StageTimes& t) {
        Seconds all = t.before + t.behind;
        for (const Seconds layer : t.layers) all += layer;
        return all;
      };
      if (sum(times) > sum(slowest)) slowest = std::move(times);
    }
  }
  return layers_by_speed(stages);
}

}  // namespace foretrain
