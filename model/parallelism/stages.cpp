#include "model/parallelism/stages.hpp"

#include <algorithm>
#include <limits>
#include <numeric>
#include <string>
#include <utility>

#include "model/base/error.hpp"
#include "model/base/number.hpp"

namespace foretrain {

namespace {

double forward_flops(const Layer& layer) {
  double total = 0.0;
  for (const Operator& op : layer.forward) total += flops(op).value();
  return total;
}

double weights_of(const Layer& layer) { return layer.parameters + layer.frozen_parameters; }

/// Layers per chunk when all are alike: even, the remainder to the chunks in the middle.
std::vector<int> even_split(int layers, int chunks) {
  std::vector<int> sizes(static_cast<std::size_t>(chunks), layers / chunks);
  std::vector<int> order;  // the middle first, both ends last
  for (int k = 1; k + 1 < chunks; ++k) order.push_back(k);
  order.push_back(0);
  if (chunks > 1) order.push_back(chunks - 1);
  for (int k = 0; k < layers % chunks; ++k) ++sizes[static_cast<std::size_t>(order[static_cast<std::size_t>(k)])];
  return sizes;
}

/// Contiguous division of `cost` into `chunks` parts with the least maximum (dynamic programme, O(chunks · n)).
std::vector<int> balanced_split(const std::vector<double>& cost, int chunks) {
  const std::size_t n = cost.size(), parts = at_index(chunks);
  std::vector<double> prefix(n + 1, 0.0);
  std::partial_sum(cost.begin(), cost.end(), prefix.begin() + 1);
  // best[end]: the least maximum of the first k parts over layers before `end`; cut[k][end]: where the k-th begins.
  std::vector<double> best(n + 1, std::numeric_limits<double>::infinity());
  best[0] = 0.0;
  std::vector<std::vector<int>> cut(parts + 1, std::vector<int>(n + 1, 0));
  for (std::size_t k = 1; k <= parts; ++k) {
    std::vector<double> longer(n + 1, std::numeric_limits<double>::infinity());
    // The later the last part begins, the less it costs and the more do those before it: the best place is where the
    // two cross, which moves on with `end`.
    std::size_t begin = k - 1;
    for (std::size_t end = k; end <= n; ++end) {
      while (begin + 1 < end && best[begin] < prefix[end] - prefix[begin]) ++begin;
      const double crossed = std::max(best[begin], prefix[end] - prefix[begin]);
      std::size_t at = begin;
      if (begin + 1 > k && prefix[end] - prefix[begin - 1] <= crossed) --at;
      while (at + 1 > k && prefix[at - 1] == prefix[at]) --at;  // layers that cost nothing go with what follows them
      longer[end] = std::max(best[at], prefix[end] - prefix[at]);
      cut[k][end] = static_cast<int>(at);
    }
    best = std::move(longer);
  }
  std::vector<int> sizes(parts);
  for (std::size_t k = parts, end = n; k > 0; --k) {
    const std::size_t begin = at_index(cut[k][end]);
    sizes[k - 1] = static_cast<int>(end - begin);
    end = begin;
  }
  return sizes;
}

/// Layers of each chunk. `ends`: embedding and loss take the place of one each.
std::vector<int> chunk_sizes(std::vector<double> cost, int chunks, bool alike, bool ends) {
  const int layers = static_cast<int>(cost.size());
  if (chunks == 1) return {layers};
  if (ends) {
    const double mean = std::accumulate(cost.begin(), cost.end(), 0.0) / layers;
    cost.insert(cost.begin(), mean);
    cost.push_back(mean);
  }
  std::vector<int> sizes = alike ? even_split(static_cast<int>(cost.size()), chunks) : balanced_split(cost, chunks);
  if (ends) {
    --sizes.front();
    --sizes.back();
  }
  return sizes;
}

void append(std::vector<LayerRun>& chunk, int group) {
  if (!chunk.empty() && chunk.back().group == group) {
    ++chunk.back().count;
  } else {
    chunk.push_back({group, 1});
  }
}

/// The model's layers, so many splittable ones to each chunk. `behind`: what stands behind the last of them is the last
/// chunk's, even where that has none.
std::vector<std::vector<LayerRun>> place_layers(const Model& model, const std::vector<int>& sizes, bool behind) {
  const int left = std::accumulate(sizes.begin(), sizes.end(), 0);
  std::vector<std::vector<LayerRun>> result(sizes.size());
  std::size_t chunk = 0;
  int taken = 0, placed = 0;
  for (int g = 0; g < static_cast<int>(model.layers.size()); ++g) {
    const LayerGroup& group = model.layers[static_cast<std::size_t>(g)];
    for (int i = 0; i < group.repeat; ++i) {
      if (group.layer.splittable) {
        while (taken == sizes[chunk] && chunk + 1 < sizes.size()) {
          ++chunk;
          taken = 0;
        }
        ++taken;
        ++placed;
      } else if (placed == left && behind) {
        chunk = sizes.size() - 1;  // behind the last layer, where no layer is left for the last chunk
      }
      append(result[chunk], g);
    }
  }
  return result;
}

}  // namespace

std::vector<std::vector<LayerRun>> split_layers(const Model& model, int stages, int interleave, bool ends_count) {
  const int chunks = stages * interleave;
  std::vector<double> cost;
  const Layer* first = nullptr;
  bool alike = true;  // but for formats and windows, which trainers do not look at
  for (const LayerGroup& group : model.layers) {
    if (!group.layer.splittable) continue;
    if (first == nullptr) first = &group.layer;
    const bool same_weights = weights_of(group.layer) > 0.0 && weights_of(group.layer) == weights_of(*first);
    alike = alike && (&group.layer == first || (group.layer.name == first->name && same_weights));
    cost.insert(cost.end(), at_index(group.repeat), forward_flops(group.layer));
  }
  const int left = static_cast<int>(cost.size());
  const int ends = ends_count && chunks > 1 ? 2 : 0;
  if (chunks > 1 && left + ends < chunks) {
    throw ImpossiblePlan(std::to_string(left) + " layers cannot fill " + std::to_string(chunks) +
                             " model chunks; use at most " + std::to_string(left + ends) + " stages × interleave",
                         "plan.pipeline");
  }
  return place_layers(model, chunk_sizes(std::move(cost), chunks, alike, ends > 0), ends > 0);
}

std::vector<std::vector<LayerRun>> split_layers(const Model& model, const Plan& plan) {
  if (!plan.stage_layers.empty()) return place_layers(model, plan.stage_layers, true);
  return split_layers(model, plan.pipeline, plan.interleave, plan.embedding_in_pipeline);
}

bool same_layers(const std::vector<std::vector<LayerRun>>& chunks, const ChunkPlacement& placement, int a, int b) {
  for (int chunk = 0; chunk < placement.chunks(); ++chunk) {
    if (chunks[at_index(placement.position(a, chunk))] != chunks[at_index(placement.position(b, chunk))]) return false;
  }
  return true;
}

}  // namespace foretrain
