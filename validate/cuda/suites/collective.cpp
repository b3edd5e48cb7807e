// NCCL's collectives over every number of GPUs, in the manner of nccl-tests. One process drives all GPUs of a machine;
// under mpirun or srun one process per GPU, of which rank 0 writes.
#include "validate/cuda/collective/design.hpp"
#include "validate/cuda/collective/nccl.hpp"
#include "validate/cuda/collective/session.hpp"
#include "validate/cuda/core/suite.hpp"

namespace foretrain::gpu {

#ifndef FORETRAIN_HAS_NCCL

void run_collective(SuiteRun& run) {
  Record record;
  record.name = "collective";
  record.unit = "s";
  run.skip(record, "this program was built without NCCL: install libnccl and its headers (NCCL_HOME), and build again");
}

#else

namespace {

std::vector<int> devices_of_this_process(World& world, const Launched& who) {
  int visible = 0;
  GPU_CHECK(cudaGetDeviceCount(&visible));
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
    const Spread spread = world.size() > 1 ? spread_of(point.ranks, session.hosts()) : Spread{1, point.ranks};
    record.parameters["nodes"] = std::to_string(spread.nodes);
    record.parameters["gpus_per_node"] = std::to_string(spread.ranks_per_node);
    if (std::max(point.extent.sent, point.extent.received) > session.capacity()) {
      run.skip(record, "two buffers of this size do not fit into the GPUs' free memory");
      continue;
    }
    if (!run.point(record, [&] { return session.measure(point, run.rule()); })) break;
  }
  session.finish();
}

void run_together(SuiteRun& run) {
  const Launched who = launched();
  const std::unique_ptr<World> world = make_world(who);
  const std::vector<int> devices = devices_of_this_process(*world, who);
  CollectiveSession session(*world, devices, run.verify());
  if (world->leads()) {
    lead(run, *world, session);
  } else {
    session.follow();
  }
}

}  // namespace

void run_collective(SuiteRun& run) {
  try {
    run_together(run);
  } catch (const WorldError& error) {
    throw GpuError(Fault::failed, error.what());
  } catch (const std::invalid_argument& error) {
    throw GpuError(Fault::failed, error.what());
  }
}

#endif

}  // namespace foretrain::gpu
