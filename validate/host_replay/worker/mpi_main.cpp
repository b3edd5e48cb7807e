// One rank of a replay by MPI: foretrain-host-mpi FOLDER, started by mpirun, which also says by which algorithm the
// library is to reduce.
#define OMPI_SKIP_MPICXX 1  // its C++ bindings are deprecated and need a library of their own
#include <mpi.h>

#include <cstdio>

#include "model/base/number.hpp"
#include "validate/host_replay/worker.hpp"

namespace {

using namespace foretrain;

void run(const WorkerTask& task, int process, ProcessBarrier& barrier) {
  std::vector<float> values(at_index(task.elements));
  const auto prepare = [&] {
    for (std::int64_t i = 0; i < task.elements; ++i) values[at_index(i)] = contribution(process, i);
  };
  const auto work = [&] {
    MPI_Allreduce(MPI_IN_PLACE, values.data(), static_cast<int>(values.size()), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
  };
  measure(task, process, barrier, {prepare, work, [&] { check_sums(task, values); }});
}

}  // namespace

int main(int argc, char** argv) {
  if (MPI_Init(&argc, &argv) != MPI_SUCCESS) return 1;
  int process = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &process);
  if (argc != 2) {
    std::fprintf(stderr, "usage: foretrain-host-mpi FOLDER (foretrain replay starts it by mpirun)\n");
    return 2;
  }
  const int status = run_worker(argv[1], process, run);
  if (status != 0) MPI_Abort(MPI_COMM_WORLD, status);
  MPI_Finalize();
  return status;
}
