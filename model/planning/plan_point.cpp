#include "model/planning/plan_point.hpp"

#include <fmt/format.h>

#include "model/base/words.hpp"

namespace foretrain {

namespace {

std::string text_of(int number) { return std::to_string(number); }
std::string text_of(bool flag) { return flag ? "true" : "false"; }
template <typename E>
std::string text_of(E word) {
  return std::string(name(word));
}

template <auto member>
std::string value_of_member(const PlanPoint& point) {
  return text_of(point.*member);
}
/// Of the words that a place among them stands for; empty: as the scenario states.
template <auto member, const auto& words>
std::string word_of_member(const PlanPoint& point) {
  const int place = point.*member;
  return place < 0 ? "" : std::string(words[static_cast<std::size_t>(place)]);
}
/// Without servers: nothing.
template <auto member>
std::string value_of_servers(const PlanPoint& point) {
  return point.servers > 0 ? text_of(point.*member) : "";
}

struct DimensionRow {
  std::string_view key;
  std::string (*value)(const PlanPoint& point);
};
/// In the order of PlanDimension.
constexpr std::array<DimensionRow, plan_dimension_count> dimension_rows = {
    {{"plan.tensor", value_of_member<&PlanPoint::tensor>},
     {"plan.context", value_of_member<&PlanPoint::context>},
     {"plan.expert", value_of_member<&PlanPoint::expert>},
     {"plan.pipeline", value_of_member<&PlanPoint::pipeline>},
     {"plan.data", value_of_member<&PlanPoint::data>},
     {"plan.order", word_of_member<&PlanPoint::order, plan_orders>},
     {"workload.train.micro_batch", value_of_member<&PlanPoint::micro_batch>},
     {"workload.train.recompute", value_of_member<&PlanPoint::recompute>},
     {"plan.sequence_parallel", value_of_member<&PlanPoint::sequence_parallel>},
     {"plan.schedule", value_of_member<&PlanPoint::schedule>},
     {"plan.interleave", value_of_member<&PlanPoint::interleave>},
     {"plan.zero", value_of_member<&PlanPoint::zero>},
     {"plan.offload", word_of_member<&PlanPoint::offload, plan_offloads>},
     {"plan.sync.algorithm", value_of_member<&PlanPoint::algorithm>},
     {"plan.sync.servers", value_of_servers<&PlanPoint::servers>},
     {"plan.sync.placement", value_of_servers<&PlanPoint::placement>},
     {"plan.sync.bucket", word_of_member<&PlanPoint::bucket, plan_buckets>},
     {"plan.sync.overlap", value_of_member<&PlanPoint::overlap>}}};

}  // namespace

std::string_view key_of(PlanDimension dimension) { return dimension_rows[static_cast<std::size_t>(dimension)].key; }

PlanDimensions PlanDimensions::all() {
  PlanDimensions dimensions;
  dimensions.set_.set();
  dimensions.allow_all();
  return dimensions;
}

std::vector<PlanExtra> extras_of(const PlanPoint& point) {
  std::vector<PlanExtra> extras;
  if (point.offload > 0) extras.push_back(PlanExtra::offload);
  if (point.pipeline > 1 && is_extra(point.schedule)) extras.push_back(PlanExtra::schedules);
  if (point.servers > 0) extras.push_back(PlanExtra::servers);
  if (point.servers == 0 && point.algorithm != SyncAlgorithm::automatic) extras.push_back(PlanExtra::algorithms);
  return extras;
}

Plan::Offload offload_of(int number) {
  const std::string_view words = plan_offloads[static_cast<std::size_t>(number)];
  const auto has = [&](std::string_view word) { return words.find(word) != std::string_view::npos; };
  return {has("optimizer"), has("parameters"), has("activations")};
}

std::vector<std::string> overrides_of(const PlanPoint& point, const PlanDimensions& chosen) {
  std::vector<std::string> overrides;
  for (std::size_t i = 0; i < dimension_rows.size(); ++i) {
    const std::string value = chosen.has(static_cast<PlanDimension>(i)) ? dimension_rows[i].value(point) : "";
    if (!value.empty()) overrides.push_back(fmt::format("{}={}", dimension_rows[i].key, value));
  }
  return overrides;
}

std::string describe(const PlanPoint& point) {
  std::string text;
  const auto add = [&](std::string_view part) {
    if (!text.empty()) text += ", ";
    text += part;
  };
  const auto add_factor = [&](std::string_view what, int factor) {
    if (factor > 1) add(fmt::format("{} {}", what, factor));
  };
  add_factor("tensor", point.tensor);
  add_factor("context", point.context);
  add_factor("expert", point.expert);
  add_factor("pipeline", point.pipeline);
  add_factor("data", point.data);
  add(fmt::format("micro-batch {}", point.micro_batch));
  if (point.pipeline > 1) {
    const std::string chunks = point.interleave > 1 ? fmt::format(" x{}", point.interleave) : "";
    add(fmt::format("{}{}", name(point.schedule), chunks));
  }
  if (point.recompute != Recompute::none) add(fmt::format("recompute {}", name(point.recompute)));
  if (point.sequence_parallel && point.tensor > 1) add("sequence parallel");
  if (point.zero > 0) add(fmt::format("ZeRO {}", point.zero));
  if (point.offload > 0) add(fmt::format("offload {}", plan_offloads[static_cast<std::size_t>(point.offload)]));
  if (point.order > 0) add("rank order ...-pipeline-data");
  if (point.algorithm != SyncAlgorithm::automatic) add(fmt::format("algorithm {}", name(point.algorithm)));
  if (point.servers > 0) {
    add(fmt::format("{} {} server{}", point.servers, name(point.placement), point.servers > 1 ? "s" : ""));
  }
  if (point.bucket > 0) add(fmt::format("bucket {}", plan_buckets[static_cast<std::size_t>(point.bucket)]));
  if (!point.overlap) add("no overlap");
  return text;
}

}  // namespace foretrain
