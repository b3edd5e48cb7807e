// NCCL's collectives over every number of GPUs, in the manner of nccl-tests: one process per GPU, of one machine
// (local_ranks.hpp) or, under mpirun or srun, of several. Rank 0 writes. Parameter `processes` says how many there
// were.
#include "validate/cuda/collective/design.hpp"
#include "validate/cuda/collective/nccl.hpp"
#include "validate/cuda/collective/session.hpp"
#include "validate/cuda/core/suite.hpp"
#include "validate/cuda/suites/operator_points.hpp"

namespace foretrain::gpu {

#ifndef FORETRAIN_HAS_NCCL

namespace {

constexpr const char* without_nccl =
    "this program was built without NCCL: install libnccl and its headers (NCCL_HOME), and build again";

}  // namespace

void run_collective(SuiteRun& run) {
  Record record;
  record.name = "collective";
  record.unit = "s";
  run.skip(record, without_nccl);
}

void follow_collective() { throw GpuError(Fault::unsupported, without_nccl); }

#else

namespace {

std::vector<int> devices_of_this_process(World& world, const Launched& who) {
  const int visible = visible_devices();
  if (world.size() > 1) {
    const std::vector<std::string> machines = world.gather(machine_name());
    return {device_of(who.local_rank ? *who.local_rank : local_rank_of(world.rank(), machines), visible)};
  }
  std::vector<int> all;
  for (int device = 0; device < visible; ++device) all.push_back(device);
  return all;
}

void lead(SuiteRun& run, World& world, CollectiveSession& session) {
  std::map<std::string, std::string> common = nccl_parameters();
  common["precision"] = "fp32";
  common["timing"] = "events";
  common["processes"] = std::to_string(world.size());
  if (world.size() > 1) common["transport"] = world.transport();
  for (const CollectivePoint& point : collective_points(session.ranks(), run.quick())) {
    Record record = record_of(point);
    record.parameters = common;
    record.parameters["held_out"] = held_out(record.name) ? "true" : "false";
    const Spread spread = world.size() > 1 ? spread_of(point.ranks, session.hosts()) : Spread{1, point.ranks};
    record.parameters["nodes"] = std::to_string(spread.nodes);
    record.parameters["gpus_per_node"] = std::to_string(spread.ranks_per_node);
    if (std::max(point.extent.sent, point.extent.received) > session.capacity()) {
      run.skip(record, "two buffers of this size do not fit into the GPUs' free memory");
      continue;
    }
    const bool goes_on = run.point(record, [&] { return session.measure(point, run.rule()); });
    if (session.broken()) throw GpuError(Fault::failed, "the processes lost each other: start them again");
    if (!goes_on) break;
  }
  session.finish();
}

/// What can be wrong with the processes, in the words of the suites.
template <typename Work>
void in_a_world(Work work) {
  try {
    const Launched who = launched();
    const std::unique_ptr<World> world = make_world(who);
    work(*world, devices_of_this_process(*world, who));
  } catch (const WorldError& error) {
    throw GpuError(Fault::failed, error.what());
  } catch (const std::invalid_argument& error) {
    throw GpuError(Fault::failed, error.what());
  }
}

}  // namespace

void run_collective(SuiteRun& run) {
  in_a_world([&](World& world, const std::vector<int>& devices) {
    CollectiveSession session(world, devices);
    lead(run, world, session);
  });
}

void follow_collective() {
  in_a_world([&](World& world, const std::vector<int>& devices) {
    CollectiveSession session(world, devices);
    session.follow();
  });
}

#endif

}  // namespace foretrain::gpu
