// Scenarios, sweeps, plans and measurements as one HTML file that loads nothing.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "model/base/csv.hpp"
#include "reports/explain/explanation.hpp"
#include "reports/explain/link_use.hpp"
#include "reports/figure/plot.hpp"
#include "reports/measured/accuracy.hpp"
#include "reports/studies/memory_report.hpp"
#include "reports/studies/plan_report.hpp"
#include "reports/studies/roofline.hpp"

namespace foretrain {

/// The same training on other numbers of GPUs.
struct ScalingPart {
  ScalingChart chart;
  std::optional<double> usd_per_gpu_hour;
  std::vector<std::string> not_predicted;  ///< and why
  Fidelity fidelity = Fidelity::flows;
};

/// The page's part on one scenario. The result in the explanation has its settings and its timeline.
struct ScenarioPart {
  Explanation explanation;
  int gpus = 1;
  std::optional<MemoryReport> memory = {};
  std::optional<ScalingPart> scaling = {};
  std::optional<RooflineFigure> roofline = {};
  std::optional<LinkUses> links = {};
  std::optional<PlanReport> plans = {};
};

struct Page {
  std::string title;
  std::string program;  ///< "foretrain 0.1.0"
  std::vector<ScenarioPart> scenarios = {};
  std::vector<std::pair<std::string, CsvTable>> sweeps = {};          ///< by name: what `foretrain sweep` wrote
  std::vector<std::pair<std::string, AccuracyReport>> accuracy = {};  ///< by name of the table
  /// By name of the file: what predict, explain, memory, plan and validate say with --json.
  std::vector<std::pair<std::string, std::string>> answers = {};
};

/// All numbers of the page. Throws UsageError naming the file for an answer that no command gives.
nlohmann::ordered_json page_data(const Page& page);

/// The page; the same values give the same bytes.
std::string to_html(const Page& page);

}  // namespace foretrain
