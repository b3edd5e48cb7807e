#include "model/training/transfers/transfer_table.hpp"

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

#include "model/collectives/contention.hpp"
#include "model/collectives/gloo.hpp"
#include "model/collectives/library.hpp"
#include "model/training/transfers/transfer_times.hpp"

namespace foretrain {

namespace {

/// Lets a phase happen `times` times as often. Beyond a million repetitions they are not distinguished any more.
void repeat_phase(LoweredCollective::Phase& phase, double times) {
  constexpr double most_repetitions = 1e6;
  const double repetitions = phase.repeat * times;
  phase.repeat = static_cast<int>(std::min(repetitions, std::max(most_repetitions, 1.0 * phase.repeat)));
  const double each = repetitions / phase.repeat;
  if (each == 1.0) return;
  phase.latency *= each;
  for (Flow& flow : phase.flows) flow.bytes *= each;
}

/// Whether every flow belongs to one group.
bool is_separable(const LoweredCollective& lowered, const std::vector<int>& group_of) {
  for (const LoweredCollective::Phase& phase : lowered.phases) {
    for (const Flow& flow : phase.flows) {
      if (group_of_flow(flow, group_of) < 0) return false;
    }
  }
  return true;
}

/// The groups' classes, numbered in the order in which they appear.
std::map<int, std::size_t> classes_among(const std::vector<int>& groups, const std::vector<int>& class_of_group) {
  std::map<int, std::size_t> classes;
  for (const int group : groups) classes.try_emplace(class_of_group[at_index(group)], classes.size());
  return classes;
}

/// Whether every stage's groups lie on nodes and links as those of the first stage do.
bool stages_lie_alike(const Scenario& scenario) {
  const Plan& plan = scenario.plan;
  const Cluster& cluster = scenario.cluster;
  if (!cluster.faults.empty() || !scenario.background.empty()) return false;
  if (plan.pipeline == 1) return true;
  const int node = cluster.gpus_per_node;
  const auto divides = [](int a, int b) { return a % b == 0 || b % a == 0; };
  if (plan.order == Plan{}.order) return divides(static_cast<int>(worker_gpus(plan, cluster)) / plan.pipeline, node);
  const int replica = plan.tensor * plan.context;
  return plan.order.back() == ParallelDimension::data && divides(replica, node) &&
         (plan.expert == 1 || divides(replica * plan.pipeline, node));
}

void add_classes(const std::vector<int>& more, std::vector<int>& rank_classes) {
  std::vector<int> all;
  std::ranges::set_union(rank_classes, more, std::back_inserter(all));
  rank_classes = std::move(all);
}

/// A collective for each of `parts`, with the flows of which part_of(flow) says that they are its own.
template <typename PartOf>
std::vector<LoweredCollective> separate(LoweredCollective lowered, std::size_t parts, const PartOf& part_of) {
  if (parts == 1) return {std::move(lowered)};
  std::vector<LoweredCollective> separated(parts, {lowered.chosen_algorithm, {}, lowered.times});
  for (std::size_t k = 0; k < lowered.phases.size(); ++k) {
    const LoweredCollective::Phase& phase = lowered.phases[k];
    for (LoweredCollective& own : separated) own.phases.push_back({phase.latency, {}, phase.repeat});
    for (const Flow& flow : phase.flows) separated[part_of(flow)].phases[k].flows.push_back(flow);
  }
  return separated;
}

}  // namespace

TransferTable::TransferTable(const Scenario& scenario, const Topology& topology, std::vector<Step::Transfer>& transfers,
                             Extent extent)
    : scenario_(scenario),
      layout_(layout_on(scenario, topology, extent)),
      topology_(topology_of(layout_, scenario, topology)),
      shared_(KnownTransfers::of(scenario, topology_, layout_)),
      transfers_(transfers) {}

int TransferTable::ranks_of(const Groups& groups) const {
  const Plan& plan = scenario_.plan;
  if (layout_.data() == plan.data) return 0;
  switch (groups.kind) {
    case GroupKind::gradients:
      return replicas_of(plan);
    case GroupKind::expert_gradients:
      return replicas_of(plan) / plan.expert;
    case GroupKind::copies:
    case GroupKind::expert_copies:
      return copies_of_shard(plan);
    default:
      return 0;
  }
}

Seconds TransferTable::norm_time() const {
  std::optional<std::pair<Seconds, ReadSet>>& known = shared_->norm;
  if (!known) {
    const ReadScope reading;
    const Seconds time = time_of_norm();
    known.emplace(time, reads_so_far());
  }
  note_reads(known->second);
  return known->first;
}

Seconds TransferTable::time_of_norm() const {
  CollectiveCall norm;
  norm.size = Bytes(4.0);
  norm.ranks = static_cast<int>(plan_gpus(scenario_.plan, scenario_.cluster));
  std::vector<int> gpus = gpus_of(scenario_.plan, scenario_.cluster);
  if (layout_.data() < scenario_.plan.data) gpus.resize(at_index(topology_.gpus()));
  norm.groups = RankGroups{std::move(gpus)};
  const Calibration& calibration = scenario_.calibration;
  if (scenario_.background.empty()) return automatic_time(norm, topology_, calibration);
  return uncontended_time(lower(norm, topology_, calibration), topology_, scenario_.background);
}

int TransferTable::grouping(GroupKind kind, int stage) {
  const Groups* const groups = &shared_->groups(kind, stage, topology_);
  const auto known = std::ranges::find(groupings_, groups);
  const auto number = static_cast<int>(known - groupings_.begin());
  if (known == groupings_.end()) groupings_.push_back(groups);
  return number;
}

std::optional<TransferTable::Model> TransferTable::model_of(TransferKey key) const {
  const Groups& own = shared_->groups(key.kind, key.stage, topology_);
  for (key.stage = own.model_stage; key.stage < own.stage; ++key.stage) {
    const auto known = known_.find(key);
    if (known == known_.end()) continue;
    const Groups& other = groups_of(known->second);
    const KnownTransfers::Transfer* const lowered = entries_[at_index(known->second)].lowered.get();
    const int shift = own.shift - other.shift;
    if (other.model_stage != own.model_stage || !topology_.repeats_after(shift) || !lowered->pattern) continue;
    return Model{key.stage, shift, lowered};
  }
  return std::nullopt;
}

int TransferTable::add(const TransferKey& key, std::string name, RecipePointer recipe, const Lower& lower) {
  const int of = grouping(key.kind, key.stage);
  const Groups& groups = *groupings_[at_index(of)];
  const std::optional<Model> model = model_of(key);
  TransferKey own = key;
  if (model) own.copied_from = model->stage;
  auto lowered = shared_->transfer(own, [&] { return model ? model->lowered->shifted(model->shift) : lower(groups); });
  Step::Transfer& fresh = transfers_.emplace_back();
  fresh.name = std::move(name);
  fresh.recipe = std::move(recipe);
  // A processor that trains sends itself; its share does not depend on channels.
  const bool by_channels = !scenario_.cluster.node.gpu.processor;
  fresh.slowdown = scenario_.calibration.collective.overlap_slowdown * (by_channels ? groups.channel_share : 1.0);
  fresh.kind = key.kind;
  if (!groups.ranks.empty()) {
    const int ranks = std::max(ranks_of(groups), static_cast<int>(groups.ranks.front().size()));
    const bool is_message = key.kind == GroupKind::neighbours;
    fresh.sent = key.size * (is_message ? 1.0 : bus_bandwidth_factor(key.operation, ranks));
  }
  fresh.parts = lowered->parts;
  for (Step::Transfer::Part& part : fresh.parts) part.rank_classes = layout_.stages(key.kind, key.stage);
  const auto number = static_cast<int>(entries_.size());
  known_.emplace(key, number);
  entries_.push_back({of, key, std::move(lowered), groups.alike});
  return number;
}

int TransferTable::transfer(const TransferKey& key, const CollectiveCall& call, std::string name,
                            RecipePointer recipe) {
  if (const auto known = known_.find(key); known != known_.end()) return known->second;
  const bool of_experts = is_of_experts(key.kind) && is_of_parameters(key.kind);
  const auto lower = [&](const Groups& groups) -> KnownTransfers::Transfer {
    std::vector<Step::Transfer::Part> parts;
    for (const std::vector<int>& alike : groups.alike) {
      CollectiveCall of_groups = call;
      of_groups.groups = groups.ranks.only(alike);
      of_groups.ranks = ranks_of(groups);
      Step::Transfer::Part& part = parts.emplace_back();
      part.lowered = key.kind == GroupKind::neighbours ? message_of(key, of_groups) : lower_call(key, of_groups);
      part.lowered.times = stands_for();
      part.uncontended = uncontended_time(part.lowered, topology_, scenario_.background);
    }
    return {std::move(parts), topology_};
  };
  return add(key, of_experts ? "expert " + name : std::move(name), std::move(recipe), lower);
}

int TransferTable::repeated(int transfer, int stage) {
  TransferKey key = entries_[at_index(transfer)].key;
  key.stage = stage;
  if (const auto known = known_.find(key); known != known_.end()) return known->second;
  if (!model_of(key)) return -1;
  const Step::Transfer& same = transfers_[at_index(transfer)];
  return add(key, same.name, same.recipe, nullptr);
}

LoweredCollective TransferTable::lower_call(const TransferKey& key, const CollectiveCall& call) const {
  LoweredCollective lowered = lower(call, topology_, scenario_.calibration);
  for (LoweredCollective::Phase& phase : lowered.phases) repeat_phase(phase, key.pieces);
  return lowered;
}

int TransferTable::collective(int stage, GroupKind kind, const CollectiveCall& call, double pieces, const char* name,
                              RecipePointer recipe) {
  const TransferKey key{.kind = kind,
                        .stage = stage,
                        .operation = call.operation,
                        .size = call.size * pieces,
                        .pieces = pieces,
                        .tokens = call.tokens,
                        .algorithm = call.algorithm,
                        .servers = call.servers,
                        .placement = call.placement,
                        .levels = call.levels};
  const int named = transfer(key, call, name, std::move(recipe));
  if (takes_least_ && !least_.contains(named)) note_least(named, key, call);
  return named;
}

void TransferTable::take_least() {
  takes_least_ = true;
  stages_lie_alike_ = stages_lie_alike(scenario_);
}

void TransferTable::note_least(int named, TransferKey key, const CollectiveCall& call) {
  Seconds least = transfers_[at_index(named)].parts.front().longest();
  if (!stages_lie_alike_ || transfers_[at_index(named)].parts.size() > 1) {
    exact_ = false;
    for (key.stage = 0; key.stage < scenario_.plan.pipeline; ++key.stage) {
      least = std::min(least, least_of_groups(transfer(key, call, "", nullptr)));
    }
  }
  least_[named] = least;
}

Seconds TransferTable::least_of_groups(int transfer) const {
  const std::vector<int> group_of = group_of_rank(groups_of(transfer).ranks, topology_.gpus());
  Seconds least = Seconds::infinity();
  for (const Step::Transfer::Part& part : transfers_[at_index(transfer)].parts) {
    least = std::min(least, least_time(part.lowered, group_of, topology_));
  }
  return least;
}

LoweredCollective TransferTable::message_of(const TransferKey& key, const CollectiveCall& pairs) const {
  LoweredCollective::Phase phase;
  for (const std::vector<int>& pair : pairs.groups) {
    phase.flows.push_back({pair[key.back ? 1 : 0], pair[key.back ? 0 : 1], key.size});
    const Flow& flow = phase.flows.back();
    phase.latency =
        std::max(phase.latency, topology_.latency(flow.source, flow.destination) + gloo_message(flow, topology_));
  }
  phase.latency += key.overhead;
  phase.flows = forwarded_over_rails(std::move(phase.flows), topology_);
  LoweredCollective message{"send/receive", {std::move(phase)}};
  share_links(message, pairs.operation, topology_);
  return message;
}

int TransferTable::pipeline_p2p(int stage, bool back, Bytes activation, Seconds overhead) {
  CollectiveCall message;
  message.operation = CollectiveOperation::send_receive;
  message.size = activation / scenario_.plan.tensor;
  return transfer({GroupKind::neighbours, stage, message.operation, message.size, 1.0, back, {}, overhead}, message,
                  "pipeline send/receive", nullptr);
}

Seconds TransferTable::time(int transfer, int rank_class) const {
  if (takes_least_) return least_.at(transfer);
  Seconds longest;
  for (const Step::Transfer::Part& part : transfers_[at_index(transfer)].parts) {
    if (std::ranges::binary_search(part.rank_classes, rank_class)) longest = std::max(longest, part.longest());
  }
  return longest;
}

std::vector<std::size_t> TransferTable::distinct() const {
  std::set<std::pair<int, std::uint64_t>> seen;
  std::vector<std::size_t> distinct;
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    const std::optional<std::uint64_t>& pattern = entries_[i].lowered->pattern;
    if (!pattern || seen.emplace(entries_[i].grouping, *pattern).second) distinct.push_back(i);
  }
  return distinct;
}

