// Real processes that meet on one machine, and over MPI where it is installed.
#include "validate/cuda/collective/world.hpp"

#include <cstdlib>
#include <filesystem>

#include "tests/catch.hpp"

using namespace foretrain;
using namespace foretrain::gpu;

namespace {

/// The environment with these variables, and none of another launcher.
Launched launched_with(const std::vector<std::pair<const char*, const char*>>& variables) {
  for (const char* name : {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "PMI_RANK", "PMI_SIZE", "SLURM_PROCID",
                           "SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"}) {
    unsetenv(name);
  }
  for (const auto& [name, value] : variables) setenv(name, value, 1);
  return launched();
}

/// Task of each process; true if all agreed.
bool agree(World& world) {
  bool right = true;
  for (int call = 0; call < 100; ++call) {
    right &= world.broadcast(world.rank == 0 ? 42 + call : 0) == 42 + call;
    right &= world.maximum(1.5 * world.rank + call) == 1.5 * (world.size - 1) + call;
  }
  // Texts come in the order of ranks, whatever their lengths.
  const std::vector<std::string> texts = world.gather("r" + std::string(static_cast<std::size_t>(world.rank), 'x'));
  for (std::size_t rank = 0; rank < texts.size(); ++rank) right &= texts[rank] == "r" + std::string(rank, 'x');
  return right && texts.size() == static_cast<std::size_t>(world.size);
}

}  // namespace

TEST_CASE("processes of one machine meet and agree", "[collective][world]") {
  for (const int size : {1, 2, 4}) {
    const Meeting meeting(size);
    std::vector<Process> processes;
    for (int rank = 1; rank < size; ++rank) {
      processes.push_back(Process::copy([&] {
        if (!agree(*make_world(&meeting, rank))) std::abort();
      }));
    }
    CHECK(agree(*make_world(&meeting, 0)));
    for (Process& process : processes) CHECK(process.wait().well());
  }
}

TEST_CASE("nobody waits for ever for a process that is gone or never came", "[collective][world]") {
  const Meeting meeting(2);
  const auto world_of = [&](int rank) { return make_world(&meeting, rank, 0.3); };
  CHECK_THROWS_WITH(world_of(0)->maximum(1.0), Catch::Contains("the process of rank 1 did not answer within 0 s"));
  CHECK(world_of(1)->maximum(0.5) == 1.0);  // who came first said it
}

TEST_CASE("each launcher's variables tell rank and size", "[collective][launcher]") {
  CHECK(launched_with({}).size == 1);
  CHECK(launched_with({}).by.empty());
  const auto check = [](const Launched& who, const char* by, int rank, int size) {
    CHECK(who.by == by);
    CHECK(who.rank == rank);
    CHECK(who.size == size);
  };
  check(launched_with({{"OMPI_COMM_WORLD_RANK", "5"}, {"OMPI_COMM_WORLD_SIZE", "16"}}), "Open MPI", 5, 16);
  check(launched_with({{"PMI_RANK", "2"}, {"PMI_SIZE", "4"}}), "PMI", 2, 4);
  check(launched_with({{"SLURM_PROCID", "3"}, {"SLURM_STEP_NUM_TASKS", "8"}}), "Slurm", 3, 8);
  // sbatch -n 8 sets SLURM_NTASKS and SLURM_PROCID=0 for the script; only srun's steps have SLURM_STEP_NUM_TASKS.
  CHECK(launched_with({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "8"}}).size == 1);
  for (const auto& [rank, why] : {std::pair("one", "PMI_RANK=one"), {"-1", "at least 0"}, {"2", "0 to size - 1"}}) {
    CHECK_THROWS_WITH(launched_with({{"PMI_RANK", rank}, {"PMI_SIZE", "2"}}), Catch::Contains(why));
  }
  launched_with({});
}

#ifdef FORETRAIN_HAS_MPI
// Not run by itself: it is what the processes of the test below do.
TEST_CASE("one of several processes", "[.process]") { CHECK(agree(*make_world(nullptr, launched().rank))); }

TEST_CASE("processes meet over MPI and agree", "[collective][world]") {
  // By way of a shell, as the suites' processes are started by another process of the program.
  const std::string program = std::filesystem::read_symlink("/proc/self/exe").string();
  const FilterResult run = run_filter({"env", "OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1", "mpirun",
                                       "--oversubscribe", "-n", "3", "sh", "-c", program + " '[.process]'"},
                                      "");
  INFO(run.output);
  CHECK(run.status == 0);
}
#else
TEST_CASE("several processes need a way to meet", "[collective][world]") {
  CHECK_THROWS_WITH(make_world(nullptr, 0), Catch::Contains("built without MPI"));
}
#endif
