#include "model/scenario/load/load.hpp"

#include <cmath>

#include "model/base/number.hpp"
#include "model/cost/measured_matmul.hpp"
#include "model/parallelism/layout.hpp"
#include "model/parallelism/stages.hpp"
#include "model/scenario/document_walk.hpp"
#include "model/scenario/hardware/calibration_reader.hpp"
#include "model/scenario/hardware/hardware_reader.hpp"
#include "model/scenario/load/checks.hpp"
#include "model/scenario/plan/plan_reader.hpp"
#include "model/scenario/read_once.hpp"
#include "model/workload/build.hpp"

namespace foretrain {

namespace {

/// Global batch of `global_batch_per_gpu` samples on all training GPUs.
std::int64_t batch_over_gpus(const Scenario& scenario, double per_gpu) {
  const std::int64_t gpus = worker_gpus(scenario.plan, scenario.cluster);
  const double batch = per_gpu * number(gpus);
  constexpr double most = 1e9;
  CheckedScenario{scenario}.fail_if(batch < 1.0 || batch > most || batch != std::floor(batch),
                                    "workload.train.global_batch_per_gpu", "{0} samples on {1} GPUs",
                                    "a multiple of 1/{1}", batch, gpus);
  return static_cast<std::int64_t>(batch);
}

/// By the scenario itself, and by its machines' files.
std::vector<std::string> assumed_of(const MappingReader& keys, const Cluster& cluster) {
  std::vector<std::string> assumed = cluster.node.assumed;
  for (const NodeGroup& group : cluster.groups) {
    if (group.node.name == cluster.node.name) continue;
    assumed.insert(assumed.end(), group.node.assumed.begin(), group.node.assumed.end());
  }
  const std::vector<std::string> own = assumed_in(keys);
  assumed.insert(assumed.end(), own.begin(), own.end());
  return assumed;
}

/// The mapping's value for a key, made where there is none.
YamlNode& value_at(YamlNode& mapping, const char* key, const SourcePosition& where) {
  if (mapping.is_null()) mapping = yaml_mapping(where);
  if (YamlEntry* known = mapping.find(key)) return known->value;
  return mapping.entries.emplace_back(YamlEntry{key, where, YamlNode{}}).value;
}

Scenario read_job(const MappingReader& keys, const YamlNode& cluster_document) {
  const Field scenario = keys["scenario"], nodes = keys["nodes"];
  const std::filesystem::path file = catalogue_file(Catalogue::run, scenario);
  YamlNode document = cached_yaml_file(file.string());
  for (const char* key : {"jobs", "background"}) {
    scenario.fail_if(document.find(key) != nullptr, "a job with {} of its own", "all jobs and traffic in one scenario",
                     key);
  }
  const YamlEntry* workload = document.find("workload");
  scenario.fail_if(workload == nullptr || workload->value.find("train") == nullptr, "a job that trains nothing",
                   "a scenario with workload: { train: … }");
  value_at(document, "cluster", nodes.where()) = cluster_document;
  value_at(value_at(document, "plan", nodes.where()), "placement", nodes.where()) = nodes.node();
  return read_scenario(std::move(document), file.stem().string());
}

/// `jobs: [ { scenario: other.yaml, nodes: 4..7 } ]`: scenarios (names of the catalogue, or files) as they are on these
/// nodes of this cluster, which takes the place of their own. `cluster_document` is what it was read from. Throws
/// ScenarioError for nodes that two of them have, and for jobs that train nothing or bring along others' traffic.
std::vector<Scenario> read_jobs(const Field& field, const YamlNode& cluster_document, const Cluster& cluster) {
  std::vector<Scenario> jobs;
  NodeList taken(cluster);
  for (const Field& entry : field.list()) {
    const MappingReader keys = entry.mapping();
    for (const Field& nodes : keys["nodes"].list_or_one()) taken.add(nodes);
    jobs.push_back(read_job(keys, cluster_document));
  }
  field.fail_if(jobs.empty(), "no jobs", "[ { scenario: other.yaml, nodes: 4..7 } ], or leave the key out");
  return jobs;
}

/// A training with its plan: what is stated, then what its framework does, then what follows from both.
void read_training(const Field& plan, const ReadWorkload& workload, Scenario& scenario) {
  auto& train = std::get<TrainWorkload>(scenario.workload);
  scenario.plan = read_stated_plan(plan);
  Framework framework = apply_framework(scenario.where.document, scenario.cluster, train, scenario.plan);
  complete_code(train.code);
  std::vector<int> taken;
  for (const Scenario& job : scenario.jobs) {
    taken.insert(taken.end(), job.plan.placement.begin(), job.plan.placement.end());
  }
  std::ranges::sort(taken);
  complete_plan(plan, framework, train, scenario.cluster, taken, scenario.plan);
  if (!workload.states_global_batch) train.global_batch = train.micro_batch * scenario.plan.data;
  if (workload.global_batch_per_gpu) {
    const std::int64_t batch = batch_over_gpus(scenario, *workload.global_batch_per_gpu);
    CheckedScenario{scenario}.fail_if(workload.states_global_batch && batch != train.global_batch,
                                      "workload.train.global_batch_per_gpu", "global_batch is stated already",
                                      "either this key or global_batch");
    train.global_batch = batch;
  }
  // The host's part differs by a factor of two and more with the way in which processes were started.
  const std::pair<std::string_view, const char*> of_processes[] = {
      {"plan.host_threads", scenario.plan.host_threads == 1 ? "1 thread per process" : "all cores"},
      {"plan.pinned_offload", scenario.plan.pinned_offload ? "pinned memory" : "pageable memory"}};
  for (const ResolvedSetting& setting : framework.settings) {
    if (setting.from == ResolvedSetting::From::scenario || !scenario.plan.offload.optimizer) continue;
    for (const auto& [key, what] : of_processes) {
      if (setting.key != key) continue;
      scenario.assumed.push_back(fmt::format("assumed: CPU optimizer: {}; state {}", what, key));
    }
  }
  scenario.where.framework = std::move(framework.where);
  scenario.trainer = std::move(framework.name);
  scenario.framework_settings = std::move(framework.settings);
  scenario.calibration.constants = std::move(framework.constants);
}

/// The rest of a scenario that has its document.
void read_document(std::string_view default_name, Scenario& scenario) {
  YamlNode& document = scenario.where.document;
  const std::vector<Constant> learned = add_learned_cluster(document);
  const MappingReader keys = Field(document, "").mapping(keys::scenario);
  scenario.name = keys.value_or("name", std::string(default_name));
  scenario.description = keys.value_or<std::string>("description", "");
  scenario.cluster = read_once(keys["cluster"], read_cluster);
  scenario.assumed = assumed_of(keys, scenario.cluster);
  ReadWorkload workload = read_workload(keys["workload"], scenario.cluster);
  scenario.workload = std::move(workload.workload);
  if (const auto jobs = keys.find("jobs")) {
    scenario.jobs = read_jobs(*jobs, keys["cluster"].node(), scenario.cluster);
  }
  const Field plan = keys.find("plan").value_or(Field(yaml_mapping({}), "plan"));
  if (std::holds_alternative<TrainWorkload>(scenario.workload)) {
    read_training(plan, workload, scenario);
  } else {
    scenario.plan = read_other_plan(plan, workload);
  }
  const SharedVector<Constant> of_framework = std::move(scenario.calibration.constants);
  if (const auto background = keys.find("background")) {
    scenario.background = read_background(*background, scenario.cluster);
  }
  check_scenario(scenario);
  const auto calibration = keys.find("calibration");
  scenario.calibration =
      calibration ? load_calibration(catalogue_file(Catalogue::calibration, *calibration)) : load_default_calibration();
  keys.fail_if(scenario.calibration.calibrated && !scenario.cluster.groups.empty(), "calibration",
               "the calibration of one machine for several kinds", "leave the key out, or cluster.node");
  check_measured_matmuls(scenario.calibration, scenario.cluster.node.gpu);
  const ReadScope reading;
  adapt_calibration(scenario.calibration, scenario.cluster.node.gpu);
  adapt_to_processor(scenario.calibration, scenario.cluster);
  adopt_learned_constants(document, scenario.calibration);  // of this stack on this hardware
  if (!scenario.calibration.measured_matmuls.empty()) {
    adopt_measured_matmuls(scenario.calibration, scenario.cluster.node.gpu);
  }
  if (auto* train = std::get_if<TrainWorkload>(&scenario.workload); train && scenario.plan.balance_by_speed) {
    const Model model = build_model(train->model, build_options(*train, scenario.plan));
    scenario.plan.stage_layers = layers_by_speed(model, scenario.plan, scenario.cluster, scenario.calibration);
  }
  scenario.calibration.read_before = reads_so_far();
  check_stage_layers(scenario);
  // The calibration's constants are those of a result's provenance that belong to no piece of hardware.
  for (const Constant& constant : of_framework) scenario.calibration.constants.push_back(constant);
  for (const Constant& figure : learned) scenario.calibration.constants.push_back(figure);
  scenario.learned = learned_range(document);
}

YamlNode with_overrides(YamlNode document, const std::vector<std::string>& overrides) {
  for (const std::string& text : overrides) apply_override(document, parse_override(text));
  return document;
}

/// A path, or one of scenarios/runs by its name.
std::filesystem::path scenario_file(const std::filesystem::path& path) {
  if (path == "-") return "/dev/stdin";
  std::error_code ignored;
  if (std::filesystem::exists(path, ignored) || path.has_parent_path() || path.extension() == ".yaml") return path;
  return catalogue_file(Catalogue::run, {yaml_scalar(path.string(), {path.string(), 0, 0}), ""});
}

}  // namespace

Scenario read_scenario(YamlNode document, std::string_view default_name) {
  const FileView view;
  Scenario scenario;
  scenario.where.document = std::move(document);
  try {
    use_our_names(scenario.where.document);
    read_document(default_name, scenario);
    return scenario;
  } catch (const ScenarioError& error) {
    throw_with_unknown_keys(error, scenario.where.document);
  } catch (const ImpossiblePlan& error) {
    const YamlNode* node = scenario.where.document.at(error.key());
    throw ScenarioError(node != nullptr ? node->where : SourcePosition{}, error.key(), error.what(), "");
  }
}

YamlNode scenario_document(const std::filesystem::path& path, const std::vector<std::string>& overrides) {
  return with_overrides(cached_yaml_file(scenario_file(path).string()), overrides);
}

Scenario load_scenario(const std::filesystem::path& path, const std::vector<std::string>& overrides) {
  const FileView view;
  return read_scenario(scenario_document(path, overrides), scenario_file(path).stem().string());
}

Scenario load_scenario_text(std::string_view text, const std::string& file_name,
                            const std::vector<std::string>& overrides) {
  return read_scenario(with_overrides(parse_yaml(text, file_name), overrides),
                       std::filesystem::path(file_name).stem().string());
}

}  // namespace foretrain
