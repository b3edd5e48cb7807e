#include "reports/json.hpp"

#include <cmath>
#include <nlohmann/json.hpp>
#include <vector>

#include "model/base/error.hpp"
#include "model/base/words.hpp"
#include "reports/goodput_report.hpp"
#include "reports/json_routing.hpp"
#include "reports/print/names.hpp"

namespace foretrain {

namespace {

// Keys keep the order in which they are written, which is that of a reader's interest.
using Json = nlohmann::ordered_json;

Json number(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }
Json seconds(Seconds time) { return number(time.value()); }

/// Whole bytes.
Json bytes(Bytes size) { return is_finite(size) ? Json(std::llround(size.value())) : Json(nullptr); }

double number_from(const Json& json) {
  return json.is_null() ? std::numeric_limits<double>::quiet_NaN() : json.get<double>();
}
Seconds seconds_from(const Json& json) { return Seconds(number_from(json)); }
Bytes bytes_from(const Json& json) { return Bytes(number_from(json)); }

Json call_json(const ModelCallResult& call) {
  return {{"execution", name(call.execution)},
          {"operators", call.operators},
          {"kernels", call.kernels},
          {"fused_operators", call.fused},
          {"folded_operators", call.folded},
          {"host_s", seconds(call.host)},
          {"device_s", seconds(call.device)},
          {"intermediate_bytes", bytes(call.intermediates)},
          {"bound", call.front_end_bound() ? "front end" : "device"}};
}

ModelCallResult call_from(const Json& json) {
  ModelCallResult call;
  call.execution = value_of<ExecutionMode>(json.at("execution").get<std::string>()).value_or(call.execution);
  call.operators = json.at("operators").get<int>();
  call.kernels = json.at("kernels").get<int>();
  call.fused = json.at("fused_operators").get<int>();
  call.folded = json.at("folded_operators").get<int>();
  call.host = seconds_from(json.at("host_s"));
  call.device = seconds_from(json.at("device_s"));
  call.intermediates = bytes_from(json.at("intermediate_bytes"));
  return call;
}

void write_train(Json& json, const TrainResult& train) {
  json["step_time_s"] = seconds(train.step_time);
  if (train.spread) {
    json["step_time_percentiles_s"] = {
        {"p50", seconds(train.spread->p50)}, {"p90", seconds(train.spread->p90)}, {"p99", seconds(train.spread->p99)}};
  }
  if (const auto& checkpoints = train.checkpoints) {
    json["checkpoints"] = {{"every", checkpoints->every},
                           {"mode", checkpoints->mode},
                           {"state_bytes", number(checkpoints->state.value())},
                           {"copy_s", seconds(checkpoints->copy)},
                           {"write_s", seconds(checkpoints->write)},
                           {"step_time_s", seconds(checkpoints->step_time)},
                           {"mean_step_time_s", seconds(checkpoints->mean_step_time)},
                           {"step_time_beside_write_s", seconds(checkpoints->beside_write)}};
  }
  json["samples_per_second"] = number(train.samples_per_second);
  json["tokens_per_second"] = number(train.tokens_per_second);
  json["tokens_per_second_per_gpu"] = number(train.tokens_per_second_per_gpu);
  json["model_flops_per_second_per_gpu"] = number(train.model_flops_per_second_per_gpu.value());
  json["mfu"] = number(train.mfu);
  for (const auto& [label, key, time] : breakdown_parts) {
    json["breakdown_s"][std::string(key)] = seconds(train.breakdown.*time);
  }
  json["communication_s"] = Json::object();
  if (train.buckets) {
    json["gradient_buckets"] = {{"rule", train.buckets->rule}};
    if (is_finite(train.buckets->size)) json["gradient_buckets"]["bytes"] = number(train.buckets->size.value());
  }
  for (const auto& [collective, time] : train.communication) {
    json["communication_s"][collective] = {{"total", seconds(time.total)}, {"exposed", seconds(time.exposed)}};
    if (!time.algorithm.empty()) json["communication_s"][collective]["algorithm"] = time.algorithm;
  }
  if (train.communication_to_compute) {
    json["communication_to_compute"] = {{"formula", number(train.communication_to_compute->formula)},
                                        {"simulated", number(train.communication_to_compute->simulated)},
                                        {"formula_is", communication_ratio_formula},
                                        {"formula_leaves_out", communication_ratio_leaves_out}};
  }
  if (train.token_use) {
    const TrainResult::TokenUse& use = *train.token_use;
    json["sample_tokens"] = {{"useful", number(use.tokens)},
                             {"computed", number(use.computed)},
                             {"useful_share", number(use.useful_share())},
                             {"visual", number(use.visual)},
                             {"images", number(use.images)},
                             {"waiting_for_slowest_replica_s", seconds(use.slowest_replica)}};
  }
  json["memory_per_gpu_bytes"] = footprint_json(train.memory, train.memory.host > Bytes(0.0));
  json["bottleneck"] = train.bottleneck;
  if (train.execution) json["execution"] = call_json(*train.execution);
  json["time_to_train_s"] = train.time_to_train ? seconds(*train.time_to_train) : Json(nullptr);
  if (train.goodput) json["failures"] = goodput_json(*train.goodput);
  if (train.split) json["batch_split"] = split_json(*train.split);
  if (train.bill) json["training"] = bill_json(*train.bill);
}

void write_fabric(Json& json, const SharedFabric& fabric) {
  json["alone_step_time_s"] = seconds(fabric.alone);
  json["jobs"] = Json::array();
  for (const auto& [scenario, step, alone] : fabric.others) {
    json["jobs"].push_back(
        {{"scenario", scenario}, {"step_time_s", seconds(step)}, {"alone_step_time_s", seconds(alone)}});
  }
}

SharedFabric fabric_from(const Json& json) {
  SharedFabric fabric{seconds_from(json.at("alone_step_time_s")), {}};
  for (const Json& job : json.at("jobs")) {
    fabric.others.push_back({job.at("scenario").get<std::string>(), seconds_from(job.at("step_time_s")),
                             seconds_from(job.at("alone_step_time_s"))});
  }
  return fabric;
}

void write_servers(Json& json, const ParameterServerResult& servers) {
  Json& block = json["parameter_server"];
  block = {{"workers", servers.workers},
           {"servers", servers.servers},
           {"load_imbalance", number(servers.imbalance)},
           {"link_utilisation", number(servers.link_utilisation)},
           {"cpu_utilisation", number(servers.cpu_utilisation)},
           {"bounds_s",
            {{"compute", seconds(servers.compute_bound)},
             {"link", seconds(servers.link_bound)},
             {"server", seconds(servers.server_bound)}}}};
  if (const auto& s = servers.staleness) {
    block["staleness"] = {{"mean", number(s->mean)},
                          {"p50", number(s->p50)},
                          {"p90", number(s->p90)},
                          {"p99", number(s->p99)},
                          {"max", number(s->max)}};
  } else {
    block["staleness"] = nullptr;
  }
}

ParameterServerResult servers_from(const Json& json) {
  ParameterServerResult servers;
  servers.workers = json.at("workers").get<int>();
  servers.servers = json.at("servers").get<int>();
  servers.imbalance = number_from(json.at("load_imbalance"));
  servers.link_utilisation = number_from(json.at("link_utilisation"));
  servers.cpu_utilisation = number_from(json.at("cpu_utilisation"));
  const Json& bounds = json.at("bounds_s");
  servers.compute_bound = seconds_from(bounds.at("compute"));
  servers.link_bound = seconds_from(bounds.at("link"));
  servers.server_bound = seconds_from(bounds.at("server"));
  if (const Json& s = json.at("staleness"); !s.is_null()) {
    servers.staleness =
        ParameterServerResult::Staleness{number_from(s.at("mean")), number_from(s.at("p50")), number_from(s.at("p90")),
                                         number_from(s.at("p99")), number_from(s.at("max"))};
  }
  return servers;
}

void write_collective(Json& json, const CollectiveResult& collective) {
  json["time_s"] = seconds(collective.time);
  json["algorithm_bandwidth"] = number(collective.algorithm_bandwidth.value());
  json["bus_bandwidth"] = number(collective.bus_bandwidth.value());
  json["chosen_algorithm"] = collective.chosen_algorithm;
}

void write_operator(Json& json, const OperatorResult& op) {
  json["time_s"] = seconds(op.time);
  json["flops"] = number(op.flops.value());
  json["bytes"] = number(op.bytes.value());
  json["bound"] = op.bound;
  if (op.per_access) json["time_per_access_s"] = seconds(*op.per_access);
  if (op.memory) {
    json["memory_bytes"] = {{"saved", number(op.memory->saved.value())},
                            {"workspace", number(op.memory->workspace.value())},
                            {"peak", number(op.memory->peak.value())}};
  }
}

void write_tasks(Json& json, const TasksResult& tasks) {
  json["time_s"] = seconds(tasks.time);
  json["finish_s"] = Json::object();
  for (const auto& [id, finish] : tasks.finish) json["finish_s"][id] = seconds(finish);
  for (const auto& [id, call] : tasks.calls) json["model_calls"][id] = call_json(call);
}

/// What nobody states: traits of trainers, and defaults of the scenario.
Json assumed_json(const Result& result) {
  Json assumed = Json::array();
  for (const Trait& t : result.traits) {
    if (t.from == Trait::From::assumed) assumed.push_back({{"key", t.key}, {"value", t.value}, {"source", t.source}});
  }
  for (const Setting& s : result.settings) {
    const bool is_trait = std::ranges::find(result.traits, s.key, &Trait::key) != result.traits.end();
    if (s.by_default && !is_trait) assumed.push_back({{"key", s.key}, {"value", s.value}});
  }
  return assumed;
}

Json result_json(const Result& result) {
  Json json = {{"scenario", result.scenario}, {"fidelity", name(result.fidelity)}};
  if (result.train) write_train(json, *result.train);
  if (result.parameter_server) write_servers(json, *result.parameter_server);
  if (result.shared_fabric) write_fabric(json, *result.shared_fabric);
  if (result.collective) write_collective(json, *result.collective);
  if (result.op) write_operator(json, *result.op);
  if (result.tasks) write_tasks(json, *result.tasks);
  if (result.routing) json["routing"] = routing_json(*result.routing);
  json["cost"] = result.cost_usd ? number(*result.cost_usd) : Json(nullptr);
  json["uncertainty"] = {{"low_s", seconds(result.uncertainty_low)}, {"high_s", seconds(result.uncertainty_high)}};
  json["provenance"] = Json::array();
  for (const Constant& c : result.provenance) {
    json["provenance"].push_back(
        {{"name", c.name}, {"value", number(c.value)}, {"unit", c.unit}, {"kind", name(c.kind)}, {"source", c.source}});
  }
  json["warnings"] = result.warnings;
  if (result.train) {
    json["trainer"] = result.trainer;
    json["traits"] = Json::array();
    for (const Trait& t : result.traits) {
      json["traits"].push_back({{"key", t.key}, {"value", t.value}, {"from", name(t.from)}, {"source", t.source}});
    }
  }
  json["assumed"] = assumed_json(result);
  for (const Setting& s : result.settings) {
    json["settings"].push_back(
        {{"of", s.line}, {"name", s.name}, {"value", s.value}, {"key", s.key}, {"default", s.by_default}});
  }
  return json;
}

TrainResult train_from(const Json& json) {
  TrainResult train;
  train.step_time = seconds_from(json.at("step_time_s"));
  if (json.contains("step_time_percentiles_s")) {
    const Json& spread = json.at("step_time_percentiles_s");
    train.spread = TrainResult::Spread{seconds_from(spread.at("p50")), seconds_from(spread.at("p90")),
                                       seconds_from(spread.at("p99"))};
  }
  if (json.contains("checkpoints")) {
    const Json& checkpoints = json.at("checkpoints");
    train.checkpoints = TrainResult::Checkpoints{
        checkpoints.at("every"),
        checkpoints.at("mode"),
        bytes_from(checkpoints.at("state_bytes")),
        seconds_from(checkpoints.at("copy_s")),
        seconds_from(checkpoints.at("write_s")),
        seconds_from(checkpoints.at("step_time_s")),
        seconds_from(checkpoints.at("mean_step_time_s")),
        seconds_from(checkpoints.at("step_time_beside_write_s")),
    };
  }
  if (json.contains("gradient_buckets")) {
    const Json& buckets = json.at("gradient_buckets");
    train.buckets = TrainResult::Buckets{
        buckets.contains("bytes") ? Bytes(number_from(buckets.at("bytes"))) : Bytes::infinity(), buckets.at("rule")};
  }
  train.samples_per_second = number_from(json.at("samples_per_second"));
  train.tokens_per_second = number_from(json.at("tokens_per_second"));
  train.tokens_per_second_per_gpu = number_from(json.at("tokens_per_second_per_gpu"));
  train.model_flops_per_second_per_gpu = FlopsPerSecond(number_from(json.at("model_flops_per_second_per_gpu")));
  train.mfu = number_from(json.at("mfu"));
  for (const auto& [label, key, time] : breakdown_parts) {
    train.breakdown.*time = seconds_from(json.at("breakdown_s").at(std::string(key)));
  }
  for (const auto& [collective, time] : json.at("communication_s").items()) {
    train.communication[collective] = {seconds_from(time.at("total")), seconds_from(time.at("exposed")),
                                       time.value("algorithm", "")};
  }
  if (json.contains("communication_to_compute")) {
    const Json& ratio = json.at("communication_to_compute");
    train.communication_to_compute = {number_from(ratio.at("formula")), number_from(ratio.at("simulated"))};
  }
  if (json.contains("sample_tokens")) {
    const Json& use = json.at("sample_tokens");
    train.token_use = TrainResult::TokenUse{number_from(use.at("useful")), number_from(use.at("computed")),
                                            number_from(use.at("visual")), number_from(use.at("images")),
                                            seconds_from(use.at("waiting_for_slowest_replica_s"))};
  }
  const Json& m = json.at("memory_per_gpu_bytes");
  for (const auto& [label, key, size] : footprint_parts) train.memory.*size = bytes_from(m.at(std::string(key)));
  train.memory.capacity = bytes_from(m.at("capacity"));
  if (m.contains("host")) {
    train.memory.host = bytes_from(m.at("host"));
    train.memory.host_capacity = bytes_from(m.at("host_capacity"));
  }
  train.bottleneck = json.at("bottleneck").get<std::string>();
  if (json.contains("execution")) train.execution = call_from(json.at("execution"));
  if (!json.at("time_to_train_s").is_null()) train.time_to_train = seconds_from(json.at("time_to_train_s"));
  if (json.contains("failures")) train.goodput = goodput_from(json.at("failures"));
  if (json.contains("batch_split")) train.split = split_from(json.at("batch_split"));
  if (json.contains("training")) train.bill = bill_from(json.at("training"));
  return train;
}

template <typename E>
E named_by(const Json& word) {
  const std::optional<E> value = value_of<E>(word.get<std::string>());
  if (!value) throw InternalError("result: unknown word " + word.get<std::string>());
  return *value;
}

Result result_from(const Json& json) {
  Result result;
  result.scenario = json.at("scenario").get<std::string>();
  result.fidelity = named_by<Fidelity>(json.at("fidelity"));
  if (json.contains("step_time_s")) {
    result.train = train_from(json);
    if (json.contains("parameter_server")) result.parameter_server = servers_from(json.at("parameter_server"));
    if (json.contains("jobs")) result.shared_fabric = fabric_from(json);
  } else if (json.contains("bus_bandwidth")) {
    result.collective = {seconds_from(json.at("time_s")), BytesPerSecond(number_from(json.at("algorithm_bandwidth"))),
                         BytesPerSecond(number_from(json.at("bus_bandwidth"))),
                         json.at("chosen_algorithm").get<std::string>()};
  } else if (json.contains("flops")) {
    result.op = OperatorResult{seconds_from(json.at("time_s")), Flops(number_from(json.at("flops"))),
                               Bytes(number_from(json.at("bytes"))), json.at("bound").get<std::string>()};
    if (json.contains("time_per_access_s")) result.op->per_access = seconds_from(json.at("time_per_access_s"));
    if (json.contains("memory_bytes")) {
      const Json& memory = json.at("memory_bytes");
      result.op->memory =
          OperatorMemory{Bytes(number_from(memory.at("saved"))), Bytes(number_from(memory.at("workspace"))),
                         Bytes(number_from(memory.at("peak")))};
    }
  } else {
    result.tasks.emplace().time = seconds_from(json.at("time_s"));
    for (const auto& [id, finish] : json.at("finish_s").items()) result.tasks->finish[id] = seconds_from(finish);
    if (json.contains("model_calls")) {
      for (const auto& [id, call] : json.at("model_calls").items()) result.tasks->calls[id] = call_from(call);
    }
  }
  if (json.contains("routing")) result.routing = routing_from(json.at("routing"));
  if (!json.at("cost").is_null()) result.cost_usd = number_from(json.at("cost"));
  result.uncertainty_low = seconds_from(json.at("uncertainty").at("low_s"));
  result.uncertainty_high = seconds_from(json.at("uncertainty").at("high_s"));
  for (const Json& c : json.at("provenance")) {
    result.provenance.push_back({c.at("name").get<std::string>(), number_from(c.at("value")),
                                 c.at("unit").get<std::string>(), named_by<ConstantKind>(c.at("kind")),
                                 c.at("source").get<std::string>()});
  }
  result.warnings = json.at("warnings").get<std::vector<std::string>>();
  if (json.contains("trainer")) result.trainer = json.at("trainer");
  if (json.contains("traits")) {
    for (const Json& t : json.at("traits")) {
      result.traits.push_back({t.at("key"), t.at("value"), named_by<Trait::From>(t.at("from")), t.at("source")});
    }
  }
  if (json.contains("settings")) {
    for (const Json& s : json.at("settings")) {
      result.settings.push_back({s.at("of"), s.at("name"), s.at("value"), s.value("key", ""), s.at("default")});
    }
  }
  return result;
}

}  // namespace

nlohmann::ordered_json footprint_json(const MemoryFootprint& m, bool host) {
  Json json;
  for (const auto& [label, key, size] : footprint_parts) json[std::string(key)] = bytes(m.*size);
  json["total"] = bytes(m.total());
  json["capacity"] = bytes(m.capacity);
  json["fits"] = m.fits();
  if (!host) return json;
  json["host"] = bytes(m.host);  // of all GPUs of a node, in the node's memory
  json["host_capacity"] = bytes(m.host_capacity);
  return json;
}

std::string to_json(const Result& result) { return result_json(result).dump(2); }

std::string to_json(const std::vector<Result>& results) {
  Json array = Json::array();
  for (const Result& result : results) array.push_back(result_json(result));
  return array.dump(2);
}

Result result_from_json(std::string_view text) {
  try {
    return result_from(Json::parse(text));
  } catch (const Json::exception& error) {
    throw InternalError(error.what());
  }
}

}  // namespace foretrain
