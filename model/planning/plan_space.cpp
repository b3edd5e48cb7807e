#include "model/planning/plan_space.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "model/base/units.hpp"
#include "model/base/words.hpp"
#include "model/scenario/hardware/hardware_reader.hpp"
#include "model/scenario/workload/workload_reader.hpp"

namespace foretrain {

namespace {

constexpr int most_context = 32, most_interleave = 12;

/// The stated factor, or what it is where nothing is said.
int stated_factor(const YamlNode& document, PlanDimension dimension, int otherwise = 1) {
  const YamlNode* node = document.at(key_of(dimension));
  if (node == nullptr) return otherwise;
  return Field(*node, std::string(key_of(dimension))).as<int>({.range = {1, 1'000'000}});
}

template <typename E>
std::optional<E> stated_word(const YamlNode& document, PlanDimension dimension) {
  const YamlNode* node = document.at(key_of(dimension));
  return node != nullptr && node->is_scalar() ? value_of<E>(node->scalar) : std::nullopt;
}

std::vector<int> divisors(std::int64_t number, std::int64_t most) {
  std::vector<int> found;
  for (int factor = 1; factor <= std::min(number, most); ++factor) {
    if (number % factor == 0) found.push_back(factor);
  }
  return found;
}

std::vector<int> powers_of_two(int most) {
  std::vector<int> powers;
  for (int power = 1; power <= most; power *= 2) powers.push_back(power);
  return powers;
}

int layers_of(const ModelConfig& model) {
  if (const auto* transformer = std::get_if<TransformerConfig>(&model.shape)) {
    return static_cast<int>(transformer->all_layers());
  }
  if (const auto* whole = std::get_if<VisionLanguageConfig>(&model.shape)) {
    return static_cast<int>(whole->vision.layers + whole->language.layers);
  }
  return static_cast<int>(std::get<NetworkConfig>(model.shape).layers.size());
}

[[noreturn]] void refuse(const YamlNode& document, std::string_view key, std::string got, std::string expected) {
  const YamlNode* node = document.at(key);
  throw ScenarioError(node != nullptr ? node->where : document.where, std::string(key), std::move(got),
                      std::move(expected));
}

/// Erases keys that belong to a replaced value.
void erase_chosen(YamlNode& document, const PlanDimensions& chosen) {
  for (std::size_t i = 0; i < plan_dimension_count; ++i) {
    const auto dimension = static_cast<PlanDimension>(i);
    if (chosen.has(dimension)) document.erase(key_of(dimension));
  }
  if (chosen.has(PlanDimension::zero)) document.erase("plan.reshard_after_forward");
  if (chosen.has(PlanDimension::algorithm)) document.erase("plan.sync.levels");
  if (chosen.has(PlanDimension::pipeline)) document.erase("plan.stage_layers");
}

TrainWorkload read_training(const YamlNode& document, const Cluster& cluster) {
  const ReadWorkload workload = read_workload(Field(*document.at("workload"), "workload"), cluster);
  if (!workload.states_global_batch) {
    refuse(document, "workload.train", "plans of unequal batches cannot be compared", "global_batch: samples a step");
  }
  return std::get<TrainWorkload>(workload.workload);
}

/// The first plan of a layout that can be read, one of each micro-batch; `why` the last one before it could not.
std::optional<Scenario> first_plan(const PlanSpace& space, const PlanPoint& layout, std::optional<ScenarioError>& why) {
  int tried = 0;
  for (const PlanPoint& point : space.passes(layout)) {
    if (point.micro_batch == tried || space.pipelinings(point).empty()) continue;
    tried = point.micro_batch;  // NOLINT(clang-analyzer-deadcode.DeadStores): read behind the next exception
    try {
      return space.read(space.completed(point));
    } catch (const ScenarioError& error) {
      why = error;
    }
  }
  return std::nullopt;
}

}  // namespace

PlanSpace::PlanSpace(YamlNode document, std::string name, const PlanDimensions& chosen)
    : document_(std::move(document)), name_(std::move(name)), chosen_(chosen) {
  if (document_.at("workload.train") == nullptr) {
    refuse(document_, "workload", "nothing that is trained", "workload: { train: … }, whose plan is searched");
  }
  const Cluster cluster = read_cluster(Field(*document_.at("cluster"), "cluster"));
  refuse_what_is_not_searched(cluster);
  allow_what_is_stated();
  if (chosen_.has(PlanDimension::algorithm)) without_servers_ = sync_without_servers(document_);
  erase_chosen(document_, chosen_);
  ask_trainer(cluster);
  const YamlNode* overlapped = document_.at("plan.tensor_overlap");
  tensor_overlap_ = overlapped != nullptr && overlapped->scalar == "true";
  const TrainWorkload train = read_training(document_, cluster);
  example_.workload = train;
  example_.cluster = cluster;
  global_batch_ = train.global_batch;
  layers_ = layers_of(train.model);
  transformer_ = std::holds_alternative<TransformerConfig>(train.model.shape);
  if (!chosen_.has(PlanDimension::algorithm)) {
    algorithm_ = stated_word<SyncAlgorithm>(document_, PlanDimension::algorithm).value_or(SyncAlgorithm::automatic);
  }
  with_servers_ = server_choices(cluster);
  add_layouts(cluster);

  // Layouts that are impossible are left out here; the last reason is reported if nothing is left.
  std::optional<ScenarioError> why;
  std::erase_if(layouts_, [&](const PlanPoint& layout) {
    std::optional<Scenario> plan = first_plan(*this, layout, why);
    if (plan) example_ = std::move(*plan);
    return !plan;
  });
  if (layouts_.empty()) {
    if (why) throw *why;
    refuse(document_, "plan", fmt::format("no plan divides {} GPUs and a batch of {}", cluster.gpus(), global_batch_),
           "fewer fixed keys, or another number of nodes");
  }
  topology_ = std::make_shared<const Topology>(example_.cluster);
}

/// Extras that the scenario itself has are asked for.
void PlanSpace::allow_what_is_stated() {
  using enum PlanDimension;
  if (const YamlNode* stated = document_.at(key_of(offload)); stated != nullptr && stated->scalar != "none") {
    chosen_.allow(PlanExtra::offload);
  }
  const auto stated_schedule = stated_word<PipelineSchedule>(document_, schedule);
  if (stated_schedule && is_extra(*stated_schedule)) chosen_.allow(PlanExtra::schedules);
  const auto stated_algorithm = stated_word<SyncAlgorithm>(document_, algorithm).value_or(SyncAlgorithm::automatic);
  if (has_servers(stated_algorithm)) chosen_.allow(PlanExtra::servers);
  if (stated_algorithm != SyncAlgorithm::automatic) chosen_.allow(PlanExtra::algorithms);
}

void PlanSpace::refuse_what_is_not_searched(const Cluster& cluster) const {
  if (document_.at("jobs") != nullptr) refuse(document_, "jobs", "other jobs on the fabric", "one job");
  if (!cluster.groups.empty()) refuse(document_, "cluster", "several kinds of nodes", "cluster.node: one kind");
  const YamlNode* layers = document_.at("plan.stage_layers");
  if (layers != nullptr && layers->is_scalar()) {
    refuse(document_, "plan.stage_layers", "stages that are balanced by speed, which each plan does in its own way",
           "a list of layers, or leave the key out");
  }
}

/// 1, 2, 4, … servers: on the processors of machines that train, up to one on each; on their GPUs, up to one on each;
/// on machines of their own, up to half of all.
std::vector<PlanPoint> PlanSpace::server_choices(const Cluster& cluster) const {
  using enum PlanDimension;
  if (algorithm_ ? !has_servers(*algorithm_) : !chosen_.allows(PlanExtra::servers)) return {};
  std::vector<ServerPlacement> places(plan_placements.begin(), plan_placements.end());
  if (!chosen_.has(server_placement)) {
    places = {stated_word<ServerPlacement>(document_, server_placement).value_or(ServerPlacement::cpu)};
  }
  std::vector<PlanPoint> all;
  PlanPoint point;
  point.algorithm = algorithm_.value_or(SyncAlgorithm::parameter_server);
  for (const ServerPlacement place : places) {
    point.placement = place;
    const bool on_hosts = place == ServerPlacement::cpu, alone = place == ServerPlacement::dedicated;
    const int most = alone ? cluster.nodes / 2 : on_hosts ? cluster.nodes : static_cast<int>(cluster.gpus());
    for (const int count : factors(servers, powers_of_two(most))) {
      point.servers = count;
      all.push_back(point);
    }
  }
  return all;
}

std::vector<int> PlanSpace::factors(PlanDimension dimension, const std::vector<int>& candidates) const {
  if (chosen_.has(dimension)) return candidates;
  return {stated_factor(document_, dimension)};
}

/// Ranks that share a node's NVLink, and divide heads and feed-forward units.
std::vector<int> PlanSpace::tensor_factors(const Cluster& cluster) const {
  const auto& model = std::get<TrainWorkload>(example_.workload).model;
  std::int64_t common = cluster.gpus_per_node;
  const auto divide = [&](const TransformerConfig& part) {
    for (const std::int64_t size : {part.heads, part.kv_heads, part.ffn_hidden}) common = std::gcd(common, size);
  };
  if (const auto* whole = std::get_if<VisionLanguageConfig>(&model.shape)) {
    divide(whole->vision);
    divide(whole->language);
  } else if (transformer_) {
    divide(std::get<TransformerConfig>(model.shape));
  } else {
    common = 1;
  }
  return divisors(common, cluster.gpus_per_node);
}

/// Layouts of all training machines; beside dedicated servers, of the remaining machines.
void PlanSpace::add_layouts(const Cluster& cluster) {
  const bool always_servers = algorithm_ && has_servers(*algorithm_);
  if (!always_servers || !std::ranges::all_of(with_servers_, &PlanPoint::dedicated)) {
    add_layouts(cluster, cluster.gpus(), {});
  }
  for (const PlanPoint& point : with_servers_) {
    const std::int64_t gpus = cluster.gpus() - std::int64_t{point.servers} * cluster.gpus_per_node;
    if (point.dedicated() && gpus > 0) add_layouts(cluster, gpus, point);
  }
}

void PlanSpace::add_layouts(const Cluster& cluster, std::int64_t gpus, PlanPoint point) {
  using enum PlanDimension;
  const auto* config = std::get_if<TransformerConfig>(&std::get<TrainWorkload>(example_.workload).model.shape);
  const bool one_sequence =
      config != nullptr && config->family != TransformerFamily::vit && config->family != TransformerFamily::t5;
  const std::vector<int> contexts = one_sequence ? powers_of_two(most_context) : std::vector<int>{1};
  const std::vector<int> experts = config != nullptr ? divisors(config->experts, 1024) : std::vector<int>{1};
  const int stated_data = chosen_.has(data) ? 0 : stated_factor(document_, data, 0);
  // Neighbours divide layers alike, so that these are priced once.
  for (const int t : factors(tensor, tensor_factors(cluster))) {
    for (const int c : factors(context, contexts)) {
      for (const int e : factors(expert, experts)) {
        for (const int p : factors(pipeline, divisors(gpus, layers_))) {
          const std::int64_t replica = std::int64_t{1} * t * p * c;
          if (gpus % replica != 0 || global_batch_ % (gpus / replica) != 0) continue;
          point.tensor = t;
          point.pipeline = p;
          point.context = c;
          point.data = static_cast<int>(gpus / replica);
          if (stated_data > 0 && point.data != stated_data) continue;
          if (e > 1 && gpus / p % e != 0) continue;
          point.expert = e;
          if (point.dedicated() && !algorithm_ && !point.undivided()) continue;
          const bool orders = chosen_.has(order) && p > 1 && point.data * c > 1;
          for (point.order = chosen_.has(order) ? 0 : -1; point.order < (orders ? 2 : 1); ++point.order) {
            layouts_.push_back(point);
            if (!chosen_.has(order)) break;
          }
        }
      }
    }
  }
}

std::vector<PlanPoint> PlanSpace::passes(const PlanPoint& layout) const {
  using enum PlanDimension;
  const auto& train = std::get<TrainWorkload>(example_.workload);
  const std::int64_t samples = batch_of_replica(layout);
  std::vector<int> sizes = divisors(samples, samples);
  if (!chosen_.has(micro_batch)) std::erase_if(sizes, [&](int size) { return size != train.micro_batch; });
  std::vector<Recompute> recomputes = {train.recompute};
  if (chosen_.has(recompute)) {
    using enum Recompute;
    recomputes = {none, selective, selective_operators, selective_modules, full};
    if (!transformer_) recomputes = {none, full};
  }
  std::vector<bool> sequence_parallels = {true, false};
  if (!chosen_.has(sequence_parallel)) {
    const YamlNode* stated = document_.at(key_of(sequence_parallel));
    sequence_parallels = {stated != nullptr && stated->scalar == "true"};
  } else if (layout.tensor == 1) {
    sequence_parallels = {false};
  }
  std::vector<PlanPoint> all;
  PlanPoint point = layout;
  for (const int size : sizes) {
    for (const Recompute again : recomputes) {
      for (const bool in_sequence : sequence_parallels) {
        point.micro_batch = size;
        point.recompute = again;
        point.sequence_parallel = in_sequence;
        all.push_back(point);
      }
    }
  }
  return all;
}

std::vector<PlanPoint> PlanSpace::pipelinings(PlanPoint point) const {
  using enum PipelineSchedule;
  const bool any_schedule = chosen_.has(PlanDimension::schedule), any_chunks = chosen_.has(PlanDimension::interleave);
  const int stated_chunks = any_chunks ? 1 : stated_factor(document_, PlanDimension::interleave);
  const auto usual = !any_chunks && stated_chunks > 1 ? interleaved : one_forward_one_backward;
  const auto stated_schedule = stated_word<PipelineSchedule>(document_, PlanDimension::schedule).value_or(usual);
  const bool stated_layers = document_.at("plan.stage_layers") != nullptr;  // one chunk a stage
  std::vector<PlanPoint> all;
  const auto add = [&](PipelineSchedule schedule, int chunks) {
    point.schedule = schedule;
    point.interleave = chunks;
    all.push_back(point);
  };
  if (!any_schedule && !any_chunks) {
    add(stated_schedule, stated_chunks);
    return all;
  }
  const int stages = point.pipeline;
  const std::int64_t batches = batch_of_replica(point) / point.micro_batch;
  add(one_forward_one_backward, 1);
  if (stages > 1 && (!any_schedule || chosen_.allows(PlanExtra::schedules))) {
    add(gpipe, 1);
    add(zero_bubble, 1);
    if (2 * stages <= layers_) add(zero_bubble, 2);
    if (stages % 2 == 0 && batches % 2 == 0 && batches / 2 >= stages) add(dualpipe, 1);
  }
  if (stages > 1) {
    for (int chunks = 2; chunks <= most_interleave && stages * chunks <= layers_; ++chunks) {
      if (layers_ % (stages * chunks) == 0 && batches % stages == 0) add(interleaved, chunks);
    }
  }
  std::erase_if(all, [&](const PlanPoint& one) {
    if (stated_layers && (one.interleave > 1 || one.schedule == dualpipe)) return true;
    return (!any_schedule && one.schedule != stated_schedule) || (!any_chunks && one.interleave != stated_chunks);
  });
  return all;
}

std::vector<PlanPoint> PlanSpace::shardings(PlanPoint point) const {
  const bool alone = point.data * point.context == 1 && point.schedule != PipelineSchedule::dualpipe;
  const bool servers_alone = point.dedicated() || (algorithm_ && has_servers(*algorithm_));
  std::vector<int> levels = {example_.plan.zero};
  if (chosen_.has(PlanDimension::zero)) levels = alone || servers_alone ? std::vector{0} : std::vector{0, 1, 2, 3};
  std::vector<int> offloads = {-1};
  if (chosen_.has(PlanDimension::offload)) {
    offloads.resize(servers_alone || !chosen_.allows(PlanExtra::offload) ? 1 : plan_offloads.size());
    std::iota(offloads.begin(), offloads.end(), 0);
  }
  std::vector<PlanPoint> all;
  for (const int zero : levels) {
    if (!runs(zero, point)) continue;
    point.zero = zero;
    for (const int offload : offloads) {
      const Plan::Offload parts = offload < 0 ? Plan::Offload{} : offload_of(offload);
      const bool in_passes = parts.parameters || parts.activations;
      if (in_passes && point.schedule == PipelineSchedule::dualpipe) continue;
      point.offload = offload;
      all.push_back(point);
    }
  }
  return all;
}

std::int64_t PlanSpace::plans_of(const PlanPoint& point) const {
  std::int64_t plans = 0;
  for (const PlanPoint& pipelined : pipelinings(point)) {
    for (const PlanPoint& sharded : shardings(pipelined)) plans += std::ssize(synchronisations(sharded));
  }
  return plans;
}

PlanPoint PlanSpace::completed(const PlanPoint& point) const {
  const std::vector<PlanPoint> pipelined = pipelinings(point);
  return pipelined.empty() ? point : synchronisations(shardings(pipelined.front()).front()).front();
}

}  // namespace foretrain
