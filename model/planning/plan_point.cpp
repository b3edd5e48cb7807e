#include "model/planning/plan_point.hpp"

#include <fmt/format.h>

#include "model/base/words.hpp"

namespace foretrain {

std::string_view key_of(PlanDimension dimension) {
  static constexpr std::array<std::string_view, plan_dimension_count> keys = {"plan.tensor",
                                                                              "plan.context",
                                                                              "plan.expert",
                                                                              "plan.pipeline",
                                                                              "plan.data",
                                                                              "plan.order",
                                                                              "workload.train.micro_batch",
                                                                              "workload.train.recompute",
                                                                              "plan.sequence_parallel",
                                                                              "plan.schedule",
                                                                              "plan.interleave",
                                                                              "plan.zero",
                                                                              "plan.offload",
                                                                              "plan.sync.algorithm",
                                                                              "plan.sync.servers",
                                                                              "plan.sync.placement",
                                                                              "plan.sync.bucket",
                                                                              "plan.sync.overlap"};
  return keys[static_cast<std::size_t>(dimension)];
}

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
  using enum PlanDimension;
  std::vector<std::string> overrides;
  const auto add = [&](PlanDimension dimension, const auto& value) {
    if (chosen.has(dimension)) overrides.push_back(fmt::format("{}={}", key_of(dimension), value));
  };
  const auto add_word = [&](PlanDimension dimension, const auto& words, int number) {
    if (number >= 0) add(dimension, words[static_cast<std::size_t>(number)]);
  };
  add(tensor, point.tensor);
  add(context, point.context);
  add(expert, point.expert);
  add(pipeline, point.pipeline);
  add(data, point.data);
  add_word(order, plan_orders, point.order);
  add(micro_batch, point.micro_batch);
  add(recompute, name(point.recompute));
  add(sequence_parallel, point.sequence_parallel);
  add(schedule, name(point.schedule));
  add(interleave, point.interleave);
  add(zero, point.zero);
  add_word(offload, plan_offloads, point.offload);
  add(algorithm, name(point.algorithm));
  if (point.servers > 0) {
    add(servers, point.servers);
    add(server_placement, name(point.placement));
  }
  add_word(bucket, plan_buckets, point.bucket);
  add(overlap, point.overlap);
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
  if (point.zero > 0) add(fmt::format("zero {}", point.zero));
  if (point.offload > 0) add(fmt::format("offload {}", plan_offloads[static_cast<std::size_t>(point.offload)]));
  if (point.order > 0) add("pipeline before data");
  if (point.algorithm != SyncAlgorithm::automatic) add(name(point.algorithm));
  if (point.servers > 0) {
    add(fmt::format("{} {} server{}", point.servers, name(point.placement), point.servers > 1 ? "s" : ""));
  }
  if (point.bucket > 0) add(fmt::format("bucket {}", plan_buckets[static_cast<std::size_t>(point.bucket)]));
  if (!point.overlap) add("no overlap");
  return text;
}

}  // namespace foretrain
