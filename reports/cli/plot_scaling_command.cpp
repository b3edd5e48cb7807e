// The same training on more and more GPUs, by each of several synchronisation algorithms.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "model/base/error.hpp"
#include "model/scenario/load/load.hpp"
#include "reports/cli/shared_reports.hpp"
#include "reports/figure/plot.hpp"
#include "reports/print/names.hpp"
#include "sim/simulate.hpp"

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

std::string subtitle(const Scenario& scenario) {
  const TrainWorkload& train = train_of(scenario);
  const double per_gpu = static_cast<double>(train.global_batch) / scenario.cluster.gpus();
  return fmt::format("{:.4g} {} per GPU, {}", per_gpu, sample_word(train.model), name(train.precision));
}

/// As many samples per GPU.
std::int64_t batch_on(const Scenario& scenario, int gpus) {
  return train_of(scenario).global_batch * gpus / scenario.cluster.gpus();
}

/// The overrides that put a scenario on `gpus` GPUs, filling node after node; nothing when they do not make whole
/// nodes, whole replicas or a whole batch.
std::optional<std::vector<std::string>> on_gpus(const Scenario& scenario, int gpus) {
  const int per_node = std::min(gpus, scenario.cluster.gpus_per_node);
  const Plan& plan = scenario.plan;
  const int replica = plan.tensor * plan.pipeline * plan.context;
  const bool whole_batch = train_of(scenario).global_batch * gpus % scenario.cluster.gpus() == 0;
  if (gpus % per_node != 0 || gpus % replica != 0 || !whole_batch) return std::nullopt;
  return std::vector<std::string>{fmt::format("cluster.nodes={}", gpus / per_node),
                                  fmt::format("cluster.gpus_per_node={}", per_node),
                                  fmt::format("plan.data={}", gpus / replica),
                                  fmt::format("workload.train.global_batch={}", batch_on(scenario, gpus))};
}

struct Prediction {
  std::size_t file, algorithm, gpus;
  std::vector<std::string> overrides;
};

std::vector<Prediction> points_of(const PlotOptions& options, const std::vector<Scenario>& scenarios,
                                  const std::function<void(const std::string&)>& tell) {
  std::vector<Prediction> points;
  for (std::size_t f = 0; f < scenarios.size(); ++f) {
    for (std::size_t g = 0; g < options.gpus.size(); ++g) {
      const auto placed = on_gpus(scenarios[f], options.gpus[g]);
      if (!placed) {
        tell(fmt::format("{} is left out on {} GPUs: no whole nodes, replicas or batch", scenarios[f].name,
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

ScalingChart empty_chart(const Scenario& scenario, const PlotOptions& options) {
  ScalingChart chart{.samples = std::string(sample_word(train_of(scenario).model))};
  chart.steps = {.title = scenario.name, .subtitle = subtitle(scenario), .axis = "GPUs"};
  chart.steps.scale = time_scale(0.0);
  for (const int gpus : options.gpus) {
    chart.steps.places.push_back(gpus);
    chart.steps.labels.push_back(std::to_string(gpus));
    chart.batches.push_back(static_cast<double>(batch_on(scenario, gpus)));
  }
  for (const std::string& algorithm : options.algorithms) {
    chart.steps.curves.push_back({spoken(algorithm), std::vector<double>(options.gpus.size(), NAN)});
  }
  return chart;
}

PlotOptions with_defaults(PlotOptions options) {
  if (options.gpus.empty()) options.gpus = {1, 2, 4, 8, 16};
  if (options.algorithms.empty()) options.algorithms = {"ring", "parameter_server", "naive"};
  std::ranges::sort(options.gpus);
  options.gpus.erase(std::unique(options.gpus.begin(), options.gpus.end()), options.gpus.end());
  return options;
}

}  // namespace

std::vector<ScalingChart> predict_scaling(const PlotOptions& wanted,
                                          const std::function<void(const std::string&)>& tell) {
  const PlotOptions options = with_defaults(wanted);
  std::vector<ScalingChart> charts;
  std::vector<Scenario> scenarios;
  for (const std::string& file : options.files) {
    scenarios.push_back(load_scenario(file, options.overrides));
    charts.push_back(empty_chart(scenarios.back(), options));
  }
  const std::vector<Prediction> points = points_of(options, scenarios, tell);
  const std::vector<Outcome> outcomes = predict_with_progress(points.size(), options.jobs, [&](std::size_t i) {
    return predict(load_scenario(options.files[points[i].file], points[i].overrides), options.fidelity,
                   Detail::numbers);
  });
  for (std::size_t i = 0; i < points.size(); ++i) {
    if (!outcomes[i].result) {
      tell(outcomes[i].error);
      continue;
    }
    Curve& curve = charts[points[i].file].steps.curves[points[i].algorithm];
    curve.values[points[i].gpus] = outcomes[i].result->time().value();
    if (!options.band) continue;
    curve.ranges.resize(curve.values.size());
    curve.ranges[points[i].gpus] = range_of(outcomes[i]);
  }
  return charts;
}

ExitStatus plot_scaling(const PlotOptions& options) {
  const std::vector<ScalingChart> charts = predict_scaling(options, [](const std::string& why) { warn(why); });
  const bool complete =
      std::ranges::all_of(charts, [](const ScalingChart& chart) { return is_complete(chart.steps.curves); });
  return show(options, charts, complete);
}

}  // namespace foretrain
