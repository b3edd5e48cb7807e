#include "validate/fit/points.hpp"

#include <fmt/format.h>

#include <cmath>
#include <cstdlib>
#include <map>
#include <stdexcept>
#include <utility>

#include "model/base/words.hpp"
#include "model/cost/launches.hpp"
#include "model/cost/power.hpp"
#include "model/job/job.hpp"
#include "model/scenario/load/load.hpp"
#include "validate/measure/sampling.hpp"

namespace foretrain {

namespace {

constexpr std::string_view under_load = "overlap";  // kernels slowed by what runs beside them
// Kernels of replayed steps that take less are of the two moments around them as much as of themselves.
constexpr Seconds shortest_of_step(20e-6);

/// `cluster.node: { … }` and nothing else.
YamlNode machine_document(const std::string& node) {
  YamlNode document = yaml_mapping({});
  YamlNode cluster = yaml_mapping({});
  cluster.entries.push_back({"node", {}, parse_yaml(node, "measured node")});
  document.entries.push_back({"cluster", {}, std::move(cluster)});
  return document;
}

std::string kind_of(const RawPoint& point, const Scenario& scenario) {
  if (std::holds_alternative<OperatorWorkload>(scenario.workload)) return point.workload("operator.kind");
  if (std::holds_alternative<CollectiveWorkload>(scenario.workload)) return "collective";
  if (std::holds_alternative<TasksWorkload>(scenario.workload)) return "tasks";
  return std::holds_alternative<TrainWorkload>(scenario.workload) ? "step" : "other";
}

std::string group_of(const std::string& kind, const Scenario& scenario, const RawPoint& point) {
  if (const auto* collective = std::get_if<CollectiveWorkload>(&scenario.workload)) {
    const std::string where = scenario.cluster.nodes > 1 ? fmt::format(" of {} nodes", scenario.cluster.nodes) : "";
    return fmt::format("{}, {} GPUs{}", name(collective->operation), collective->ranks, where);
  }
  if (point.parameter("what") == "host_copy") return "copy " + point.parameter("direction");
  if (point.record.suite == "peer") return "copy between GPUs";
  if (kind == "step") return fmt::format("steps, {}", name(scenario.plan.execution));
  if (point.record.suite == replay_suite) return kind + " in replayed steps";
  const auto* work = std::get_if<OperatorWorkload>(&scenario.workload);
  const bool states_precision = !point.workload("operator.precision").empty();
  const std::string sustained = point.parameter("sustained") == "true" ? " sustained" : "";
  return work != nullptr && states_precision ? fmt::format("{} {}{}", kind, name(work->op.precision), sustained) : kind;
}

/// Provenance is no part of a time, and copying it for each evaluation would take longer than the evaluation.
void strip(Scenario& scenario) {
  scenario.calibration.constants.clear();
  scenario.cluster.node.constants.clear();
  scenario.cluster.node.gpu.constants.clear();
  scenario.where = {};
}

using Keys = std::map<std::string, std::string>;

Keys copy_task(const std::string& queue, const std::string& from, const std::string& to, const RawPoint& raw) {
  return {{"workload.tasks",
           fmt::format("[{{ id: copy, on: \"{}\", run: {{ copy: {{ from: {}, to: {}, size: {} B }} }} }}]", queue, from,
                       to, raw.parameter("bytes"))}};
}

/// A copy between host and device as a list of one task; the record itself states none. Empty for other records.
Keys copy_scenario(const RawPoint& raw) {
  if (raw.parameter("what") != "host_copy" || raw.parameter("memory") != "pinned" ||
      raw.parameter("timing") != "stream") {
    return {};
  }
  if (raw.parameter("direction") == "to_device") return copy_task("gpu0:h2d", "cpu", "gpu0", raw);
  return raw.parameter("direction") == "to_host" ? copy_task("gpu0:d2h", "gpu0", "cpu", raw) : Keys();
}

/// The same between two GPUs.
Keys peer_scenario(const RawPoint& raw) {
  if (raw.record.suite != "peer" || raw.parameter("timing") != "stream" || raw.parameter("direction") != "one" ||
      raw.parameter("peer_access") != "on") {
    return {};
  }
  const std::string from = "gpu" + raw.parameter("source");
  return copy_task(from + ":p2p", from, "gpu" + raw.parameter("destination"), raw);
}

Keys scenario_of(const RawPoint& raw) {
  if (!raw.record.scenario.empty()) return raw.record.scenario;
  const Keys copy = copy_scenario(raw);
  return copy.empty() ? peer_scenario(raw) : copy;
}

/// Machines that took part, and as many of each one's GPUs, as the record says; nothing for one machine.
void set_machines(YamlNode& document, const RawPoint& raw) {
  const int nodes = std::atoi(raw.parameter("nodes").c_str());
  if (nodes < 2) return;
  const std::string each = raw.parameter("gpus_per_node");
  if (nodes * std::atoi(each.c_str()) != std::atoi(raw.workload("collective.ranks").c_str())) {
    throw UsageError("its ranks are not spread evenly over the machines: the model has no such collective");
  }
  apply_override(document, {"cluster.nodes", std::to_string(nodes), raw.where});
  apply_override(document, {"cluster.gpus_per_node", each, raw.where});
}

bool is_traffic(const RawPoint& raw) {
  return raw.record.suite == replay_suite && raw.workload("operator.kind") == "traffic";
}

/// A streaming kernel of a step, by its bytes and pattern, which no scenario states. Throws UsageError.
Operator traffic_of(const RawPoint& raw) {
  const auto field = [&](const char* key) { return raw.workload(std::string("operator.") + key); };
  const std::string pattern = field("pattern");
  const auto kind = value_of<StreamingKind>(pattern);
  if (!kind) throw UsageError("traffic of an unknown pattern: " + pattern);
  const auto precision = value_of<Precision>(field("precision"));
  if (!precision) throw UsageError("traffic of an unknown number format: " + field("precision"));
  return {raw.record.name,
          Streaming{*kind, Bytes(std::atof(field("read").c_str())), Bytes(std::atof(field("written").c_str())),
                    Flops(std::atof(field("flops").c_str())), false},
          *precision, 1};
}

PredictedPoint point_of(const RawPoint& raw, const YamlNode& machine) {
  YamlNode document = machine;
  set_machines(document, raw);
  if (is_traffic(raw)) {  // the machine with an operator in the place of the one that follows below
    apply_override(document, {"workload.operator.kind", "copy", raw.where});
    apply_override(document, {"workload.operator.size", "1 B", raw.where});
  } else {
    for (const auto& [key, value] : scenario_of(raw)) apply_override(document, {key, value, raw.where});
  }
  PredictedPoint point;
  point.raw = &raw;
  point.scenario = read_scenario(document, raw.record.name);
  point.kind = kind_of(raw, point.scenario);
  point.group = group_of(point.kind, point.scenario, raw);
  point.held_out = raw.held_out();
  point.cache = raw.parameter("cache");
  point.measured = Seconds(raw.record.unit == "1/s" ? 1.0 / raw.median() : raw.median());
  if (const auto* work = std::get_if<OperatorWorkload>(&point.scenario.workload)) point.op = *work;
  if (is_traffic(raw)) point.op->op = traffic_of(raw);
  strip(point.scenario);
  return point;
}

/// The same operator with nothing in the L2, where the record says what that takes.
void add_flushed(const RawPoint& raw, std::vector<PredictedPoint>& points) {
  const double seconds = std::atof(raw.parameter("flushed_s").c_str());
  if (seconds <= 0.0) return;
  PredictedPoint flushed = points.back();
  flushed.cache = "cold";
  flushed.measured = Seconds(seconds);
  points.push_back(std::move(flushed));
}

}  // namespace

PredictedPoints predicted_points(const RawMeasurements& raw, const std::string& node) {
  const YamlNode machine = machine_document(node);
  PredictedPoints result;
  const auto leave_out = [&result](const RawPoint& point, const std::string& why) {
    result.not_understood.push_back(why);
    result.left_out.push_back(&point);
  };
  for (const RawPoint& point : raw.points) {
    const Record& record = point.record;
    if (scenario_of(point).empty() || record.suite == under_load) continue;
    if (record.unit != "s" && record.unit != "1/s") continue;
    if (record.suite == replay_suite && point.median() < shortest_of_step.value()) continue;
    const std::string place = point.where.text() + ": ";
    if (point.throttled()) {
      leave_out(point, place + "clocks were lowered by heat or by the power supply while it ran");
      continue;
    }
    if (record.note == host_bound_note) {
      leave_out(point, place + record.note);
      continue;
    }
    try {
      PredictedPoint one = point_of(point, machine);
      const double seconds = predicted_time(one, one.scenario.calibration).value();
      if (std::isfinite(seconds) && seconds > 0.0) {
        result.points.push_back(std::move(one));
        add_flushed(point, result.points);
      } else {
        leave_out(point, place + "the model gives no time for it");
      }
    } catch (const ScenarioError& error) {
      leave_out(point, error.what());
    } catch (const std::runtime_error& error) {
      leave_out(point, place + error.what());
    }
  }
  return result;
}

// Kernels are launched one behind the other, and operands lie ready in their format.
// A step's kernels find what the kernel before them wrote in the L2 as far as it fits, as a kernel repeated over the
// same operands does. One repeated over operands in rotation finds none of it.
Seconds predicted_time(const PredictedPoint& point, const Calibration& calibration) {
  if (point.op) {
    const bool in_step = point.raw->record.suite == replay_suite;
    Gpu gpu = point.scenario.cluster.node.gpu;
    if (in_step) gpu = gpu_in_step(gpu, calibration.step);
    const bool streams = std::holds_alternative<Streaming>(point.op->op.work);
    if (streams && !point.cache.empty() && point.cache != "warm") gpu.l2_cache = Bytes(0.0);
    return launched_cost(point.op->op, ExecutionMode::eager, false, gpu, calibration).device *
           static_cast<double>(point.op->repeat) * (in_step ? calibration.step.kernel_stretch : 1.0);
  }
  Scenario scenario = point.scenario;
  scenario.calibration = calibration;
  scenario.calibration.constants.clear();
  return estimated_time(scenario);
}

Observation observation_of(const PredictedPoint& point) {
  return {point.raw->record.name, point.group, point.measured,
          [&point](const Calibration& calibration) { return predicted_time(point, calibration); }};
}

}  // namespace foretrain
