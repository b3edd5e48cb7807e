#include "model/parameter_server/server_graph.hpp"

#include <algorithm>
#include <map>
#include <memory>
#include <numeric>
#include <string>
#include <utility>

#include "model/base/number.hpp"
#include "model/base/spread.hpp"
#include "model/collectives/contention.hpp"

namespace foretrain {

namespace {

/// Fisher and Yates's shuffle, the same on every machine.
void shuffle(std::vector<int>& order, int seed) {
  for (std::size_t i = order.size(); i > 1; --i) {
    const double place = uniform(seed, static_cast<int>(i)) * static_cast<double>(i);
    std::swap(order[i - 1], order[static_cast<std::size_t>(place)]);
  }
}

class GraphBuilder {
 public:
  GraphBuilder(const ParameterStore& store, const Topology& topology, const ServerGraph::Iterations& iterations,
               std::vector<WorkerLane> lanes, ServerGraph::Meeting meeting);
  ServerGraph run() &&;

 private:
  struct Servers {
    std::vector<ResourceId> cpu, receiver;      // by server; receiver where pushes come one at a time
    std::vector<std::vector<ResourceId>> lock;  // by group and server; empty where calls take no time
  };

  struct Lane {
    WorkerLane workers;
    Servers servers;  // a set of its own where workers do not meet
    ResourceId compute = 0, reduce = 0, gather = 0, barrier = 0;
    std::vector<ResourceId> push, pull, calls;                 // by server; two of calls, for pulls and pushes
    std::vector<std::vector<BlockId>> push_block, pull_block;  // by group and server; −1: nothing to send
    std::vector<std::vector<TaskId>> pulled;                   // the coming iteration's pulls, by group and server
    std::vector<BlockId> reduce_block, gather_block;           // by group; empty: one GPU a worker
    BlockId host = 0;
  };

  Servers add_servers();
  void add_lane(WorkerLane workers);
  void add_updates(std::size_t workers);
  TaskId call(const Lane& lane, bool push, int g, int s, const std::vector<TaskId>& after, int iteration);
  TaskId write(const Servers& servers, std::size_t workers, int g, int s, std::vector<TaskId> pushes, int iteration);
  void add_messages(Lane& lane, bool push);
  [[nodiscard]] Seconds beside_background(const Lane& lane, bool push, int g) const;
  BlockId local_block(const Lane& lane, const char* name, LoweredCollective lowered);
  BlockId fixed_block(const char* name, Seconds duration, Category category) {
    return builder_.add_block({name, category, duration});
  }
  TaskId add(BlockId block, ResourceId resource, std::vector<TaskId> after, int iteration, int group = 0) {
    std::erase(after, -1);
    return builder_.add_task({block, resource, iteration, store_.first_layer_first ? group : 0}, after);
  }
  [[nodiscard]] bool holds(int group, int server) const {
    return store_.groups[at_index(group)].parameters[at_index(server)] > 0.0;
  }
  void add_passes(int lane, int iteration, std::vector<std::vector<TaskId>>& pushes);
  void add_pulls(Lane& lane, const std::vector<std::vector<TaskId>>& updated, int iteration);
  [[nodiscard]] bool takes_part(int lane, int iteration) const {
    return iteration < iterations_.of_worker[at_index(lanes_[at_index(lane)].workers.front())];
  }

