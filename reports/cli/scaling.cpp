#include "reports/cli/scaling.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "model/base/error.hpp"
#include "model/scenario/load.hpp"
#include "reports/cli/options.hpp"
#include "sim/predict.hpp"

namespace foretrain {

namespace {

const TrainWorkload& train_of(const Scenario& scenario) {
  const auto* train = std::get_if<TrainWorkload>(&scenario.workload);
  if (train == nullptr) throw UsageError(scenario.name + ": plot scaling needs a scenario that trains a model");
  return *train;
}

std::string_view sample_word(const ModelConfig& model) {
  if (const auto* transformer = std::get_if<TransformerConfig>(&model.shape)) {
    return transformer->family == TransformerFamily::vit ? "images" : "sequences";
  }
  const auto* network = std::get_if<NetworkConfig>(&model.shape);
  return network != nullptr && network->height > 1 ? "images" : "samples";
}

std::string subtitle(const Scenario& scenario, bool strong) {
  const TrainWorkload& train = train_of(scenario);
  if (strong)
    return fmt::format("{} {} in all, {}", train.global_batch, sample_word(train.model), name(train.precision));
  const double per_gpu = static_cast<double>(train.global_batch) / scenario.cluster.gpus();
  return fmt::format("{:.4g} {} per GPU, {}", per_gpu, sample_word(train.model), name(train.precision));
}

/// One point of the figure.
struct Point {
  std::size_t file, algorithm, gpus;
  std::vector<std::string> overrides;
};

std::vector<Point> points_of(const ScalingOptions& options, const std::vector<Scenario>& scenarios) {
  std::vector<Point> points;
  for (std::size_t f = 0; f < scenarios.size(); ++f) {
    for (std::size_t g = 0; g < options.gpus.size(); ++g) {
      const auto placed = on_gpus(scenarios[f], options.gpus[g], options.strong);
      if (!placed) {
        warn(fmt::format("{} is left out on {} GPUs: no whole nodes, replicas or batch", scenarios[f].name,
                         options.gpus[g]));
        continue;
      }
      for (std::size_t a = 0; a < options.algorithms.size(); ++a) {
        std::vector<std::string> overrides = options.overrides;
        overrides.insert(overrides.end(), placed->begin(), placed->end());
        overrides.push_back("plan.sync.algorithm=" + options.algorithms[a]);
        points.push_back({f, a, g, std::move(overrides)});
      }
    }
  }
  return points;
}

/// "parameter server" for parameter_server.
std::string words(std::string name) {
  std::replace(name.begin(), name.end(), '_', ' ');
  return name;
}

}  // namespace

std::optional<std::vector<std::string>> on_gpus(const Scenario& scenario, int gpus, bool strong) {
  const int per_node = std::min(gpus, scenario.cluster.node.gpus);
  const Plan& plan = scenario.plan;
  const int replica = plan.tensor * plan.pipeline * plan.context;
  const std::int64_t batch = train_of(scenario).global_batch;
  const std::int64_t scaled = strong ? batch : batch * gpus / scenario.cluster.gpus();
  const bool whole =
      gpus % per_node == 0 && gpus % replica == 0 && (strong || batch * gpus % scenario.cluster.gpus() == 0);
  if (!whole) return std::nullopt;
  return std::vector<std::string>{
      fmt::format("cluster.nodes={}", gpus / per_node), fmt::format("cluster.gpus_per_node={}", per_node),
      fmt::format("plan.data={}", gpus / replica), fmt::format("workload.train.global_batch={}", scaled)};
}

ScalingFigure predict_scaling(const ScalingOptions& options) {
  ScalingFigure figure{options.gpus, {}};
  std::vector<Scenario> scenarios;
  for (const std::string& file : options.files) {
    scenarios.push_back(load_scenario(file, options.overrides));
    ScalingPanel& panel =
        figure.panels.emplace_back(ScalingPanel{scenarios.back().name, subtitle(scenarios.back(), options.strong), {}});
    for (const std::string& algorithm : options.algorithms) {
      panel.curves.push_back({words(algorithm), std::vector<std::optional<Seconds>>(options.gpus.size())});
    }
  }
  const std::vector<Point> points = points_of(options, scenarios);
  const std::vector<Outcome> outcomes = predict_with_progress(points.size(), options.jobs, [&](std::size_t i) {
    return predict(load_scenario(options.files[points[i].file], points[i].overrides), options.fidelity);
  });
  for (std::size_t i = 0; i < points.size(); ++i) {
    if (outcomes[i].result) {
      figure.panels[points[i].file].curves[points[i].algorithm].times[points[i].gpus] = outcomes[i].result->time();
    } else {
      warn(outcomes[i].error);
    }
  }
  return figure;
}

}  // namespace foretrain
