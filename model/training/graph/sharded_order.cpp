#include "model/training/graph/sharded_order.hpp"

namespace foretrain {

std::vector<ShardedUnit::Pass> sharded_order(const std::vector<ShardedUnit>& units, bool backward, bool overlap) {
  const int n = static_cast<int>(units.size());
  std::vector<ShardedUnit::Pass> order;
  std::vector<int> gathered(static_cast<std::size_t>(n), -1);
  std::vector<int> computed(static_cast<std::size_t>(n), -1);
  const auto unit_at = [&](int position) { return backward ? n - 1 - position : position; };
  const auto unit_of = [&](int position) -> const ShardedUnit& {
    return units[static_cast<std::size_t>(unit_at(position))];
  };

  const auto add_gather = [&](int position) {
    if (position >= n) return;
    const ShardedUnit& unit = unit_of(position);
    if ((backward ? unit.gather_backward : unit.gather) < 0) return;
    ShardedUnit::Pass pass{ShardedUnit::Pass::Kind::gather, unit_at(position), {}};
    if (position >= 2) pass.after.push_back(computed[static_cast<std::size_t>(position) - 2]);
    gathered[static_cast<std::size_t>(position)] = static_cast<int>(order.size());
    order.push_back(std::move(pass));
  };

  if (overlap) add_gather(0);
  for (int position = 0; position < n; ++position) {
    add_gather(overlap ? position + 1 : position);
    ShardedUnit::Pass pass{ShardedUnit::Pass::Kind::compute, unit_at(position), {}};
    if (gathered[static_cast<std::size_t>(position)] >= 0)
      pass.after.push_back(gathered[static_cast<std::size_t>(position)]);
    computed[static_cast<std::size_t>(position)] = static_cast<int>(order.size());
    order.push_back(std::move(pass));
    if (!backward) continue;
    const auto add = [&](ShardedUnit::Pass::Kind kind) {
      const int before = static_cast<int>(order.size()) - 1;
      order.push_back({kind, unit_at(position), {before}});
    };
    if (unit_of(position).scatter >= 0) add(ShardedUnit::Pass::Kind::scatter);
    if (unit_of(position).reduce >= 0) add(ShardedUnit::Pass::Kind::reduce);
  }
  if (overlap) return order;
  for (std::size_t i = 1; i < order.size(); ++i) order[i].after = {static_cast<int>(i) - 1};
  return order;
}

}  // namespace foretrain