std::optional<DivisionKey> TransferTable::division_key() const {
  if (shared_->network().empty()) return std::nullopt;
  const Plan& plan = scenario_.plan;
  std::vector<std::uint64_t> step{plan.zero == 3, synchronises_every_micro_batch(plan), plan.sync.overlap,
                                  plan.sync.gather_overlap};
  for (const std::size_t i : distinct()) {
    const auto& [grouping, key, lowered, groups] = entries_[i];
    if (!lowered->pattern) return std::nullopt;
    const auto kind = static_cast<std::uint64_t>(key.kind);
    step.insert(step.end(), {kind, at_index(key.stage), *lowered->pattern, at_index(lowered->shift)});
  }
  return DivisionKey{layout_, shared_->network(), std::move(step)};
}

bool TransferTable::divided() const {
  return std::ranges::any_of(transfers_, [](const Step::Transfer& transfer) { return transfer.parts.size() > 1; });
}

std::vector<GroupedTransfer> TransferTable::grouped() const {
  std::vector<GroupedTransfer> grouped;
  for (const std::size_t i : distinct()) {
    GroupedTransfer& transfer = grouped.emplace_back();
    const Groups& groups = groups_of(static_cast<int>(i));
    const auto model = std::ranges::find_if(groupings_, [&](const Groups* other) {
      return other->kind == groups.kind && other->model_stage == groups.model_stage;
    });
    transfer.grouping = entries_[i].grouping;
    transfer.model = static_cast<int>(model - groupings_.begin());
    transfer.shift = groups.shift - (*model)->shift;
    transfer.groups = &groups.ranks;
    transfer.pattern = entries_[i].lowered->pattern;
    for (std::size_t p = 0; p < transfers_[i].parts.size(); ++p) {
      transfer.parts.push_back({&transfers_[i].parts[p].lowered, entries_[i].groups[p]});
    }
  }
  return grouped;
}

