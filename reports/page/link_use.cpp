#include "reports/page/link_use.hpp"

#include <algorithm>
#include <cctype>
#include <map>

#include "model/base/number.hpp"
#include "model/job/job.hpp"
#include "model/parameter_server/store.hpp"
#include "model/training/graph/step_graph.hpp"
#include "model/training/pricing/build_step.hpp"
#include "model/workload/build.hpp"
#include "sim/simulate.hpp"

namespace foretrain {

namespace {

/// Bytes that each link carries.
class CarriedBytes {
 public:
  explicit CarriedBytes(const Topology& topology)
      : topology_(topology), carried_(static_cast<std::size_t>(topology.links())) {}

  void add(const LoweredCollective& lowered, double times) {
    for (const LoweredCollective::Phase& phase : lowered.phases) {
      for (const Flow& flow : phase.flows) {
        route_.clear();
        topology_.append_route(flow.source, flow.destination, route_);
        for (const LinkId link : route_) carried_[at_index(link)] += flow.bytes * (times * phase.repeat);
      }
    }
  }
  [[nodiscard]] Bytes on(LinkId link) const { return carried_[at_index(link)]; }

 private:
  const Topology& topology_;
  std::vector<Bytes> carried_;
  std::vector<LinkId> route_;
};

void add_tasks(const TaskGraph& graph, CarriedBytes& carried) {
  std::map<BlockId, double> times;
  for (const Task& task : graph.tasks()) ++times[task.block];
  for (const auto& [block, count] : times) {
    const std::optional<LoweredCollective>& flows = graph.blocks()[at_index(block)].flows;
    if (flows) carried.add(*flows, count);
  }
}

/// Collectives inside layers that meet no other traffic are a part of their passes, and no tasks. How long they take
/// together is known, and which they are; each is taken to be carried out equally often.
void add_merged(const Scenario& scenario, const Topology& topology, CarriedBytes& carried) {
  const auto* train = std::get_if<TrainWorkload>(&scenario.workload);
  if (train == nullptr || uses_store(scenario)) return;
  const Model model = build_model(train->model, build_options(*train, scenario.plan));
  const Step step = build_step(scenario, *train, model, topology);
  const StepGraph graph = step_graph(step);
  std::vector<const Step::Transfer::Part*> parts;
  std::vector<Seconds> once(step.lanes.size());  // by lane: each of them
  for (const Step::Transfer& transfer : step.transfers) {
    for (const Step::Transfer::Part& part : transfer.parts) {
      if (!is_inside_layers(transfer.kind) || part.lanes.empty()) continue;
      parts.push_back(&part);
      for (const int lane : part.lanes) once[at_index(lane)] += part.uncontended;
    }
  }
  for (const Step::Transfer::Part* part : parts) {
    const std::size_t lane = at_index(part->lanes.front());
    const Inside merged = merged_on(graph, lane);
    if (once[lane] > Seconds(0.0)) carried.add(part->lowered, (merged.exposed + merged.hidden) / once[lane]);
  }
}

/// "gpu0>nvswitch" of "node3/gpu0>nvswitch"; of a fabric's link its name without numbers.
std::string common_name(const std::string& name, bool several_nodes) {
  const std::size_t slash = name.find('/');
  if (!several_nodes || slash != std::string::npos) return name.substr(slash == std::string::npos ? 0 : slash + 1);
  std::string words;
  std::ranges::copy_if(name, std::back_inserter(words), [](unsigned char c) { return std::isdigit(c) == 0; });
  return words;
}

}  // namespace

LinkUses link_uses(const Scenario& scenario, Fidelity fidelity) {
  const std::unique_ptr<Job> job = make_job(scenario, fidelity);
  const Topology& topology = job->topology();
  LinkUses uses{
      scenario.cluster.node.vertices, {}, topology.nodes(), executor_of(*job, fidelity)(job->graph()).makespan};
  CarriedBytes carried(topology);
  add_tasks(job->graph(), carried);
  add_merged(scenario, topology, carried);
  std::map<std::string, std::size_t> place;
  for (LinkId id = 0; id < topology.links(); ++id) {
    const DirectedLink link = topology.link(id);
    const std::string name = common_name(link.name, topology.nodes() > 1);
    const auto [known, is_new] = place.try_emplace(name, uses.links.size());
    if (is_new) {
      const std::size_t arrow = name.find('>');
      LinkUse& use = uses.links.emplace_back(LinkUse{.name = name, .kind = link.kind, .bandwidth = link.bandwidth});
      if (arrow != std::string::npos) use.from = name.substr(0, arrow), use.to = name.substr(arrow + 1);
    }
    LinkUse& use = uses.links[known->second];
    const double share = link.bandwidth.value() > 0.0 ? carried.on(id) / link.bandwidth / uses.time : 0.0;
    use.busiest = std::max(use.busiest, carried.on(id));
    use.most = std::max(use.most, share);
    use.mean += (share - use.mean) / ++use.links;
  }
  return uses;
}

}  // namespace foretrain
