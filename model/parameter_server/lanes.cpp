#include "model/parameter_server/lanes.hpp"

#include <algorithm>
#include <numeric>

#include "model/base/number.hpp"

namespace foretrain {

namespace {

constexpr int most_messages_each = 256;  ///< of lanes to servers at a time, up to which every worker has a lane
constexpr int most_messages = 96;
constexpr int fewest_lanes = 8;

/// Workers from `first` to before `end` in lanes of at most `size`, as even as they can be.
void add_lanes(int first, int end, int size, std::vector<WorkerLane>& lanes) {
  const int count = (end - first + size - 1) / size;
  for (int lane = 0; lane < count; ++lane) {
    const int begin = first + (end - first) * lane / count;
    WorkerLane& workers = lanes.emplace_back(at_index(first + (end - first) * (lane + 1) / count - begin));
    std::iota(workers.begin(), workers.end(), begin);
  }
}

}  // namespace

std::vector<WorkerLane> lanes_of(const ParameterStore& store, int size) {
  std::vector<WorkerLane> lanes;
  add_lanes(0, store.worker_count(), size, lanes);
  return lanes;
}

std::vector<WorkerLane> usual_lanes(const ParameterStore& store) {
  const int workers = store.worker_count();
  const int usual = workers - std::min(store.slow.count, workers);
  std::vector<WorkerLane> lanes;
  if (store.consistency == Sync::Consistency::synchronous && !(store.compute_spread > 0.0)) {
    add_lanes(0, usual, workers, lanes);
    add_lanes(usual, workers, workers, lanes);
    return lanes;
  }
  if (static_cast<double>(workers) * store.server_count() <= most_messages_each) return lanes_of(store, 1);
  const int wanted = std::clamp(most_messages / store.server_count(), fewest_lanes, workers);
  const int size = (workers + wanted - 1) / wanted;
  add_lanes(0, usual, size, lanes);
  add_lanes(usual, workers, size, lanes);
  return lanes;
}

}  // namespace foretrain
