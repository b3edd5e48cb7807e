// Every field of a result, reported once: its key, and when it is there. What visits them writes a result, reads it
// back or describes it; values are quantities in base units, whose unit ends the key ("step_time_s").
//
// clang-format off
//   v("key", value)                   always there. An optional without value, and a number that is not known or not
//                                     finite, are null; Whole{value}: no fraction
//   v.when(there, "key", value)       left out where it is not there; if_any(v, "key", value) where it has nothing
//   v.derived("key", value)           follows from others: written, never read
//   v.object("key", fields)           fields of an object of their own; object_when(there, …) may be left out
//   v.group("key", optional, fields)  fields that are there together, `key` among them
// clang-format on
#pragma once

#include <algorithm>
#include <concepts>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

#include "model/result.hpp"
#include "reports/print/names.hpp"

namespace foretrain {

/// Raised when a key is renamed or means something else; a key more is no new version.
inline constexpr int result_schema_version = 1;

/// A number that is written without a fraction.
template <typename T>
struct Whole {
  T& value;
};
template <typename T>
Whole(T&) -> Whole<T>;  // clang deduces no aggregate's arguments by itself before its version 17

/// A value that nobody stated.
struct AssumedValue {
  std::string key, value;
  std::optional<std::string> source;  ///< of settings: why it is assumed
};

/// Settings of trainers, and defaults of the scenario.
inline std::vector<AssumedValue> assumed_of(const Result& result) {
  static const std::vector<ResolvedSetting> none;
  const std::vector<ResolvedSetting>& settings = result.train() != nullptr ? result.train()->framework_settings : none;
  std::vector<AssumedValue> assumed;
  for (const ResolvedSetting& t : settings) {
    if (t.from == ResolvedSetting::From::assumed) assumed.push_back({t.key, t.value, t.source});
  }
  for (const Setting& s : result.settings) {
    const bool is_setting = std::ranges::find(settings, s.key, &ResolvedSetting::key) != settings.end();
    if (s.by_default && !is_setting) assumed.push_back({s.key, s.value, std::nullopt});
  }
  return assumed;
}

/// T, const where it is written.
template <typename T, typename Of>
concept Is = std::same_as<std::remove_const_t<T>, Of>;

/// Left out where the optional, list, map or text has nothing.
void if_any(auto& v, std::string_view key, auto& value) {
  if constexpr (requires { value.has_value(); }) {
    v.when(value.has_value(), key, value);
  } else {
    v.when(!value.empty(), key, value);
  }
}

void fields(auto& v, Is<TrainResult::Spread> auto& spread) {
  v("p50", spread.p50);
  v("p90", spread.p90);
  v("p99", spread.p99);
}

void fields(auto& v, Is<TrainResult::Checkpoints> auto& checkpoints) {
  v("every", checkpoints.every);
  v("mode", checkpoints.mode);
  v("state_bytes", checkpoints.state);
  v("copy_s", checkpoints.copy);
  v("write_s", checkpoints.write);
  v("step_time_s", checkpoints.step_time);
  v("mean_step_time_s", checkpoints.mean_step_time);
  v("step_time_beside_write_s", checkpoints.beside_write);
}

void fields(auto& v, Is<Breakdown> auto& breakdown) {
  for (const BreakdownPart& part : breakdown_parts) v(part.key, breakdown.*part.time);
}

void fields(auto& v, Is<CommunicationTime> auto& time) {
  v("total", time.total);
  v("exposed", time.exposed);
  if_any(v, "algorithm", time.algorithm);
  v.when(time.sent > Bytes(0.0), "sent_bytes", time.sent);
}

void fields(auto& v, Is<InsideTraffic> auto& traffic) {
  v("count", traffic.count);
  v("sent_bytes", traffic.sent);
  v("alone_s", traffic.alone);
}

void fields(auto& v, Is<TrainResult::Buckets> auto& buckets) {
  v("rule", buckets.rule);
  v.when(is_finite(buckets.size), "bytes", buckets.size);
}

void fields(auto& v, Is<CommunicationRatio> auto& ratio) {
  v("formula", ratio.formula);
  v("simulated", ratio.simulated);
  v.derived("formula_is", std::string(communication_ratio_formula));
  v.derived("formula_leaves_out", std::string(communication_ratio_leaves_out));
}

void fields(auto& v, Is<TrainResult::TokenUse> auto& use) {
  v("useful", use.tokens);
  v("computed", use.computed);
  v.derived("useful_share", use.useful_share());
  v("visual", use.visual);
  v("images", use.images);
  v("waiting_for_slowest_replica_s", use.slowest_replica);
}

void fields(auto& v, Is<MemoryFootprint> auto& memory) {
  for (const FootprintPart& part : footprint_parts) v(part.key, Whole{memory.*part.size});
  const Bytes total = memory.total();
  v.derived("total", Whole{total});
  v("capacity", Whole{memory.capacity});
  v.derived("fits", memory.fits());
  v.when(memory.headroom > 0.0, "headroom", memory.headroom);
  v.when(memory.logged > Bytes(0.0), "logged", Whole{memory.logged});
  v.when(memory.host > Bytes(0.0), "host", Whole{memory.host});
  v.when(memory.host > Bytes(0.0), "host_capacity", Whole{memory.host_capacity});
}

void fields(auto& v, Is<ModelCallResult> auto& call) {
  v("execution", call.execution);
  v("operators", call.operators);
  v("kernels", call.kernels);
  v("fused_operators", call.fused);
  v("folded_operators", call.folded);
  v("host_s", call.host);
  v("device_s", call.device);
  v("intermediate_bytes", Whole{call.intermediates});
  v.derived("bound", std::string(call.front_end_bound() ? "front end" : "device"));
}

void fields(auto& v, Is<LifetimeShares> auto& shares) {
  v("useful", shares.useful);
  v("checkpoints", shares.checkpoints);
  v("lost", shares.lost);
  v("detection", shares.detection);
  v("machines", shares.machines);
  v("restarts", shares.restarts);
  v("stragglers", shares.stragglers);
}

void fields(auto& v, Is<IntervalChoice> auto& choice) {
  v("every", choice.every);
  v("goodput", choice.goodput);
}

void fields(auto& v, Is<TrainResult::Goodput> auto& goodput) {
  auto& life = goodput.simulated;
  v.derived("goodput", life.shares.useful);
  v("shares", life.shares);
  v.object("length_s", [&](auto& length) {
    length("mean", life.mean);
    length("p5", life.p5);
    length("p50", life.p50);
    length("p90", life.p90);
    length("p95", life.p95);
    length("p99", life.p99);
  });
  v("ends", life.ends);
  v("mtbf_s", goodput.mtbf);
  v("recovery_s", goodput.recovery);
  v("checkpoint_blocks_s", goodput.blocked);
  v("checkpoint_unsafe_s", goodput.unsafe);
  v.by_name("interruptions", goodput.kinds, life.interruptions);
  v.group("intervals", goodput.intervals, [&](auto& search) {
    v("checkpoint_every", goodput.every);
    v.when(search.daly.has_value(), "daly_formula", goodput.by_daly);
    if_any(v, "young", search.young);
    if_any(v, "daly", search.daly);
    v("best", search.best);
    v("intervals", search.tried);
  });
}

void fields(auto& v, Is<TrainResult::Split::Kind> auto& kind) {
  v("node", kind.node);
  v("replicas", kind.replicas);
  v("micro_batches", kind.micro_batches);
}

void fields(auto& v, Is<TrainResult::Split> auto& split) {
  v("rule", split.rule);
  v("equal_step_time_s", split.equal_step);
  v("kinds", split.kinds);
}

void fields(auto& v, Is<TrainResult::Bill> auto& bill) {
  v.object("time_to_train_s", [&](auto& time) {
    time("low", bill.shortest);
    time("high", bill.longest);
  });
  v.object_when(bill.usd_low.has_value(), "cost", [&](auto& cost) {
    if_any(cost, "low", bill.usd_low);
    if_any(cost, "high", bill.usd_high);
  });
  if_any(v, "watts", bill.watts);
  if_any(v, "kwh", bill.kwh);
  if_any(v, "kg_co2", bill.kg_co2);
}

void fields(auto& v, Is<ParameterServerResult::Staleness> auto& staleness) {
  v("mean", staleness.mean);
  v("p50", staleness.p50);
  v("p90", staleness.p90);
  v("p99", staleness.p99);
  v("max", staleness.max);
}

void fields(auto& v, Is<ParameterServerResult> auto& servers) {
  v("workers", servers.workers);
  v("servers", servers.servers);
  v("load_imbalance", servers.imbalance);
  v("link_utilisation", servers.link_utilisation);
  v("cpu_utilisation", servers.cpu_utilisation);
  v.object("bounds_s", [&](auto& bounds) {
    bounds("compute", servers.compute_bound);
    bounds("link", servers.link_bound);
    bounds("server", servers.server_bound);
  });
  v("staleness", servers.staleness);
}

void fields(auto& v, Is<SharedFabric::OtherJob> auto& job) {
  v("scenario", job.scenario);
  v("step_time_s", job.step_time);
  v("alone_step_time_s", job.alone);
}

void fields(auto& v, Is<TrainResult> auto& train) {
  v("step_time_s", train.step_time);
  if_any(v, "step_time_percentiles_s", train.spread);
  if_any(v, "checkpoints", train.checkpoints);
  v("samples_per_second", train.samples_per_second);
  v("tokens_per_second", train.tokens_per_second);
  v("tokens_per_second_per_gpu", train.tokens_per_second_per_gpu);
  v("model_flops_per_second_per_gpu", train.model_flops_per_second_per_gpu);
  v("mfu", train.mfu);
  v("breakdown_s", train.breakdown);
  v("communication_s", train.communication);
  if_any(v, "inside_layers", train.inside_layers);
  if_any(v, "gradient_buckets", train.buckets);
  if_any(v, "communication_to_compute", train.communication_to_compute);
  if_any(v, "sample_tokens", train.token_use);
  v("memory_per_gpu_bytes", train.memory);
  v("bottleneck", train.bottleneck);
  if_any(v, "execution", train.execution);
  v("time_to_train_s", train.time_to_train);
  if_any(v, "failures", train.goodput);
  if_any(v, "batch_split", train.split);
  if_any(v, "training", train.bill);
  if_any(v, "parameter_server", train.parameter_server);
  v.group("jobs", train.shared_fabric, [&](auto& fabric) {
    v("alone_step_time_s", fabric.alone);
    v("jobs", fabric.others);
  });
}

void fields(auto& v, Is<CollectiveResult> auto& collective) {
  v("time_s", collective.time);
  v("algorithm_bandwidth", collective.algorithm_bandwidth);
  v("bus_bandwidth", collective.bus_bandwidth);
  v("chosen_algorithm", collective.chosen_algorithm);
}

void fields(auto& v, Is<OperatorMemory> auto& memory) {
  v("saved", memory.saved);
  v("workspace", memory.workspace);
  v("peak", memory.peak);
}

void fields(auto& v, Is<OperatorResult> auto& op) {
  v("time_s", op.time);
  v("flops", op.flops);
  v("bytes", op.bytes);
  v("bound", op.bound);
  if_any(v, "time_per_access_s", op.per_access);
  if_any(v, "memory_bytes", op.memory);
}

void fields(auto& v, Is<TasksResult> auto& tasks) {
  v("time_s", tasks.time);
  v("finish_s", tasks.finish);
  if_any(v, "model_calls", tasks.calls);
}

void fields(auto& v, Is<RoutingSpread> auto& routing) {
  v("rule", routing.rule);
  v("draws", routing.draws);
  v("p50_s", routing.p50);
  v("p90_s", routing.p90);
  v("p99_s", routing.p99);
}

void fields(auto& v, Is<Constant> auto& constant) {
  v("name", constant.name);
  v("value", constant.value);
  v("unit", constant.unit);
  v("kind", constant.kind);
  v("source", constant.source);
}

void fields(auto& v, Is<UncertaintyCause> auto& cause) {
  v("what", cause.what);
  v("constant", cause.constant);
  v("share", cause.share);
}

void fields(auto& v, Is<ResolvedSetting> auto& setting) {
  v("key", setting.key);
  v("value", setting.value);
  v("from", setting.from);
  v("source", setting.source);
}

void fields(auto& v, Is<AssumedValue> auto& assumed) {
  v("key", assumed.key);
  v("value", assumed.value);
  if_any(v, "source", assumed.source);
}

void fields(auto& v, Is<Setting> auto& setting) {
  v("of", setting.line);
  v("name", setting.name);
  v("value", setting.value);
  v("key", setting.key);
  v("default", setting.by_default);
}

void fields(auto& v, Is<Result> auto& result) {
  v.derived("schema_version", result_schema_version);
  v("scenario", result.scenario);
  v("fidelity", result.fidelity);
  // Each kind of work by a key that no other has, in the order of the variant.
  v.one_of(result.work, "flops", "bus_bandwidth", "finish_s", "step_time_s");
  if_any(v, "routing", result.routing);
  std::optional<double> no_cost;
  auto* trains = std::get_if<TrainResult>(&result.work);
  v("cost", trains != nullptr ? trains->cost_usd : no_cost);
  v.object("uncertainty", [&](auto& uncertainty) {
    uncertainty("low_s", result.uncertainty_low);
    uncertainty("high_s", result.uncertainty_high);
    if_any(uncertainty, "causes", result.uncertainty_causes);
  });
  v("provenance", result.provenance);
  v("warnings", result.warnings);
  v.template of_kind<TrainResult>(result.work, [&](auto& train) {
    if_any(v, "model", train.model);
    // Documents of before have none of these.
    v.when(true, "parameters", Whole{train.parameters});
    v.when(true, "active_parameters", Whole{train.active_parameters});
    v.when(true, "bytes_per_parameter", train.bytes_per_parameter);
    v.when(true, "trainer", train.trainer);
    v.when(true, "traits", train.framework_settings);
  });
  v.derived("assumed", assumed_of(result));
  if_any(v, "settings", result.settings);
  if_any(v, "resolved", result.resolved);
}

}  // namespace foretrain
