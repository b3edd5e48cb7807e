// NCCL's collectives over every number of GPUs, in the manner of nccl-tests: one process per GPU, of one machine
// (measure_command.cpp) or, under mpirun or srun, of several. Rank 0 writes. Parameter `processes` says how many there
// were.
#include "validate/cuda/collective/nccl.hpp"
#include "validate/cuda/collective/session.hpp"
#include "validate/cuda/core/suite.hpp"
#include "validate/cuda/suites/operator_points.hpp"

namespace foretrain::gpu {

#ifndef FORETRAIN_HAS_NCCL

void run_collective(SuiteRun& run) {
  Record record;
  record.name = "collective";
  run.skip(record, without_nccl);
}

void follow_collective(const Meeting*, int) { throw GpuError(Fault::unsupported, without_nccl); }

#else

void run_collective(SuiteRun& run) {
  const std::unique_ptr<World> world = make_world(run.meeting(), 0);
  CollectiveSession session(*world);
  std::map<std::string, std::string> common = nccl_parameters();
  common.merge(std::map<std::string, std::string>{{"precision", "fp32"},
                                                  {"timing", "events"},
                                                  {"processes", std::to_string(world->size)},
                                                  {"transport", world->transport()}});
  for (const CollectivePoint& point : collective_points(world->size, run.quick())) {
    Record record = record_of(point);
    record.parameters = common;
    record.parameters["held_out"] = held_out(record.name) ? "true" : "false";
    const Spread spread = spread_of(point.ranks, session.machines());
    record.parameters["nodes"] = std::to_string(spread.nodes);
    record.parameters["gpus_per_node"] = std::to_string(spread.ranks_per_node);
    if (point.elements > session.capacity()) {
      run.skip(record, "two buffers of this size do not fit into the GPUs' free memory");
    } else if (!run.point(record, [&] { return session.measure(point, run.rule()); })) {
      break;
    }
  }
  session.finish();
}

void follow_collective(const Meeting* meeting, int rank) {
  const std::unique_ptr<World> world = make_world(meeting, rank);
  CollectiveSession(*world).follow();
}

#endif

}  // namespace foretrain::gpu