  const ParameterStore& store_;
  const bool sums_ = store_.consistency == Sync::Consistency::synchronous;  ///< what is pushed, before updating
  std::shared_ptr<const ParameterStore> kept_ = std::make_shared<const ParameterStore>(store_);  ///< for the messages
  const Topology& topology_;
  const ServerGraph::Iterations& iterations_;
  int groups_, servers_;
  TaskGraph::Builder builder_;
  std::vector<Lane> lanes_;
  Servers shared_;
  // Writing what so many workers sent under the variables' locks, and applying it; by group and server.
  std::map<std::size_t, std::vector<std::vector<BlockId>>> lock_block_, update_block_;
  BlockId nothing_ = 0;
  // bounded: [iteration][group][server], when every worker's update is in.
  std::vector<std::vector<std::vector<TaskId>>> complete_;
  ServerGraph result_;
};

GraphBuilder::GraphBuilder(const ParameterStore& store, const Topology& topology,
                           const ServerGraph::Iterations& iterations, std::vector<WorkerLane> lanes,
                           ServerGraph::Meeting meeting)
    : store_(store),
      topology_(topology),
      iterations_(iterations),
      groups_(static_cast<int>(store.groups.size())),
      servers_(store.server_count()),
      result_{{}, iterations, lanes, meeting, {}, {}} {
  nothing_ = fixed_block("complete", Seconds(0.0), Category::communication);
  shared_ = add_servers();
  add_updates(at_index(store.worker_count()));
  for (WorkerLane& lane : lanes) {
    if (meeting == ServerGraph::Meeting::nobody) lane.resize(1);
    add_lane(std::move(lane));
  }
}

GraphBuilder::Servers GraphBuilder::add_servers() {
  Servers servers;
  const auto add_resource = [&](const char* name, int s, Resource::Kind kind) {
    return builder_.add_resource({name + std::to_string(s), kind, s, Resource::Order::urgent});
  };
  for (int s = 0; s < servers_; ++s) {
    servers.cpu.push_back(add_resource("server ", s, Resource::Kind::host_thread));
    if (!store_.one_push_at_a_time) continue;
    servers.receiver.push_back(add_resource("to server ", s, Resource::Kind::communication_stream));
  }
  for (int g = 0; g < groups_; ++g) {
    const auto& calls = store_.groups[at_index(g)].calls;
    if (std::ranges::none_of(calls, [](const auto& one) { return one.lock > Seconds(0.0); })) continue;
    servers.lock.resize(at_index(groups_));
    for (int s = 0; s < servers_; ++s) {
      servers.lock[at_index(g)].push_back(add_resource("variable of server ", s, Resource::Kind::host_thread));
    }
  }
  return servers;
}

/// One after the other: updates, where they are not added up first, and writers of a variable beyond the first.
void GraphBuilder::add_updates(std::size_t workers) {
  const auto [blocks, is_new] = update_block_.try_emplace(workers);
  if (!is_new) return;
  auto& locked = lock_block_[workers];
  for (const ParameterStore::KeyGroup& group : store_.groups) {
    auto& of_group = blocks->second.emplace_back();
    for (const Seconds time : group.update) {
      of_group.push_back(fixed_block("update", time * (sums_ ? 1.0 : number(workers)), Category::optimizer));
    }
    auto& writing = locked.emplace_back();
    for (const ParameterStore::Calls& calls : group.calls) {
      writing.push_back(fixed_block("calls", calls.lock * (number(workers) - (sums_ ? 1.0 : 0.0)), Category::host));
    }
  }
}

/// Calls on each connection of the lane; without the time of the lock where updates wait for that alone. -1: no time.
TaskId GraphBuilder::call(const Lane& lane, bool push, int g, int s, const std::vector<TaskId>& after, int iteration) {
  const ParameterStore::Calls& calls = store_.groups[at_index(g)].calls[at_index(s)];
  const Seconds time = push ? calls.push - calls.lock * (sums_ ? 0.0 : 1.0) : calls.pull;
  if (!(time > Seconds(0.0))) return -1;
  return add(fixed_block("connection", time, Category::host), lane.calls[at_index(2 * s + (push ? 1 : 0))], after,
             iteration, g);
}

/// The moment at which what `workers` sent stands in the variables of a group on a server.
TaskId GraphBuilder::write(const Servers& servers, std::size_t workers, int g, int s, std::vector<TaskId> pushes,
                           int iteration) {
  if (servers.lock.empty() || servers.lock[at_index(g)].empty()) return -1;
  return add(lock_block_.at(workers)[at_index(g)][at_index(s)], servers.lock[at_index(g)][at_index(s)],
             std::move(pushes), iteration, g);
}

void GraphBuilder::add_lane(WorkerLane workers) {
  const int number = static_cast<int>(lanes_.size());
  const std::string name = "worker " + std::to_string(number);
  const auto stream = [&](const std::string& what, Resource::Kind kind, Resource::Order order) {
    return builder_.add_resource({name + " " + what, kind, number, order});
  };
  Lane lane;
  lane.servers = !sums_ && result_.meeting == ServerGraph::Meeting::nobody ? add_servers() : shared_;
  lane.compute = stream("compute", Resource::Kind::device_stream, Resource::Order::added);
  lane.reduce = stream("reduce", Resource::Kind::communication_stream, Resource::Order::urgent);
  lane.barrier = stream("barrier", Resource::Kind::host_thread, Resource::Order::added);
  lane.gather = stream("gather", Resource::Kind::communication_stream, Resource::Order::urgent);
  for (int s = 0; s < servers_; ++s) {
    const std::string server = "server " + std::to_string(s);
    lane.push.push_back(store_.one_push_at_a_time
                            ? lane.servers.receiver[at_index(s)]
                            : stream("to " + server, Resource::Kind::communication_stream, Resource::Order::urgent));
    lane.pull.push_back(stream("from " + server, Resource::Kind::communication_stream, Resource::Order::urgent));
    lane.calls.push_back(stream("pull calls of " + server, Resource::Kind::host_thread, Resource::Order::urgent));
    lane.calls.push_back(stream("push calls of " + server, Resource::Kind::host_thread, Resource::Order::urgent));
  }
  if (!sums_) add_updates(workers.size());
  lane.workers = std::move(workers);
  lane.host = fixed_block("between steps", store_.host_between_steps, Category::host);
  lane.pulled.assign(at_index(groups_), std::vector<TaskId>(at_index(servers_), -1));
  add_messages(lane, true);
  add_messages(lane, false);
  for (const LoweredCollective& reduce : store_.reduce) {
    lane.reduce_block.push_back(local_block(lane, "gradient reduce-scatter in the machine", reduce));
  }
  for (const LoweredCollective& gather : store_.gather) {
    lane.gather_block.push_back(local_block(lane, "weight all-gather in the machine", gather));
  }
  lanes_.push_back(std::move(lane));
  result_.passes_done.emplace_back();
}

/// The part of a collective inside all machines that runs in the lane's own.
BlockId GraphBuilder::local_block(const Lane& lane, const char* name, LoweredCollective lowered) {
  if (lane.workers.size() < store_.workers.size()) {
    std::vector<int> nodes;
    for (const int w : lane.workers) nodes.push_back(topology_.node_of(store_.workers[at_index(w)].front()));
    for (LoweredCollective::Phase& phase : lowered.phases) {
      std::erase_if(phase.flows, [&](const Flow& flow) {
        return std::ranges::find(nodes, topology_.node_of(flow.source)) == nodes.end();
      });
    }
  }
  const Seconds uncontended = uncontended_time(lowered, topology_, store_.background);
  return builder_.add_block({name, Category::communication, uncontended, std::move(lowered)});
}

/// Time of all messages of a group together.
Seconds GraphBuilder::beside_background(const Lane& lane, bool push, int g) const {
  LoweredCollective::Phase all;
  for (int s = 0; s < servers_; ++s) {
    const std::vector<Flow> flows = store_.messages(lane.workers, g, s, push);
    all.flows.insert(all.flows.end(), flows.begin(), flows.end());
  }
  return uncontended_time({"", {std::move(all)}}, topology_, store_.background);
}

/// Alone, a message takes its part of the time in which the whole group is exchanged with all servers: they are busy
/// with it together.
void GraphBuilder::add_messages(Lane& lane, bool push) {
  auto& blocks = push ? lane.push_block : lane.pull_block;
  blocks.assign(at_index(groups_), std::vector<BlockId>(at_index(servers_), -1));
  std::vector<std::vector<double>> amounts;
  for (const ParameterStore::KeyGroup& group : store_.groups) amounts.push_back(group.parameters);
  const MessageLoad load = message_load(store_, topology_, lane.workers, push, amounts);
  const auto workers = std::make_shared<const WorkerLane>(lane.workers);
  for (int g = 0; g < groups_; ++g) {
    const Seconds together = store_.background.empty() ? load.busiest[at_index(g)] : beside_background(lane, push, g);
    const std::vector<double>& parameters = amounts[at_index(g)];
    const double most = *std::ranges::max_element(parameters);
    for (int s = 0; s < servers_; ++s) {
      if (!holds(g, s)) continue;
      const Seconds latency = load.latency.at((push ? store_.push_to : store_.pull_from)[at_index(s)]);
      const auto messages = [store = kept_, workers, g, s, push, latency] {
        return std::vector<LoweredCollective::Phase>{{latency, store->messages(*workers, g, s, push)}};
      };
      blocks[at_index(g)][at_index(s)] =
          builder_.add_block({push ? "gradient push" : "weight pull", Category::communication,
                              latency + together * (parameters[at_index(s)] / most),
                              LoweredCollective{push ? "push" : "pull", {1, messages}}});
    }
  }
}

void GraphBuilder::add_passes(int lane_number, int iteration, std::vector<std::vector<TaskId>>& pushes) {
  Lane& lane = lanes_[at_index(lane_number)];
  const double factor = store_.factor(lane.workers.front(), iteration);
  const auto compute = [&](const char* name, const TimeBreakdown& work, std::vector<TaskId> after) {
    return add(fixed_block(name, work.total() * factor, Category::compute), lane.compute, std::move(after), iteration);
  };
  add(lane.host, lane.compute, {}, iteration);
  std::vector<TaskId> weights(at_index(groups_), -1);
  for (int g = 0; g < groups_; ++g) {
    if (lane.gather_block.empty()) continue;
    const std::vector<TaskId>& pulls = lane.pulled[at_index(g)];
    if (std::ranges::all_of(pulls, [](TaskId pull) { return pull < 0; })) continue;
    weights[at_index(g)] = add(lane.gather_block[at_index(g)], lane.gather, pulls, iteration, g);
  }
  for (int g = 0; g < groups_; ++g) {
    std::vector<TaskId> after = {weights[at_index(g)]};
    for (int other = store_.overlap ? g : 0; other < (store_.overlap ? g + 1 : groups_); ++other) {
      const std::vector<TaskId>& pulls = lane.pulled[at_index(other)];
      after.insert(after.end(), pulls.begin(), pulls.end());
      if (!store_.overlap) after.push_back(weights[at_index(other)]);
    }
    compute("forward", store_.groups[at_index(g)].forward, std::move(after));
  }
  if (store_.between.total() > Seconds(0.0)) compute("passes", store_.between, {});
  std::vector<TaskId> ready(at_index(groups_), -1);
  for (int g = groups_; g-- > 0;) ready[at_index(g)] = compute("backward", store_.groups[at_index(g)].backward, {});
  result_.passes_done[at_index(lane_number)].push_back(ready.front());

  for (int g = groups_; g-- > 0;) {
    TaskId sendable = store_.overlap ? ready[at_index(g)] : ready.front();
    if (!lane.reduce_block.empty()) {
      sendable = add(lane.reduce_block[at_index(g)], lane.reduce, {sendable}, iteration, g);
    }
    for (int s = 0; s < servers_; ++s) {
      const BlockId block = lane.push_block[at_index(g)][at_index(s)];
      if (block < 0) continue;
      const TaskId sent = add(block, lane.push[at_index(s)], {sendable}, iteration, g);
      pushes[at_index(g)][at_index(s)] = std::max(sent, call(lane, true, g, s, {sent}, iteration));
    }
  }
}

void GraphBuilder::add_pulls(Lane& lane, const std::vector<std::vector<TaskId>>& updated, int iteration) {
  TaskId barrier = -1;
  if (store_.barrier) {
    std::vector<TaskId> all;
    for (const std::vector<TaskId>& of_group : updated) all.insert(all.end(), of_group.begin(), of_group.end());
    barrier = add(nothing_, lane.barrier, std::move(all), iteration);
  }
  const int bound = iteration - 1 - store_.staleness;
  const bool bounded = store_.consistency == Sync::Consistency::bounded && bound >= 0;
  // The next forward pass asks for its first layers first, of what is ready together. Behind a barrier all is ready
  // together, and without priorities a server sends it in any order: see ParameterStore::barrier.
  std::vector<int> order(at_index(groups_));
  std::iota(order.begin(), order.end(), 0);
  for (int s = 0; s < servers_; ++s) {
    if (store_.barrier && !store_.first_layer_first) shuffle(order, s * 1000 + iteration);
    for (const int g : order) {
      if (!holds(g, s)) continue;
      std::vector<TaskId> after = {updated[at_index(g)][at_index(s)], barrier};
      if (bounded) after.push_back(complete_[at_index(bound)][at_index(g)][at_index(s)]);
      if (const TaskId called = call(lane, false, g, s, after, iteration); called >= 0) after = {called};
      lane.pulled[at_index(g)][at_index(s)] =
          add(lane.pull_block[at_index(g)][at_index(s)], lane.pull[at_index(s)], std::move(after), iteration, g);
    }
  }
}

ServerGraph GraphBuilder::run() && {
  const int last = *std::ranges::max_element(iterations_.of_worker);
  const std::vector<std::vector<TaskId>> none(at_index(groups_), std::vector<TaskId>(at_index(servers_), -1));
  const bool bounded = store_.consistency == Sync::Consistency::bounded;
  const auto update = [&](std::size_t workers, int g, int s) {
    return update_block_.at(workers)[at_index(g)][at_index(s)];
  };
  for (int i = 0; i < last; ++i) {
    // By lane, group and server: pushes, and then the updates that pulls wait for.
    std::vector<std::vector<std::vector<TaskId>>> exchanged(lanes_.size(), none);
    for (int lane = 0; lane < static_cast<int>(lanes_.size()); ++lane) {
      if (takes_part(lane, i)) add_passes(lane, i, exchanged[at_index(lane)]);
    }
    complete_.push_back(none);
    for (int g = groups_; g-- > 0;) {
      for (int s = 0; s < servers_; ++s) {
        if (!holds(g, s)) continue;
        std::vector<TaskId> all;
        for (std::size_t lane = 0; lane < lanes_.size(); ++lane) {
          TaskId& task = exchanged[lane][at_index(g)][at_index(s)];
          if (task < 0) continue;
          if (!sums_) {
            const std::size_t workers = lanes_[lane].workers.size();
            const Servers& servers = lanes_[lane].servers;
            const TaskId written = write(servers, workers, g, s, {task}, i);
            task = add(update(workers, g, s), servers.cpu[at_index(s)], {written < 0 ? task : written}, i, g);
            result_.exchanges.push_back(
                {static_cast<int>(lane), g, s, lanes_[lane].pulled[at_index(g)][at_index(s)], task});
          }
          all.push_back(task);
        }
        TaskId& complete = complete_.back()[at_index(g)][at_index(s)];
        if (sums_) {
          const auto workers = at_index(store_.worker_count());
          const TaskId written = write(shared_, workers, g, s, all, i);
          complete =
              add(update(workers, g, s), shared_.cpu[at_index(s)], written < 0 ? all : std::vector{written}, i, g);
          for (auto& of_lane : exchanged) of_lane[at_index(g)][at_index(s)] = complete;
        } else if (bounded) {
          complete = add(nothing_, builder_.add_resource({"complete", Resource::Kind::host_thread, s}), all, i);
        }
      }
    }
    for (std::size_t lane = 0; lane < lanes_.size(); ++lane) {
      if (takes_part(static_cast<int>(lane), i + 1)) add_pulls(lanes_[lane], exchanged[lane], i + 1);
    }
  }
  result_.graph = std::move(builder_).build();
  return std::move(result_);
}

}  // namespace

ServerGraph build_server_graph(const ParameterStore& store, const Topology& topology,
                               const ServerGraph::Iterations& iterations, std::vector<WorkerLane> lanes,
                               ServerGraph::Meeting meeting) {
  return GraphBuilder(store, topology, iterations, std::move(lanes), meeting).run();
}

ServerGraph build_server_graph(const ParameterStore& store, const Topology& topology) {
  return build_server_graph(store, topology, usual_iterations(store), usual_lanes(store));
}

}  // namespace foretrain
