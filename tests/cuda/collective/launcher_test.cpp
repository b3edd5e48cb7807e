// Which of several processes this one is.
#include "validate/cuda/collective/launcher.hpp"

#include <map>

#include "tests/catch.hpp"

using namespace foretrain::gpu;

namespace {

Environment of(std::map<std::string, std::string> variables) {
  return [variables](const std::string& name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    if (found == variables.end()) return std::nullopt;
    return found->second;
  };
}

}  // namespace

TEST_CASE("without a launcher a process is alone", "[collective][launcher]") {
  const Launched who = launched(of({{"PATH", "/bin"}}));
  CHECK(who.by.empty());
  CHECK(who.rank == 0);
  CHECK(who.size == 1);
}

TEST_CASE("each launcher's variables tell rank, size and place on the machine", "[collective][launcher]") {
  const Launched open_mpi = launched(
      of({{"OMPI_COMM_WORLD_RANK", "5"}, {"OMPI_COMM_WORLD_SIZE", "16"}, {"OMPI_COMM_WORLD_LOCAL_RANK", "1"}}));
  CHECK(open_mpi.by == "Open MPI");
  CHECK(open_mpi.rank == 5);
  CHECK(open_mpi.size == 16);
  CHECK(open_mpi.local_rank == 1);

  const Launched pmi = launched(of({{"PMI_RANK", "2"}, {"PMI_SIZE", "4"}}));
  CHECK(pmi.by == "PMI");
  CHECK(pmi.size == 4);
  CHECK_FALSE(pmi.local_rank);  // MPICH's Hydra does not tell; the processes find out among themselves

  const Launched slurm = launched(of({{"SLURM_PROCID", "3"}, {"SLURM_STEP_NUM_TASKS", "8"}, {"SLURM_LOCALID", "3"}}));
  CHECK(slurm.by == "Slurm");
  CHECK(slurm.rank == 3);
  CHECK(slurm.size == 8);
}

TEST_CASE("Slurm's batch script is one process, although its job has tasks", "[collective][launcher]") {
  // sbatch -n 8 sets SLURM_NTASKS and SLURM_PROCID=0 for the script; only srun's steps have SLURM_STEP_NUM_TASKS.
  CHECK(launched(of({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "8"}})).size == 1);
}

TEST_CASE("what is set by hand comes before any launcher", "[collective][launcher]") {
  const Launched who = launched(of({{"FORETRAIN_RANK", "1"},
                                    {"FORETRAIN_SIZE", "2"},
                                    {"OMPI_COMM_WORLD_RANK", "0"},
                                    {"OMPI_COMM_WORLD_SIZE", "9"}}));
  CHECK(who.rank == 1);
  CHECK(who.size == 2);
}

TEST_CASE("variables that make no sense are errors that name them", "[collective][launcher]") {
  CHECK_THROWS_WITH(launched(of({{"FORETRAIN_RANK", "one"}, {"FORETRAIN_SIZE", "2"}})),
                    Catch::Contains("FORETRAIN_RANK=one"));
  CHECK_THROWS_WITH(launched(of({{"FORETRAIN_RANK", "-1"}, {"FORETRAIN_SIZE", "2"}})), Catch::Contains("at least 0"));
  // Ranks go from 0 to size - 1: 1 of 2 is the last that exists.
  CHECK_NOTHROW(launched(of({{"FORETRAIN_RANK", "1"}, {"FORETRAIN_SIZE", "2"}})));
  CHECK_THROWS_WITH(launched(of({{"FORETRAIN_RANK", "2"}, {"FORETRAIN_SIZE", "2"}})), Catch::Contains("0 to size - 1"));
}

TEST_CASE("a process takes the GPU of its place, or the only one that it is shown", "[collective][launcher]") {
  CHECK(device_of(3, 8) == 3);
  CHECK(device_of(3, 1) == 0);  // --gpus-per-task=1: each process sees its own as number 0
  CHECK(device_of(7, 8) == 7);
  CHECK_THROWS_WITH(device_of(8, 8), Catch::Contains("8 are visible"));
}
