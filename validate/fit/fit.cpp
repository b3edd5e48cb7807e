#include "validate/fit/fit.hpp"

#include <algorithm>
#include <set>

#include "model/base/error.hpp"
#include "model/cost/operator_cost.hpp"
#include "model/cost/power.hpp"

namespace foretrain {
namespace {

std::set<std::pair<std::size_t, bool>> energies_of(const std::vector<FitRow>& rows) {
  std::set<std::pair<std::size_t, bool>> energies;
  for (const FitRow& row : rows) energies.insert(row.energy);
  return energies;
}

/// Generations whose energy a source other than these GPUs fixes: fitted or measured constants of the calibration.
std::set<std::size_t> known_generations(const Calibration& calibration, bool tensor, std::size_t except) {
  std::set<std::size_t> known;
  for (std::size_t i = 0; i < chip_generations.size(); ++i) {
    if (i == except) continue;
    for (const Constant& constant : calibration.constants) {
      const bool stated = constant.kind == ConstantKind::fit || constant.kind == ConstantKind::measurement;
      if (stated && constant.name == energy_name(i, tensor)) known.insert(i);
    }
  }
  return known;
}

}  // namespace

std::vector<FitRow> fit_rows(const std::vector<Case>& cases) {
  std::vector<FitRow> rows;
  for (const Case& row : cases) {
    const Scenario scenario = scenario_of(row);
    const auto* work = std::get_if<OperatorWorkload>(&scenario.workload);
    if (work == nullptr) {
      throw ScenarioError(row.where, row.name, "this case is no operator", "workload.operator.* columns");
    }
    const auto time =
        std::ranges::find_if(row.measured, [](const Measurement& m) { return m.quantity == MeasuredQuantity::time; });
    if (time == row.measured.end()) {
      throw ScenarioError(row.where, row.name, "nothing was measured", "a value in the column measured.time");
    }
    const Gpu& gpu = scenario.cluster.node.gpu;
    const auto predict = [work = *work, gpu](const Calibration& all) { return cost_alone(work, gpu, all).device; };
    rows.push_back({{row.name, row.group, Seconds(time->value), predict},
                    gpu.name,
                    {generation_of(gpu.compute_capability), uses_tensor_cores(gpu, work->op.precision)}});
  }
  return rows;
}

std::vector<std::string> default_fit_constants(const std::vector<FitRow>& rows) {
  std::vector<std::string> names;
  for (const ConstantRow& row : calibration_rows()) {
    if (row.name.starts_with("matmul.")) names.push_back(row.name);
  }
  for (const auto& [generation, tensor] : energies_of(rows)) names.push_back(energy_name(generation, tensor));
  return names;
}

std::vector<PointErrors> errors_of(const std::vector<FitRow>& rows, const Calibration& calibration) {
  std::vector<PointPair> pairs;
  for (const FitRow& row : rows) {
    pairs.push_back({row.name, row.group, row.gpu, false, row.measured, row.predict(calibration)});
  }
  return errors_of(pairs);
}

FitResult fit(const std::vector<FitRow>& rows, const std::vector<std::string>& constants, const Calibration& start,
              int budget) {
  const std::vector<Observation> points(rows.begin(), rows.end());
  FitResult result{robust_fit(points, constants, start, budget), {}};
  result.errors = errors_of(rows, result.found.calibration);
  return result;
}

std::vector<std::string> gpus_of(const std::vector<FitRow>& rows) {
  std::vector<std::string> gpus;
  for (const FitRow& row : rows) {
    if (std::ranges::find(gpus, row.gpu) == gpus.end()) gpus.push_back(row.gpu);
  }
  return gpus;
}

LeftOut leave_out(const std::vector<FitRow>& rows, const std::string& gpu, const std::vector<std::string>& constants,
                  const Calibration& start, int budget) {
  std::vector<FitRow> fitted, left;
  for (const FitRow& row : rows) (row.gpu == gpu ? left : fitted).push_back(row);
  if (left.empty()) throw UsageError("no case is of the GPU " + gpu);
  if (fitted.empty()) throw UsageError("every case is of the GPU " + gpu + ": nothing is left to fit");

  const auto own = energies_of(left);
  const auto others = energies_of(fitted);
  std::vector<std::string> searched;
  for (const std::string& name : constants) {
    const bool of_left = std::ranges::any_of(own, [&](const auto& energy) {
      return energy_name(energy.first, energy.second) == name && !others.contains(energy);
    });
    if (!of_left) searched.push_back(name);
  }
  LeftOut result{gpu, fit(fitted, searched, start, budget), {}, {}};
  Calibration& calibration = result.fitted.found.calibration;
  for (const auto& [generation, tensor] : own) {
    if (others.contains({generation, tensor})) continue;
    const auto unit = tensor ? &GenerationPower::tensor_pj : &GenerationPower::vector_pj;
    TrackedNumber& energy = calibration.power.generation[generation].*unit;
    const double before = energy;
    energy = scaled_energy(known_generations(calibration, tensor, generation), generation, calibration.power, unit)
                 .value_or(before);
    result.by_rule.push_back({energy_name(generation, tensor), before, energy});
  }
  result.predicted = errors_of(left, calibration);
  return result;
}

}  // namespace foretrain
