#include "model/graph/recipe.hpp"

#include <algorithm>
#include <utility>

#include "model/cost/operator_cost.hpp"

namespace foretrain {

namespace {

/// A kernel of an operator that takes `parts` of them: traffic can be divided, other work is done by the first.
PricedOperator part_of(const Operator& op, int parts, Seconds predicted) {
  PricedOperator kernel{op, 1, predicted};
  if (auto* streaming = std::get_if<Streaming>(&kernel.op.work); streaming != nullptr && parts > 1) {
    const auto n = static_cast<double>(parts);
    streaming->read /= n;
    streaming->written /= n;
    streaming->flops /= n;
    streaming->singles /= n;
  }
  kernel.op.kernels = 1;
  return kernel;
}

/// Cost of an elementwise operator in the kernel of the one before it: its further inputs.
void fuse(std::vector<PricedOperator>& kernels, const Operator& op, Seconds predicted) {
  const auto& streaming = std::get<Streaming>(op.work);
  const Bytes extra = std::max(Bytes(0.0), streaming.read - streaming.written);
  PricedOperator& producer = kernels.back();
  if (auto* before = std::get_if<Streaming>(&producer.op.work); before != nullptr && producer.count == 1) {
    before->read += extra;
    before->flops += streaming.flops;
  } else if (extra > Bytes(0.0)) {
    Streaming inputs = streaming;
    inputs.read = extra;
    inputs.written = Bytes(0.0);
    inputs.singles = 0.0;
    kernels.push_back({{op.name, inputs, op.precision, 1}, 1, predicted});
    return;
  }
  producer.op.name += " + " + op.name;
  producer.predicted += predicted / static_cast<double>(producer.count);
}

Recipe recipe_from(const std::vector<PricedOperator>& kernels) { return {{kernels.begin(), kernels.end()}}; }

}  // namespace

RecipePointer recipe_of(RecipeWork work) { return std::make_shared<const Recipe>(Recipe{{std::move(work)}}); }

CollectiveWork collective_work(CollectiveOperation operation, Bytes size, int ranks, SyncAlgorithm algorithm,
                               int servers, ServerPlacement placement, int count) {
  const bool naive = algorithm == SyncAlgorithm::naive;
  CollectiveWork work{"nccl", std::max(Bytes(1.0), size), ranks, naive ? 1 : servers, count};
  if (has_servers(algorithm)) work.method = placement == ServerPlacement::cpu ? "server_cpu" : "server_gpu";
  if (naive) work.method = "server_gpu";
  if (operation != CollectiveOperation::all_reduce) work.method.clear();
  return work;
}

RecipePointer joined(const RecipePointer& first, const RecipePointer& second) {
  if (!first || !second) return first ? first : second;
  Recipe both = *first;
  both.work.insert(both.work.end(), second->work.begin(), second->work.end());
  return std::make_shared<const Recipe>(std::move(both));
}

Recipe kernels_of(const std::vector<Operator>& ops, ExecutionMode mode, double stretch, const Gpu& gpu,
                  const Calibration& calibration) {
  const bool compiled = mode == ExecutionMode::compiled;
  std::vector<PricedOperator> kernels;
  for (const Operator& op : ops) {
    const bool part = compiled && (kernels.empty() || joins(op, *(&op - 1)));
    const Seconds device = launched_cost(op, mode, part, gpu, calibration).device * stretch;
    if (part && !kernels.empty()) {
      fuse(kernels, op, device);
      continue;
    }
    const bool divided = std::holds_alternative<Streaming>(op.work) && op.kernels > 1;
    const int parts = divided ? op.kernels : 1;
    kernels.push_back(part_of(op, parts, device / static_cast<double>(parts)));
    kernels.back().count = parts;
  }
  return recipe_from(kernels);
}

std::vector<RecipePointer> recipes_of(const LaunchPlan& plan, const std::vector<Operator>& ops) {
  std::vector<RecipePointer> recipes;
  for (const Launch& launch : plan.launches) {
    std::vector<PricedOperator> kernels;
    const Operator& op = ops[static_cast<std::size_t>(launch.operators.front())];
    if (launch.part == 0 || std::holds_alternative<Streaming>(op.work)) {
      kernels.push_back(part_of(op, launch.parts, launch.device));
      for (std::size_t i = 1; i < launch.operators.size(); ++i) {
        fuse(kernels, ops[static_cast<std::size_t>(launch.operators[i])], Seconds(0.0));
      }
    }
    recipes.push_back(std::make_shared<const Recipe>(recipe_from(kernels)));
  }
  return recipes;
}

}  // namespace foretrain
