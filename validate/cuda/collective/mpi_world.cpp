#include "validate/cuda/collective/world.hpp"

#ifdef FORETRAIN_HAS_MPI
// The C interface is all that is needed; the old one of C++ stays out.
#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>

#include <exception>
#include <numeric>
#endif

namespace foretrain::gpu {

#ifdef FORETRAIN_HAS_MPI

namespace {

void check_mpi(int status, const char* call) {
  if (status == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_string(status, text, &length);
  throw WorldError(std::string(call) + " failed: " + std::string(text, static_cast<std::size_t>(length)));
}

class MpiWorld final : public World {
 public:
  MpiWorld(int rank, int size) : World(rank, size), pending_(std::uncaught_exceptions()) {}
  ~MpiWorld() override {
    // The others wait for a process that leaves because of an error: MPI has to end them.
    if (std::uncaught_exceptions() > pending_) MPI_Abort(MPI_COMM_WORLD, 1);
    MPI_Finalize();
  }
  std::vector<std::string> gather(const std::string& text) override {
    const int own = static_cast<int>(text.size());
    std::vector<int> lengths(static_cast<std::size_t>(size())), starts = lengths;
    check_mpi(MPI_Allgather(&own, 1, MPI_INT, lengths.data(), 1, MPI_INT, MPI_COMM_WORLD), "MPI_Allgather");
    std::exclusive_scan(lengths.begin(), lengths.end(), starts.begin(), 0);
    std::string all(static_cast<std::size_t>(starts.back() + lengths.back()), '\0');
    check_mpi(
        MPI_Allgatherv(text.data(), own, MPI_BYTE, all.data(), lengths.data(), starts.data(), MPI_BYTE, MPI_COMM_WORLD),
        "MPI_Allgatherv");
    std::vector<std::string> texts;
    for (std::size_t i = 0; i < lengths.size(); ++i) {
      texts.push_back(all.substr(static_cast<std::size_t>(starts[i]), static_cast<std::size_t>(lengths[i])));
    }
    return texts;
  }
  [[nodiscard]] std::string transport() const override { return "MPI"; }

 private:
  int pending_;
};

}  // namespace

std::unique_ptr<World> make_mpi_world(const Launched& launched) {
  int initialised = 0;
  MPI_Initialized(&initialised);
  if (initialised == 0) check_mpi(MPI_Init(nullptr, nullptr), "MPI_Init");
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  int rank = 0;
  int size = 1;
  check_mpi(MPI_Comm_rank(MPI_COMM_WORLD, &rank), "MPI_Comm_rank");
  check_mpi(MPI_Comm_size(MPI_COMM_WORLD, &size), "MPI_Comm_size");
  if (size != launched.size) {
    MPI_Finalize();
    throw WorldError(launched.by + " launched " + std::to_string(launched.size) + " processes, and MPI sees " +
                     std::to_string(size) +
                     ": use the mpirun of the MPI that this program was built with (srun: " + "--mpi=pmix or pmi2)");
  }
  return std::make_unique<MpiWorld>(rank, size);
}

#else

std::unique_ptr<World> make_mpi_world(const Launched& /*launched*/) { return nullptr; }

#endif

}  // namespace foretrain::gpu