void TransferTable::divide(const RankClasses& classes) {
  for (std::size_t i = 0; i < transfers_.size(); ++i) {
    const std::size_t grouping = at_index(entries_[i].grouping);
    const std::vector<int>& class_of = classes.class_of_group[grouping];
    const std::vector<std::vector<int>>& parts = entries_[i].groups;
    std::vector<Step::Transfer::Part> divided;
    std::vector<std::vector<int>> groups_of_part;
    for (std::size_t p = 0; p < parts.size(); ++p) {
      const Step::Transfer::Part& whole = transfers_[i].parts[p];
      const std::map<int, std::size_t> own = classes_among(parts[p], class_of);
      std::vector<int> group_of;
      if (own.size() > 1) group_of = group_of_rank(groupings_[grouping]->ranks, topology_.gpus());
      const bool apart = own.size() > 1 && is_separable(whole.lowered, group_of);
      const auto part_of = [&](int group) { return apart ? own.at(class_of[at_index(group)]) : 0; };
      const auto part_of_flow = [&](const Flow& flow) { return part_of(group_of_flow(flow, group_of)); };
      const std::size_t first = divided.size();
      for (LoweredCollective& lowered : separate(whole.lowered, apart ? own.size() : 1, part_of_flow)) {
        divided.push_back({std::move(lowered), whole.uncontended, {}, {}});
      }
      for (const auto& [id, part] : own) {
        add_classes(classes.rank_classes_of[grouping][at_index(id)], divided[first + (apart ? part : 0)].rank_classes);
      }
      groups_of_part.resize(divided.size());
      for (const int group : parts[p]) groups_of_part[first + part_of(group)].push_back(group);
    }
    transfers_[i].parts = std::move(divided);
    entries_[i].groups = std::move(groups_of_part);
    const int among = 2 * entries_[i].grouping + (entries_[i].key.back ? 1 : 0);
    set_times(transfers_[i].parts, among, topology_, scenario_.background);
    if (transfers_[i].parts.size() < 2) continue;
    for (Step::Transfer::Part& part : transfers_[i].parts) part.links.transfer = static_cast<int>(i);
  }
}

void OverlapCost::add(int transfer) {
  if (transfer < 0) return;
  const Seconds own = table_->time(transfer, rank_class_);
  time_ += own;
  cost_ += own * table_->slowdown(transfer);
}

Seconds OverlapCost::cost(Seconds hidden) const {
  return time_ > Seconds(0.0) ? cost_ * (std::min(hidden, time_) / time_) : Seconds(0.0);
}

}  // namespace foretrain
